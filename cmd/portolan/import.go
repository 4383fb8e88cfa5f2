package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"portolan/internal/base/naming"
	"portolan/internal/base/plural"
	"portolan/internal/engine/store"
	"portolan/internal/manager/dns"
	"portolan/internal/manager/dnspublish"
	"portolan/internal/manager/identity"
	"portolan/internal/manager/ipam"
	"portolan/internal/manager/model"
)

type importCommand struct {
	File      importFile      `cmd:"" example:"portolan import file plan.csv --into configurations/main --dry-run" help:"Create and update resources of any type from the rows of a CSV or JSON file, at a running manager."`
	Addresses importAddresses `cmd:"" example:"portolan import addresses --data /var/lib/portolan addresses.csv" help:"Create addresses in existing networks from a CSV file with the columns address, name and state."`
	Networks  importNetworks  `cmd:"" example:"portolan import networks --data /var/lib/portolan networks.csv" help:"Create networks in existing blocks from a CSV file with the columns network, netmask, name and gateway."`
	Zone      importZone      `cmd:"" example:"portolan import zone --data /var/lib/portolan --origin example.net --from-server 192.0.2.53" help:"Create a zone and its records from a zone file, the output of a dig zone transfer, or a name server."`

	Netbox   importNetbox   `cmd:"" help:"Import prefixes, addresses and names from the API of NetBox."`
	Phpipam  importPhpipam  `cmd:"" help:"Import subnets and addresses from a CSV export of phpIPAM."`
	Infoblox importInfoblox `cmd:"" help:"Import networks, ranges, fixed addresses and names from a CSV export of Infoblox."`
	Dhcpd    importDhcpd    `cmd:"" help:"Import subnets, ranges and hosts from the configuration of ISC dhcpd."`
	Kea      importKea      `cmd:"" help:"Import subnets, pools and reservations from the configuration of Kea."`
	Leases   importLeases   `cmd:"" example:"portolan import leases /var/lib/dhcp/dhcpd.leases --configuration main --dry-run" help:"Import the active leases of ISC dhcpd or Kea, so that each client keeps its address."`
	Bind     importBind     `cmd:"" help:"Import the primary zones of BIND, by view, from its configuration and zone files."`
}

// zonePlace are the flags that select the view of a zone.
type zonePlace struct {
	Configuration string `help:"The name of the configuration. Required if there is more than one." placeholder:"NAME"`
	View          string `help:"The name of the view. Required if there is more than one." placeholder:"NAME"`
}

// importFlags are the flags of imports into a data directory.
type importFlags struct {
	AtOnce bool `help:"Import all of a long file or nothing. All other changes wait until the import ends."`
}

// maxLinesAtOnce is the number of lines above which a file is imported in steps, unless --at-once is given.
const maxLinesAtOnce = 20_000

// importOptions returns the options for importing a file of this many lines. It prints a note if the import runs in steps. end ends the
// progress bar.
func (f importFlags) importOptions(s *session, lines int) (options ipam.Import, end func()) {
	bar := s.bar("rows")
	options.Progress = func(done int64) { bar.show("imported", done, int64(lines)) }
	if options.InSteps = lines > maxLinesAtOnce && !f.AtOnce; options.InSteps {
		fmt.Fprintf(s.stderr, "importing %d lines in steps, each committed separately; if the import is interrupted, "+
			"run it again to continue\n", lines)
	}
	return options, bar.finish
}

// lineFlags are the flags of imports of networks or addresses.
type lineFlags struct {
	dataFlag
	importFlags
	Strict        bool   `help:"Import nothing if a row would be skipped."`
	Prune         bool   `help:"Delete resources in the same blocks or networks that are not in the file. They are listed first."`
	DryRun        bool   `help:"Preview the import without changing anything." short:"n"`
	Yes           bool   `help:"Do not ask for confirmation." short:"y" env:"-"`
	Configuration string `help:"The name of the configuration. Required if there is more than one." placeholder:"NAME"`
	File          string `arg:"" help:"The file." type:"existingfile"`
}

