package main

import (
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"portolan/internal/wire/release"
)

type releaseCommand struct {
	Init     releaseInit     `cmd:"" example:"portolan release init --repository /srv/releases --keys /media/keys" help:"Make an empty repository of releases, and the keys of its roles."`
	Sign     releaseSign     `cmd:"" example:"portolan release sign ./portolan --repository /srv/releases --keys /media/keys" help:"Put a program into the repository as a release, signed with the key of the targets."`
	Withdraw releaseWithdraw `cmd:"" example:"portolan release withdraw 1.2.0 --repository /srv/releases --keys /media/keys" help:"Take a version out of the repository, signed with the key of the targets."`
	Publish  releasePublish  `cmd:"" example:"portolan release publish --repository /srv/releases --keys /media/keys" help:"Show what was signed, with the keys of the snapshot and the timestamp; to be repeated before it expires."`
	Renew    releaseRenew    `cmd:"" example:"portolan release renew --repository /srv/releases --keys /media/keys" help:"Sign a new root, with the root's key: it lives anew, and names new keys in place of those that were lost."`
	List     releaseList     `cmd:"" example:"portolan release list --repository /srv/releases" help:"List what is published in a repository; portolan fleet releases lists what a manager has."`
}

// repositoryFlags are the paths of a release repository and its keys.
type repositoryFlags struct {
	Repository string `help:"The directory of the repository; a manager serves that of releases in its data directory, or of --releases." required:"" type:"path" placeholder:"DIR"`
	Keys       string `help:"The directory of the keys: root.pem, targets.pem, snapshot.pem and timestamp.pem." required:"" type:"path" placeholder:"DIR"`
}

func (f repositoryFlags) repository() release.Repository {
	return release.Repository{Dir: f.Repository}
}

type releaseInit struct{ repositoryFlags }

// Run creates a repository.
func (c *releaseInit) Run(s *session) error {
	if err := c.repository().Init(c.Keys, time.Now()); err != nil {
		return err
	}
	_, err := fmt.Fprintf(s.stdout, "The repository %s was made, and its keys in %s. Keep %s offline: it is needed for portolan "+
		"release renew alone.\n",
		c.Repository, c.Keys, filepath.Join(c.Keys, "root.pem"))
	return err
}

type releaseSign struct {
	repositoryFlags
	Version  string `help:"The version. Default: what the program says, where it runs on this machine." env:"-"`
	Platform string `help:"What the program is built for, such as linux/arm64. Default: this machine's." env:"-"`
	Program  string `arg:"" help:"The program." type:"existingfile"`
}

// Run adds a release.
func (c *releaseSign) Run(s *session) error {
	if c.Platform == "" {
		c.Platform = release.Platform()
	}
	if c.Platform == release.Platform() {
		says, err := versionOf(s.ctx, c.Program)
		switch {
		case err != nil:
			return err
		case c.Version == "":
			c.Version = says
		case c.Version != says:
			return usageError{fmt.Errorf("%s says that it is version %s, not %s", c.Program, says, c.Version)}
		}
	}
	if c.Version == "" {
		return usageError{errors.New("--version is needed: a program for another platform cannot be asked for it")}
	}
	f, err := os.Open(c.Program)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	if built := builtFor(f); built != "" && built != c.Platform {
		return usageError{fmt.Errorf("%s is built for %s, not for %s", c.Program, built, c.Platform)}
	}
	if err := c.repository().Add(c.Keys, c.Version, c.Platform, f, time.Now()); err != nil {
		return err
	}
	_, err = fmt.Fprintf(s.stdout, "Version %s for %s was signed; portolan release publish shows it.\n", c.Version, c.Platform)
	return err
}

// builtFor returns the platform of a Linux program, or an empty text if it is unknown.
func builtFor(f io.ReaderAt) string {
	e, err := elf.NewFile(f)
	if err != nil { // not an ELF file: a script, or a program for another system
		return ""
	}
	arch := map[elf.Machine]string{elf.EM_X86_64: "amd64", elf.EM_AARCH64: "arm64", elf.EM_386: "386", elf.EM_ARM: "arm",
		elf.EM_RISCV: "riscv64"}[e.Machine]
	if arch == "" {
		return ""
	}
	return "linux/" + arch
}

// versionOf returns the version that a program prints.
func versionOf(ctx context.Context, program string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, program, "version").Output() //nolint:gosec // a program that the user names
	if err != nil {
		return "", fmt.Errorf("asking %s for its version: %w", program, err)
	}
	version, ok := strings.CutPrefix(string(bytes.TrimSpace(out)), "portolan ")
	if !ok {
		return "", fmt.Errorf("%s is no portolan: it says %.100q", program, out)
	}
	return version, nil
}

type releaseWithdraw struct {
	repositoryFlags
	Version string `arg:"" help:"The version."`
}

// Run withdraws a version.
func (c *releaseWithdraw) Run(s *session) error {
	if err := c.repository().Withdraw(c.Keys, c.Version, time.Now()); err != nil {
		return err
	}
	_, err := fmt.Fprintf(s.stdout, "Version %s was withdrawn; portolan release publish shows that.\n", c.Version)
	return err
}

type releasePublish struct {
	repositoryFlags
	Life time.Duration `help:"How long it is good: service points refuse it then, until it is published anew." default:"720h"`
}

// Run publishes the repository.
func (c *releasePublish) Run(s *session) error {
	if c.Life < time.Hour {
		return usageError{errors.New("--life must be 1h or more")}
	}
	if err := c.repository().Publish(c.Keys, c.Life, time.Now()); err != nil {
		return err
	}
	return (&releaseList{Repository: c.Repository}).Run(s)
}

type releaseRenew struct {
	repositoryFlags
	Replace []string `help:"Roles whose keys are made anew: targets, snapshot, timestamp. Move the files of the keys before away first." placeholder:"ROLE,..."`
}

// Run renews the root.
func (c *releaseRenew) Run(s *session) error {
	if err := c.repository().Renew(c.Keys, c.Replace, time.Now()); err != nil {
		return err
	}
	_, err := fmt.Fprintln(s.stdout, "A new root was signed; portolan release publish is needed behind that.")
	return err
}

type releaseList struct {
	Repository string `help:"The directory of the repository." required:"" type:"path" placeholder:"DIR"`
}

// Run lists the published releases.
func (c *releaseList) Run(s *session) error {
	state, err := release.Repository{Dir: c.Repository}.State()
	if err != nil {
		return err
	}
	for _, r := range state.Releases {
		fmt.Fprintf(s.stdout, "%s  %s\n", r.Version, strings.Join(r.Platforms, " "))
	}
	_, err = fmt.Fprintf(s.stdout, "Good until %s.\n", state.Expires.UTC().Format(time.RFC3339))
	return err
}
