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

// fault is a zone of a live view, or a server, that cannot be deployed in its current state. It is examined again with the next change that
// affects it.
type fault struct {
	subject string
	cause   error
	// zone is the id of the zone; empty where the fault is that of a server.
	zone   string
	server int64
	// records are the withheld records, where the rest of the zone is deployed; nil where the whole zone or the server cannot be deployed.
	records []withheld
	// reported reports that a new event was added for the fault.
	reported bool
}

// isFault reports whether an error is caused by the data to be deployed, so that a retry would fail again.
func isFault(err error) bool { return err != nil && !store.IsFailure(err) }

// recoverFault turns a panic into an error, which counts as a fault of the data. It must be deferred.
func recoverFault(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
	}
}

// firstLine returns the first line of an error; the rest is for the log.
func firstLine(err error) string {
	text, _, _ := strings.Cut(err.Error(), "\n")
	return text
}

// record marks the zone, or the zones of the server, as not completely deployed, and adds an event the first time. held are the marks of
// records that were withheld before and already have an event.
func (f *fault) record(tx *store.Tx, configuration int64, held []string) error {
	if f.records != nil {
		var news []withheld
		for _, one := range f.records {
			if !slices.Contains(held, f.mark(one)) {
				news = append(news, one)
			}
		}
		if f.cause = joinReasons(news); f.cause == nil || len(held) >= maxHeld { // a full list cannot tell which are new
			return nil
		}
		return f.addEvent(tx, configuration)
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
		if err := continueSerial(tx, f.zone, configuration, uint32(now.serial)); err != nil { //nolint:gosec // of 32 bits
			return err
		}
		if err := tx.Write("UPDATE dns_zone SET complete = ? WHERE zone = ?", neverDeployed, f.zone); err != nil {
			return err
		}
		return f.addEvent(tx, configuration)
	}
	n, err := tx.Exec("UPDATE dns_zone SET complete = 0 WHERE complete > 0 AND "+where, arg)
	if err != nil || n == 0 {
		return err
	}
	return f.addEvent(tx, configuration)
}

// storeFaults stores the faults of an outcome and adds their events.
func (now dueEntries) storeFaults(tx *store.Tx, o *outcome) error {
	for i := range o.faults {
		if err := o.faults[i].record(tx, o.configuration, now.held); err != nil {
			return err
		}
	}
	return now.saveHeld(tx, o)
}

// neverDeployed is the value of complete of a zone that should be served but could not be deployed yet.
const neverDeployed = -1

// addEvent adds the event.
func (f *fault) addEvent(tx *store.Tx, configuration int64) error {
	f.reported = true
	return event.Add(tx, event.Event{EventType: "FAILED", Category: "DEPLOYMENT", Subcategory: serverconfig.ServiceDNS,
		SourceName: "live deployment",
		Message: schema.Cut("Changes of "+f.subject+" could not be deployed, until they are mended: "+firstLine(f.cause),
			maxMessageLength)},
		configuration)
}

// removeDone removes the processed entries from the queue, except entries that changed meanwhile.
func (now dueEntries) removeDone(tx *store.Tx) error {
	tx.Touch(dueTopic)
	for _, number := range now.numbers { // the entries of a transaction become visible together
		if err := tx.Write("DELETE FROM dns_due WHERE lane = ? AND changed = ? AND configuration = ?", laneBulk, number,
			now.configuration); err != nil {
			return err
		}
	}
	for _, r := range now.rows {
		if err := tx.Write("DELETE FROM dns_due WHERE configuration = ? AND kind = ? AND what = ? AND changed = ?", r.configuration, r.kind,
			r.name, r.changed); err != nil {
			return err
		}
	}
	return nil
}

// maxHeld is the maximum number of marks of withheld records. The marks are stored in the queue under the negated id of the configuration.
// A record with a mark is examined again with any next change of its zone, because a change of another name may fix it. A record beyond
// maxHeld is examined again only when it changes itself, and has no event.
const maxHeld = 1000

// mark returns the mark of a withheld record: a checksum of the reason, the id of the zone, and the name, separated by tabs.
func (f *fault) mark(one withheld) string {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(one.reason)) // never fails
	return fmt.Sprintf("%016x\t%s\t%s", sum.Sum64(), f.zone, one.name)
}

// heldIn returns the withheld names of a zone. A reverse zone that was not created by a user has none, because its names follow from
// addresses.
func (now dueEntries) heldIn(z *plannedZone) (names []string) {
	if z.row.ID == 0 {
		return nil
	}
	for _, mark := range now.held {
		if parts := strings.SplitN(mark, "\t", 3); len(parts) == 3 && parts[1] == z.id {
			names = append(names, parts[2])
		}
	}
	return names
}

// readHeld returns the marks of a configuration.
func readHeld(tx *store.Tx, configuration int64) (marks []string, err error) {
	return marks, tx.Each(func(scan func(...any) error) error {
		var mark string
		err := scan(&mark)
		marks = append(marks, mark)
		return err
	}, "SELECT what FROM dns_due WHERE configuration = ? AND kind = ? ORDER BY what", -configuration, dueName)
}

// saveHeld stores the current marks: the new marks of zones that were examined, and the previous marks of all others.
func (now dueEntries) saveHeld(tx *store.Tx, o *outcome) error {
	var marks []string
	for _, f := range o.faults {
		for _, one := range f.records {
			marks = append(marks, f.mark(one))
		}
	}
	for _, mark := range now.held {
		parts := strings.SplitN(mark, "\t", 3)
		if len(parts) == 3 && !o.examined[parts[1]] && o.byID[parts[1]] != nil {
			marks = append(marks, mark)
		}
	}
	slices.Sort(marks)
	marks = slices.Compact(marks)
	if marks = marks[:min(len(marks), maxHeld)]; slices.Equal(marks, now.held) {
		return nil
	}
	if err := tx.Write("DELETE FROM dns_due WHERE configuration = ?", -o.configuration); err != nil {
		return err
	}
	for _, mark := range marks {
		if err := (due{-o.configuration, dueName, mark}).queue(tx, 0, laneHeld); err != nil {
			return err
		}
	}
	return nil
}

// setAside removes the entries from the queue where none of them can be deployed. It adds an event, and marks all zones of the
// configuration to be examined again with their next changes.
func (d *Deployer) setAside(ctx context.Context, configuration int64, now dueEntries, why error) error {
	d.log.Error("live deployment failed", "configuration", configuration, "reason", why)
	return d.lease.Update(ctx, store.Author{}, func(tx *store.Tx) error {
		if _, err := tx.Exec("UPDATE dns_zone SET complete = 0 WHERE complete > 0 AND configuration = ?", configuration); err != nil {
			return err
		}
		if err := event.Add(tx, event.Event{EventType: "FAILED", Category: "DEPLOYMENT", Subcategory: serverconfig.ServiceDNS,
			SourceName: "live deployment",
			Message:    schema.Cut("Changes could not be deployed: "+firstLine(why), maxMessageLength)}, configuration); err != nil {
			return err
		}
		return now.removeDone(tx)
	})
}