// importLines imports lines. With --dry-run, with --prune, or before a question at the terminal, it first tries them. what names the
// resources in the output. skipped are the rows that could not be read.
func (f *lineFlags) importLines(s *session, what string, lines int, skipped []string,
	run func(*store.Store, ipam.Import) (ipam.Imported, error)) error {
	if f.Strict && len(skipped) > 0 {
		f.print(s, what, ipam.Imported{}, skipped, true)
		return fmt.Errorf("%s: nothing was imported: %s would be skipped", f.File, plural.Count(len(skipped), "row"))
	}
	return f.open(func(st *store.Store, _ *identity.Service) error {
		options, end := f.importOptions(s, lines)
		defer func() { end() }()
		if options.Strict, options.Prune = f.Strict, f.Prune; f.Strict {
			options.InSteps = false // all or nothing
		}
		do := func(try bool) (done ipam.Imported, err error) {
			if options.Try = try; try {
				options.InSteps = false
			}
			if done, err = run(st, options); err != nil {
				err = fmt.Errorf("%s: %w", f.File, err)
			}
			return done, err
		}
		if asks := !f.Yes && isInteractive(); f.DryRun || asks || f.Prune {
			inSteps := options.InSteps
			done, err := do(true)
			if err == nil && f.Prune && len(skipped)+len(done.Skipped) > 0 {
				options.Prune = false
				fmt.Fprintln(s.stderr, rowsNotPruned)
				done, err = do(true)
			}
			options.InSteps = inSteps
			if err != nil {
				return err
			}
			switch {
			case f.DryRun:
				f.print(s, what, done, skipped, true)
				return skippedRows(len(skipped) + len(done.Skipped))
			case asks:
				f.print(s, what, done, skipped, true)
				fmt.Fprintf(s.stderr, "Do that? [y/N] ")
				if !confirm() {
					return errors.New("nothing was changed")
				}
			case options.Prune && (done.Deleted > 0 || done.Partial) && !f.Yes: // an incomplete trial may not have reached the deletions
				f.print(s, what, done, skipped, true)
				return usageError{fmt.Errorf("%s: nothing was changed: --prune deletes the resources listed above; add --yes to confirm", f.File)}
			}
			if options.Prune && done.Partial && !f.Strict { // the trial was incomplete: import first, and delete only if no row is skipped
				options.Prune = false
				done, err := do(false)
				if err != nil {
					return err
				}
				f.print(s, what, done, skipped, false)
				if len(done.Skipped) > 0 {
					fmt.Fprintln(s.stderr, rowsNotPruned)
					return skippedRows(len(done.Skipped))
				}
				options.Prune = true
			}
		}
		done, err := do(false)
		if err != nil {
			return err
		}
		f.print(s, what, done, skipped, false)
		return skippedRows(len(skipped) + len(done.Skipped))
	})
}

// rowsNotPruned is the note that --prune has no effect.
const rowsNotPruned = "note: nothing is deleted: skipped rows may describe existing resources"

// skippedRows returns the error for n skipped rows, or nil if n is 0.
func skippedRows(n int) error {
	if n == 0 {
		return nil
	}
	return skippedError{n}
}

// print prints the result of an import.
func (f *lineFlags) print(s *session, what string, done ipam.Imported, skipped []string, tried bool) {
	var why reasons
	for _, one := range done.Changes {
		fmt.Fprintln(s.stderr, "changed:", one)
	}
	for _, one := range done.KeptGateways {
		fmt.Fprintln(s.stderr, "kept:", one)
	}
	for _, one := range slices.Concat(skipped, done.Skipped) {
		fmt.Fprintln(s.stderr, "skipped:", one)
		_, reason, _ := strings.Cut(one, ": ")
		why.add(reason)
	}
	for _, one := range done.Differences {
		switch {
		case done.Deleted > 0 && tried:
			fmt.Fprintln(s.stderr, "not in the file, would be deleted:", one)
		case done.Deleted > 0:
			fmt.Fprintln(s.stderr, "not in the file, deleted:", one)
		default:
			fmt.Fprintln(s.stderr, "not in the file, kept (--prune deletes it):", one)
		}
	}
	why.print(s)
	did := "imported"
	if tried {
		did = "dry run"
	}
	if done.Partial {
		did += ", of a part of the file"
	}
	fmt.Fprintf(s.stdout, "%s: %s created, %d changed, %d unchanged, %d deleted, %s skipped\n", did, plural.Count(done.Created, what),
		done.Changed, done.Existing, done.Deleted, plural.Count(len(skipped)+len(done.Skipped), "row"))
}

type importNetworks struct{ lineFlags }

// Run imports the networks of the file.
func (c *importNetworks) Run(s *session) error {
	f, err := os.Open(c.File)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	lines, skipped, err := ipam.ReadNetworks(f)
	if err != nil {
		return fmt.Errorf("%s: nothing was imported: %w", c.File, err)
	}
	return c.importLines(s, "network", len(lines), skipped, func(st *store.Store, options ipam.Import) (ipam.Imported, error) {
		return ipam.ImportNetworks(s.ctx, model.NewAPI(st), c.Configuration, lines, options)
	})
}

type exportCommand struct {
	Resources exportResources `cmd:"" default:"withargs" help:"Export resources with everything below them as a document for portolan apply."`
	Zone      exportZone      `cmd:"" example:"portolan export zone --data /var/lib/portolan example.net" help:"Write a zone as a file (RFC 1035)."`
}

type exportZone struct {
	dataFlag
	zonePlace
	Zone string `arg:"" help:"The name of the zone, or for a reverse zone the range of its block or network."`
}

// Run writes the zone to standard output.
func (c *exportZone) Run(s *session) error {
	return c.open(func(st *store.Store, users *identity.Service) error {
		api := model.NewAPI(st)
		var zone *naming.Zone
		if err := st.View(s.ctx, func(tx *store.Tx) error {
			row, err := dns.FindZone(tx, c.Configuration, c.View, c.Zone)
			if err == nil {
				zone, err = dnspublish.ServedZone(tx, api, row)
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

type importAddresses struct{ lineFlags }

// Run imports the addresses of the file.
func (c *importAddresses) Run(s *session) error {
	f, err := os.Open(c.File)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	lines, skipped, err := ipam.ReadAddresses(f)
	if err != nil {
		return fmt.Errorf("%s: nothing was imported: %w", c.File, err)
	}
	return c.importLines(s, "address", len(lines), skipped, func(st *store.Store, options ipam.Import) (ipam.Imported, error) {
		return ipam.ImportAddresses(s.ctx, model.NewAPI(st), c.Configuration, lines, options)
	})
}
