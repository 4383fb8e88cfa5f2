// Package release manages the releases of Portolan as files in a repository of The Update Framework (TUF, specification 1.0). A release
// engineer signs it (sign.go), a manager serves it, and a service point fetches and verifies it (fetch.go). The package depends neither on
// the packages of the manager nor on those of the service point.
//
// A repository is a directory. metadata/ contains the signed documents of the four roles. Their names contain the version, except for
// timestamp.json, which is replaced. targets/ contains the releases, compressed with zstd, named by the SHA-256 of their content. All other
// files are never changed, so that the repository can be read while it is written.
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

// Path is the path of the repository on the check-in listener of a manager. It requires a service point's certificate.
const Path = "/releases/v1/"

// Folders of a repository.
const (
	metadataFolder = "metadata"
	targetsFolder  = "targets"
)

// Maximum size of a release in bytes, compressed and uncompressed.
const (
	MaxPacked   = 256 << 20
	MaxUnpacked = 1 << 30
)

// ErrNone reports a directory without a repository, or with one that was never published.
var ErrNone = errors.New("nothing was published there; see portolan release")

// version is the pattern of a version. Versions are also folder names.
var version = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z.+_-]{0,63}$`)

// platform is the pattern of a platform: an operating system and an architecture, in the names of Go.
var platform = regexp.MustCompile(`^[a-z0-9]{1,16}/[a-z0-9]{1,16}$`)

// CheckVersion validates a version.
func CheckVersion(text string) error {
	if !version.MatchString(text) {
		return fmt.Errorf("%q is not a version: up to 64 letters, digits and . + _ -, the first a letter or a digit", text)
	}
	return nil
}

// checkPlatform validates a platform.
func checkPlatform(text string) error {
	if !platform.MatchString(text) {
		return fmt.Errorf("%q is not a platform, such as linux/amd64", text)
	}
	return nil
}

// Platform returns the platform of this program.
func Platform() string { return runtime.GOOS + "/" + runtime.GOARCH }

// target returns the name of a release in the repository.
func target(version, platform string) string {
	return "portolan/" + version + "/" + strings.ReplaceAll(platform, "/", "-")
}

// custom is the additional data of a release in its signed description.
type custom struct {
	Version  string `json:"version"`
	Platform string `json:"platform"`
	// Size is the size of the program, in bytes.
	Size int64 `json:"size"`
}

// Release is a published release.
type Release struct {
	Version string `json:"version"`
	// Platforms are the platforms that the release exists for.
	Platforms []string `json:"platforms"`
}

// Repository is the directory of a repository.
type Repository struct{ Dir string }

// path returns the path of a document. Version 0 means a document without a version in its name.
func (r Repository) path(role string, version int64) string {
	name := role + ".json"
	if version > 0 {
		name = strconv.FormatInt(version, 10) + "." + name
	}
	return filepath.Join(r.Dir, metadataFolder, name)
}

// Open opens a file of the repository by its relative name, as service points request it. Files that are not published are not found.
func (r Repository) Open(name string) (*os.File, error) {
	folder, _, _ := strings.Cut(name, "/")
	if folder != metadataFolder && folder != targetsFolder || !fs.ValidPath(name) || strings.HasPrefix(filepath.Base(name), ".") {
		return nil, fs.ErrNotExist
	}
	root, err := os.OpenRoot(r.Dir) // confines the path to the directory
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

// latest returns the highest version of the documents of a role; 0 if there is none.
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

// State describes the published content of a repository.
type State struct {
	Releases []Release
	// Expires is when the first of its documents expires. Service points reject the repository after that.
	Expires time.Time
}

// Has reports whether a version exists for a platform; an empty platform means any.
func (s State) Has(version, platform string) bool {
	i := slices.IndexFunc(s.Releases, func(r Release) bool { return r.Version == version })
	return i >= 0 && (platform == "" || slices.Contains(s.Releases[i].Platforms, platform))
}

// Published returns the time of the last publication; ErrNone if there was none.
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

// State reads the published releases, newest first; ErrNone if nothing was published. It does not verify signatures; service points do.
func (r Repository) State() (s State, err error) {
	timestamp, err := metadata.Timestamp().FromFile(r.path(metadata.TIMESTAMP, 0))
	if errors.Is(err, fs.ErrNotExist) {
		return s, ErrNone
	}
	if err != nil {
		return s, fmt.Errorf("read %s: %w", r.path(metadata.TIMESTAMP, 0), err)
	}
	number := int64(0)
	if meta := timestamp.Signed.Meta[metadata.SNAPSHOT+".json"]; meta != nil {
		number = meta.Version
	}
	snapshot, err := metadata.Snapshot().FromFile(r.path(metadata.SNAPSHOT, number))
	if err != nil {
		return s, fmt.Errorf("read %s: %w", r.path(metadata.SNAPSHOT, number), err)
	}
	number = 0
	if meta := snapshot.Signed.Meta[metadata.TARGETS+".json"]; meta != nil {
		number = meta.Version
	}
	targets, err := metadata.Targets().FromFile(r.path(metadata.TARGETS, number))
	if err != nil {
		return s, fmt.Errorf("read %s: %w", r.path(metadata.TARGETS, number), err)
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

// releases returns the releases among targets, sorted by version, newest first.
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

// compare compares versions. Numbers in them are compared by value, everything else as text.
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

// digits returns the number of digits at the start of a text.
func digits(text string) int { return len(text) - len(strings.TrimLeft(text, "0123456789")) }
