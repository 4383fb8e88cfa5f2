package transfer

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/netip"
	"slices"
	"strings"

	wire "portolan/internal/base/dnsmsg"
	"portolan/internal/base/naming"
	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
	"portolan/internal/manager/dns"
	"portolan/internal/manager/ipam"
)

// ImportedZone is the result of a zone import.
type ImportedZone struct {
	Zone string
	// Created is the number of created resources. Changed and Deleted count the names of an existing zone with changed records or without
	// records.
	Created, Changed, Deleted int
	// Existing is the number of records that already existed.
	Existing int
	// Skipped lists records that were skipped, with the reason. Differences lists records of the zone that the file lacks. Changes lists
	// changed records.
	Skipped, Differences, Changes []string
	// Unnamed lists the addresses of deleted records that remain assigned without a record.
	Unnamed []string
}

// errRootZone rejects a file of the root zone.
var errRootZone = problem.Invalid("zone", "the root zone cannot be imported: create an InternalRootZone in the view")

// ImportZone imports a zone with its records into a view, in one transaction or in steps. Addresses outside of the networks of the
// configuration become GenericRecords, and unknown link targets become external hosts. A record that a rule rejects is skipped with the
// reason; if how is strict, it is an error instead. An existing zone gets the records of the file. Its other records are listed as
// differences, or deleted if how prunes.
func ImportZone(ctx context.Context, a *resource.API, configuration, view, zone string, records []wire.RR, how ipam.Import) (
	done ImportedZone, err error,
) {
	done.Zone = strings.TrimSuffix(zone, ".")
	if zone == dns.RootName {
		return done, errRootZone
	}
	within, err := ipam.ConfigurationID(ctx, a, configuration)
	if err != nil {
		return done, err
	}
	i := &zoneImport{skipsExisting: true, authority: findSOA(records), strict: how.Strict, prune: how.Prune,
		sourceOf: how.SourceRow, refused: map[string]string{}}
	var d *zoneDifference
	if err := a.Store.View(ctx, func(tx *store.Tx) (err error) {
		d, err = i.compare(tx, a, configuration, view, zone, records)
		return err
	}); err != nil {
		return done, err
	}
	done.Existing, done.Differences, done.Changes = d.existing, d.differences, d.changes
	next, stop := iter.Pull(i.steps(zone, d))
	defer stop()
	step, count := how.Step(len(records)), 0
	job, more := next()
	for first := true; first || more; first = false { // a zone without records is created as well
		var part []func() error
		for ; more && len(part) < step; job, more = next() {
			part = append(part, job)
		}
		before := done
		by := store.Author{Name: "command line", Comment: "import"}
		if err := i.retry(func() error {
			return a.Store.UpdateIn(ctx, store.ConfigurationScope(within, false), by, func(tx *store.Tx) error {
				done = before
				done.Skipped, done.Changes = slices.Clone(before.Skipped), slices.Clone(before.Changes)
				tx.Describe("IMPORT_ZONE", "Imported zone "+done.Zone)
				i.c, i.done = &resource.Change{Tx: tx, API: a, Extra: map[string]string{}}, &done
				return i.run(configuration, view, zone, part)
			})
		}); err != nil {
			return before, ipam.CutOff(err, count)
		}
		count += len(part)
		how.ReportStep(ctx, a.Store, count)
	}
	err = a.Store.View(ctx, func(tx *store.Tx) error {
		done.Unnamed, err = d.listUnnamed(tx, within)
		return err
	})
	return done, err
}

