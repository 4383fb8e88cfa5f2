package fleet

import (
	"context"
	"database/sql"
	"errors"
	"maps"
	"slices"
	"time"

	"portolan/internal/base/problem"
	"portolan/internal/engine/store"
	"portolan/internal/wire/checkin"
)

// contact is this manager's last contact with a service point or node. Its times are readings of the process's monotonic clock, so that a
// change of the machine's time does not affect them.
type contact struct {
	time time.Time
	// written is the contact time last written to the database; zero if this manager has written none.
	written time.Time
}

// recordContact records that a node of a service point has sent a request.
func (s *Service) recordContact(known row) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.contacts[known.at.id]
	h.time = now
	s.contacts[known.at.id] = h
	if known.mayHaveNodes {
		h := s.nodeContacts[known.at]
		h.time = now
		s.nodeContacts[known.at] = h
	}
}

// unwrittenContacts returns the contacts that are newer than the written ones by at least age. It deletes contacts that are written and
// older than twice silence, and returns their number as forgotten.
func unwrittenContacts[K comparable](all map[K]contact, age, silence time.Duration) (due map[K]time.Time, forgotten int64) {
	now := time.Now()
	due = map[K]time.Time{}
	for key, h := range all {
		switch since := h.time.Sub(h.written); {
		case since == 0 && now.Sub(h.time) > 2*silence:
			delete(all, key)
			forgotten++
		case since > 0 && since >= age:
			due[key] = h.time
		}
	}
	return due, forgotten
}

// chunkSize is the number of service points handled in one transaction or page. Other transactions run in between.
const chunkSize = 500

// WritePresence writes to the database when service points were last in contact with this manager, and forgets those that have been silent
// for long. It is called every few seconds. With all it is called once at the end, and then also writes contacts younger than three
// quarters of an interval.
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
	maps.DeleteFunc(s.paces, func(_ reportSource, next time.Time) bool { return next.Before(now) }) // an expired pace has no effect
	s.mu.Unlock()
	for part := range slices.Chunk(slices.Sorted(maps.Keys(points)), chunkSize) { // in one order, so that managers do not deadlock
		if e := s.writePresence(ctx, part, points); e != nil {
			return errors.Join(err, e)
		}
	}
	return errors.Join(err, s.writeNodes(ctx, nodes))
}

