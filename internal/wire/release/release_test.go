package release

import (
	"bytes"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/theupdateframework/go-tuf/v2/metadata"
)

var today = time.Date(2026, 11, 23, 9, 0, 0, 0, time.UTC)

// fixture is a served repository with its keys, and a service point's cache.
type fixture struct {
	t          *testing.T
	r          Repository
	keys       string
	source     Source
	dir, saved string
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	dir := t.TempDir()
	f := &fixture{t: t, dir: dir, r: Repository{filepath.Join(dir, "repository")}, keys: filepath.Join(dir, "keys")}
	f.must(f.r.Init(f.keys, today))
	served := httptest.NewServer(http.FileServer(http.Dir(f.r.Dir)))
	t.Cleanup(served.Close)
	f.source = Source{Base: served.URL, HTTP: served.Client(), Cache: filepath.Join(dir, "cache"), Now: today}
	f.release("1.0.0", "one")
	return f
}

func (f *fixture) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

// release signs and publishes a version.
func (f *fixture) release(version, program string) {
	f.t.Helper()
	f.must(f.r.Add(f.keys, version, "linux/amd64", strings.NewReader(program), f.source.Now))
	f.must(f.r.Publish(f.keys, TimestampLife, f.source.Now))
}

func (f *fixture) fetch(version string) (string, error) {
	f.t.Helper()
	var out bytes.Buffer
	err := f.source.Fetch(f.t.Context(), version, "linux/amd64", &out)
	return out.String(), err
}

func (f *fixture) gives(version, want string) {
	f.t.Helper()
	if got, err := f.fetch(version); err != nil || got != want {
		f.t.Errorf("version %s is %q, %v; want %q", version, got, err, want)
	}
}

func (f *fixture) refuses(version, why string) {
	f.t.Helper()
	got, err := f.fetch(version)
	if err == nil || !strings.Contains(err.Error(), why) || got != "" {
		f.t.Errorf("version %s is %q, %v; want a refusal with %q", version, got, err, why)
	}
}

// save copies the repository, and restore serves the copy again, as an attacker who replays old content would.
func (f *fixture) save() {
	f.t.Helper()
	f.saved = filepath.Join(f.dir, "saved")
	f.must(os.CopyFS(f.saved, os.DirFS(f.r.Dir)))
}

func (f *fixture) restore() {
	f.t.Helper()
	f.must(os.RemoveAll(f.r.Dir))
	f.must(os.CopyFS(f.r.Dir, os.DirFS(f.saved)))
}

// change changes the files of the repository whose names have the given ending.
func (f *fixture) change(ending string, how func([]byte) []byte) {
	f.t.Helper()
	changed := false
	f.must(filepath.WalkDir(f.r.Dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ending) {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		changed = true
		return os.WriteFile(path, how(text), 0o600)
	}))
	if !changed {
		f.t.Fatalf("no file ends with %s", ending)
	}
}

func TestReleases(t *testing.T) {
	f := newFixture(t)
	f.gives("1.0.0", "one")
	f.refuses("1.1.0", "version 1.1.0 does not exist for linux/amd64")
	f.release("1.1.0", "two")
	f.gives("1.1.0", "two")
	f.gives("1.0.0", "one")
	f.must(f.r.Add(f.keys, "1.2.0", "linux/amd64", strings.NewReader("three"), today))
	f.refuses("1.2.0", "version 1.2.0 does not exist") // signed, but not published
	s, err := f.r.State()
	f.must(err)
	if len(s.Releases) != 2 || s.Releases[0].Version != "1.1.0" || !s.Has("1.0.0", "linux/amd64") || s.Has("1.0.0", "linux/arm64") ||
		!s.Expires.Equal(today.Add(TimestampLife)) {
		t.Errorf("published is %+v", s)
	}
}

