package main

import (
	"fmt"
	"path"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb" // registers the format
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm" // registers the format
)

// installed maps directories of the archive to directories on a machine.
var installed = map[string]string{"man/man1": "/usr/share/man/man1", "docs": "/usr/share/doc/portolan/docs",
	"monitoring": "/usr/share/doc/portolan/monitoring",
	"systemd":    "/usr/lib/systemd/system", ".": "/usr/share/doc/portolan"}

// completions are the paths where shells search completions, by file name. ofDebian are the paths that differ on Debian.
var (
	completions = map[string]string{"portolan.bash": "/usr/share/bash-completion/completions/portolan",
		"portolan.zsh": "/usr/share/zsh/site-functions/_portolan", "portolan.fish": "/usr/share/fish/vendor_completions.d/portolan.fish"}
	ofDebian = map[string]string{"portolan.zsh": "/usr/share/zsh/vendor-completions/_portolan"}
)

// packages writes the deb and the rpm for a platform.
func (r *release) packages(p platform) error {
	all, err := r.shared()
	if err != nil {
		return err
	}
	contents := files.Contents{{Source: r.binary(p), Destination: "/usr/bin/portolan", FileInfo: &files.ContentFileInfo{Mode: 0o755,
		MTime: r.modified}}}
	for _, e := range all {
		c := &files.Content{Source: e.from, FileInfo: &files.ContentFileInfo{Mode: 0o644, MTime: r.modified}}
		switch dir := path.Dir(e.to); dir {
		case "completions":
			if c.Destination = completions[path.Base(e.to)]; c.Destination == "" {
				return fmt.Errorf("%s: its install path is not defined", e.to)
			}
			if there := ofDebian[path.Base(e.to)]; there != "" {
				other := *c
				c.Packager, other.Packager, other.Destination = "rpm", "deb", there
				contents = append(contents, &other)
			}
		case "etc":
			c.Destination, c.Type = "/etc/portolan/"+path.Base(e.to), files.TypeConfigNoReplace
		default:
			c.Destination = path.Join(installed[dir], path.Base(e.to))
		}
		contents = append(contents, c)
	}
	info := &nfpm.Info{Name: "portolan", Arch: p.arch, Platform: "linux", Version: r.version, VersionSchema: "semver", Section: "net",
		Priority: "optional", Maintainer: "The Portolan authors", License: "Apache-2.0", MTime: r.modified,
		Description: "address, name and fleet manager\nManages the addresses, names and service points of a network, " +
			"and serves DNS, DHCP and TFTP.",
		Overridables: nfpm.Overridables{Contents: contents, Depends: nil, Recommends: []string{"ca-certificates"},
			Scripts: nfpm.Scripts{PreInstall: "packaging/release/scripts/preinstall.sh", PostInstall: "packaging/release/scripts/postinstall.sh",
				PreRemove: "packaging/release/scripts/preremove.sh", PostRemove: "packaging/release/scripts/postremove.sh"},
			Deb: nfpm.Deb{Compression: "xz"}}}
	for _, kind := range []string{"deb", "rpm"} {
		packager, err := nfpm.Get(kind)
		if err != nil {
			return err
		}
		one := *info
		if kind == "rpm" {
			one.RPM.BuildHost = "localhost"
		}
		if err := nfpm.PrepareForPackager(&one, kind); err != nil {
			return err
		}
		name := strings.ReplaceAll(packager.ConventionalFileName(&one), "~", "-")
		f, err := r.create(name)
		if err != nil {
			return err
		}
		err = packager.Package(&one, f)
		if e := f.Close(); err == nil {
			err = e
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}