// writePresence writes the contact times of some service points. On SQLite the cached lists stay valid, because this manager knows these
// contacts itself. With several managers the list caches are invalidated.
func (s *Service) writePresence(ctx context.Context, ids []string, at map[string]time.Time) error {
	if err := s.withEvents(s.ownRows)(ctx, authorOf(ctx), func(tx *store.Tx) error {
		if !s.store.HasOneWriter() {
			tx.Touch(rowsTopic)
		}
		back, err := s.disconnectedOf(tx, ids)
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

// writeLastSeen marks a service point as connected and writes its last contact, in Unix milliseconds.
func (s *Service) writeLastSeen(tx *store.Tx, id string, last int64) error {
	// A service point deleted in the meantime is skipped. A stored time in the future was written by a wrong clock and is overwritten.
	return tx.Write("INSERT INTO presence (service_point, last_seen, connected) SELECT id, ?, 1 FROM service_point WHERE id = ?"+
		tx.Staying()+" ON CONFLICT (service_point) DO UPDATE SET connected = 1, last_seen = CASE WHEN presence.last_seen > ? OR "+
		"presence.last_seen < excluded.last_seen THEN excluded.last_seen ELSE presence.last_seen END", last, id,
		s.now().UnixMilli())
}

// markConnected marks a disconnected service point as connected and records the change, once even if several managers do so at the same
// time. It then writes the last contact.
func (s *Service) markConnected(tx *store.Tx, id string, last int64) error {
	n, err := tx.Exec("INSERT INTO presence (service_point, last_seen, connected) SELECT id, ?, 1 FROM service_point WHERE id = ?"+
		tx.Staying()+" ON CONFLICT (service_point) DO NOTHING", last, id)
	if err == nil && n == 0 {
		n, err = tx.Exec("UPDATE presence SET connected = 1 WHERE service_point = ? AND connected = 0", id)
	}
	if err == nil && n > 0 {
		err = s.recordChange(tx, id, fieldConnection, NotConnected, Connected)
	}
	if err != nil {
		return err
	}
	return s.writeLastSeen(tx, id, last)
}

// markStopped records that a node, or the only node of a service point, has announced its stop. The manager does not wait three intervals
// for it.
func (s *Service) markStopped(ctx context.Context, known row) error {
	id := known.at.id
	s.presence.Lock()
	defer s.presence.Unlock()
	s.mu.Lock()
	delete(s.nodeContacts, known.at)
	others := false
	for n := range int64(MaxNodeCount) {
		h, ok := s.nodeContacts[nodeID{id, n + 1}]
		others = others || ok && time.Since(h.time) < s.silence()
	}
	if !others {
		delete(s.contacts, id)
	}
	s.mu.Unlock()
	return s.change(ctx, func(tx *store.Tx) error {
		if known.mayHaveNodes {
			if stays, err := s.markNodeStopped(tx, known.at); err != nil || stays {
				return err
			}
		}
		back, err := s.disconnectedOf(tx, []string{id})
		if err != nil {
			return err
		}
		// The row is also written if the connection was never written.
		if err := tx.Write("INSERT INTO presence (service_point, last_seen, connected) SELECT id, ?, 0 FROM service_point "+
			"WHERE id = ?"+tx.Staying()+
			" ON CONFLICT (service_point) DO UPDATE SET connected = 0, last_seen = excluded.last_seen", s.now().UnixMilli(), id); err != nil ||
			back[id] {
			return err
		}
		return s.recordChange(tx, id, fieldConnection, Connected, NotConnected, "the service point shut down")
	})
}

// disconnectedOf returns those service points of ids that the database has as disconnected or has no presence of. It locks the presence
// rows of the others until the transaction ends, so that no sweep marks them as silent meanwhile.
func (s *Service) disconnectedOf(tx *store.Tx, ids []string) (disconnected map[string]bool, err error) {
	disconnected = make(map[string]bool, len(ids))
	args := make([]any, len(ids))
	for i, id := range ids {
		args[i], disconnected[id] = id, true
	}
	return disconnected, tx.Each(func(scan func(...any) error) error {
		var id string
		err := scan(&id)
		delete(disconnected, id)
		return err
	}, "SELECT service_point FROM presence WHERE connected = 1 AND service_point IN ("+placeholders(len(ids))+") ORDER BY service_point"+
		tx.Locking(), args...)
}

// Sweep expires registration keys, marks silent service points and nodes as disconnected, and deletes rows that are no longer needed. One
// manager runs it: update is the updater of its lease.
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
			return s.recordChange(tx, id, fieldStatus, Waiting, Expired)
		})
}

// wrongClock is the largest accepted lead of a stored contact time over the current time. Managers share the clock of the database.
const wrongClock = 5 * time.Second

// correctClocks sets contact times in the future to the present. A manager with a wrong clock wrote them, and the service point would be
// CONNECTED until then.
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
				if _, gone := problem.As(err); gone { // deleted in the meantime
					return nil
				}
				if err != nil {
					return err
				}
				return tx.Write("UPDATE node SET last_seen = ? WHERE service_point = ? AND last_seen > ?", now.UnixMilli(), id, latest)
			}))
}

// markSilent sets service points to NOT_CONNECTED that no manager has heard from for three intervals.
func (s *Service) markSilent(ctx context.Context, update store.Updater) error {
	before := s.now().Add(-s.silence()).UnixMilli()
	return s.each(ctx, update, "SELECT service_point FROM presence WHERE connected = 1 AND last_seen < ? "+
		"ORDER BY service_point", []any{before},
		func(tx *store.Tx, id string) error {
			s.mu.Lock()
			h, ok := s.contacts[id]
			s.mu.Unlock()
			if ok && time.Since(h.time) < s.silence() { // this contact is written soon
				return nil
			}
			n, err := tx.Exec("UPDATE presence SET connected = 0 WHERE service_point = ? AND connected = 1 AND last_seen < ?", id, before)
			if err != nil || n == 0 {
				return err
			}
			s.log.WarnContext(ctx, "service point disconnected", "id", id, "silentFor", s.silence().String())
			return s.recordChange(tx, id, fieldConnection, Connected, NotConnected)
		})
}