func TestRefusedReleases(t *testing.T) {
	f := newFixture(t)
	for version, why := range map[string]string{"1.0.0": "is there for linux/amd64 already", "": "is not a version",
		"../x":                  "is not a version",
		strings.Repeat("1", 65): "is not a version"} {
		if err := f.r.Add(f.keys, version, "linux/amd64", strings.NewReader("x"), today); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("adding %q: %v", version, err)
		}
	}
	if err := f.r.Add(f.keys, "2", "Linux", strings.NewReader("x"), today); err == nil || !strings.Contains(err.Error(), "not a platform") {
		t.Errorf("adding for Linux: %v", err)
	}
	if err := f.r.Add(f.keys, "2", "linux/amd64", strings.NewReader(""), today); err == nil || !strings.Contains(err.Error(), "is empty") {
		t.Errorf("adding nothing: %v", err)
	}
	if err := f.r.Init(f.keys, today); err == nil || !strings.Contains(err.Error(), "has a repository already") {
		t.Errorf("making it again: %v", err)
	}
	other := Repository{filepath.Join(f.dir, "other")}
	if err := other.Init(f.keys, today); err == nil || !strings.Contains(err.Error(), "has the key of root already") {
		t.Errorf("making another one with the keys of this one: %v", err)
	}
	if _, err := other.State(); err == nil || !strings.Contains(err.Error(), "nothing was published") {
		t.Errorf("the state of none: %v", err)
	}
}

func flip(text []byte) []byte {
	text[len(text)/2] ^= 1
	return text
}

// TestForgedRelease checks that changed, truncated or replaced files are rejected.
func TestForgedRelease(t *testing.T) {
	f := newFixture(t)
	f.change(".linux-amd64", flip)
	f.refuses("1.0.0", "cannot be trusted")
}

func TestTruncatedRelease(t *testing.T) {
	f := newFixture(t)
	f.change(".linux-amd64", func(text []byte) []byte { return text[:len(text)-1] })
	f.refuses("1.0.0", "cannot be trusted")
}

func TestEndlessRelease(t *testing.T) {
	f := newFixture(t)
	f.change(".linux-amd64", func(text []byte) []byte { return append(text, make([]byte, 1<<20)...) })
	f.refuses("1.0.0", "cannot be trusted")
}

func TestForgedList(t *testing.T) {
	f := newFixture(t)
	f.change(".targets.json", func(text []byte) []byte { return bytes.ReplaceAll(text, []byte("1.0.0"), []byte("9.9.9")) })
	f.refuses("9.9.9", "cannot be trusted")
	f.refuses("1.0.0", "cannot be trusted")
}

// TestForeignRelease checks that a client that trusts this repository rejects a repository with other keys.
func TestForeignRelease(t *testing.T) {
	f := newFixture(t)
	f.gives("1.0.0", "one")
	f.must(os.RemoveAll(f.r.Dir))
	f.must(f.r.Init(filepath.Join(f.dir, "foreign"), today))
	f.must(f.r.Add(filepath.Join(f.dir, "foreign"), "2.0.0", "linux/amd64", strings.NewReader("evil"), today))
	f.must(f.r.Publish(filepath.Join(f.dir, "foreign"), TimestampLife, today))
	f.refuses("2.0.0", "cannot be trusted")
}

// TestReplayedRelease checks that documents older than the seen ones are rejected: a withdrawn release does not reappear.
func TestReplayedRelease(t *testing.T) {
	f := newFixture(t)
	f.release("1.1.0", "two")
	f.save()
	f.must(f.r.Withdraw(f.keys, "1.1.0", today))
	f.must(f.r.Publish(f.keys, TimestampLife, today))
	f.refuses("1.1.0", "version 1.1.0 does not exist")
	f.gives("1.0.0", "one")
	f.restore()
	f.refuses("1.1.0", "cannot be trusted")
}

// TestFrozenReleases checks that the expiry of the timestamp reveals an attacker who withholds new documents. Another publication makes the
// repository valid again.
func TestFrozenReleases(t *testing.T) {
	f := newFixture(t)
	f.gives("1.0.0", "one")
	f.source.Now = today.Add(TimestampLife + time.Hour)
	f.refuses("1.0.0", "expired")
	f.must(f.r.Publish(f.keys, TimestampLife, f.source.Now))
	f.gives("1.0.0", "one")
}

