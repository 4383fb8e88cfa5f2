package fleet

import (
	"context"
	"strings"

	"portolan/internal/engine/store"
	"portolan/internal/wire/checkin"
)

// Fields whose changes are recorded as events.
const (
	fieldStatus     = "status"
	fieldConnection = "connectionStatus"
	fieldUpdate     = "updateStatus"
	// fieldNode is the connection of a node. The reason of its events names the node.
	fieldNode = "nodeConnectionStatus"
	// fieldNodeCount is the number of nodes allowed.
	fieldNodeCount = "nodeCount"
	// fieldMachines is the number of machines that answer as one node.
	fieldMachines = "machines"
)

// StatusChange is a counted change of a field of a service point, and its new value.
type StatusChange struct{ Field, After string }

// Observe sets the function called for each committed change. It must be called before any other method.
func (s *Service) Observe(observe func(StatusChange)) { s.observe = observe }

// SetChangeObserver sets the function that is called in each transaction that changes the status or connection of service points. It must
// be called before any other method.
func (s *Service) SetChangeObserver(notify func(tx *store.Tx, ids []string, field, after string, reasons []string) error) {
	s.notifyChange = notify
}

// changeLog collects the changes of a transaction: those to count, the events to write and the log lines to print after the commit.
type changeLog struct {
	counted []StatusChange
	events  []event
	logged  []func()
}

// event is a row of the table of events.
type event struct {
	servicePoint string
	Event
}

// withEvents returns an updater that writes the events of a transaction at its end. After the commit it counts and logs the changes.
func (s *Service) withEvents(update store.Updater) store.Updater {
	return func(ctx context.Context, author store.Author, fn func(*store.Tx) error) error {
		var done *changeLog
		err := update(ctx, author, func(tx *store.Tx) error {
			all := &changeLog{}
			s.mu.Lock()
			s.changeLogOf[tx] = all
			s.mu.Unlock()
			defer func() {
				s.mu.Lock()
				delete(s.changeLogOf, tx)
				s.mu.Unlock()
				done = all // of the last attempt, if the transaction was repeated
			}()
			if err := fn(tx); err != nil {
				return err
			}
			return writeEvents(tx, all.events)
		})
		if err != nil {
			return err
		}
		if done == nil {
			return nil
		}
		s.logChanges(done)
		for _, m := range done.counted {
			if s.observe != nil {
				s.observe(m)
			}
			if m.Field == fieldUpdate && (m.After == checkin.UpdateOK || m.After == checkin.UpdateFailed) {
				notify(s.ended)
			}
		}
		return nil
	}
}

// maxLoggedChanges is the number of equal changes in one transaction that are logged one by one. More are logged as one line.
const maxLoggedChanges = 20

// logChanges logs committed changes one by one, or as one line with their number if many are equal.
func (s *Service) logChanges(all *changeLog) {
	for _, log := range all.logged {
		log()
	}
	type change struct{ field, before, after, reason string }
	number := map[change]int{}
	for _, e := range all.events {
		number[change{e.Field, e.Before, e.After, e.Reason}]++
	}
	for _, e := range all.events {
		of := change{e.Field, e.Before, e.After, e.Reason}
		switch n := number[of]; {
		case n == 0: // logged already
		case n > maxLoggedChanges:
			s.log.Info("service points changed", "number", n, "field", e.Field, "from", e.Before, "to", e.After, "reason", e.Reason)
			number[of] = 0
		default:
			s.log.Info("service point changed", "id", e.servicePoint, "field", e.Field, "from", e.Before, "to", e.After, "reason", e.Reason)
		}
	}
}

// changesIn returns the changes of a transaction started by withEvents; nil for other transactions.
func (s *Service) changesIn(tx *store.Tx) *changeLog {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changeLogOf[tx]
}

// rowsTopic is touched by transactions that change what a list of the fleet shows or finds. changingRows does so, and so do the writers of
// reports (writeAll, writeState, applyApplicationReports). With several managers, writePresence does as well.
const rowsTopic = "rows of the fleet"

// changingRows is withEvents for transactions that change the result of lists.
func (s *Service) changingRows(update store.Updater) store.Updater {
	return s.withEvents(func(ctx context.Context, author store.Author, fn func(*store.Tx) error) error {
		return update(ctx, author, func(tx *store.Tx) error {
			tx.Touch(rowsTopic)
			if err := fn(tx); err != nil || s.store.HasOneWriter() {
				return err
			}
			// at the end, because other transactions wait for this row until the commit
			return tx.Write("UPDATE fleet_change SET n = n + 1")
		})
	})
}

// changes returns the number of changes by changingRows that a transaction sees. With several managers, a client may read a list from one
// manager before that manager has been notified of a change at another. On SQLite it returns 0.
func (s *Service) changes(tx *store.Tx) (n int64, err error) {
	if s.store.HasOneWriter() {
		return 0, nil
	}
	return n, tx.QueryRow("SELECT n FROM fleet_change").Scan(&n)
}

