// Package fleet is the fleet as the manager sees it: service points, their enrolment, presence and
// health. It keeps its tables through store/ and speaks the types of checkin/; it knows nothing of
// addresses and names, nor of HTTP.
package fleet

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"portolan/internal/access"
	"portolan/internal/checkin"
	"portolan/internal/problem"
	"portolan/internal/store"
)

// States of a service point (spec.md section 3).
const (
	Waiting      = "WAITING_FOR_PROVISIONING"
	Healthy      = "HEALTHY"
	Unhealthy    = "UNHEALTHY"
	Expired      = "EXPIRED"
	Connected    = "CONNECTED"
	NotConnected = "NOT_CONNECTED"
)

// KeyLife is how long a registration key can be used.
const KeyLife = 7 * 24 * time.Hour

// Service keeps the fleet.
type Service struct {
	store     *store.Store
	authority *Authority
	log       *slog.Logger
	// interval is how often service points report; checkin.Interval but in tests.
	interval time.Duration

	// elsewhere has a token when another manager may have deleted a service point.
	elsewhere chan struct{}

	// closing is closed when check-ins are no longer held open.
	closing   chan struct{}
	closeOnce sync.Once

	mu sync.Mutex
	// seen is when a service point was last heard of, in Unix milliseconds, where the database does
	// not have it yet. Guarded by mu.
	seen map[string]int64
	// gone has a channel for every service point with a check-in open, closed when it is deleted.
	// Guarded by mu.
	gone map[string]chan struct{}
	// paces is when the next report of a service point may be written. Guarded by mu.
	paces map[string]time.Time
}

// New makes the service. interval 0 means checkin.Interval.
func New(s *store.Store, a *Authority, log *slog.Logger, interval time.Duration) *Service {
	if interval <= 0 {
		interval = checkin.Interval
	}
	f := &Service{store: s, authority: a, log: log, interval: interval, closing: make(chan struct{}), elsewhere: make(chan struct{}, 1),
		seen: map[string]int64{}, gone: map[string]chan struct{}{}, paces: map[string]time.Time{}}
	s.Watch(topic, func() {
		select {
		case f.elsewhere <- struct{}{}:
		default: // it is about to be looked at
		}
	})
	return f
}

// topic is what a transaction touches that takes a service point away (store.Tx.Touch).
const topic = "fleet"

// Attend ends, until ctx does, the check-ins held open for service points that another manager has
// deleted.
func (s *Service) Attend(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.elsewhere:
		}
		if err := s.endDeleted(ctx); err != nil && ctx.Err() == nil {
			s.log.ErrorContext(ctx, "looking for deleted service points", "error", err)
		}
	}
}

func (s *Service) endDeleted(ctx context.Context) error {
	s.mu.Lock()
	open := slices.Collect(maps.Keys(s.gone))
	s.mu.Unlock()
	if len(open) == 0 {
		return nil
	}
	known := map[string]bool{}
	if err := s.store.View(ctx, func(tx *store.Tx) error {
		return tx.Each(func(scan func(...any) error) error {
			var id string
			err := scan(&id)
			known[id] = true
			return err
		}, "SELECT id FROM service_point")
	}); err != nil {
		return err
	}
	for _, id := range open {
		if !known[id] {
			s.forget(id)
		}
	}
	return nil
}

// forget lets go of a service point that was deleted.
func (s *Service) forget(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.seen, id)
	delete(s.paces, id)
	if open, ok := s.gone[id]; ok {
		close(open)
		delete(s.gone, id)
	}
}

// EndCheckins lets every check-in that is held open answer now, and holds none from then on: the manager is
// about to end.
func (s *Service) EndCheckins() { s.closeOnce.Do(func() { close(s.closing) }) }