// each calls fn for the ids that a query returns, in chunks of one transaction each. The query's order must be the order in which all
// transactions lock service points.
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

// reconnectSpread returns the time over which service points should spread their reconnection, by the cost of their handshakes.
func (s *Service) reconnectSpread() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return min(time.Duration(len(s.contacts))*handshakeTime, maxSpread)
}

// handshakeTime is twice the cost of a handshake with certificates at a manager. maxSpread is the longest spread.
const (
	handshakeTime = 3 * time.Millisecond
	maxSpread     = checkin.MissedIntervals * checkin.Interval
)

// Figures are counts of the fleet: service points by status, connection, silence and update status, rollouts by status, and applications by
// name and status.
type Figures struct {
	Statuses  map[string]int64 `json:"statuses"`
	Connected int64            `json:"connected"`
	// Disconnected counts service points that were connected once and are NOT_CONNECTED.
	Disconnected int64            `json:"away"`
	Silent       map[string]int64 `json:"silent"`
	// Updates counts service points whose update is running or failed, by updateStatus.
	Updates      map[string]int64            `json:"updates"`
	Rollouts     map[string]int64            `json:"rollouts"`
	Applications map[string]map[string]int64 `json:"applications"`
	// BrokenApplications counts HEALTHY and connected service points with an application that is unhealthy or could not be deployed.
	BrokenApplications int64 `json:"brokenApplications"`
	// Troubled are the first service points with a problem, at most maxTroubled of each kind.
	Troubled []Troubled `json:"troubled"`
}

// silences are the durations of silence that are counted. A service point that is silent for a day counts in the hour as well.
var silences = []struct {
	name string
	min  time.Duration
}{{"5m", 5 * time.Minute}, {"1h", time.Hour}, {"24h", 24 * time.Hour}}

// Figures counts the fleet from the state in the database.
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
				s.now().Add(-silence.min).UnixMilli()).Scan(&n); err != nil {
				return err
			}
			f.Silent[silence.name] = n
		}
		if err := tx.QueryRow("SELECT count(*) FROM presence WHERE connected = 0 AND last_seen > 0").Scan(&f.Disconnected); err != nil {
			return err
		}
		if err := tx.QueryRow("SELECT count(*) FROM presence WHERE connected = 1").Scan(&f.Connected); err != nil {
			return err
		}
		if err := tx.QueryRow("SELECT count(DISTINCT a.service_point) FROM application a JOIN service_point s ON s.id = a.service_point "+
			"JOIN presence p ON p.service_point = s.id WHERE a.deleted = 0 AND a.status IN (?, ?) AND s.status = ? AND p.connected = 1",
			checkin.Unhealthy, checkin.DeployFailed, Healthy).Scan(&f.BrokenApplications); err != nil {
			return err
		}
		return f.readTroubled(tx)
	})
}

// IsSilent reports, in a transaction, whether a service point is NOT_CONNECTED. A service point that has just connected for the first time
// is not, even before its presence is written.
func (s *Service) IsSilent(tx *store.Tx, servicePoint string) (bool, error) {
	connected := 0
	err := tx.QueryRow("SELECT coalesce(max(connected), 1) FROM presence WHERE service_point = ?", servicePoint).Scan(&connected)
	return connected == 0, err
}

// ReadConnection returns whether a service point exists, and whether it is connected.
func ReadConnection(tx *store.Tx, id string) (there, connected bool, err error) {
	var n int
	err = tx.QueryRow("SELECT coalesce(p.connected, 0) FROM service_point s LEFT JOIN presence p ON p.service_point = s.id WHERE s.id = ?",
		id).Scan(&n)
	if errors.Is(err, sql.ErrNoRows) {
		return false, false, nil
	}
	return err == nil, n == 1, err
}
