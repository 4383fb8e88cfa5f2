package fleet

import (
	"context"
	"strings"

	"portolan/internal/store"
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
)

// Move is what is counted of a move: the field, and what it became.
type Move struct{ Field, After string }

// Observe has each move counted that is committed. It is called before anything else.
func (s *Service) Observe(observe func(Move)) { s.observe = observe }

// Tell has told be told, in the transaction, of the service points whose status or connection moves. It is called before anything else.
func (s *Service) Tell(told func(tx *store.Tx, ids []string, field, after string, reasons []string) error) {
	s.told = told
}

// countMoves lets the moves of a transaction be counted once it is committed.
func (s *Service) countMoves(update store.Updater) store.Updater {
	return func(ctx context.Context, author store.Author, fn func(*store.Tx) error) error {
		var moves []Move
		err := update(ctx, author, func(tx *store.Tx) error {
			defer func() {
				s.mu.Lock()
				moves = s.movesOf[tx] // of the last time, where it is repeated
				delete(s.movesOf, tx)
				s.mu.Unlock()
			}()
			return fn(tx)
		})
		if err == nil && s.observe != nil {
			for _, m := range moves {
				s.observe(m)
			}
		}
		return err
	}
}

// changingRows is countMoves for transactions that change what lists find: all but those that write when somebody was heard of.
func (s *Service) changingRows(update store.Updater) store.Updater {
	return s.countMoves(func(ctx context.Context, author store.Author, fn func(*store.Tx) error) error {
		return update(ctx, author, func(tx *store.Tx) error {
			s.touchRows(tx)
			return fn(tx)
		})
	})
}

// rowsTopic is touched by all that changes what lists find of the fleet, where what they found is kept.
const rowsTopic = "rows of the fleet"

func (s *Service) touchRows(tx *store.Tx) {
	if s.store.OneWriter() {
		tx.Touch(rowsTopic)
	}
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
func (s *Service) moved(tx *store.Tx, id, field, before, after string, reasons ...string) error {
	return s.movedMany(tx, []string{id}, field, before, after, reasons...)
}

// movedMany records that a field of service points moved in the same way. Of each the last events are kept: behind every new one the one
// goes that is one too many.
func (s *Service) movedMany(tx *store.Tx, ids []string, field, before, after string, reasons ...string) error {
	name := field[strings.LastIndexByte(field, '/')+1:] // applications are counted together
	if name != field {
		name = "application " + name
	}
	now, rows := s.now().UnixMilli(), make([]any, 0, 6*len(ids))
	s.mu.Lock()
	for _, id := range ids {
		s.movesOf[tx] = append(s.movesOf[tx], Move{name, after})
		rows = append(rows, id, now, field, before, after, strings.Join(reasons, "; "))
	}
	s.mu.Unlock()
	values := strings.TrimSuffix(strings.Repeat("(?,?,?,?,?,?),", len(ids)), ",")
	if err := tx.Write("INSERT INTO fleet_event (service_point, at, field, old, new, reason) VALUES "+values, rows...); err != nil {
		return err
	}
	if s.told != nil && (field == "status" || field == "connectionStatus") {
		if err := s.told(tx, ids, field, after, reasons); err != nil {
			return err
		}
	}
	which := strings.TrimSuffix(strings.Repeat("(?),", len(ids)), ",")
	return tx.Write("DELETE FROM fleet_event WHERE seq IN (SELECT (SELECT e.seq FROM fleet_event e WHERE e.service_point = w.column1 "+
		"ORDER BY e.seq DESC LIMIT 1 OFFSET ?) FROM (VALUES "+which+") w)", append([]any{keptEvents}, anys(ids)...)...)
}

// list gives so many placeholders for a list.
func list(n int) string { return strings.TrimSuffix(strings.Repeat("?,", n), ",") }

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
		if err := there(tx, servicePoint); err != nil {
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
