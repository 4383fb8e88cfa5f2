package fleet

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"portolan/internal/base/problem"
	"portolan/internal/engine/store"
	"portolan/internal/wire/checkin"
)

// heard is when this manager last heard of a service point. Its times are read from this process's monotonic clock, so that no
// change of the machine's time moves them.
type contact struct {
	at time.Time
	// written is the one that the database has; zero where it has none of this manager's.
	written time.Time
}

// hear notes that something came from a service point, by one of its nodes.
func (s *Service) recordContact(known row) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.contacts[known.at.id]
	h.at = now
	s.contacts[known.at.id] = h
	if known.several {
		h := s.nodeContacts[known.at]
		h.at = now
		s.nodeContacts[known.at] = h
	}
}

// due gives who was heard of since that was last written, as long ago as age says or longer, and forgets who has been silent for
// long: so many.
func unwrittenContacts[K comparable](all map[K]contact, age, silence time.Duration) (due map[K]time.Time, forgotten int64) {
	now := time.Now()
	due = map[K]time.Time{}
	for key, h := range all {
		switch since := h.at.Sub(h.written); {
		case since == 0 && now.Sub(h.at) > 2*silence:
			delete(all, key)
			forgotten++
		case since > 0 && since >= age:
			due[key] = h.at
		}
	}
	return due, forgotten
}

// atOnce is how many service points' presence is written in one transaction: others get in between.
const chunkSize = 500

// WritePresence writes down who was heard of here since it was last written, and forgets who has been silent for long. It is called
// every few seconds and, with all, once at the end; then what is younger than three quarters of an interval is written, too.
func (s *Service) WritePresence(ctx context.Context, all bool) error {
	s.presence.Lock()
	defer s.presence.Unlock()
	err := s.SetClock(ctx)
	age := s.interval * 3 / 4
	if all {
		age = 0
	}
	s.mu.Lock()
	points, forgotten := unwrittenContacts(s.contacts, age, s.silence())
	s.forgotten.Add(forgotten)
	nodes, _ := unwrittenContacts(s.nodeContacts, age, s.silence())
	now := time.Now()
	maps.DeleteFunc(s.paces, func(_ reportSource, next time.Time) bool { return next.Before(now) }) // as if there was none
	s.mu.Unlock()
	for part := range slices.Chunk(slices.Sorted(maps.Keys(points)), chunkSize) { // in one order: managers do not wait for each other in a circle
		if e := s.writePresence(ctx, part, points); e != nil {
			return errors.Join(err, e)
		}
	}
	return errors.Join(err, s.writeNodes(ctx, nodes))
}

