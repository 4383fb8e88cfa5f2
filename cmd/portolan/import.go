package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"

	"portolan/internal/access"
	"portolan/internal/deploy"
	"portolan/internal/dns"
	"portolan/internal/ipam"
	"portolan/internal/naming"
	"portolan/internal/server"
	"portolan/internal/store"
)

type importCommand struct {
	File      importFile      `cmd:"" example:"portolan import file plan.csv --into configurations/main --dry-run" help:"Make and change what the rows of a CSV or JSON file say, of any type, at a manager that runs."`
	Addresses importAddresses `cmd:"" example:"portolan import addresses --data /var/lib/portolan addresses.csv" help:"Make the addresses of a CSV file with the columns address, name and state, in the networks they lie in."`
	Networks  importNetworks  `cmd:"" example:"portolan import networks --data /var/lib/portolan networks.csv" help:"Make the networks of a CSV file with the columns network, netmask, name and gateway, in the blocks they lie in."`
	Zone      importZone      `cmd:"" example:"portolan import zone --data /var/lib/portolan --origin example.net --from-server 192.0.2.53" help:"Make a zone and its records from a zone file, from what dig prints of a transfer, or from a name server."`

	Netbox   importNetbox   `cmd:"" help:"Read prefixes, addresses and names from NetBox, by its API."`
	Phpipam  importPhpipam  `cmd:"" help:"Read subnets and addresses that phpIPAM exports as CSV."`
	Infoblox importInfoblox `cmd:"" help:"Read networks, ranges, fixed addresses and names that Infoblox exports as CSV."`
	Dhcpd    importDhcpd    `cmd:"" help:"Read subnets, ranges and hosts from the settings of ISC dhcpd."`
	Kea      importKea      `cmd:"" help:"Read subnets, pools and reservations from the settings of Kea."`
	Bind     importBind     `cmd:"" help:"Read the zones that BIND is primary for, by their views, from its settings and zone files."`
}

// zonePlace says where a zone is.
type zonePlace struct {
	Configuration string `help:"The name of the configuration, where there is more than one." placeholder:"NAME"`
	View          string `help:"The name of the view, where there is more than one." placeholder:"NAME"`
}

// importFlags say how a file is imported.
type importFlags struct {
	AtOnce bool `help:"Import all of a long file or nothing of it, and keep every other change waiting meanwhile."`
}

// inSteps is how long a file is that is imported in steps unless somebody wants all of it at once, in lines.
const inSteps = 20_000

// how gives how a file of so many lines is imported, and says what follows from it.
func (f importFlags) how(s *session, lines int) (how ipam.Import, end func()) {
	bar := s.bar("rows")
	how.Progress = func(done int64) { bar.show("imported", done, int64(lines)) }
	if how.InSteps = lines > inSteps && !f.AtOnce; how.InSteps {
		fmt.Fprintf(s.stderr, "importing %d lines in steps, each of which is there when it is done; if it is cut off, import the file again, "+
			"and it goes on\n", lines)
	}
	return how, bar.end
}

type importZone struct {
	dataFlag
	importFlags
	zonePlace
	Origin     string `help:"The zone: the name that relative names in the file belong to, where it does not say so itself." placeholder:"NAME"`
	FromServer string `help:"Copy the zone --origin from this name server (AXFR), instead of a file." placeholder:"ADDR" env:"-"`
	KeyFile    string `help:"A file with the key that the copy is signed with, as tsig-keygen prints it." type:"existingfile" placeholder:"FILE" env:"-"`
	File       string `arg:"" optional:"" help:"The file." type:"existingfile"`
}

// fetch gives what is to be imported: the file, or what a server gives, in a file that goes when it is closed.
func (c *importZone) fetch(s *session) (in *os.File, from string, err error) {
	switch {
	case (c.FromServer == "") == (c.File == ""):
		return nil, "", usageError{errors.New("give a file, or --from-server")}
	case c.File != "" && c.KeyFile != "":
		return nil, "", usageError{errors.New("--key-file: is for --from-server")}
	case c.File != "":
		in, err = os.Open(c.File)
		return in, c.File, err
	case c.Origin == "":
		return nil, "", usageError{errors.New("--origin: name the zone to copy")}
	}
	var key *dns.TransferKey
	if c.KeyFile != "" {
		if key, err = dns.ReadKey(c.KeyFile); err != nil {
			return nil, "", usageError{err}
		}
	}
	if in, err = os.CreateTemp("", "portolan-zone-"); err != nil {
		return nil, "", err
	}
	if err = os.Remove(in.Name()); err == nil {
		err = dns.FetchZone(s.ctx, c.FromServer, c.Origin, key, in)
	}
	if err == nil {
		_, err = in.Seek(0, io.SeekStart)
	}
	if err != nil {
		_ = in.Close()
	}
	return in, c.FromServer, err
}

