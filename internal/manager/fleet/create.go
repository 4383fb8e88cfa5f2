package fleet

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"portolan/internal/base/problem"
	"portolan/internal/engine/store"
	"portolan/internal/manager/secrets"
	"portolan/internal/wire/checkin"
)

// KeyLife is the lifetime of a registration key.
const KeyLife = 7 * 24 * time.Hour

// Created is the response to the creation of a service point (spec.md 2.4).
type Created struct {
	FleetInstanceID      string `json:"fleetInstanceID"`
	RegistrationKey      string `json:"registrationKey"`
	RegistrationEndpoint string `json:"registrationEndpoint"`
}

// Wanted describes a service point to create.
type Wanted struct {
	Name string
	// Description is nil if there is none.
	Description *string
	// Variant is its kind; empty means the kind that it enrols with.
	Variant string
	// NTPServers are the time servers that it uses.
	NTPServers []string
	// NodeCount is the number of nodes it may have; 0 means 1.
	NodeCount int64
	// Endpoint is the address at which the service point enrols.
	Endpoint string
	// Repeatable, if not empty, identifies the user and the Idempotency-Key. A repeated request returns the same registration key until
	// that key is used or expires.
	Repeatable string
}

// Limits of a service point's name and description, in characters.
const (
	maxName        = 128
	maxDescription = 4000
)

// checkName returns an error if a name is not a valid name of a service point.
func checkName(name string) error {
	switch n := utf8.RuneCountInString(name); {
	case strings.TrimSpace(name) == "":
		return problem.Invalid("name", "must not be blank")
	case n > maxName:
		return problem.Invalid("name", "has %d characters, more than %d", n, maxName)
	case strings.ContainsFunc(name, unicode.IsControl) || !utf8.ValidString(name):
		return problem.Invalid("name", "contains a control character")
	}
	return nil
}

// Create creates a service point and its registration key. If a service point of that name exists and its key has expired, it gets a new
// key.
func (s *Service) Create(ctx context.Context, w Wanted) (c Created, err error) {
	if err := checkName(w.Name); err != nil {
		return c, err
	}
	if d := w.Description; d != nil && (utf8.RuneCountInString(*d) > maxDescription || strings.ContainsRune(*d, 0)) {
		return c, problem.Invalid("description", "has more than %d characters, or a NUL", maxDescription)
	}
	if w.NodeCount = max(w.NodeCount, 1); w.NodeCount > MaxNodeCount {
		return c, problem.Invalid("nodeCount", "must be 1 to %d", MaxNodeCount)
	}
	key, err := s.newKey(w)
	if err != nil {
		return c, err
	}
	c = Created{RegistrationKey: key.String(), RegistrationEndpoint: w.Endpoint}
	err = s.change(ctx, func(tx *store.Tx) error {
		var id, status, hash, used string
		var description sql.NullString
		var expires, count int64
		err := tx.QueryRow("SELECT id, status, key_hash, key_public, key_expires, description, node_count "+
			"FROM service_point WHERE name = ?"+tx.Locking(),
			w.Name).Scan(&id, &status, &hash, &used, &expires, &description, &count)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			if key, err = s.unusedKey(tx, key, ""); err != nil {
				return err
			}
			c.FleetInstanceID, c.RegistrationKey = newID(w.Name), key.String()
			if err := s.insert(tx, c.FleetInstanceID, w, key); err != nil {
				return err
			}
			return addHistory(tx, "ADD_SERVICE_POINT", "Added service point %s", w.Name)
		case err != nil:
			return err
		}
		c.FleetInstanceID = id
		switch now := s.now(); {
		case statusAt(status, expires, now) == Expired:
			if key, err = s.unusedKey(tx, key, hash); err != nil {
				return err
			}
			c.RegistrationKey = key.String()
			if err := s.rekey(tx, id, Expired, key); err != nil {
				return err
			}
			if err := tx.Write("UPDATE service_point SET description = coalesce(?, description), node_count = ?, several = ? WHERE id = ?",
				w.Description, w.NodeCount, severalColumn(w.NodeCount), id); err != nil {
				return err
			}
			return addHistory(tx, "REKEY_SERVICE_POINT", "Created a new registration key for service point %s after the old key expired", w.Name)
		case w.Repeatable != "" && hash == hashKey(key) && used == "":
			if count != w.NodeCount || description.Valid != (w.Description != nil) || description.Valid && description.String != *w.Description {
				return problem.Conflict("IdempotencyKeyReused", "Idempotency-Key: the key was already used for another request")
			}
			return nil // the first answer was lost
		}
		return problem.Conflict("ResourceAlreadyExists", "name: %q already exists as fleet service point %s", w.Name, id)
	})
	return c, err
}

func (s *Service) insert(tx *store.Tx, id string, w Wanted, key checkin.RegistrationKey) error {
	if err := s.recordChange(tx, id, fieldStatus, "", Waiting); err != nil {
		return err
	}
	now := s.now()
	// Exec instead of Write: if another request has taken the name meanwhile, the transaction runs again.
	servers, err := json.Marshal(append([]string{}, w.NTPServers...))
	if err != nil {
		return err
	}
	_, err = tx.Exec("INSERT INTO service_point (id, name, description, variant, status, key_hash, key_expires, created, ntp_servers, "+
		"node_count, several) VALUES (?,?,?,?,?,?,?,?,?,?,?)", id, w.Name, w.Description, w.Variant, Waiting, hashKey(key),
		now.Add(KeyLife).Unix(),
		now.Unix(),
		string(servers), w.NodeCount, severalColumn(w.NodeCount))
	return err
}

