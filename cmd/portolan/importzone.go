package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	rr "portolan/internal/base/dnsmsg"
	"portolan/internal/base/naming"
	"portolan/internal/base/plural"
	"portolan/internal/engine/store"
	"portolan/internal/manager/dns"
	"portolan/internal/manager/dns/transfer"
	"portolan/internal/manager/identity"
	"portolan/internal/manager/ipam"
	"portolan/internal/manager/model"
)

// skippedError reports that rows of an import were skipped while the others were imported. The exit code is 3.
type skippedError struct{ rows int }

func (e skippedError) Error() string {
	return fmt.Sprintf("%s skipped, as listed; with --strict nothing would have been imported",
		plural.Count(e.rows, "row")+plural.Verb(e.rows, " was", " were"))
}

// zoneFlags are the flags of imports of zone files.
type zoneFlags struct {
	dataFlag
	importFlags
	Strict bool `help:"Import nothing if a record would be skipped."`
	Prune  bool `help:"Delete records of an existing zone that are not in the file. They are listed first."`
	DryRun bool `help:"Preview the import without changing anything." short:"n"`
	Yes    bool `help:"Do not ask for confirmation." short:"y" env:"-"`
}

// importOptions returns the options for importing a zone. end ends the progress bar.
func (f *zoneFlags) importOptions(s *session, z *zoneText) (options ipam.Import, end func()) {
	options, end = f.importFlags.importOptions(s, len(z.records))
	options.SourceRow = func(record any) string { one, _ := record.(rr.RR); return z.places[one] }
	if options.Strict, options.Prune = f.Strict, f.Prune; f.Strict {
		options.InSteps = false // all or nothing
	}
	return options, end
}

// zoneText is a zone file after parsing.
type zoneText struct {
	source  string
	view    string
	zone    string
	records []rr.RR
	// places are the locations of the records in the file.
	places map[rr.RR]string
	// hasSOA reports that the file has an SOA, so it contains a complete zone.
	hasSOA bool
	notes  []string
	faults []string
}

// readZoneFile parses a zone file. Included files are searched in the directories, in order.
func readZoneFile(in io.Reader, path, origin string, directories ...string) (*zoneText, error) {
	include := func(name string) (f io.ReadCloser, err error) {
		if filepath.IsAbs(name) {
			return os.Open(name) //nolint:gosec // the imported file names it
		}
		for _, directory := range directories {
			if f, err = os.Open(filepath.Join(directory, name)); !errors.Is(err, os.ErrNotExist) { //nolint:gosec // as above
				break
			}
		}
		return f, err
	}
	z, err := naming.ReadZone(in, origin, include)
	if err != nil {
		return nil, err
	}
	t := &zoneText{source: path, zone: z.Zone, places: make(map[rr.RR]string, len(z.Records)), notes: z.Notes,
		faults: z.Faults}
	if len(z.Records) == 0 {
		if len(z.Faults) > 0 {
			return nil, errors.New(z.Faults[0])
		}
		return nil, errors.New("contains no records")
	}
	signed := map[string]int{}
	t.records = slices.DeleteFunc(slices.Clone(z.Records), func(one rr.RR) bool {
		from := dns.IsSigningType(one.Header().Rrtype)
		if from {
			signed[rr.Type(one.Header().Rrtype).String()]++
		}
		return from
	})
	for _, kind := range slices.Sorted(maps.Keys(signed)) {
		t.notes = append(t.notes, fmt.Sprintf("left out %d %s records: signing the zone creates them",
			signed[kind],
			kind))
	}
	for i, one := range z.Records {
		t.places[one] = z.Places[i]
		_, soa := one.(*rr.SOA)
		t.hasSOA = t.hasSOA || soa
	}
	for _, one := range z.Records {
		if ns, is := one.(*rr.NS); is && rr.CanonicalName(ns.Hdr.Name) == z.Zone {
			t.notes = append(t.notes, fmt.Sprintf("%s NS: once the zone has deployment roles, its name servers and their TTL follow from those",
				z.Zone))
			break
		}
	}
	return t, nil
}

