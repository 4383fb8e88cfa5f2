package main

import (
	"archive/tar"
	"archive/zip"
	"cmp"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// entry is a file in an archive or a package.
type entry struct {
	// from is the path of the file, and to its path in the archive. If from is empty, body is the content.
	from, to string
	body     []byte
	mode     int64
}

// shared returns the files that accompany every program: licence, documentation and configuration.
func (r *release) shared() (all []entry, err error) {
	for _, name := range []string{"LICENSE", "README.md", "CHANGELOG.md"} {
		all = append(all, entry{from: name, to: name, mode: 0o644})
	}
	add := func(pattern, to string) error {
		names, err := filepath.Glob(pattern)
		for _, name := range names {
			all = append(all, entry{from: name, to: path.Join(to, filepath.Base(name)), mode: 0o644})
		}
		if err == nil && len(names) == 0 {
			err = fmt.Errorf("no file matches %s", pattern)
		}
		return err
	}
	for pattern, to := range map[string]string{filepath.Join(r.pages, "man1", "*"): "man/man1", filepath.Join(r.pages, "completions",
		"*"): "completions",
		"docs/*.md": "docs", "packaging/systemd/*": "systemd", "packaging/etc/*": "etc", "packaging/prometheus/*.yaml": "monitoring",
		"packaging/grafana/*.json": "monitoring"} {
		if err := add(pattern, to); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(all, func(a, b entry) int { return cmp.Compare(a.to, b.to) })
	return all, nil
}

// archive writes the program for a platform and its files as a tar file, or as a zip file for Windows.
func (r *release) archive(p platform) (err error) {
	name := fmt.Sprintf("portolan_%s_%s_%s", r.version, p.os, p.arch)
	all, err := r.shared()
	if err != nil {
		return err
	}
	all = append([]entry{{from: r.binary(p), to: p.binary(), mode: 0o755}}, all...)
	end := ".tar.gz"
	if p.os == "windows" {
		end = ".zip"
	}
	f, err := r.create(name + end)
	if err != nil {
		return err
	}
	defer func() {
		if e := f.Close(); err == nil {
			err = e
		}
	}()
	if p.os == "windows" {
		return r.zip(f, name, all)
	}
	z, err := gzip.NewWriterLevel(f, gzip.BestCompression)
	if err != nil {
		return err
	}
	if err := r.tar(z, name, all); err != nil {
		return err
	}
	return z.Close()
}

// tar writes files below a directory, all with the time of the release and without an owner.
func (r *release) tar(w io.Writer, dir string, all []entry) error {
	t := tar.NewWriter(w)
	for _, e := range all {
		if strings.HasSuffix(e.to, "/") { // a directory
			if err := t.WriteHeader(&tar.Header{Name: path.Join(dir, e.to) + "/", Typeflag: tar.TypeDir, Mode: e.mode, ModTime: r.modified,
				Format: tar.FormatPAX}); err != nil {
				return err
			}
			continue
		}
		body, err := e.read()
		if err != nil {
			return err
		}
		if err := t.WriteHeader(&tar.Header{Name: path.Join(dir, e.to), Mode: e.mode, Size: int64(len(body)), ModTime: r.modified,
			Format: tar.FormatPAX}); err != nil {
			return err
		}
		if _, err := t.Write(body); err != nil {
			return err
		}
	}
	return t.Close()
}

func (r *release) zip(w io.Writer, dir string, all []entry) error {
	z := zip.NewWriter(w)
	for _, e := range all {
		body, err := e.read()
		if err != nil {
			return err
		}
		h := &zip.FileHeader{Name: path.Join(dir, e.to), Method: zip.Deflate, Modified: r.modified}
		h.SetMode(os.FileMode(e.mode)) //nolint:gosec // permissions
		f, err := z.CreateHeader(h)
		if err != nil {
			return err
		}
		if _, err := f.Write(body); err != nil {
			return err
		}
	}
	return z.Close()
}

func (e entry) read() ([]byte, error) {
	if e.from == "" {
		return e.body, nil
	}
	return os.ReadFile(e.from)
}