// rekey gives a service point a new registration key. All its earlier certificates become invalid.
func (s *Service) rekey(tx *store.Tx, id, before string, key checkin.RegistrationKey) error {
	if before != Waiting {
		if err := s.recordChange(tx, id, fieldStatus, before, Waiting); err != nil {
			return err
		}
	}
	if err := s.markSpent(tx, id); err != nil {
		return err
	}
	now := s.now()
	least := now.Add(endsBefore).UnixMilli()
	tx.Touch(store.Detail(topic, id))
	for _, table := range []string{"node", "lineage", "figure_report"} {
		if err := tx.Write("DELETE FROM "+table+" WHERE service_point = ?", id); err != nil {
			return err
		}
	}
	// It is disconnected from now on.
	n, err := tx.Exec("UPDATE presence SET connected = 0 WHERE service_point = ? AND connected = 1", id)
	if err != nil {
		return err
	}
	if n > 0 {
		if err := s.recordChange(tx, id, fieldConnection, Connected, NotConnected, "new registration key created"); err != nil {
			return err
		}
	}
	return tx.Write("UPDATE service_point SET status = ?, key_hash = ?, key_expires = ?, key_public = '', acknowledged = 0, "+
		"several = CASE WHEN node_count > 1 THEN 1 ELSE 0 END, "+
		"generation = CASE WHEN generation >= ? THEN generation + 1 ELSE ? END WHERE id = ?",
		Waiting, hashKey(key), now.Add(KeyLife).Unix(), least, least, id)
}

// endsBefore is added to the time of a new registration key. Certificates issued by managers whose clocks are up to that much ahead are
// invalid as well.
const endsBefore = time.Minute

// markSpent records for 2*KeyLife that the registration key of a service point must not be issued again.
func (s *Service) markSpent(tx *store.Tx, id string) error {
	return tx.Write("INSERT INTO spent_key (key_hash, until) SELECT key_hash, ? FROM service_point WHERE id = ? ON CONFLICT DO NOTHING",
		s.now().Add(2*KeyLife).Unix(), id)
}

// unusedKey returns key, or a random key instead if key was issued before or is the expired one.
func (s *Service) unusedKey(tx *store.Tx, key checkin.RegistrationKey, expired string) (checkin.RegistrationKey, error) {
	var spent int
	err := tx.QueryRow("SELECT 1 FROM spent_key WHERE key_hash = ?", hashKey(key)).Scan(&spent)
	if errors.Is(err, sql.ErrNoRows) && hashKey(key) != expired {
		return key, nil
	}
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return key, err
	}
	return s.newKey(Wanted{})
}

// forgetSpent deletes the records of registration keys that could not be used any more.
func (s *Service) forgetSpent(ctx context.Context, update store.Updater) error {
	now := s.now().Unix()
	return s.each(ctx, update, "SELECT key_hash FROM spent_key WHERE until < ? ORDER BY key_hash", []any{now},
		func(tx *store.Tx, hash string) error {
			return tx.Write("DELETE FROM spent_key WHERE key_hash = ?", hash)
		})
}

// Rekey gives a service point a new registration key, for example after its machine was lost. The service point then waits for its
// registration, and its certificates are rejected.
func (s *Service) Rekey(ctx context.Context, id, endpoint string) (c Created, err error) {
	key, err := s.newKey(Wanted{})
	if err != nil {
		return c, err
	}
	c = Created{FleetInstanceID: id, RegistrationKey: key.String(), RegistrationEndpoint: endpoint}
	err = s.change(ctx, func(tx *store.Tx) error {
		var before string
		err := tx.QueryRow("SELECT status FROM service_point WHERE id = ?"+tx.Locking(), id).Scan(&before)
		if errors.Is(err, sql.ErrNoRows) {
			return UnknownProblem(id)
		}
		if err != nil {
			return err
		}
		if err := s.rekey(tx, id, before, key); err != nil {
			return err
		}
		return addPointHistory(tx, id, "REKEY_SERVICE_POINT",
			"Created a new registration key for service point %s and revoked its certificates")
	})
	if err == nil {
		s.forget(id)
	}
	return c, err
}

// newKey returns a registration key. A key of a repeatable request is derived from the authority's key, the requester and the name, so that
// it need not be stored.
func (s *Service) newKey(w Wanted) (key checkin.RegistrationKey, err error) {
	key.Authority = s.authority.Fingerprint()
	if w.Repeatable == "" {
		_, _ = rand.Read(key.Secret[:]) // crypto/rand.Read never fails
		return key, nil
	}
	secret, err := s.authority.derive("registration key", w.Repeatable, w.Name)
	copy(key.Secret[:], secret)
	return key, err
}

func hashKey(k checkin.RegistrationKey) string { return secrets.Hash(string(k.Secret[:])) }

// newID returns an id from the name and a random suffix (reference/fleet.md).
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
