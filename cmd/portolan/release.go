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
	Init     releaseInit     `cmd:"" example:"portolan release init --repository /srv/releases --keys /media/keys" help:"Create an empty release repository and the keys of its roles."`
	Sign     releaseSign     `cmd:"" example:"portolan release sign ./portolan --repository /srv/releases --keys /media/keys" help:"Add a program to the repository as a release, signed with the targets key."`
	Withdraw releaseWithdraw `cmd:"" example:"portolan release withdraw 1.2.0 --repository /srv/releases --keys /media/keys" help:"Remove a version from the repository, signed with the targets key."`
	Publish  releasePublish  `cmd:"" example:"portolan release publish --repository /srv/releases --keys /media/keys" help:"Publish the signed releases with the snapshot and timestamp keys. Repeat it before the metadata expires."`
	Renew    releaseRenew    `cmd:"" example:"portolan release renew --repository /srv/releases --keys /media/keys" help:"Sign a new root with the root key. It has a new expiry, and can replace lost keys of other roles."`
	List     releaseList     `cmd:"" example:"portolan release list --repository /srv/releases" help:"List the published releases of a repository. For those of a manager, use portolan fleet releases."`
}

// repositoryFlags are the paths of a release repository and its keys.
type repositoryFlags struct {
	Repository string `help:"The directory of the repository. A manager serves the directory releases in its data directory, or that of --releases." required:"" type:"path" placeholder:"DIR"`
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
	_, err := fmt.Fprintf(s.stdout, "Created the repository %s and its keys in %s. Keep %s offline: only portolan "+
		"release renew needs it.\n",
		c.Repository, c.Keys, filepath.Join(c.Keys, "root.pem"))
	return err
}

type releaseSign struct {
	repositoryFlags
	Version  string `help:"The version. Default: the version that the program reports, if it runs on this machine." env:"-"`
	Platform string `help:"The platform of the program, such as linux/arm64. Default: that of this machine." env:"-"`
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
			return usageError{fmt.Errorf("%s reports version %s, not %s", c.Program, says, c.Version)}
		}
	}
	if c.Version == "" {
		return usageError{errors.New("--version is required, because a program for another platform cannot run here")}
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
	_, err = fmt.Fprintf(s.stdout, "Signed version %s for %s. Publish it with portolan release publish.\n", c.Version, c.Platform)
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
		return "", fmt.Errorf("run %s for its version: %w", program, err)
	}
	version, ok := strings.CutPrefix(string(bytes.TrimSpace(out)), "portolan ")
	if !ok {
		return "", fmt.Errorf("%s is not a portolan program: it printed %.100q", program, out)
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
	_, err := fmt.Fprintf(s.stdout, "Withdrew version %s. Publish the change with portolan release publish.\n", c.Version)
	return err
}

type releasePublish struct {
	repositoryFlags
	Life time.Duration `help:"The validity period. After it, service points reject the repository until it is published again." default:"720h"`
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
	Replace []string `help:"Roles whose keys are replaced: targets, snapshot, timestamp. First move the old key files away." placeholder:"ROLE,..."`
}

// Run renews the root.
func (c *releaseRenew) Run(s *session) error {
	if err := c.repository().Renew(c.Keys, c.Replace, time.Now()); err != nil {
		return err
	}
	_, err := fmt.Fprintln(s.stdout, "Signed a new root. Publish it with portolan release publish.")
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
	_, err = fmt.Fprintf(s.stdout, "Valid until %s.\n", state.Expires.UTC().Format(time.RFC3339))
	return err
}
