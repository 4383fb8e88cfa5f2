// Command release builds a release: programs for each platform, packages, a container image, bills of materials, and checksums. The same
// source and version result in the same bytes.
//
//	make release VERSION=1.2.3, which runs bin/release -version 1.2.3 -out dist [-platforms linux/amd64,linux/arm64] [-key minisign.key]
package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"aead.dev/minisign"
)

// release is the release being built.
type release struct {
	version string
	out     string
	// modified is the modification time of all files: the time of the commit, or SOURCE_DATE_EPOCH.
	modified time.Time
	// pages is the directory of the man pages and completion scripts.
	pages string
	// files are the names of the files written.
	files []string
}

// platform is an operating system and architecture.
type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "/" + p.arch }

// binary returns the file name of the program.
func (p platform) binary() string {
	if p.os == "windows" {
		return "portolan.exe"
	}
	return "portolan"
}

func main() {
	version := flag.String("version", "", "the version; that of the tag where it is left out")
	out := flag.String("out", "dist", "the directory for what is made, which is emptied")
	names := flag.String("platforms", "linux/amd64,linux/arm64,darwin/arm64,windows/amd64", "the platforms")
	key := flag.String("key", os.Getenv("PORTOLAN_RELEASE_KEY"),
		"a file with the minisign key that signs the checksums; its password is in PORTOLAN_RELEASE_KEY_PASSWORD")
	flag.Parse()
	if err := run(*version, *out, *names, *key); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(version, out, names, key string) error {
	r := &release{out: out}
	var err error
	if r.version, err = versionOf(version); err != nil {
		return err
	}
	if r.modified, err = timeOf(); err != nil {
		return err
	}
	if entries, err := os.ReadDir(out); err == nil && len(entries) > 0 {
		if _, err := os.Stat(filepath.Join(out, "SHA256SUMS")); err != nil {
			if _, err := os.Stat(filepath.Join(out, "work")); err != nil {
				return fmt.Errorf("%s holds something else than a release: name another directory", out)
			}
		}
	}
	if err := os.RemoveAll(out); err != nil {
		return err
	}
	work := filepath.Join(out, "work")
	if err := os.MkdirAll(work, 0o755); err != nil { //nolint:gosec // readable by all users
		return err
	}
	var platforms []platform
	for name := range strings.SplitSeq(names, ",") {
		goos, arch, ok := strings.Cut(name, "/")
		if !ok {
			return fmt.Errorf("%q is not a platform, such as linux/amd64", name)
		}
		platforms = append(platforms, platform{goos, arch})
	}
	host := platform{runtime.GOOS, runtime.GOARCH}
	for _, p := range append([]platform{host}, platforms...) { // the host's first, because its program writes the man pages
		if _, err := os.Stat(r.binary(p)); errors.Is(err, os.ErrNotExist) {
			if err := r.build(p); err != nil {
				return err
			}
		}
	}
	r.pages = filepath.Join(work, "pages")
	if err := command(r.binary(host), "man", r.pages); err != nil {
		return fmt.Errorf("write the man pages: %w", err)
	}
	for _, p := range platforms {
		if err := r.archive(p); err != nil {
			return fmt.Errorf("%v: %w", p, err)
		}
		if err := r.describe(p); err != nil {
			return fmt.Errorf("%v: %w", p, err)
		}
		if err := r.provider(p); err != nil {
			return fmt.Errorf("the provider for Terraform, %v: %w", p, err)
		}
		if p.os == "linux" {
			if err := r.packages(p); err != nil {
				return fmt.Errorf("%v: %w", p, err)
			}
		}
	}
	if err := r.wheel(); err != nil {
		return fmt.Errorf("the package for Python: %w", err)
	}
	if err := r.collection(); err != nil {
		return fmt.Errorf("the collection for Ansible: %w", err)
	}
	if err := r.image(platforms); err != nil {
		return fmt.Errorf("the image: %w", err)
	}
	if err := r.containers(); err != nil {
		return fmt.Errorf("what runs the image: %w", err)
	}
	if err := os.RemoveAll(work); err != nil {
		return err
	}
	return r.sums(key)
}

// binary returns the path of the program built for a platform.
func (r *release) binary(p platform) string {
	return filepath.Join(r.out, "work", p.os+"-"+p.arch, p.binary())
}

// build builds the program for a platform.
func (r *release) build(p platform) error {
	fmt.Println("building", p)
	return r.compile(".", "./cmd/portolan", r.binary(p), p)
}

// compile builds a program of a module for a platform. The program is static and contains no paths of the build machine.
func (r *release) compile(module, program, to string, p platform) error {
	to, err := filepath.Abs(to)
	if err != nil {
		return err
	}
	c := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -buildid= -X main.version="+r.version, "-o",
		to, program) //nolint:gosec // constant arguments
	c.Dir = module
	c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+p.os, "GOARCH="+p.arch)
	c.Stderr = os.Stderr
	return c.Run()
}