// importRecords imports a zone, or tries it, and prints each record that was skipped or changed. It returns the number of skipped records.
func (f *zoneFlags) importRecords(s *session, st *store.Store, configuration string, z *zoneText) (skipped int, err error) {
	for _, note := range z.notes {
		fmt.Fprintln(s.stderr, "note:", note)
	}
	for _, fault := range z.faults {
		fmt.Fprintf(s.stderr, "skipped: %s: correct the entry\n", fault)
	}
	if f.Strict && len(z.faults) > 0 {
		return 0, fmt.Errorf("%s: nothing was imported: %s not valid", z.source,
			plural.Count(len(z.faults), "record")+plural.Verb(len(z.faults), " is", " are"))
	}
	if f.Prune && !z.hasSOA {
		return 0, fmt.Errorf("%s: nothing was imported: --prune requires a complete zone file, but this one has no SOA", z.source)
	}
	api := model.NewAPI(st)
	options, end := f.importOptions(s, z)
	defer func() { end() }()
	if options.Prune && len(z.faults) > 0 {
		options.Prune = false
		fmt.Fprintln(s.stderr, notPruned)
	}
	ask := !f.Yes && isInteractive()
	if f.DryRun || options.Prune || ask {
		done, complete, err := transfer.TryZone(s.ctx, api, configuration, z.view, z.zone, z.records, options)
		if err == nil && options.Prune && len(done.Skipped) > 0 {
			options.Prune = false
			fmt.Fprintln(s.stderr, notPruned)
			if f.DryRun {
				done, complete, err = transfer.TryZone(s.ctx, api, configuration, z.view, z.zone, z.records, options)
			}
		}
		switch {
		case err != nil:
			return 0, fmt.Errorf("%s: %w", z.source, err)
		case f.DryRun:
			f.print(s, z, done, options.Prune, true, complete)
			return len(done.Skipped) + len(z.faults), nil
		case ask, options.Prune && len(done.Differences) > 0 && !f.Yes:
			f.print(s, z, done, options.Prune, true, complete)
			if !ask {
				return 0, usageError{fmt.Errorf("%s: nothing was changed: --prune deletes the records listed above; add --yes to confirm", z.source)}
			}
			fmt.Fprintf(s.stderr, "Do that? [y/N] ")
			if !confirm() {
				return 0, errors.New("nothing was changed")
			}
		}
		if options.Prune && !complete { // only an import shows all skipped records, so records are deleted by a second import
			first := options
			first.Prune = false
			done, err := transfer.ImportZone(s.ctx, api, configuration, z.view, z.zone, z.records, first)
			if err != nil {
				return 0, fmt.Errorf("%s: %w", z.source, err)
			}
			if len(done.Skipped) > 0 {
				fmt.Fprintln(s.stderr, notPruned)
				f.print(s, z, done, false, false, true)
				return len(done.Skipped), nil
			}
		}
	}
	done, err := transfer.ImportZone(s.ctx, api, configuration, z.view, z.zone, z.records, options)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", z.source, err)
	}
	f.print(s, z, done, options.Prune, false, true)
	return len(done.Skipped) + len(z.faults), nil
}

// notPruned is the note that --prune has no effect.
const notPruned = "note: nothing is deleted, because the zone may contain the skipped records"