// TestRenewedRoot checks that the root key replaces the other keys, also for a client that trusts the old root.
func TestRenewedRoot(t *testing.T) {
	f := newFixture(t)
	f.gives("1.0.0", "one")
	f.save()
	for _, role := range []string{"targets", "timestamp"} {
		f.must(os.Rename(filepath.Join(f.keys, role+".pem"), filepath.Join(f.keys, role+".stolen")))
	}
	f.must(f.r.Renew(f.keys, []string{"targets", "timestamp"}, today))
	f.gives("1.0.0", "one") // unchanged until it is published
	f.must(f.r.Publish(f.keys, TimestampLife, today))
	f.release("1.1.0", "two")
	f.gives("1.1.0", "two")
	f.gives("1.0.0", "one")

	// Signatures with the replaced keys are rejected.
	for _, role := range []string{"targets", "timestamp"} {
		f.must(os.Rename(filepath.Join(f.keys, role+".stolen"), filepath.Join(f.keys, role+".pem")))
	}
	err := f.r.Add(f.keys, "6.6.6", "linux/amd64", strings.NewReader("evil"), today)
	if err == nil || !strings.Contains(err.Error(), "replaced") {
		t.Errorf("a key that was replaced signs: %v", err)
	}
	newest := f.r.path(metadata.ROOT, 2)
	f.must(os.Rename(newest, newest+".kept")) // an attacker with a stolen key has no such check
	f.release("6.6.6", "evil")
	f.must(os.Rename(newest+".kept", newest))
	f.refuses("6.6.6", "cannot be trusted")
	if err := f.r.Renew(f.keys, []string{"root"}, today); err == nil {
		t.Error("the root's own key was replaced")
	}
	if err := f.r.Renew(f.keys, []string{"captain"}, today); err == nil || !strings.Contains(err.Error(), "is not a role") {
		t.Errorf("replacing the key of a role that is none: %v", err)
	}
}

// TestPublicationInSteps checks that the previous release can be fetched after an interruption at any step of a publication.
func TestPublicationInSteps(t *testing.T) {
	f := newFixture(t)
	before := map[string]bool{}
	list := func(fn func(path string)) {
		f.must(filepath.WalkDir(f.r.Dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				fn(path)
			}
			return err
		}))
	}
	list(func(path string) { before[path] = true })
	timestamp, err := os.ReadFile(f.r.path("timestamp", 0))
	f.must(err)
	f.release("1.1.0", "two")
	f.must(os.WriteFile(f.r.path("timestamp", 0), timestamp, 0o600)) // omit the last step
	f.gives("1.0.0", "one")
	list(func(path string) { // then remove the other files, in any order
		if !before[path] {
			f.must(os.Remove(path))
			f.gives("1.0.0", "one")
		}
	})
	f.release("1.1.0", "two again")
	f.gives("1.1.0", "two again")
}

func TestVersionsAreInOrder(t *testing.T) {
	sorted := []string{"0.9", "1.0", "1.2", "1.10", "1.10.1", "2-rc1", "2-rc2", "10"}
	for i, a := range sorted {
		for j, b := range sorted {
			if got := compare(a, b); got < 0 != (i < j) || got > 0 != (i > j) {
				t.Errorf("compare(%s, %s) = %d", a, b, got)
			}
		}
	}
}

// TestKeysOfAnotherRepository checks that keys of another repository do not sign: no service point would accept the signature.
func TestKeysOfAnotherRepository(t *testing.T) {
	now := time.Now()
	r, keys := Repository{Dir: t.TempDir()}, filepath.Join(t.TempDir(), "keys")
	other, foreign := Repository{Dir: t.TempDir()}, filepath.Join(t.TempDir(), "keys")
	for _, err := range []error{r.Init(keys, now), other.Init(foreign, now), r.Add(keys, "1", "linux/amd64", strings.NewReader("x"), now),
		r.Publish(keys, TimestampLife, now)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	before, err := r.Published()
	if err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{"targets": r.Add(foreign, "2", "linux/amd64", strings.NewReader("x"), now),
		"snapshot": r.Publish(foreign, TimestampLife, now.Add(time.Hour)), "root": r.Renew(foreign, nil, now)} {
		if err == nil || !strings.Contains(err.Error(), "the key of "+what) || !strings.Contains(err.Error(), "another repository") {
			t.Errorf("with a foreign key of %s: %v", what, err)
		}
	}
	if s, err := r.State(); err != nil || len(s.Releases) != 1 {
		t.Errorf("there are %+v, %v", s, err)
	}
	if after, err := r.Published(); err != nil || !after.Equal(before) {
		t.Errorf("it was published at %v, and at %v before: %v", after, before, err)
	}
}