// TryZone runs ImportZone in a transaction that is rolled back. The view does not have to exist. whole is false if the trial was stopped
// because it took too long; done then contains the result so far.
func TryZone(ctx context.Context, a *resource.API, configuration, view, zone string, records []wire.RR, how ipam.Import) (
	done ImportedZone, whole bool, err error,
) {
	if zone == dns.RootName {
		return done, false, errRootZone
	}
	within, err := ipam.ConfigurationID(ctx, a, configuration)
	if err != nil {
		return done, false, err
	}
	i := &zoneImport{skipsExisting: true, authority: findSOA(records), done: &done, strict: how.Strict, prune: how.Prune,
		sourceOf: how.SourceRow, refused: map[string]string{}}
	err = i.retry(func() error {
		return a.Store.Try(ctx, store.ConfigurationScope(within, false), store.Author{}, func(tx *store.Tx) error {
			done, whole = ImportedZone{Zone: strings.TrimSuffix(zone, ".")}, true
			i.c = &resource.Change{Tx: tx, API: a, Extra: map[string]string{}}
			err := createMissingView(i.c, within, view)
			var d *zoneDifference
			if err == nil {
				d, err = i.compare(tx, a, configuration, view, zone, records)
			}
			if err == nil {
				done.Existing, done.Differences, done.Changes = d.existing, d.differences, d.changes
				err = i.run(configuration, view, zone, slices.Collect(i.steps(zone, d)))
			}
			if errors.Is(err, store.ErrTrialEnded) {
				whole, err = false, nil
			}
			return err
		})
	})
	return done, whole, err
}

// errHalfDone rolls the transaction back because a record was rejected after a part of it was written. The transaction is then repeated
// without the record.
var errHalfDone = errors.New("a record was refused half done")

// retry runs a transaction, and repeats it while it returns errHalfDone. Each time one more record is skipped.
func (i *zoneImport) retry(run func() error) error {
	for {
		if err := run(); !errors.Is(err, errHalfDone) {
			return err
		}
	}
}

// zoneImport is an import of records into a zone. skipsExisting skips records that already exist.
type zoneImport struct {
	skipsExisting bool
	// strict makes a skipped record an error. prune deletes records that the file lacks.
	strict, prune bool
	c             *resource.Change
	view          *store.Resource
	zone          *store.Resource
	done          *ImportedZone
	// sourceOf returns the source row of a record; it may be nil. refused contains the reason by record (sameRecord) for records that were
	// rejected after a part was written.
	sourceOf func(record any) string
	refused  map[string]string
	// authority is the SOA record of the zone; it may be nil.
	authority *wire.SOA
	// dynamic marks new records as created by an update.
	dynamic bool
	// releasesAddresses records the assigned addresses, so that they are released together with their records. assigned lists the addresses
	// that this change assigns.
	releasesAddresses bool
	assigned          []assignedAddress
}

// assignedAddress is an address of a network that was not assigned before.
type assignedAddress struct {
	network int64
	addr    netip.Addr
}

// run imports a part of the records in a transaction.
func (i *zoneImport) run(configuration, view, zone string, part []func() error) (err error) {
	if i.view, err = dns.FindView(i.c.Tx, configuration, view); err != nil {
		return err
	}
	if i.zone, err = i.findOrCreateZone(zone); err != nil {
		return err
	}
	for _, job := range part {
		if err := job(); err != nil {
			return err
		}
	}
	return nil
}

// jobs returns the jobs that create the records. Hosts come first, because other records link to them. Other records follow, then records
// with links. Aliases are last, because their target may be any record.
func (i *zoneImport) jobs(zone string, records []wire.RR) iter.Seq[func() error] {
	return func(yield func(func() error) bool) {
		var hosts, plain, links, aliases []wire.RR
		seen := map[string]bool{} // a transfer ends with a second SOA, and files may repeat lines
		for _, rr := range records {
			if key := sameRecord(rr); seen[key] {
				continue
			} else {
				seen[key] = true
			}
			if !wire.IsSubDomain(zone, wire.CanonicalName(rr.Header().Name)) {
				if !yield(func() error { return i.skip(rr, "it is outside the zone") }) {
					return
				}
				continue
			}
			switch rr.(type) {
			case *wire.SOA:
			case *wire.A, *wire.AAAA:
				hosts = append(hosts, rr)
			case *wire.MX, *wire.SRV:
				links = append(links, rr)
			case *wire.CNAME:
				aliases = append(aliases, rr)
			default:
				plain = append(plain, rr)
			}
		}
		for _, host := range groupByName(hosts) {
			if !yield(func() error { return i.createHost(host) }) {
				return
			}
		}
		for _, rr := range slices.Concat(plain, links) {
			if !yield(func() error { return i.createRecord(rr) }) {
				return
			}
		}
		for job := range i.aliasJobs(aliases) {
			if !yield(job) {
				return
			}
		}
	}
}

