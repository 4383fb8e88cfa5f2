package main

import (
	"bufio"
	"fmt"
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