// Instance is a fleet service point as the API shows it (spec.md 2.1).
type Instance struct {
	ID               string         `json:"id"`
	Name             string         `json:"name"`
	Description      *string        `json:"description,omitempty"`
	Status           string         `json:"status"`
	LastSeen         int64          `json:"lastSeen"`
	ConnectionStatus string         `json:"connectionStatus"`
	Version          string         `json:"version"`
	TargetVersion    string         `json:"targetVersion,omitempty"`
	UpdateStatus     string         `json:"updateStatus"`
	ErrorConditions  []string       `json:"errorConditions"`
	Nodes            []checkin.Node `json:"nodes"`
	Applications     []struct{}     `json:"applications"`

	proxy *checkin.ProxySettings
}

// Detail is a single service point: with what the list leaves out (reference/fleet.md).
type Detail struct {
	Instance
	Nodes []DetailNode `json:"nodes"`
	// HTTPProxySettings is null where no proxy is set.
	HTTPProxySettings *checkin.ProxySettings `json:"httpProxySettings"`
}

// DetailNode is a node with its DNS servers, an empty array where it has none.
type DetailNode struct {
	checkin.Node
	DNSServers []string `json:"dnsServers"`
}

const instanceColumns = "id, name, description, status, update_status, version, target_version, key_expires, last_seen, report"

// scan reads one row of the columns above.
func (s *Service) scan(scan func(...any) error, now time.Time) (Instance, error) {
	var i Instance
	var description sql.NullString
	var expires int64
	var reported string
	if err := scan(&i.ID, &i.Name, &description, &i.Status, &i.UpdateStatus, &i.Version, &i.TargetVersion, &expires, &i.LastSeen,
		&reported); err != nil {
		return i, err
	}
	if description.Valid {
		i.Description = &description.String
	}
	i.Status = statusAt(i.Status, expires, now)
	s.mu.Lock()
	i.LastSeen = max(i.LastSeen, s.seen[i.ID])
	s.mu.Unlock()
	i.ConnectionStatus = NotConnected
	if i.LastSeen > 0 && now.UnixMilli()-i.LastSeen <= (checkin.MissedIntervals*s.interval).Milliseconds() {
		i.ConnectionStatus = Connected
	}
	var r checkin.Report
	if reported != "" {
		if err := json.Unmarshal([]byte(reported), &r); err != nil {
			return i, err
		}
	}
	i.Applications, i.proxy = []struct{}{}, r.HTTPProxySettings
	if i.ErrorConditions = r.ErrorConditions; i.ErrorConditions == nil || i.Status != Unhealthy {
		i.ErrorConditions = []string{}
	}
	if i.Nodes = r.Nodes; i.Nodes == nil {
		i.Nodes = []checkin.Node{}
	}
	for n := range i.Nodes {
		if i.Nodes[n].Addresses == nil {
			i.Nodes[n].Addresses = []checkin.NodeAddress{}
		}
	}
	return i, nil
}

// statusAt is the status at a moment: a key that ran out makes WAITING into EXPIRED.
func statusAt(status string, expires int64, now time.Time) string {
	if status == Waiting && expires <= now.Unix() {
		return Expired
	}
	return status
}

// List gives the service points in the order of their names; name narrows it to the one of exactly
// that name.
func (s *Service) List(ctx context.Context, name string, byName bool) (all []Instance, err error) {
	all = []Instance{}
	err = s.store.View(ctx, func(tx *store.Tx) error {
		query, args := "SELECT "+instanceColumns+" FROM service_point ORDER BY name", []any{}
		if byName {
			query, args = "SELECT "+instanceColumns+" FROM service_point WHERE name = ?", []any{name}
		}
		return tx.Each(func(scan func(...any) error) error {
			i, err := s.scan(scan, tx.Now())
			for n := range i.Nodes {
				i.Nodes[n].DNSServers = nil
			}
			all = append(all, i)
			return err
		}, query, args...)
	})
	return all, err
}

