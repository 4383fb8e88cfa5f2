package notify

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"portolan/internal/engine/event"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
)

// Intervals of the Sender.
const (
	pollInterval = 2 * time.Second
	leaseLength  = time.Minute
	// firstPause is the pause of a group after a failure. The pause doubles with each failure, up to maxPause.
	firstPause = 15 * time.Second
	maxPause   = 15 * time.Minute
	// maxEventAge is the age at which events are no longer sent.
	maxEventAge = 24 * time.Hour
)

// batchSize is the number of events that are enqueued or sent at a time.
const batchSize = 200

// Sender sends events to notification groups. One manager of a database at a time sends mail, and one sends traps. Failed messages are sent
// again.
type Sender struct {
	api *resource.API
	log *slog.Logger
	// enqueueLease is the lease to enqueue events for groups. sendLeases are the leases to send to the groups of each type.
	enqueueLease *store.Lease
	sendLeases   map[string]*store.Lease
	mail         *Mail
	traps        []*Traps
	// Sent is called after each attempt, with the type of the group.
	Sent func(kind string, sent bool)

	// pause and pausedUntil are the length and the end of the pauses of groups, by id. Only Run uses them.
	pause       map[int64]time.Duration
	pausedUntil map[int64]time.Time
}

// NewSender returns a Sender: by mail if m is not nil, and by traps to all receivers in traps. Run starts it.
func NewSender(a *resource.API, m *Mail, traps []*Traps, log *slog.Logger) *Sender {
	s := &Sender{api: a, log: log, enqueueLease: a.Store.NewLease("notifications", leaseLength), mail: m, traps: traps,
		sendLeases: map[string]*store.Lease{}, Sent: func(string, bool) {}, pause: map[int64]time.Duration{}, pausedUntil: map[int64]time.Time{}}
	if m != nil {
		s.sendLeases[byMail] = a.Store.NewLease("notifications by mail", leaseLength)
	}
	if len(traps) > 0 {
		s.sendLeases[byTrap] = a.Store.NewLease("notifications by traps", leaseLength)
	}
	return s
}

// Run works until ctx ends.
func (s *Sender) Run(ctx context.Context) {
	leases := slices.AppendSeq([]*store.Lease{s.enqueueLease}, maps.Values(s.sendLeases))
	s.api.Store.Work(ctx, pollInterval, s.log, "notifications", s.runOnce, leases...)
}

// runOnce does all pending work.
func (s *Sender) runOnce(ctx context.Context) error {
	news, waiting := false, map[int64]string{}
	if err := s.api.Store.View(ctx, func(tx *store.Tx) error {
		clear(waiting)
		due, err := event.ListPending(tx, 1)
		if err != nil {
			return err
		}
		news = len(due) > 0
		return tx.Each(func(scan func(...any) error) error {
			var id int64
			var kind string
			err := scan(&id, &kind)
			waiting[id] = kind
			return err
		}, "SELECT DISTINCT n.receiver, coalesce(json_extract(r.body, '$.notificationType'), '') FROM notice n LEFT JOIN resource r ON r.id = "+
			"n.receiver")
	}); err != nil {
		return err
	}
	if news {
		held, err := s.enqueueLease.Acquire(ctx)
		if err == nil && held {
			err = s.enqueueLease.Update(ctx, store.Author{}, s.enqueue)
		}
		if err != nil {
			return err
		}
	}
	var failures error
	for _, id := range slices.Sorted(maps.Keys(waiting)) {
		l := s.sendLeases[waiting[id]]
		if waiting[id] == "" { // the group was deleted
			l = s.enqueueLease
		}
		if l == nil && news { // another manager notifies them, or no manager can
			failures = errors.Join(failures, s.dropStale(ctx, id))
		}
		if l == nil || s.api.Store.Now().Before(s.pausedUntil[id]) {
			continue
		}
		if held, err := l.Acquire(ctx); err != nil || !held {
			failures = errors.Join(failures, err)
			continue
		}
		if err := s.notifyGroup(ctx, l, id); err != nil {
			failures = errors.Join(failures, err)
			s.pause[id] = min(max(s.api.Store.ShortenPause(firstPause), 2*s.pause[id]), maxPause)
			s.pausedUntil[id] = s.api.Store.Now().Add(s.pause[id])
			continue
		}
		delete(s.pause, id)
		delete(s.pausedUntil, id)
	}
	return failures
}

// enqueue adds new events to the notices of the groups that subscribe to them.
func (s *Sender) enqueue(tx *store.Tx) error {
	var all []*NotificationGroup
	if err := tx.List(store.Query{From: store.Resources, Where: store.InCollection(groups)}, func(r *store.Resource) error {
		o, err := s.api.Object(r)
		if err == nil {
			all = append(all, o.(*NotificationGroup))
		}
		return err
	}); err != nil {
		return err
	}
	due, err := event.ListPending(tx, batchSize)
	if err != nil {
		return err
	}
	for _, one := range due {
		for _, g := range all {
			if !g.isSubscribed(one.Category, one.EventType) || tx.Now().Sub(one.DateTime) > maxEventAge {
				continue
			}
			if err := tx.Write("INSERT INTO notice (receiver, event) VALUES (?, ?) ON CONFLICT DO NOTHING", g.ID, one.ID); err != nil {
				return err
			}
		}
	}
	return event.MarkProcessed(tx, due)
}