// ownRows is the updater of the fleet's tables that locks single rows.
func (s *Service) ownRows(ctx context.Context, author store.Author, fn func(*store.Tx) error) error {
	return s.store.UpdateIn(ctx, store.LockedRowsScope(), author, fn)
}

// change runs a transaction that changes the fleet's tables.
func (s *Service) change(ctx context.Context, fn func(*store.Tx) error) error {
	return s.changingRows(s.ownRows)(ctx, authorOf(ctx), fn)
}

// keptEvents is the number of events kept of each service point.
const keptEvents = 200

// recordChange records a change of a field of a service point, with its reasons if known.
func (s *Service) recordChange(tx *store.Tx, id, field, before, after string, reasons ...string) error {
	return s.recordChanges(tx, []string{id}, field, before, after, reasons...)
}

// recordChanges records the same change of a field of several service points.
func (s *Service) recordChanges(tx *store.Tx, ids []string, field, before, after string, reasons ...string) error {
	name := field[strings.LastIndexByte(field, '/')+1:] // the applications are counted together
	if name != field {
		name = "application " + name
	}
	now, all := s.now().UnixMilli(), s.changesIn(tx)
	for _, id := range ids {
		all.counted = append(all.counted, StatusChange{name, after})
		all.events = append(all.events, event{id, Event{now, field, before, after, strings.Join(reasons, "; ")}})
	}
	if s.notifyChange != nil && (field == fieldStatus || field == fieldConnection) {
		return s.notifyChange(tx, ids, field, after, reasons)
	}
	return nil
}

const (
	insertEvent = "INSERT INTO fleet_event (service_point, at, field, old, new, reason) "
	// surplusEvent selects the oldest event of service point w.id beyond the kept number. It is deleted for each new event.
	surplusEvent = "(SELECT e.seq FROM fleet_event e WHERE e.service_point = w.id ORDER BY e.seq DESC LIMIT 1 OFFSET ?)"
)

// writeEvents writes events in order and deletes the oldest ones beyond keptEvents.
func writeEvents(tx *store.Tx, all []event) error {
	if tx.RoundTrips() {
		return writeEventsTogether(tx, all)
	}
	for _, e := range all {
		if err := tx.Write(insertEvent+"VALUES (?,?,?,?,?,?)", e.servicePoint, e.At, e.Field, e.Before, e.After, e.Reason); err != nil {
			return err
		}
		if err := tx.Write("DELETE FROM fleet_event WHERE seq = (SELECT "+surplusEvent+" FROM (SELECT ? AS id) w)", keptEvents,
			e.servicePoint); err != nil {
			return err
		}
	}
	return nil
}

// writeEventsTogether is writeEvents with one statement for all events.
func writeEventsTogether(tx *store.Tx, all []event) error {
	var ids, fields, befores, afters, reasons []string
	var at []int64
	for _, e := range all {
		ids, at, fields = append(ids, e.servicePoint), append(at, e.At), append(fields, e.Field)
		befores, afters, reasons = append(befores, e.Before), append(afters, e.After), append(reasons, e.Reason)
	}
	if len(all) == 0 {
		return nil
	}
	if err := tx.Write(insertEvent+"SELECT * FROM unnest(?::text[], ?::bigint[], ?::text[], ?::text[], ?::text[], ?::text[])", ids, at, fields,
		befores, afters, reasons); err != nil {
		return err
	}
	for len(ids) > 0 { // one event of each service point in each round, until as many are deleted as were added
		var once, again []string
		seen := make(map[string]bool, len(ids))
		for _, id := range ids {
			if seen[id] {
				again = append(again, id)
			} else {
				once = append(once, id)
			}
			seen[id] = true
		}
		if err := tx.Write("DELETE FROM fleet_event WHERE seq IN (SELECT "+surplusEvent+" FROM unnest(?::text[]) AS w(id))", keptEvents,
			once); err != nil {
			return err
		}
		ids = again
	}
	return nil
}

// Event is a change of a field of a service point or of one of its applications (a Portolan extension).
type Event struct {
	// At is the time of the change, in Unix milliseconds.
	At int64 `json:"at"`
	// Field is status, connectionStatus, updateStatus, nodeConnectionStatus, nodeCount or machines, or applications/NAME/ID/status,
	// updateStatus or anycast. The reason of an anycast event is the address.
	Field string `json:"field"`
	// Before and After are the old and the new value; empty if there was or is none.
	Before string `json:"before"`
	After  string `json:"after"`
	// Reason is the reason of the change, if known.
	Reason string `json:"reason,omitempty"`
}

// Events returns the last events of a service point, at most 200, the earliest first.
func (s *Service) Events(ctx context.Context, servicePoint string) (all []Event, err error) {
	all = []Event{}
	return all, s.store.View(ctx, func(tx *store.Tx) error {
		if err := checkExists(tx, servicePoint); err != nil {
			return err
		}
		return tx.Each(func(scan func(...any) error) error {
			var e Event
			err := scan(&e.At, &e.Field, &e.Before, &e.After, &e.Reason)
			all = append(all, e)
			return err
		}, "SELECT at, field, old, new, reason FROM fleet_event WHERE service_point = ? ORDER BY seq", servicePoint)
	})
}
