package dnspublish

import (
	"context"
	"fmt"
	"hash/fnv"
	"runtime/debug"
	"slices"
	"strings"

	"portolan/internal/engine/event"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
	"portolan/internal/manager/serverconfig"
)

// fault is a zone of a live view, or a server, that cannot be deployed as it is. All of it is looked at again with the next change that has
// to do with it.
type fault struct {
	what string
	why  error
	// zone is the zone by its id; empty where it is the server.
	zone   string
	server int64
	// records are those that are withheld, where all else of the zone is deployed; none: it is all of the zone, or the server.
	records []withheld
	// told says that an event tells of it, where it is not known already.
	told bool
}

// isFault reports whether an error comes from what is to be deployed, and would come again.
func isFault(err error) bool { return err != nil && !store.IsFailure(err) }

// caught turns a panic into an error, which is a fault of what is being looked at.
func caught(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
	}
}

// sentence is the first line of an error: what is behind it is for the log.
func sentence(err error) string {
	text, _, _ := strings.Cut(err.Error(), "\n")
	return text
}

// note keeps that not all of the zone, or of the zones of the server, is deployed, and says so in an event, once: of records that were
// withheld before (held) it was said.
func (f *fault) note(tx *store.Tx, configuration int64, held []string) error {
	if f.records != nil {
		var news []withheld
		for _, one := range f.records {
			if !slices.Contains(held, f.mark(one)) {
				news = append(news, one)
			}
		}
		if f.why = words(news); f.why == nil || len(held) >= mostHeld { // of so many it is not known which are new
			return nil
		}
		return f.tell(tx, configuration)
	}
	where, arg := "zone = ?", any(f.zone)
	if f.zone == "" {
		where, arg = "zone IN (SELECT zone FROM dns_served WHERE server = ?)", f.server
	} else if now, there, err := readDeployed(tx, f.zone); err != nil {
		return err
	} else if !there {
		if now.complete == neverDeployed {
			return nil
		}
		if err := passSerial(tx, f.zone, configuration, uint32(now.serial)); err != nil { //nolint:gosec // of 32 bits
			return err
		}
		if err := tx.Write("UPDATE dns_zone SET complete = ? WHERE zone = ?", neverDeployed, f.zone); err != nil {
			return err
		}
		return f.tell(tx, configuration)
	}
	n, err := tx.Exec("UPDATE dns_zone SET complete = 0 WHERE complete > 0 AND "+where, arg)
	if err != nil || n == 0 {
		return err
	}
	return f.tell(tx, configuration)
}

// keepFaults keeps what cannot be deployed, and says so.
func (now dueNow) keepFaults(tx *store.Tx, o *outcome) error {
	for i := range o.faults {
		if err := o.faults[i].note(tx, o.configuration, now.held); err != nil {
			return err
		}
	}
	return now.hold(tx, o)
}

// neverDeployed is complete of a zone that is to be served, and could not be deployed yet.
const neverDeployed = -1

// tell adds the event.
func (f *fault) tell(tx *store.Tx, configuration int64) error {
	f.told = true
	return event.Add(tx, event.Event{EventType: "FAILED", Category: "DEPLOYMENT", Subcategory: serverconfig.ServiceDNS,
		SourceName: "live deployment",
		Message:    schema.Cut("Changes of "+f.what+" could not be deployed, until they are mended: "+sentence(f.why), longestMessage)},
		configuration)
}

// done takes what was due off the list, but for what has changed again meanwhile.
func (now dueNow) done(tx *store.Tx) error {
	tx.Touch(dueTopic)
	for _, r := range now.rows {
		if err := tx.Write("DELETE FROM dns_due WHERE configuration = ? AND kind = ? AND what = ? AND changed = ?", r.configuration, r.kind,
			r.what, r.changed); err != nil {
			return err
		}
	}
	return nil
}

// Records that are withheld are kept beside what is due, under the configuration's number below zero, and looked at again with whatever
// changes next in their zone: what they lead to may be mended by a change of another name. mostHeld is how many are; of more some are
// looked at again with the next change of their own alone, and are not told.
const mostHeld = 1000

// mark is how a record that is withheld is kept: a sum of why, the zone by its id, and the name, with tabs between.
func (f *fault) mark(one withheld) string {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(one.why)) // which never fails
	return fmt.Sprintf("%016x\t%s\t%s", sum.Sum64(), f.zone, one.name)
}

// heldIn gives the names that are withheld in a zone; the zone's own, with which all of it would be looked at, is left to changes of its
// own. The reverse zone of a block or network that nobody made has none: its names follow from addresses.
func (now dueNow) heldIn(z *plannedZone) (names []string) {
	if z.row.ID == 0 {
		return nil
	}
	for _, mark := range now.held {
		parts := strings.SplitN(mark, "\t", 3)
		if len(parts) == 3 && parts[1] == z.id && parts[2] != z.row.Key {
			names = append(names, parts[2])
		}
	}
	return names
}

// readHeld gives the marks of what is withheld in a configuration.
func readHeld(tx *store.Tx, configuration int64) (marks []string, err error) {
	return marks, tx.Each(func(scan func(...any) error) error {
		var mark string
		err := scan(&mark)
		marks = append(marks, mark)
		return err
	}, "SELECT what FROM dns_due WHERE configuration = ? AND kind = ? ORDER BY what", -configuration, dueName)
}

// hold keeps the marks of what is withheld now: of zones that were looked at what was found, of others what was known.
func (now dueNow) hold(tx *store.Tx, o *outcome) error {
	var marks []string
	for _, f := range o.faults {
		for _, one := range f.records {
			marks = append(marks, f.mark(one))
		}
	}
	for _, mark := range now.held {
		parts := strings.SplitN(mark, "\t", 3)
		apex := len(parts) == 3 && strings.HasSuffix(parts[1], "/"+parts[2])
		if len(parts) == 3 && !now.all && (!o.looked[parts[1]] || apex && !slices.Contains(now.keys, parts[2])) {
			marks = append(marks, mark)
		}
	}
	slices.Sort(marks)
	marks = slices.Compact(marks)
	if marks = marks[:min(len(marks), mostHeld)]; slices.Equal(marks, now.held) {
		return nil
	}
	if err := tx.Write("DELETE FROM dns_due WHERE configuration = ?", -o.configuration); err != nil {
		return err
	}
	for _, mark := range marks {
		if err := tx.Write("INSERT INTO dns_due (configuration, kind, what, changed) VALUES (?, ?, ?, 0)", -o.configuration, dueName,
			mark); err != nil {
			return err
		}
	}
	return nil
}

// setAside takes what was due off the list where nothing of it can be deployed, says so in an event, and has all zones of the configuration
// looked at again with their next changes.
func (d *Deployer) setAside(ctx context.Context, configuration int64, now dueNow, why error) error {
	d.plan = nil
	d.log.Error("changes of live views cannot be deployed", "configuration", configuration, "reason", why)
	return d.lease.Update(ctx, store.Author{}, func(tx *store.Tx) error {
		if _, err := tx.Exec("UPDATE dns_zone SET complete = 0 WHERE complete > 0 AND configuration = ?", configuration); err != nil {
			return err
		}
		if err := event.Add(tx, event.Event{EventType: "FAILED", Category: "DEPLOYMENT", Subcategory: serverconfig.ServiceDNS,
			SourceName: "live deployment",
			Message:    schema.Cut("Changes could not be deployed: "+sentence(why), longestMessage)}, configuration); err != nil {
			return err
		}
		return now.done(tx)
	})
}