// Get gives one service point.
func (s *Service) Get(ctx context.Context, id string) (d Detail, err error) {
	err = s.store.View(ctx, func(tx *store.Tx) error {
		d.Instance, err = s.scan(tx.QueryRow("SELECT "+instanceColumns+" FROM service_point WHERE id = ?", id).Scan, tx.Now())
		if errors.Is(err, sql.ErrNoRows) {
			return problem.NotFound("there is no fleet service point %q", id)
		}
		return err
	})
	d.Nodes, d.HTTPProxySettings = []DetailNode{}, d.proxy
	for _, n := range d.Instance.Nodes {
		d.Nodes = append(d.Nodes, DetailNode{n, append([]string{}, n.DNSServers...)})
	}
	return d, err
}

// Delete forgets a service point. Its certificate is refused from then on.
func (s *Service) Delete(ctx context.Context, id string) error {
	err := s.store.UpdateIn(ctx, store.OwnTables(), store.Author{}, func(tx *store.Tx) error {
		tx.Touch(topic)
		n, err := tx.Exec("DELETE FROM service_point WHERE id = ?", id)
		if err != nil {
			return err
		}
		if n == 0 {
			return problem.NotFound("there is no fleet service point %q", id)
		}
		err = tx.Write("DELETE FROM fleet_event WHERE service_point = ?", id)
		return err
	})
	if err == nil {
		s.forget(id)
	}
	return err
}

// Created is what the creation of a service point answers (spec.md 2.4).
type Created struct {
	FleetInstanceID      string `json:"fleetInstanceID"`
	RegistrationKey      string `json:"registrationKey"`
	RegistrationEndpoint string `json:"registrationEndpoint"`
}

// Bounds of a service point's name and description, in characters.
const (
	maxName        = 128
	maxDescription = 4000
)

// CheckName says what is wrong with a service point's name.
func CheckName(name string) error {
	switch n := utf8.RuneCountInString(name); {
	case strings.TrimSpace(name) == "":
		return problem.Invalid("name", "must not be blank")
	case n > maxName:
		return problem.Invalid("name", "has %d characters, more than %d", n, maxName)
	case strings.ContainsFunc(name, unicode.IsControl) || !utf8.ValidString(name):
		return problem.Invalid("name", "holds a control character")
	}
	return nil
}

// Create makes a service point and its registration key. The name of one whose key has expired
// gives that one a new key.
func (s *Service) Create(ctx context.Context, name string, description *string, endpoint string) (c Created, err error) {
	if err := CheckName(name); err != nil {
		return c, err
	}
	if description != nil && (utf8.RuneCountInString(*description) > maxDescription || strings.ContainsRune(*description, 0)) {
		return c, problem.Invalid("description", "has more than %d characters, or a NUL", maxDescription)
	}
	key := checkin.RegistrationKey{Authority: s.authority.Fingerprint()}
	_, _ = rand.Read(key.Secret[:]) // crypto/rand.Read never fails
	c = Created{FleetInstanceID: newID(name), RegistrationKey: key.String(), RegistrationEndpoint: endpoint}
	err = s.store.UpdateIn(ctx, store.OwnTables(), store.Author{}, func(tx *store.Tx) error {
		now := tx.Now()
		var id, status string
		var expires int64
		err := tx.QueryRow("SELECT id, status, key_expires FROM service_point WHERE name = ?", name).Scan(&id, &status, &expires)
		switch {
		case errors.Is(err, sql.ErrNoRows):
		case err != nil:
			return err
		case statusAt(status, expires, now) != Expired:
			return problem.Conflict("ResourceAlreadyExists", "name: %q is the name of fleet service point %s already", name, id)
		default:
			c.FleetInstanceID = id
			if err := moved(tx, id, Expired, Waiting); err != nil {
				return err
			}
			err := tx.Write("UPDATE service_point SET status = ?, key_hash = ?, key_expires = ?, key_public = '', description = coalesce(?, "+
				"description) WHERE id = ?",
				Waiting, hashKey(key), now.Add(KeyLife).Unix(), description, id)
			return err
		}
		if err := moved(tx, c.FleetInstanceID, "", Waiting); err != nil {
			return err
		}
		err = tx.Write("INSERT INTO service_point (id, name, description, status, key_hash, key_expires, created) VALUES (?,?,?,?,?,?,?)",
			c.FleetInstanceID, name, description, Waiting, hashKey(key), now.Add(KeyLife).Unix(), now.Unix())
		return err
	})
	return c, err
}

