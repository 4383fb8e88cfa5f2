package fleet

import (
	"context"
	"strings"

	"portolan/internal/engine/store"
	"portolan/internal/wire/checkin"
)

// Fields whose moves are events.
const (
	fieldStatus     = "status"
	fieldConnection = "connectionStatus"
	fieldUpdate     = "updateStatus"
	// fieldNode is whether a node is connected; its reason names the node.
	fieldNode = "nodeConnectionStatus"
	// fieldNodeCount is how many nodes there may be.
	fieldNodeCount = "nodeCount"
	// fieldMachines is how many machines answer as one node.
	fieldMachines = "machines"
)

// Move is what is counted of a move: the field, and what it became.
type Move struct{ Field, After string }

// Observe has each move counted that is committed. It is called before anything else.
func (s *Service) Observe(observe func(Move)) { s.observe = observe }

// Tell has told be told, in the transaction, of the service points whose status or connection moves. It is called before anything else.
func (s *Service) Tell(told func(tx *store.Tx, ids []string, field, after string, reasons []string) error) {
	s.notifyMove = told
}

// moves are those of a transaction: what is counted of them, the events that they are, and what else is logged.
type moves struct {
	counted []Move
	events  []event
	logged  []func()
}

// event is a row of the table of events.
type event struct {
	servicePoint string
	Event
}

// withEvents lets a transaction write the events of its moves when it is done, all of them together, and the moves be counted and logged
// once it is committed.
func (s *Service) withEvents(update store.Updater) store.Updater {
	return func(ctx context.Context, author store.Author, fn func(*store.Tx) error) error {
		var done *moves
		err := update(ctx, author, func(tx *store.Tx) error {
			all := &moves{}
			s.mu.Lock()
			s.movesOf[tx] = all
			s.mu.Unlock()
			defer func() {
				s.mu.Lock()
				delete(s.movesOf, tx)
				s.mu.Unlock()
				done = all // of the last time, where it is repeated
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
		s.logMoves(done)
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

// mostLogged is how many service points that move in the same way, in one transaction, have a line each in the log; more have one together.
const maxLoggedMoves = 20

// logMoves logs moves that are committed: each of them or, where many move in the same way, how many.
func (s *Service) logMoves(all *moves) {
	for _, log := range all.logged {
		log()
	}
	type way struct{ field, before, after, reason string }
	number := map[way]int{}
	for _, e := range all.events {
		number[way{e.Field, e.Before, e.After, e.Reason}]++
	}
	for _, e := range all.events {
		of := way{e.Field, e.Before, e.After, e.Reason}
		switch n := number[of]; {
		case n == 0: // said already
		case n > maxLoggedMoves:
			s.log.Info("service points moved", "number", n, "field", e.Field, "from", e.Before, "to", e.After, "reason", e.Reason)
			number[of] = 0
		default:
			s.log.Info("a service point moved", "id", e.servicePoint, "field", e.Field, "from", e.Before, "to", e.After, "reason", e.Reason)
		}
	}
}

// movesIn gives the moves of a transaction; it is one of withEvents, and nil otherwise.
func (s *Service) movesIn(tx *store.Tx) *moves {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.movesOf[tx]
}

// rowsTopic is touched by what changes that a list of the fleet shows, or finds service points by: by changingRows and, where it depends on
// what is said, by what writes reports (writeAll, writeState, reported) and, for other managers, presence.
const rowsTopic = "rows of the fleet"

// changingRows is withEvents for transactions that change what lists find.
func (s *Service) changingRows(update store.Updater) store.Updater {
	return s.withEvents(func(ctx context.Context, author store.Author, fn func(*store.Tx) error) error {
		return update(ctx, author, func(tx *store.Tx) error {
			tx.Touch(rowsTopic)
			if err := fn(tx); err != nil || s.store.OneWriter() {
				return err
			}
			return tx.Write("UPDATE fleet_change SET n = n + 1") // last: others wait for it until this is committed
		})
	})
}

// changes counts how often changingRows has changed the fleet, as a transaction sees it. Where there are several managers, one that is told
// of a change and asks another one for a list may come before that has heard of it.
func (s *Service) changes(tx *store.Tx) (n int64, err error) {
	if s.store.OneWriter() {
		return 0, nil
	}
	return n, tx.QueryRow("SELECT n FROM fleet_change").Scan(&n)
}

// ownRows updates what the fleet keeps.
func (s *Service) ownRows(ctx context.Context, author store.Author, fn func(*store.Tx) error) error {
	return s.store.UpdateIn(ctx, store.OwnRows(), author, fn)
}

// change changes what the fleet keeps.
func (s *Service) change(ctx context.Context, fn func(*store.Tx) error) error {
	return s.changingRows(s.ownRows)(ctx, authorOf(ctx), fn)
}

// keptEvents is how many events of a service point are kept.
const keptEvents = 200

// moved records that a field of a service point moved, and why, where that is known.
func (s *Service) recordMove(tx *store.Tx, id, field, before, after string, reasons ...string) error {
	return s.recordMoves(tx, []string{id}, field, before, after, reasons...)
}

// movedMany records that a field of service points moved in the same way.
func (s *Service) recordMoves(tx *store.Tx, ids []string, field, before, after string, reasons ...string) error {
	name := field[strings.LastIndexByte(field, '/')+1:] // applications are counted together
	if name != field {
		name = "application " + name
	}
	now, all := s.now().UnixMilli(), s.movesIn(tx)
	for _, id := range ids {
		all.counted = append(all.counted, Move{name, after})
		all.events = append(all.events, event{id, Event{now, field, before, after, strings.Join(reasons, "; ")}})
	}
	if s.notifyMove != nil && (field == fieldStatus || field == fieldConnection) {
		return s.notifyMove(tx, ids, field, after, reasons)
	}
	return nil
}

const (
	insertEvent = "INSERT INTO fleet_event (service_point, at, field, old, new, reason) "
	// tooMany is the event of a service point, w.id, that is one too many: behind every new one it goes.
	surplusEvent = "(SELECT e.seq FROM fleet_event e WHERE e.service_point = w.id ORDER BY e.seq DESC LIMIT 1 OFFSET ?)"
)

// writeEvents writes events in their order. Of each service point the last ones are kept.
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

// writeEventsTogether is writeEvents where one statement takes all of them.
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
	for len(ids) > 0 { // of each once, until as many are gone as have come
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

// Event is a move of a field of a service point, or of one of its applications (ours).
type Event struct {
	// At is when, in Unix milliseconds.
	At int64 `json:"at"`
	// Field is status, connectionStatus, updateStatus, nodeConnectionStatus or nodeCount, or applications/NAME/ID/status, updateStatus or
	// anycast, whose reason is the address.
	Field string `json:"field"`
	// Before and After are its values; empty where it had, or has, none.
	Before string `json:"before"`
	After  string `json:"after"`
	// Reason says why, where that is known.
	Reason string `json:"reason,omitempty"`
}

// Events gives the last moves of a service point, at most 200, the earliest first.
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