// Run imports the zone: a short one or nothing, a long one in steps.
func (c *importZone) Run(s *session) error {
	f, from, err := c.fetch(s)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	zone, records, err := naming.ReadZone(f, c.Origin)
	if err != nil {
		return fmt.Errorf("%s: nothing was imported: %w", from, err)
	}
	return c.open(func(st *store.Store, users *access.Service) error {
		api := server.NewAPI(st)
		how, end := c.how(s, len(records))
		done, err := dns.ImportZone(s.ctx, api, c.Configuration, c.View, zone, records, how)
		end()
		if err != nil {
			return fmt.Errorf("%s: %w", from, err)
		}
		if done.There > 0 {
			fmt.Fprintf(s.stderr, "left out: %d records that are there already\n", done.There)
		}
		for _, skipped := range done.Skipped {
			fmt.Fprintln(s.stderr, "left out:", skipped)
		}
		_, err = fmt.Fprintf(s.stdout, "imported %s: %d resources made, %d records left out\n", done.Zone, done.Made, len(done.Skipped))
		return err
	})
}

// notesShown is how many networks that are there already are named when an import goes on.
const notesShown = 20

type importNetworks struct {
	dataFlag
	importFlags
	Configuration string `help:"The name of the configuration, where there is more than one." placeholder:"NAME"`
	File          string `arg:"" help:"The file." type:"existingfile"`
}

// Run imports the networks of the file: of a short one all or none, of a long one in steps.
func (c *importNetworks) Run(s *session) error {
	f, err := os.Open(c.File)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	lines, notes, err := ipam.ReadNetworks(f)
	if err != nil {
		return fmt.Errorf("%s: nothing was imported: %w", c.File, err)
	}
	return c.open(func(st *store.Store, users *access.Service) error {
		api := server.NewAPI(st)
		how, end := c.how(s, len(lines))
		made, more, err := ipam.ImportNetworks(s.ctx, api, c.Configuration, lines, how)
		end()
		if err != nil {
			return fmt.Errorf("%s: %w", c.File, err)
		}
		if how.InSteps && len(more) > notesShown {
			notes, more = append(notes, fmt.Sprintf("%d networks that are there already", len(more))), nil
		}
		for _, note := range append(notes, more...) {
			fmt.Fprintln(s.stderr, "left out:", note)
		}
		_, err = fmt.Fprintf(s.stdout, "imported %d networks\n", made)
		return err
	})
}

type exportCommand struct {
	Resources exportResources `cmd:"" default:"withargs" help:"Write resources with all below them as a document that portolan apply takes back."`
	Zone      exportZone      `cmd:"" example:"portolan export zone --data /var/lib/portolan example.net" help:"Write a zone as a file (RFC 1035)."`
}

type exportZone struct {
	dataFlag
	zonePlace
	Zone string `arg:"" help:"The zone's name; for the reverse zone of a block or network also its range."`
}

// Run writes the zone to standard output.
func (c *exportZone) Run(s *session) error {
	return c.open(func(st *store.Store, users *access.Service) error {
		api := server.NewAPI(st)
		var zone *naming.Zone
		if err := st.View(s.ctx, func(tx *store.Tx) error {
			row, err := dns.FindZone(tx, c.Configuration, c.View, c.Zone)
			if err == nil {
				zone, err = deploy.AsServed(tx, api, row)
			}
			return err
		}); err != nil {
			return err
		}
		out := bufio.NewWriter(s.stdout)
		if err := zone.Write(out); err != nil {
			return err
		}
		return out.Flush()
	})
}

type importAddresses struct {
	dataFlag
	importFlags
	Configuration string `help:"The name of the configuration, where there is more than one." placeholder:"NAME"`
	File          string `arg:"" help:"The file." type:"existingfile"`
}

// Run imports the addresses of the file: of a short one all or none, of a long one in steps.
func (c *importAddresses) Run(s *session) error {
	f, err := os.Open(c.File)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	lines, err := ipam.ReadAddresses(f)
	if err != nil {
		return fmt.Errorf("%s: nothing was imported: %w", c.File, err)
	}
	return c.open(func(st *store.Store, users *access.Service) error {
		api := server.NewAPI(st)
		how, end := c.how(s, len(lines))
		there, err := ipam.ImportAddresses(s.ctx, api, c.Configuration, lines, how)
		end()
		if err != nil {
			return fmt.Errorf("%s: %w", c.File, err)
		}
		if there > 0 {
			fmt.Fprintf(s.stderr, "left out: %d addresses that are there already\n", there)
		}
		_, err = fmt.Fprintf(s.stdout, "imported %d addresses\n", len(lines)-there)
		return err
	})
}
