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

// releases is the folder of the state directory that contains downloaded Portolan releases and their state. The base is the program that
// was installed on the machine. It starts the other releases (launcher.go) and runs itself if none of them can be started. Only one
// process at a time writes the folder: the agent while it runs, else the launcher.
type releases struct {
	dir string
	// base is the version of the base, running the version of this process.
	base, running string
}

const (
	releaseFolder  = "release"
	releasesFile   = "releases.json"
	programFile    = "portolan"
	documentFolder = "tuf"
	// programFolder contains the programs by version.
	programFolder = "programs"
)

// releaseState is the state of the releases. Its file is replaced atomically, so a power failure leaves the old or the new state.
type releaseState struct {
	// Base is the version of the base when this was written. If another base was installed since, the base runs.
	Base string `json:"base"`
	// Current is the release that runs, Previous the one before it; empty means the base.
	Current  string `json:"current,omitempty"`
	Previous string `json:"previous,omitempty"`
	// Crashes counts consecutive early ends of the current release.
	Crashes int `json:"crashes,omitempty"`
	// Trying is the release on trial.
	Trying *trial `json:"trying,omitempty"`
	// Failed is the last failed update.
	Failed *failure `json:"failed,omitempty"`
	// Left explains which once healthy release was replaced by its predecessor, and why. It is empty if none was since the last release
	// became healthy.
	Left string `json:"left,omitempty"`
}

// trial is a release on trial.
type trial struct {
	checkin.Update
	// Starts counts its starts.
	Starts int `json:"starts"`
	// Unwell are the ids of the applications that were unhealthy before the update.
	Unwell []string `json:"unwell,omitempty"`
	// Waiting describes the application that is not healthy yet.
	Waiting string `json:"waiting,omitempty"`
}

// failure is a failed update with its reason.
type failure struct {
	checkin.Update
	Reason string `json:"reason"`
}

// maxStarts is the maximum number of starts of a release on trial. More than one is allowed, because the machine may be switched off
// during a trial.
const maxStarts = 3

func newReleases(stateDir, base, running string) *releases {
	return &releases{dir: filepath.Join(stateDir, releaseFolder), base: base, running: running}
}

// load reads the state of the releases. It returns an empty state if another base was installed since.
func (r *releases) load() (s releaseState, err error) {
	text, err := os.ReadFile(filepath.Join(r.dir, releasesFile))
	if errors.Is(err, fs.ErrNotExist) {
		return releaseState{Base: r.base}, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	if err != nil {
		return releaseState{Base: r.base}, fmt.Errorf("read the current release: %w", err)
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
		return fmt.Errorf("store the current release: %w", err)
	}
	return (state{r.dir}).write(releasesFile, text)
}

// program returns the path of a release's program.
func (r *releases) program(version string) string {
	return filepath.Join(r.dir, programFolder, version, programFile)
}

// failTrial ends the trial and records its failure; the previous release continues.
func (s *releaseState) failTrial(reason string) {
	s.Failed = &failure{s.Trying.Update, reason}
	s.Trying = nil
}

// checkLimit is the time limit for a new program to print its version.
const checkLimit = 30 * time.Second

// unpack installs the program of a release, which fetch writes. The program is installed complete, synced to the disk and able to run, or
// not at all.
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
		err = f.Chmod(0o755) //nolint:gosec // the applications run as another user
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
	asked.WaitDelay = time.Second                      // also if a child process still holds its output
	if out, err := asked.CombinedOutput(); err != nil {
		return fmt.Errorf("the program of version %s does not run on this machine: %w: %.200s", version, err, out)
	}
	if err := syncDir(dir); err != nil {
		return err
	}
	if err := os.RemoveAll(filepath.Join(programs, version)); err != nil { // left from an earlier installation
		return err
	}
	if err := os.Rename(dir, filepath.Join(programs, version)); err != nil {
		return err
	}
	return syncDir(programs)
}

// TrustRoot makes the service point of a state directory trust the release root in a file, and the roots that follow it. It returns an
// error if the directory trusts another root already.
func TrustRoot(stateDir, file string) error {
	dir := filepath.Join(stateDir, releaseFolder, documentFolder)
	given, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read the root of the releases: %w", err)
	}
	// The digest of the given root is stored separately, because later signed roots replace the trusted one.
	const trusted, noted = "root.json", "root.given"
	digest := []byte(digestOf(given))
	before, err := os.ReadFile(filepath.Join(dir, noted))
	if err == nil && bytes.Equal(before, digest) {
		return nil
	}
	if known, e := os.ReadFile(filepath.Join(dir, trusted)); e == nil && !bytes.Equal(known, given) {
		return fmt.Errorf("this service point already trusts another release root: remove %s to trust that of %s", dir, file)
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

// tidy removes releases other than the current one, the previous one and the one on trial, and incomplete downloads.
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
