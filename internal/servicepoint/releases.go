package servicepoint

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"portolan/internal/wire/checkin"
	"portolan/internal/wire/release"
)

// releases is the folder of the state directory with the releases of Portolan that the service point was updated to, and with what is
// known of them. The program that was installed on the machine is the base: it starts the others (launcher.go) and is what remains when
// none of them can be started. One process writes the folder at a time: the agent while it runs, else the launcher.
type releases struct {
	dir string
	// base is the version of the base, running the one that runs.
	base, running string
}

const (
	releaseFolder  = "release"
	releasesFile   = "releases.json"
	programFile    = "portolan"
	documentFolder = "tuf"
	// programFolder has the programs, by their versions.
	programFolder = "programs"
)

// releaseState is what is known of releases. It is replaced whole: a power cut leaves what was, or what is.
type releaseState struct {
	// Base is the version of the base when this was written: when another one was installed, that is what runs.
	Base string `json:"base"`
	// Current is the release that runs, Previous the one before; empty is the base.
	Current  string `json:"current,omitempty"`
	Previous string `json:"previous,omitempty"`
	// Crashes is how many times in a row it ended by itself soon after it was started.
	Crashes int `json:"crashes,omitempty"`
	// Trying is the release that is to show that it is well.
	Trying *trial `json:"trying,omitempty"`
	// Failed is the last one that was not.
	Failed *failure `json:"failed,omitempty"`
	// Left says which release was well once and was left for the one before, and why; empty where none was since the last one that is well.
	Left string `json:"left,omitempty"`
}

// trial is a release that is tried.
type trial struct {
	checkin.Update
	// Starts is how many times it was started.
	Starts int `json:"starts"`
	// Unwell are the ids of the applications that were not healthy before it.
	Unwell []string `json:"unwell,omitempty"`
	// Waiting says what it waits for.
	Waiting string `json:"waiting,omitempty"`
}

// failure is an update that failed, and why.
type failure struct {
	checkin.Update
	Reason string `json:"reason"`
}

// mostStarts is how many times a release is started that has not shown that it is well: where the machine is switched off meanwhile it
// is tried again.
const mostStarts = 3

func newReleases(stateDir, base, running string) *releases {
	return &releases{dir: filepath.Join(stateDir, releaseFolder), base: base, running: running}
}

// load reads what is known; where another base was installed since, that is nothing.
func (r *releases) load() (s releaseState, err error) {
	text, err := os.ReadFile(filepath.Join(r.dir, releasesFile))
	if errors.Is(err, fs.ErrNotExist) {
		return releaseState{Base: r.base}, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	if err != nil {
		return releaseState{Base: r.base}, fmt.Errorf("reading which release runs: %w", err)
	}
	if s.Base != r.base {
		s = releaseState{Base: r.base}
	}
	return s, nil
}

func (r *releases) save(s releaseState) error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(r.dir, 0o700); err != nil {
		return fmt.Errorf("noting which release runs: %w", err)
	}
	return (state{r.dir}).write(releasesFile, text)
}

// program is the file of a release.
func (r *releases) program(version string) string {
	return filepath.Join(r.dir, programFolder, version, programFile)
}

// fail notes that the release that is tried is not well; the one before goes on.
func (s *releaseState) fail(reason string) {
	s.Failed = &failure{s.Trying.Update, reason}
	s.Trying = nil
}

// checkLimit is how long a new program may take to say its version.
const checkLimit = 30 * time.Second

// unpack puts the program of a release, which fetch writes, into its place. It is there whole, on the disk and able to run, or not at all.
func (r *releases) unpack(ctx context.Context, version string, fetch func(f *os.File) error) error {
	programs := filepath.Join(r.dir, programFolder)
	if err := os.MkdirAll(programs, 0o700); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(programs, ".new-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, programFile)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	err = fetch(f)
	if err == nil {
		err = f.Chmod(0o755) //nolint:gosec // its applications run as another user
	}
	if err == nil {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, checkLimit)
	defer cancel()
	asked := exec.CommandContext(ctx, path, "version") //nolint:gosec // it was signed
	asked.WaitDelay = time.Second                      // also where it has left something behind that holds its output
	if out, err := asked.CombinedOutput(); err != nil {
		return fmt.Errorf("the program of version %s does not run on this machine: %w: %.200s", version, err, out)
	}
	if err := syncDir(dir); err != nil {
		return err
	}
	if err := os.RemoveAll(filepath.Join(programs, version)); err != nil { // of an earlier time
		return err
	}
	if err := os.Rename(dir, filepath.Join(programs, version)); err != nil {
		return err
	}
	return syncDir(programs)
}

// TrustRoot lets the service point of a state directory take releases of a root, a file, and of those that follow it. Where
// another one is trusted already it is refused.
func TrustRoot(stateDir, file string) error {
	dir := filepath.Join(stateDir, releaseFolder, documentFolder)
	given, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("reading the root of the releases: %w", err)
	}
	// Which root was given is noted: the one that is trusted follows it, as others are signed.
	const trusted, noted = "root.json", "root.given"
	digest := []byte(digestOf(given))
	before, err := os.ReadFile(filepath.Join(dir, noted))
	if err == nil && bytes.Equal(before, digest) {
		return nil
	}
	if known, e := os.ReadFile(filepath.Join(dir, trusted)); e == nil && !bytes.Equal(known, given) {
		return fmt.Errorf("this service point trusts another root of releases already: remove %s to have it trust that of %s", dir, file)
	}
	if err := release.CheckRoot(given); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := (state{dir}).write(trusted, given); err != nil {
		return err
	}
	return (state{dir}).write(noted, digest)
}

// tidy removes the releases that neither run nor ran before, and what was not unpacked to its end.
func (r *releases) tidy(s releaseState) error {
	programs := filepath.Join(r.dir, programFolder)
	entries, err := os.ReadDir(programs)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		name := e.Name()
		if name == s.Current || name == s.Previous || s.Trying != nil && name == s.Trying.Version {
			continue
		}
		err = errors.Join(err, os.RemoveAll(filepath.Join(programs, name)))
	}
	return err
}