// dropStale deletes expired notices of a group that this manager cannot notify.
func (s *Sender) dropStale(ctx context.Context, group int64) error {
	m, err := s.message(ctx, group)
	if err != nil || len(m.ids) == len(m.events) {
		return err
	}
	held, err := s.enqueueLease.Acquire(ctx)
	if err != nil || !held {
		return err
	}
	fresh := map[int64]bool{}
	for i := range m.events {
		fresh[m.events[i].ID] = true
	}
	return s.enqueueLease.Update(ctx, store.Author{}, func(tx *store.Tx) error {
		return deleteNotices(tx, group, slices.DeleteFunc(m.ids, func(id int64) bool { return fresh[id] }))
	})
}

// deleteNotices deletes notices of a group.
func deleteNotices(tx *store.Tx, group int64, events []int64) error {
	for _, id := range events {
		if err := tx.Write("DELETE FROM notice WHERE receiver = ? AND event = ?", group, id); err != nil {
			return err
		}
	}
	return nil
}

// message is a message to a group.
type message struct {
	group  *NotificationGroup
	to     []string
	events []event.Event
	// ids are the ids of all its notices, including those of expired or deleted events.
	ids []int64
}

// notifyGroup sends the pending notices of a group and deletes them.
func (s *Sender) notifyGroup(ctx context.Context, l *store.Lease, group int64) error {
	m, err := s.message(ctx, group)
	if err != nil {
		return err
	}
	if m.group != nil && len(m.events) > 0 {
		err = s.send(ctx, m)
		s.Sent(m.group.NotificationType, err == nil)
		if err != nil {
			return fmt.Errorf("notify group %d: %w", group, err)
		}
	}
	return l.Update(ctx, store.Author{}, func(tx *store.Tx) error { return deleteNotices(tx, group, m.ids) })
}

// message reads the pending notices of a group and its receivers.
func (s *Sender) message(ctx context.Context, group int64) (m message, err error) {
	err = s.api.Store.View(ctx, func(tx *store.Tx) error {
		m = message{}
		if err := tx.Each(func(scan func(...any) error) error {
			var id int64
			err := scan(&id)
			m.ids = append(m.ids, id)
			return err
		}, "SELECT event FROM notice WHERE receiver = ? ORDER BY event LIMIT ?", group, batchSize); err != nil {
			return err
		}
		row, err := tx.Get(group)
		if store.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		o, err := s.api.Object(row)
		if err != nil {
			return err
		}
		m.group = o.(*NotificationGroup)
		for _, id := range m.ids {
			e, there, err := event.Get(tx, id)
			if err != nil {
				return err
			}
			if there && tx.Now().Sub(e.DateTime) <= maxEventAge {
				m.events = append(m.events, e)
			}
		}
		m.to, err = s.addresses(tx, group)
		return err
	})
	return m, err
}

// addresses returns the mail addresses of the members of a group, each once.
func (s *Sender) addresses(tx *store.Tx, group int64) (all []string, err error) {
	subjects, err := tx.Links(group, "subjects")
	if err != nil {
		return nil, err
	}
	users := slices.Clone(subjects)
	if err := tx.List(store.Query{From: store.Resources, Where: store.All{store.InCollection("users"),
		store.LinksTo{Targets: subjects, Field: "groups"}}}, func(r *store.Resource) error {
		users = append(users, r.ID)
		return nil
	}); err != nil {
		return nil, err
	}
	for _, id := range users {
		row, err := tx.Get(id)
		if err != nil {
			return nil, err
		}
		t := s.api.TypeNamed(row.Type)
		if t.ByName["email"] == nil { // a group
			continue
		}
		o, err := s.api.Object(row)
		if err != nil {
			return nil, err
		}
		all = append(all, t.TextOf(o, "email"))
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// send sends a message.
func (s *Sender) send(ctx context.Context, m message) error {
	if m.group.NotificationType == byTrap {
		return s.sendTraps(ctx, m)
	}
	switch {
	case s.mail == nil:
		return errors.New("no mail server is configured (--smtp)")
	case len(m.to) == 0:
		s.log.Warn("notification group has no members", "group", m.group.Name)
		return nil
	}
	refused, err := s.mail.send(ctx, m.to, m.group.Name, m.subject(), m.text(s.api.Manager.Address),
		s.pause[m.group.ID] < maxPause)
	if len(refused) > 0 {
		s.log.Warn("mail addresses rejected by server", "group", m.group.Name, "addresses", strings.Join(refused, " "))
	}
	return err
}

// sendTraps sends each event to each receiver. Traps are not acknowledged. If some receivers cannot be reached, the events are not sent to
// them again.
func (s *Sender) sendTraps(ctx context.Context, m message) error {
	var failures error
	reached := false
	for _, t := range s.traps {
		var err error
		for i := range m.events {
			if err == nil {
				err = t.send(ctx, &m.events[i])
			}
		}
		if reached = reached || err == nil; err != nil {
			failures = errors.Join(failures, fmt.Errorf("%s: %w", t.host, err))
		}
	}
	if failures != nil && reached {
		s.log.Warn("traps not sent to some receivers", "error", failures)
		return nil
	}
	return failures
}

// subject returns the subject line.
func (m *message) subject() string {
	first := m.events[0]
	text := fmt.Sprintf("Portolan: %s %s", first.Category, first.EventType)
	if n := len(m.events) - 1; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text
}

// text returns the message text.
func (m *message) text(manager string) string {
	var b strings.Builder
	for _, e := range m.events {
		fmt.Fprintf(&b, "%s  %s  %s\n%s\n\n", e.DateTime.UTC().Format(time.RFC3339), e.Category, e.EventType, e.Message)
	}
	fmt.Fprintf(&b, "-- \nThe manager at %s. All events: %s/api/v2/events\n", manager, manager)
	return b.String()
}