// writePresence writes when some service points were heard of. On SQLite what lists have found stays: the manager knows that of these by
// itself. Other managers are told, and all ask anew.
func (s *Service) writePresence(ctx context.Context, ids []string, at map[string]time.Time) error {
	if err := s.withEvents(s.ownRows)(ctx, authorOf(ctx), func(tx *store.Tx) error {
		if !s.store.OneWriter() {
			tx.Touch(rowsTopic)
		}
		back, err := s.justConnected(tx, ids)
		if err != nil {
			return err
		}
		for _, id := range ids {
			last := s.now().Add(-time.Since(at[id])).UnixMilli()
			if back[id] {
				err = s.markConnected(tx, id, last)
			} else {
				err = s.writeLastSeen(tx, id, last)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		if h, ok := s.contacts[id]; ok {
			h.written = at[id]
			s.contacts[id] = h
		}
	}
	return nil
}

// present writes that a service point is connected and, in Unix milliseconds, when it was heard of.
func (s *Service) writeLastSeen(tx *store.Tx, id string, last int64) error {
	// Not of one that was deleted meanwhile. What lies in the future was written by a clock that was wrong.
	return tx.Write("INSERT INTO presence (service_point, last_seen, connected) SELECT id, ?, 1 FROM service_point WHERE id = ?"+
		tx.Staying()+" ON CONFLICT (service_point) DO UPDATE SET connected = 1, last_seen = CASE WHEN presence.last_seen > ? OR "+
		"presence.last_seen < excluded.last_seen THEN excluded.last_seen ELSE presence.last_seen END", last, id,
		s.now().UnixMilli())
}

// cameBack is present of a service point that was not connected, with the event: nobody else may have written both meanwhile.
func (s *Service) markConnected(tx *store.Tx, id string, last int64) error {
	n, err := tx.Exec("INSERT INTO presence (service_point, last_seen, connected) SELECT id, ?, 1 FROM service_point WHERE id = ?"+
		tx.Staying()+" ON CONFLICT (service_point) DO NOTHING", last, id)
	if err == nil && n == 0 {
		n, err = tx.Exec("UPDATE presence SET connected = 1 WHERE service_point = ? AND connected = 0", id)
	}
	if err == nil && n > 0 {
		err = s.recordMove(tx, id, fieldConnection, NotConnected, Connected)
	}
	if err != nil {
		return err
	}
	return s.writeLastSeen(tx, id, last)
}

// left notes that a node, or the only one of a service point, has ended: it says so, and need not be missed for three intervals.
func (s *Service) markStopped(ctx context.Context, known row) error {
	id := known.at.id
	s.presence.Lock()
	defer s.presence.Unlock()
	s.mu.Lock()
	delete(s.nodeContacts, known.at)
	others := false
	for n := range int64(MaxNodeCount) {
		h, ok := s.nodeContacts[nodeID{id, n + 1}]
		others = others || ok && time.Since(h.at) < s.silence()
	}
	if !others {
		delete(s.contacts, id)
	}
	s.mu.Unlock()
	return s.change(ctx, func(tx *store.Tx) error {
		if known.several {
			if stays, err := s.markNodeStopped(tx, known.at); err != nil || stays {
				return err
			}
		}
		back, err := s.justConnected(tx, []string{id})
		if err != nil {
			return err
		}
		// Also where that it came was never written.
		if err := tx.Write("INSERT INTO presence (service_point, last_seen, connected) SELECT id, ?, 0 FROM service_point "+
			"WHERE id = ?"+tx.Staying()+
			" ON CONFLICT (service_point) DO UPDATE SET connected = 0, last_seen = excluded.last_seen", s.now().UnixMilli(), id); err != nil ||
			back[id] {
			return err
		}
		return s.recordMove(tx, id, fieldConnection, Connected, NotConnected, "the service point ended")
	})
}

// back gives those of the service points that were not connected until now. The others are locked: none falls silent before this ends.
func (s *Service) justConnected(tx *store.Tx, ids []string) (back map[string]bool, err error) {
	back = make(map[string]bool, len(ids))
	args := make([]any, len(ids))
	for i, id := range ids {
		args[i], back[id] = id, true
	}
	return back, tx.Each(func(scan func(...any) error) error {
		var id string
		err := scan(&id)
		delete(back, id)
		return err
	}, "SELECT service_point FROM presence WHERE connected = 1 AND service_point IN ("+placeholders(len(ids))+") ORDER BY service_point"+tx.Locking(),
		args...)
}

// Sweep writes down which registration keys have run out, and which service points have fallen silent, and removes
// applications that are no more. One manager does it: update is
// that of its lease.
func (s *Service) Sweep(ctx context.Context, update store.Updater) error {
	return errors.Join(s.expireKeys(ctx, update), s.correctClocks(ctx, update), s.markSilent(ctx, update), s.markSilentNodes(ctx, update),
		s.removeDeleted(ctx, update),
		s.forgetSpent(ctx, update),
		s.forgetLogs(ctx, update))
}

func (s *Service) expireKeys(ctx context.Context, update store.Updater) error {
	return s.each(ctx, update, "SELECT id FROM service_point WHERE status = ? AND key_expires <= ? ORDER BY id",
		[]any{Waiting, s.now().Unix()}, func(tx *store.Tx, id string) error {
			n, err := tx.Exec("UPDATE service_point SET status = ? WHERE id = ? AND status = ? AND key_expires <= ?", Expired, id, Waiting,
				s.now().Unix())
			if err != nil || n == 0 {
				return err
			}
			return s.recordMove(tx, id, fieldStatus, Waiting, Expired)
		})
}

// wrongClock is how far ahead of the clock a time may be that managers have noted: they share the clock of the database.
const wrongClock = 5 * time.Second

// correctClocks sets times of presence that are in the future to the present: a manager whose clock was ahead has noted them, and a service
// point would be CONNECTED until then.
func (s *Service) correctClocks(ctx context.Context, update store.Updater) error {
	now := s.now()
	latest := now.Add(wrongClock).UnixMilli()
	return errors.Join(
		s.each(ctx, update, "SELECT service_point FROM presence WHERE last_seen > ? ORDER BY service_point", []any{latest},
			func(tx *store.Tx, id string) error {
				return tx.Write("UPDATE presence SET last_seen = ? WHERE service_point = ? AND last_seen > ?", now.UnixMilli(), id, latest)
			}),
		s.each(ctx, update, "SELECT DISTINCT service_point FROM node WHERE last_seen > ? ORDER BY service_point", []any{latest},
			func(tx *store.Tx, id string) error {
				err := lockPoint(tx, id)
				if _, gone := problem.As(err); gone { // it was deleted meanwhile
					return nil
				}
				if err != nil {
					return err
				}
				return tx.Write("UPDATE node SET last_seen = ? WHERE service_point = ? AND last_seen > ?", now.UnixMilli(), id, latest)
			}))
}

// silenced finds who is NOT_CONNECTED: nothing was heard of it for three intervals, by any manager.
func (s *Service) markSilent(ctx context.Context, update store.Updater) error {
	before := s.now().Add(-s.silence()).UnixMilli()
	return s.each(ctx, update, "SELECT service_point FROM presence WHERE connected = 1 AND last_seen < ? "+
		"ORDER BY service_point", []any{before},
		func(tx *store.Tx, id string) error {
			s.mu.Lock()
			h, ok := s.contacts[id]
			s.mu.Unlock()
			if ok && time.Since(h.at) < s.silence() { // and is about to be written
				return nil
			}
			n, err := tx.Exec("UPDATE presence SET connected = 0 WHERE service_point = ? AND connected = 1 AND last_seen < ?", id, before)
			if err != nil || n == 0 {
				return err
			}
			s.log.WarnContext(ctx, "a service point is not connected", "id", id, "silentFor", s.silence().String())
			return s.recordMove(tx, id, fieldConnection, Connected, NotConnected)
		})
}

// each calls fn for what a query names, some in one transaction, in the order that the query has: that of service points, as all lock them.
func (s *Service) each(ctx context.Context, update store.Updater, query string, args []any, fn func(tx *store.Tx, id string) error) error {
	var ids []string
	if err := s.store.View(ctx, func(tx *store.Tx) error {
		return tx.Each(func(scan func(...any) error) error {
			var id string
			err := scan(&id)
			ids = append(ids, id)
			return err
		}, query, args...)
	}); err != nil {
		return err
	}
	for part := range slices.Chunk(ids, chunkSize) {
		if err := s.changingRows(update)(ctx, store.Author{}, func(tx *store.Tx) error {
			for _, id := range part {
				if err := fn(tx, id); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// crowd is how long service points should take to come back together, for the work of so many handshakes.
func (s *Service) reconnectSpread() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return min(time.Duration(len(s.contacts))*handshakeTime, maxSpread)
}

// handshakeTime is what a handshake with certificates costs a manager, twice over; mostSpread is the longest that service points wait.
const (
	handshakeTime = 3 * time.Millisecond
	maxSpread     = checkin.MissedIntervals * checkin.Interval
)

// Figures are how many service points there are in each status, how many are connected, how many were not heard of for how long, and how
// many rollouts and applications, by their names, there are in each status.
type Figures struct {
	Statuses  map[string]int64 `json:"statuses"`
	Connected int64            `json:"connected"`
	// Away is how many were there once, and are NOT_CONNECTED.
	Away   int64            `json:"away"`
	Silent map[string]int64 `json:"silent"`
	// Updates counts those of which an update is under way, or failed, by updateStatus.
	Updates      map[string]int64            `json:"updates"`
	Rollouts     map[string]int64            `json:"rollouts"`
	Applications map[string]map[string]int64 `json:"applications"`
}

// silences are how long service points were not heard of that are counted: those that are silent for a day are among those of an hour.
var silences = []struct {
	name  string
	least time.Duration
}{{"5m", 5 * time.Minute}, {"1h", time.Hour}, {"24h", 24 * time.Hour}}

// Figures counts the fleet, as it was last written down.
func (s *Service) Figures(ctx context.Context) (f Figures, err error) {
	f = Figures{Statuses: map[string]int64{}, Updates: map[string]int64{}, Rollouts: map[string]int64{}, Silent: map[string]int64{},
		Applications: map[string]map[string]int64{}}
	return f, s.store.View(ctx, func(tx *store.Tx) error {
		for groups, counts := range map[string]map[string]int64{"status, count(*) FROM service_point GROUP BY status": f.Statuses,
			"status, count(*) FROM rollout GROUP BY status":                                                                       f.Rollouts,
			"update_status, count(*) FROM service_point WHERE update_status <> '" + checkin.UpdateOK + "' GROUP BY update_status": f.Updates} {
			if err := tx.Each(func(scan func(...any) error) error {
				var status string
				var n int64
				err := scan(&status, &n)
				counts[status] = n
				return err
			}, "SELECT "+groups); err != nil {
				return err
			}
		}
		if err := tx.Each(func(scan func(...any) error) error {
			var name, status string
			var n int64
			err := scan(&name, &status, &n)
			if f.Applications[name] == nil {
				f.Applications[name] = map[string]int64{}
			}
			f.Applications[name][status] = n
			return err
		}, "SELECT name, status, count(*) FROM application WHERE deleted = 0 GROUP BY name, status"); err != nil {
			return err
		}
		for _, silence := range silences {
			var n int64
			if err := tx.QueryRow("SELECT count(*) FROM presence WHERE connected = 0 AND last_seen > 0 AND last_seen < ?",
				s.now().Add(-silence.least).UnixMilli()).Scan(&n); err != nil {
				return err
			}
			f.Silent[silence.name] = n
		}
		if err := tx.QueryRow("SELECT count(*) FROM presence WHERE connected = 0 AND last_seen > 0").Scan(&f.Away); err != nil {
			return err
		}
		return tx.QueryRow("SELECT count(*) FROM presence WHERE connected = 1").Scan(&f.Connected)
	})
}

// Silent says, in a transaction, whether a service point is NOT_CONNECTED. One that has come for the first time is not, also before that is
// written down.
func (s *Service) Silent(tx *store.Tx, servicePoint string) (bool, error) {
	connected := 0
	err := tx.QueryRow("SELECT coalesce(max(connected), 1) FROM presence WHERE service_point = ?", servicePoint).Scan(&connected)
	return connected == 0, err
}