func command(name string, args ...string) error {
	c := exec.Command(name, args...) //nolint:gosec // a program of the repository
	c.Stderr = os.Stderr
	return c.Run()
}

func output(name string, args ...string) (string, error) {
	text, err := exec.Command(name, args...).Output() //nolint:gosec // constant arguments
	return strings.TrimSpace(string(text)), err
}

// versionOf returns the given version, or the version of the tag that is checked out.
func versionOf(given string) (string, error) {
	if given == "" {
		tag, err := output("git", "describe", "--tags", "--exact-match")
		if err != nil {
			return "", errors.New("no tag is checked out: set -version")
		}
		given = tag
	}
	given = strings.TrimPrefix(given, "v")
	if given == "" || strings.Trim(given, "0123456789abcdefghijklmnopqrstuvwxyz.-+") != "" || given[0] < '0' || given[0] > '9' {
		return "", fmt.Errorf("%q is not a version, such as 1.2.3", given)
	}
	return given, nil
}

// timeOf returns the modification time of all files.
func timeOf() (time.Time, error) {
	text := os.Getenv("SOURCE_DATE_EPOCH")
	if text == "" {
		var err error
		if text, err = output("git", "log", "-1", "--format=%ct"); err != nil {
			return time.Time{}, errors.New("this is not a git repository: set SOURCE_DATE_EPOCH")
		}
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	return time.Unix(seconds, 0).UTC(), err
}

// create creates a file of the release.
func (r *release) create(name string) (*os.File, error) {
	r.files = append(r.files, name)
	return os.Create(filepath.Join(r.out, name))
}

// sums writes the checksums of all files, and signs them if there is a key.
func (r *release) sums(key string) error {
	slices.Sort(r.files)
	var text strings.Builder
	for _, name := range r.files {
		f, err := os.Open(filepath.Join(r.out, name))
		if err != nil {
			return err
		}
		h := sha256.New()
		_, err = io.Copy(h, f)
		_ = f.Close()
		if err != nil {
			return err
		}
		fmt.Fprintf(&text, "%s  %s\n", hex.EncodeToString(h.Sum(nil)), name)
	}
	path := filepath.Join(r.out, "SHA256SUMS")
	if err := os.WriteFile(path, []byte(text.String()), 0o644); err != nil { //nolint:gosec // readable by all users
		return err
	}
	fmt.Print(text.String())
	if key == "" {
		fmt.Println("not signed: no key was given (-key)")
		return nil
	}
	private, err := minisign.PrivateKeyFromFile(os.Getenv("PORTOLAN_RELEASE_KEY_PASSWORD"), key)
	if err != nil {
		return fmt.Errorf("the key: %w", err)
	}
	trusted := fmt.Sprintf("portolan %s, %s", r.version, r.modified.Format(time.RFC3339))
	signature := minisign.SignWithComments(private, []byte(text.String()), trusted, "checksums of portolan "+r.version)
	return os.WriteFile(path+".minisig", signature, 0o644) //nolint:gosec // readable by all users
}
