// Package release is the releases of Portolan as files: a repository of The Update Framework (TUF, specification 1.0), which a release
// engineer signs (sign.go), a manager serves, and a service point reads and verifies (fetch.go). It knows neither the manager's rooms nor
// the service point's.
//
// A repository is a directory. metadata/ has the signed documents of the four roles, each under the number of its version but for
// timestamp.json, which is replaced; targets/ has the releases, compressed by zstd, each under the SHA-256 of its content. Nothing else
// in it is ever changed, so that it can be read while it is written.
package release

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/theupdateframework/go-tuf/v2/metadata"
)

// Path is where a manager serves its repository at the check-in door, to whoever shows a service point's certificate.
const Path = "/releases/v1/"

// Folders of a repository.
const (
	metadataFolder = "metadata"
	targetsFolder  = "targets"
)

// Bounds, in bytes, of a release as it is sent and as it is unpacked.
const (
	MaxPacked   = 256 << 20
	MaxUnpacked = 1 << 30
)

// ErrNone says that a directory has no repository, or one that was never published.
var ErrNone = errors.New("nothing was published there; see portolan release")

// version is what a version looks like: it names folders.
var version = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z.+_-]{0,63}$`)

// platform is what a platform looks like: an operating system and an architecture, as Go names them.
var platform = regexp.MustCompile(`^[a-z0-9]{1,16}/[a-z0-9]{1,16}$`)

// CheckVersion says what is wrong with a version.
func CheckVersion(text string) error {
	if !version.MatchString(text) {
		return fmt.Errorf("%q is no version: up to 64 letters, digits and . + _ -, the first a letter or a digit", text)
	}
	return nil
}

// CheckPlatform says what is wrong with a platform.
func CheckPlatform(text string) error {
	if !platform.MatchString(text) {
		return fmt.Errorf("%q is no platform, such as linux/amd64", text)
	}
	return nil
}

// Platform is the one that this program runs on.
func Platform() string { return runtime.GOOS + "/" + runtime.GOARCH }

// target is the name of a release in the repository.
func target(version, platform string) string {
	return "portolan/" + version + "/" + strings.ReplaceAll(platform, "/", "-")
}

// custom is what the signed description of a release says beside its length and its hashes.
type custom struct {
	Version  string `json:"version"`
	Platform string `json:"platform"`
	// Size is that of the program, in bytes.
	Size int64 `json:"size"`
}

// Release is a release that was published.
type Release struct {
	Version string `json:"version"`
	// Platforms are those that it is there for.
	Platforms []string `json:"platforms"`
}

// Repository is the directory of a repository.
type Repository struct{ Dir string }

// path names a document; version 0 is that of a document without a number.
func (r Repository) path(role string, version int64) string {
	name := role + ".json"
	if version > 0 {
		name = strconv.FormatInt(version, 10) + "." + name
	}
	return filepath.Join(r.Dir, metadataFolder, name)
}

// Open opens a file of the repository by its name in it, as service points ask for it. What is not published is not there.
func (r Repository) Open(name string) (*os.File, error) {
	folder, _, _ := strings.Cut(name, "/")
	if folder != metadataFolder && folder != targetsFolder || !fs.ValidPath(name) || strings.HasPrefix(filepath.Base(name), ".") {
		return nil, fs.ErrNotExist
	}
	root, err := os.OpenRoot(r.Dir) // nothing outside of it
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	f, err := root.Open(filepath.FromSlash(name))
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || info.IsDir() {
		return nil, errors.Join(fs.ErrNotExist, err, f.Close())
	}
	return f, nil
}

// latest gives the highest number of the documents of a role; 0 where there is none.
func (r Repository) latest(role string) (highest int64, err error) {
	entries, err := os.ReadDir(filepath.Join(r.Dir, metadataFolder))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	for _, e := range entries {
		if front, ok := strings.CutSuffix(e.Name(), "."+role+".json"); ok {
			if n, err := strconv.ParseInt(front, 10, 64); err == nil {
				highest = max(highest, n)
			}
		}
	}
	return highest, err
}

// State is what was published of a repository, and until when service points take it.
type State struct {
	Releases []Release
	// Expires is when the first of its documents does.
	Expires time.Time
}

// Has reports whether a version is there for a platform; an empty platform is any.
func (s State) Has(version, platform string) bool {
	i := slices.IndexFunc(s.Releases, func(r Release) bool { return r.Version == version })
	return i >= 0 && (platform == "" || slices.Contains(s.Releases[i].Platforms, platform))
}

// Published is when something was published last; ErrNone where nothing was.
func (r Repository) Published() (time.Time, error) {
	info, err := os.Stat(r.path(metadata.TIMESTAMP, 0))
	if errors.Is(err, fs.ErrNotExist) {
		return time.Time{}, ErrNone
	}
	if err != nil {
		return time.Time{}, err
	}
	return info.ModTime(), nil
}

// State reads what was published, newest first; ErrNone where nothing was. The signatures are the service points' to verify.
func (r Repository) State() (s State, err error) {
	timestamp, err := metadata.Timestamp().FromFile(r.path(metadata.TIMESTAMP, 0))
	if errors.Is(err, fs.ErrNotExist) {
		return s, ErrNone
	}
	if err != nil {
		return s, fmt.Errorf("reading %s: %w", r.path(metadata.TIMESTAMP, 0), err)
	}
	number := int64(0)
	if meta := timestamp.Signed.Meta[metadata.SNAPSHOT+".json"]; meta != nil {
		number = meta.Version
	}
	snapshot, err := metadata.Snapshot().FromFile(r.path(metadata.SNAPSHOT, number))
	if err != nil {
		return s, fmt.Errorf("reading %s: %w", r.path(metadata.SNAPSHOT, number), err)
	}
	number = 0
	if meta := snapshot.Signed.Meta[metadata.TARGETS+".json"]; meta != nil {
		number = meta.Version
	}
	targets, err := metadata.Targets().FromFile(r.path(metadata.TARGETS, number))
	if err != nil {
		return s, fmt.Errorf("reading %s: %w", r.path(metadata.TARGETS, number), err)
	}
	s.Expires = timestamp.Signed.Expires
	for _, other := range []time.Time{snapshot.Signed.Expires, targets.Signed.Expires} {
		if other.Before(s.Expires) {
			s.Expires = other
		}
	}
	s.Releases = releases(targets.Signed.Targets)
	return s, nil
}

// releases gives the releases among targets by version, the newest first as far as their versions say which that is.
func releases(targets map[string]*metadata.TargetFiles) []Release {
	byVersion := map[string][]string{}
	for _, t := range targets {
		var c custom
		if t.Custom == nil || json.Unmarshal(*t.Custom, &c) != nil || c.Version == "" {
			continue // of another program
		}
		byVersion[c.Version] = append(byVersion[c.Version], c.Platform)
	}
	all := make([]Release, 0, len(byVersion))
	for version, platforms := range byVersion {
		slices.Sort(platforms)
		all = append(all, Release{version, platforms})
	}
	slices.SortFunc(all, func(a, b Release) int { return -compare(a.Version, b.Version) })
	return all
}

// compare orders versions: numbers in them by their values, everything else as text.
func compare(a, b string) int {
	for a != "" && b != "" {
		i, j := digits(a), digits(b)
		if i > 0 && j > 0 {
			x, y := strings.TrimLeft(a[:i], "0"), strings.TrimLeft(b[:j], "0")
			if len(x) != len(y) {
				return len(x) - len(y)
			}
			if x != y {
				return strings.Compare(x, y)
			}
			a, b = a[i:], b[j:]
			continue
		}
		if a[0] != b[0] {
			return int(a[0]) - int(b[0])
		}
		a, b = a[1:], b[1:]
	}
	return len(a) - len(b)
}

// digits is how many digits a text begins with.
func digits(text string) int { return len(text) - len(strings.TrimLeft(text, "0123456789")) }