// print prints the result of a zone import: a line for each record that was skipped or differs, then a summary. pruned reports that records
// missing in the file are deleted.
func (f *zoneFlags) print(s *session, z *zoneText, done transfer.ImportedZone, pruned, tried, complete bool) {
	for _, one := range done.Changes {
		fmt.Fprintln(s.stderr, "changed:", one)
	}
	for _, skipped := range done.Skipped {
		fmt.Fprintln(s.stderr, "skipped:", skipped)
	}
	for _, one := range done.Differences {
		switch {
		case pruned && tried:
			fmt.Fprintln(s.stderr, "not in the file, would be deleted:", one)
		case pruned:
			fmt.Fprintln(s.stderr, "not in the file, deleted:", one)
		default:
			fmt.Fprintln(s.stderr, "not in the file, kept (--prune deletes it):", one)
		}
	}
	for _, one := range done.Unnamed {
		fmt.Fprintln(s.stderr, "note:", one)
	}
	var why reasons
	for _, skipped := range slices.Concat(z.faults, done.Skipped) { // "line 3: name TYPE: why"
		parts := strings.SplitN(skipped, ": ", 3)
		why.add(parts[len(parts)-1])
	}
	why.print(s)
	counts := fmt.Sprintf("%s created, %d unchanged, %s changed, %s deleted, %s skipped", plural.Count(done.Created, "resource"),
		done.Existing, plural.Count(done.Changed, "name"), plural.Count(done.Deleted, "name"),
		plural.Count(len(done.Skipped)+len(z.faults), "record"))
	did := "imported"
	if tried {
		did = "dry run:"
		if !complete {
			counts = "at least " + counts
		}
	}
	into := ""
	if z.view != "" {
		into = " into the view " + z.view
	}
	fmt.Fprintf(s.stdout, "%s %s%s, from %s: %s\n", did, done.Zone, into, z.source, counts)
}

type importZone struct {
	zoneFlags
	zonePlace
	Origin     string `help:"The zone, and the origin of relative names if the file has no $ORIGIN." placeholder:"NAME"`
	FromServer string `help:"Copy the zone --origin from this name server (AXFR), instead of a file." placeholder:"ADDR" env:"-"`
	KeyFile    string `help:"A file with the TSIG key for the zone transfer, in the format of tsig-keygen." type:"existingfile" placeholder:"FILE" env:"-"`
	File       string `arg:"" optional:"" help:"The zone file. Included files are read from its directory, then from the current directory." type:"existingfile"`
}

// fetch opens the zone data: the file, or a zone transfer stored in a temporary file, which is deleted on close.
func (c *importZone) fetch(s *session) (in *os.File, from string, err error) {
	switch {
	case (c.FromServer == "") == (c.File == ""):
		return nil, "", usageError{errors.New("give a file, or --from-server")}
	case c.File != "" && c.KeyFile != "":
		return nil, "", usageError{errors.New("--key-file requires --from-server")}
	case c.File != "":
		in, err = os.Open(c.File)
		return in, c.File, err
	case c.Origin == "":
		return nil, "", usageError{errors.New("--origin is required: the name of the zone to copy")}
	}
	var key *transfer.TransferKey
	if c.KeyFile != "" {
		if key, err = transfer.ReadKey(c.KeyFile); err != nil {
			return nil, "", usageError{err}
		}
	}
	if in, err = os.CreateTemp("", "portolan-zone-"); err != nil {
		return nil, "", err
	}
	if err = os.Remove(in.Name()); err == nil {
		err = transfer.FetchZone(s.ctx, c.FromServer, c.Origin, key, in)
	}
	if err == nil {
		_, err = in.Seek(0, io.SeekStart)
	}
	if err != nil {
		_ = in.Close()
	}
	return in, c.FromServer, err
}

// Run imports the zone: a short one in one transaction, a long one in steps.
func (c *importZone) Run(s *session) error {
	f, from, err := c.fetch(s)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	z, err := readZoneFile(f, from, c.Origin, filepath.Dir(from), "")
	if err != nil {
		return fmt.Errorf("%s: nothing was imported: %w", from, err)
	}
	if meant := naming.Key(c.Origin); c.Origin != "" && naming.Key(z.zone) != meant {
		return fmt.Errorf("%s: nothing was imported: it has the SOA of %s, but --origin is %s", from, z.zone, c.Origin)
	}
	z.view = c.View
	return c.open(func(st *store.Store, _ *identity.Service) error {
		skipped, err := c.importRecords(s, st, c.Configuration, z)
		if err == nil && skipped > 0 {
			err = skippedError{skipped}
		}
		return err
	})
}

// isReverse reports whether a zone is a reverse zone, below in-addr.arpa or ip6.arpa.
func isReverse(zone string) bool {
	zone = "." + naming.Key(zone)
	return slices.ContainsFunc([]string{".in-addr.arpa", ".ip6.arpa"}, func(end string) bool { return strings.HasSuffix(zone, end) })
}