// skip records a skipped record with the reason. With strict, it returns an error instead.
func (i *zoneImport) skip(rr wire.RR, why string) error {
	text := fmt.Sprintf("%s %s: %s", rr.Header().Name, wire.Type(rr.Header().Rrtype), why)
	if i.sourceOf != nil {
		if at := i.sourceOf(rr); at != "" {
			text = at + ": " + text
		}
	}
	if i.strict {
		return problem.Invalid("records", "%s", text)
	}
	i.done.Skipped = append(i.done.Skipped, text+": correct the record, or create it by hand")
	return nil
}

// skipRefused skips a record if a rule rejected its target. It returns other errors unchanged.
func (i *zoneImport) skipRefused(rr wire.RR, err error) error {
	if p, ok := problem.As(i.c.Concealed(err)); ok && p.Status < 500 && !i.dynamic {
		return i.skip(rr, p.Message)
	}
	return err
}

// findOrCreateZone returns the zone, and creates it and missing zones above it if necessary.
func (i *zoneImport) findOrCreateZone(name string) (*store.Resource, error) {
	found, err := dns.FindZoneIn(i.c.Tx, i.view, name)
	if err != nil || found != nil {
		return found, err
	}
	t, _ := i.c.API.Type("Zone")
	z := &dns.Zone{AbsoluteName: strings.TrimSuffix(name, "."), DeploymentEnabled: true}
	z.Type, z.Parent, z.Config = "Zone", i.view.ID, i.view.Configuration
	i.done.Created++
	made, err := i.c.Following("absoluteName").Create(t, z)
	if err != nil || i.authority == nil {
		return made, err
	}
	return made, i.importAuthority(made, i.authority)
}

// create creates a record.
func (i *zoneImport) create(rr wire.RR, o schema.Object, ttl uint32) error {
	if why, known := i.refused[sameRecord(rr)]; known {
		return i.skip(rr, why)
	}
	h := o.(dns.ComparableRecord).CommonFields()
	t, _ := i.c.API.Type(h.Type)
	relative, in := naming.Relative(cleanName(rr.Header().Name), i.zone.Key)
	if !in {
		return i.skip(rr, "it is outside the zone")
	}
	if relative != "" && naming.Key(relative) == naming.Key(i.zone.Key) { // alone, the relative name would be taken for the zone itself
		relative += "." + i.zone.Key + "."
	}
	seconds := int64(ttl)
	h.Name, h.Parent, h.Config, h.TTL, h.Dynamic = relative, i.zone.ID, i.zone.Configuration, &seconds, i.dynamic
	if ttl > 1<<31-1 {
		h.TTL = nil
	}
	written := i.c.Tx.Writes()
	row, err := i.c.Following("name", "addresses", "linkedRecord").Create(t, o)
	if err != nil {
		p, ok := problem.As(i.c.Concealed(err))
		if !ok { // a database error, not a rejection: the transaction may be unusable
			return err
		}
		if there, e := i.isThere(o); there || e != nil {
			return e
		}
		switch {
		case p.Status >= 500 || i.dynamic || i.refused == nil:
		case i.c.Tx.Writes() == written:
			return i.skip(rr, p.Message)
		default:
			i.refused[sameRecord(rr)] = p.Message
			return errHalfDone
		}
		other := problem.New(p.Status, p.Code, "%s %s: %s", rr.Header().Name, wire.Type(rr.Header().Rrtype).String(), p.Message)
		other.Named = p.Named
		return other
	}
	i.done.Created++
	if i.releasesAddresses {
		return i.replaceExternalHost(row)
	}
	return nil
}

// isThere reports whether a rejected record already exists, and counts it, if the import skips existing records.
func (i *zoneImport) isThere(o schema.Object) (there bool, err error) {
	x, ok := o.(dns.ComparableRecord)
	if !ok || !i.skipsExisting {
		return false, nil
	}
	same, err := dns.FindByName(i.c.Tx, i.zone.Configuration, i.view.ID, "resourceRecords", x.CommonFields().AbsoluteName)
	if err != nil {
		return false, err
	}
	for _, r := range same {
		other, err := i.c.API.Object(r)
		if err != nil {
			return false, err
		}
		if r.Type != x.CommonFields().Type || !x.SameData(other) {
			continue
		}
		if alias, is := o.(*dns.AliasRecord); is && other.(*dns.AliasRecord).LinkedRecord.ID != alias.LinkedRecord.ID {
			continue
		}
		if host, ok := o.(*dns.HostRecord); ok {
			if has, err := i.hasAddresses(r.ID, host); err != nil || !has {
				return false, err
			}
		}
		if r.Parent != i.zone.ID {
			return true, i.claim(r)
		}
		i.done.Existing++
		return true, nil
	}
	return false, nil
}

