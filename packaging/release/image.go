package main

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// nobody is the user and group of the image's process.
const nobody = "65532:65532"

// image writes an OCI image layout for all Linux platforms as one tar file, for docker load and podman load.
func (r *release) image(platforms []platform) error {
	dir := filepath.Join(r.out, "work", "image")
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	index := mutate.IndexMediaType(v1.ImageIndex(empty.Index), types.OCIImageIndex)
	linux := false
	for _, p := range platforms {
		if p.os != "linux" {
			continue
		}
		linux = true
		one, err := r.imageFor(p)
		if err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: one, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: p.os,
			Architecture: p.arch}}})
	}
	if !linux {
		return nil
	}
	if err := path.AppendIndex(index, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": "portolan:" + r.version,
		"io.containerd.image.name": "docker.io/library/portolan:" + r.version})); err != nil {
		return err
	}
	f, err := r.create(fmt.Sprintf("portolan_%s_oci.tar", r.version))
	if err != nil {
		return err
	}
	err = r.pack(f, dir)
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}

// imageFor returns the image of a platform: the program, a user, and a directory for the data.
func (r *release) imageFor(p platform) (v1.Image, error) {
	var b bytes.Buffer
	t := tar.NewWriter(&b)
	for _, d := range []struct {
		name string
		mode int64
		uid  int
	}{{"data/", 0o700, 65532}, {"etc/", 0o755, 0}, {"tmp/", 0o1777, 0}} {
		if err := t.WriteHeader(&tar.Header{Name: d.name, Typeflag: tar.TypeDir, Mode: d.mode, Uid: d.uid, Gid: d.uid,
			ModTime: r.modified}); err != nil {
			return nil, err
		}
	}
	for _, e := range []entry{{from: r.binary(p), to: "portolan", mode: 0o755},
		{body: []byte("root:x:0:0:root:/:/sbin/nologin\nportolan:x:65532:65532:portolan:/data:/sbin/nologin\n"), to: "etc/passwd", mode: 0o644},
		{body: []byte("root:x:0:\nportolan:x:65532:\n"), to: "etc/group", mode: 0o644},
		{from: "LICENSE", to: "LICENSE", mode: 0o644}} {
		body, err := e.read()
		if err != nil {
			return nil, err
		}
		if err := t.WriteHeader(&tar.Header{Name: e.to, Mode: e.mode, Size: int64(len(body)), ModTime: r.modified}); err != nil {
			return nil, err
		}
		if _, err := t.Write(body); err != nil {
			return nil, err
		}
	}
	if err := t.Close(); err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.Bytes())), nil },
		tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	base := mutate.MediaType(mutate.ConfigMediaType(empty.Image, types.OCIConfigJSON), types.OCIManifestSchema1)
	img, err := mutate.AppendLayers(base, layer)
	if err != nil {
		return nil, err
	}
	img, err = mutate.ConfigFile(img, &v1.ConfigFile{OS: p.os, Architecture: p.arch, Created: v1.Time{Time: r.modified},
		RootFS: must(img.ConfigFile()).RootFS,
		Config: v1.Config{User: nobody, WorkingDir: "/data", Entrypoint: []string{"/portolan"}, Cmd: []string{"serve"},
			Env:          []string{"PORTOLAN_DATA=/data", "PORTOLAN_LISTEN=:8080", "PORTOLAN_CHECKIN_LISTEN=:8443", "HOME=/data"},
			ExposedPorts: map[string]struct{}{"8080/tcp": {}, "8443/tcp": {}}, Volumes: map[string]struct{}{"/data": {}},
			Healthcheck: &v1.HealthConfig{Test: []string{"CMD", "/portolan", "ready"}, Interval: 10 * time.Second, Timeout: 5 * time.Second,
				StartPeriod: time.Minute, Retries: 3},
			Labels: map[string]string{"org.opencontainers.image.title": "portolan", "org.opencontainers.image.version": r.version,
				"org.opencontainers.image.licenses": "Apache-2.0"}}})
	return img, err
}

// must returns the value. It panics on an error, which does not occur for an image in memory.
func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// pack writes a directory as a tar file, sorted by name.
func (r *release) pack(w io.Writer, dir string) error {
	t := tar.NewWriter(w)
	if err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		name := must(filepath.Rel(dir, path))
		if d.IsDir() {
			return t.WriteHeader(&tar.Header{Name: name + "/", Typeflag: tar.TypeDir, Mode: 0o755, ModTime: r.modified})
		}
		body, err := os.ReadFile(path) //nolint:gosec // a file written by this program
		if err != nil {
			return err
		}
		if err := t.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(body)), ModTime: r.modified}); err != nil {
			return err
		}
		_, err = t.Write(body)
		return err
	}); err != nil {
		return err
	}
	return t.Close()
}
