package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"

	"portolan/client"
	"portolan/internal/client/cli"
	"portolan/internal/client/convert"
)

type importDhcpd struct {
	sourceFlags
	servingFlags
	File string `arg:"" help:"The file dhcpd.conf or dhcpd6.conf; - reads standard input."`
}

// Help returns examples.
func (importDhcpd) Help() string {
	return "Included files are read from this machine. Examples:\n\n" +
		"  portolan import dhcpd /etc/dhcp/dhcpd.conf --configuration main --dry-run\n" +
		"  portolan import dhcpd /etc/dhcp/dhcpd.conf --configuration main --server dhcp1 --partner dhcp2"
}

// Run imports a configuration of ISC dhcpd.
func (c *importDhcpd) Run(s *session) error {
	updates := false
	err := c.importFile(s, c.File, func(raw []byte) (*convert.Document, error) {
		d, err := c.serve(s, &c.sourceFlags)(convert.Dhcpd(raw, includedFrom(c.File)))
		updates = err == nil && d.HasZoneGroup()
		return d, err
	})
	if updates && c.Server != "" && !c.DryRun && (err == nil || errors.As(err, new(skippedError))) {
		if e := c.linkZones(s, &c.sourceFlags); e != nil {
			return e
		}
	}
	return err
}

// linkZones links the zone group of the import to the servers.
func (c *servingFlags) linkZones(s *session, f *sourceFlags) error {
	m, err := f.manager()
	if err != nil {
		return err
	}
	if err := oneConfiguration(s.ctx, m); err != nil {
		return err
	}
	group, err := m.Find(s.ctx, "zoneGroups/"+convert.ZoneGroup)
	if err != nil {
		return err
	}
	for _, name := range []string{c.Server, c.Partner} {
		if name == "" {
			continue
		}
		server, err := m.Find(s.ctx, "servers/"+name)
		if err != nil {
			return err
		}
		err = m.Do(s.ctx, http.MethodPost, client.AddressPath+group.String()+"/servers", map[string]any{"id": server.ID}, nil)
		var refused *client.Error
		if errors.As(err, &refused) && refused.Code == "ResourceAlreadyExists" { // an earlier import linked it
			continue
		}
		if err != nil {
			return fmt.Errorf("link zone group %s to server %s: %w", convert.ZoneGroup, name, err)
		}
	}
	return nil
}

type importKea struct {
	sourceFlags
	servingFlags
	File string `arg:"" help:"The file kea-dhcp4.conf or kea-dhcp6.conf; - reads standard input."`
}

// Help returns examples.
func (importKea) Help() string {
	return "Included files are read from this machine. Examples:\n\n" +
		"  portolan import kea /etc/kea/kea-dhcp4.conf --configuration main --dry-run\n" +
		"  portolan import kea /etc/kea/kea-dhcp4.conf --configuration main --server dhcp1 --partner dhcp2"
}

// Run imports a configuration of Kea.
func (c *importKea) Run(s *session) error {
	return c.importFile(s, c.File, func(raw []byte) (*convert.Document, error) {
		return c.serve(s, &c.sourceFlags)(convert.Kea(raw, includedFrom(c.File)))
	})
}

// includedFrom returns the function that reads the files that a file includes. Their paths are relative to its directory.
func includedFrom(file string) func(path string) ([]byte, error) {
	return func(path string) ([]byte, error) {
		if !filepath.IsAbs(path) {
			path = filepath.Join(filepath.Dir(file), path)
		}
		return readFile(path)
	}
}

// servingFlags are the servers of imported networks.
type servingFlags struct {
	Server  string `help:"The server of the imported networks: they get a DHCP role with its interface." placeholder:"NAME" env:"-"`
	Partner string `help:"The other server of a failover pair." placeholder:"NAME" env:"-"`
}

// serve returns a function that gives the networks of a document a role with the servers of the flags.
func (c *servingFlags) serve(s *session, f *sourceFlags) func(d *convert.Document, err error) (*convert.Document, error) {
	return func(d *convert.Document, err error) (*convert.Document, error) {
		if err != nil || c.Server == "" && c.Partner == "" {
			return d, err
		}
		if c.Server == "" || f.Write != "" {
			return nil, convert.ChoiceError("--partner requires --server, and --server cannot be combined with --write")
		}
		m, err := f.manager()
		if err != nil {
			return nil, err
		}
		if err := oneConfiguration(s.ctx, m); err != nil {
			return nil, err
		}
		var interfaces []int64
		for _, name := range []string{c.Server, c.Partner} {
			if name == "" {
				continue
			}
			id, err := interfaceOf(s.ctx, m, name)
			if err != nil {
				return nil, err
			}
			interfaces = append(interfaces, id)
		}
		d.Serve(interfaces)
		return d, nil
	}
}

// interfaceOf returns the id of the first interface of a server.
func interfaceOf(ctx context.Context, m *cli.Manager, server string) (int64, error) {
	at, err := m.Find(ctx, "servers/"+server+"/interfaces")
	if err != nil {
		return 0, err
	}
	ids, err := m.IDs(ctx, at.String(), "", 1)
	if err == nil && len(ids) == 0 {
		err = fmt.Errorf("server %s has no interface", server)
	}
	if err != nil {
		return 0, err
	}
	return ids[0], nil
}