// claim moves a record from a zone above to this zone. Before a zone is created, its name servers and their addresses are records of the
// zone above. A record elsewhere is counted as existing.
func (i *zoneImport) claim(row *store.Resource) error {
	inside, err := dns.IsBelow(i.c.Tx, i.zone, row.Parent)
	if err != nil {
		return err
	}
	if !inside {
		i.done.Existing++
		return nil
	}
	from, err := i.c.Tx.Get(row.Parent)
	if err != nil {
		return err
	}
	i.done.Changed++
	i.done.Changes = append(i.done.Changes, fmt.Sprintf("%s %s moves here from the zone %s", row.Type, row.Key, from.Key))
	return dns.MoveName(i.c, row, row.Key)
}

// hasAddresses reports whether an existing host has exactly the addresses of another one.
func (i *zoneImport) hasAddresses(id int64, host *dns.HostRecord) (bool, error) {
	linked, err := i.c.Tx.Links(id, "addresses")
	if err != nil {
		return false, err
	}
	rows, err := i.c.Tx.Load(linked)
	if err != nil {
		return false, err
	}
	have := map[string]bool{}
	for _, r := range rows {
		have[store.KeyAddr(r.Low).String()] = true
	}
	for _, item := range host.Addresses.Items {
		if !have[item.Text["address"]] {
			return false, nil
		}
	}
	return len(have) == len(host.Addresses.Items), nil
}

// EnsureView creates a view of a configuration if it does not exist.
func EnsureView(ctx context.Context, a *resource.API, configuration, name string) error {
	within, err := ipam.ConfigurationID(ctx, a, configuration)
	if err != nil {
		return err
	}
	return a.Store.Update(ctx, store.Author{Name: "command line", Comment: "import"}, func(tx *store.Tx) error {
		return createMissingView(&resource.Change{Tx: tx, API: a, Extra: map[string]string{}}, within, name)
	})
}

// OtherZones returns the names of the zones of a view, except the known ones (naming.Key) and the zones above or below them. It returns
// none if the view does not exist.
func OtherZones(ctx context.Context, a *resource.API, configuration, view string, known []string) (names []string, err error) {
	above := map[string]bool{}
	for _, name := range known {
		for rest := name; rest != ""; _, rest, _ = strings.Cut(rest, ".") {
			above[rest] = true
		}
	}
	within, err := ipam.ConfigurationID(ctx, a, configuration)
	if err != nil {
		return nil, err
	}
	err = a.Store.View(ctx, func(tx *store.Tx) error {
		there, err := tx.ByName("views", within, view)
		if err != nil || len(there) == 0 {
			return err
		}
		for parents := []int64{there[0].ID}; len(parents) > 0; parents = parents[1:] {
			if err := tx.List(store.Query{From: store.Resources, Where: store.All{store.InCollection("zones"), store.HasParent(parents[0])}},
				func(row *store.Resource) error {
					switch {
					case row.Type != "Zone" || slices.Contains(known, row.Key):
					case above[row.Key]:
						parents = append(parents, row.ID)
					default:
						names = append(names, row.Key)
					}
					return nil
				}); err != nil {
				return err
			}
		}
		return nil
	})
	return names, err
}

// createMissingView creates the view of a configuration if it does not exist.
func createMissingView(c *resource.Change, configuration int64, name string) error {
	there, err := c.Tx.ByName("views", configuration, name)
	if err != nil || len(there) > 0 {
		return err
	}
	v := &dns.View{}
	v.Type, v.Name, v.Parent, v.Config = "View", name, configuration, configuration
	_, err = c.Create(c.API.TypeNamed(v.Type), v)
	return err
}