func hashKey(k checkin.RegistrationKey) string { return access.Hash(string(k.Secret[:])) }

// newID makes an id from the name and a random tail (reference/fleet.md).
func newID(name string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(name) {
		switch {
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '_':
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "_"):
			b.WriteByte('_')
		}
		if b.Len() >= 40 {
			break
		}
	}
	front := strings.Trim(b.String(), "_")
	if front == "" {
		front = "sp"
	}
	return front + "-" + randomText(9) + "-" + randomText(12)
}

func randomText(n int) string {
	const alphabet = "abcdefghijklmnopqrstuvwxyz234567" // 32 letters: five bits each, without bias
	b := make([]byte, n)
	_, _ = rand.Read(b) // crypto/rand.Read never fails
	for i := range b {
		b[i] = alphabet[b[i]&31]
	}
	return string(b)
}

// keptEvents is how many events of a service point are kept.
const keptEvents = 200

// moved records that the status of a service point moved.
func moved(tx *store.Tx, id, before, after string) error {
	if err := tx.Write("INSERT INTO fleet_event (service_point, at, field, old, new) VALUES (?,?,'status',?,?)", id, tx.Now().UnixMilli(),
		before, after); err != nil {
		return err
	}
	return tx.Write("DELETE FROM fleet_event WHERE service_point = ? AND seq <= (SELECT seq FROM fleet_event WHERE service_point = ? "+
		"ORDER BY seq DESC LIMIT 1 OFFSET ?)",
		id, id, keptEvents)
}

// WritePresence writes down who was seen here since the last time. It is called every few seconds and
// once at the end.
func (s *Service) WritePresence(ctx context.Context) error {
	s.mu.Lock()
	seen := s.seen
	s.seen = map[string]int64{}
	s.mu.Unlock()
	if len(seen) == 0 {
		return nil
	}
	ids := slices.Sorted(maps.Keys(seen)) // in one order, so that managers do not wait for each other in a circle
	err := s.store.UpdateIn(ctx, store.OwnTables(), store.Author{}, func(tx *store.Tx) error {
		for _, id := range ids {
			if err := tx.Write("UPDATE service_point SET last_seen = ? WHERE id = ? AND last_seen < ?", seen[id], id, seen[id]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil { // keep what could not be written
		s.mu.Lock()
		for id, at := range seen {
			s.seen[id] = max(s.seen[id], at)
		}
		s.mu.Unlock()
	}
	return err
}

// Expire writes down which registration keys have run out. One manager does it: update is that of its
// lease.
func (s *Service) Expire(ctx context.Context, update store.Updater) error {
	expired, err := s.expiring(ctx)
	if err != nil || len(expired) == 0 {
		return err
	}
	return update(ctx, store.Author{}, func(tx *store.Tx) error {
		for _, id := range expired {
			n, err := tx.Exec("UPDATE service_point SET status = ? WHERE id = ? AND status = ? AND key_expires <= ?", Expired, id, Waiting,
				tx.Now().Unix())
			if err != nil {
				return err
			}
			if n == 1 {
				if err := moved(tx, id, Waiting, Expired); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

func (s *Service) expiring(ctx context.Context) (ids []string, err error) {
	err = s.store.View(ctx, func(tx *store.Tx) error {
		return tx.Each(func(scan func(...any) error) error {
			var id string
			err := scan(&id)
			ids = append(ids, id)
			return err
		}, "SELECT id FROM service_point WHERE status = ? AND key_expires <= ?", Waiting, tx.Now().Unix())
	})
	return ids, err
}
