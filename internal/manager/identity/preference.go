package identity

import (
	"bytes"
	"context"
	"encoding/json"
	"regexp"
	"time"

	"portolan/internal/base/problem"
	"portolan/internal/engine/store"
)

// Preference is a setting of a user that a client stores for itself, such as the columns of a table. The manager does not interpret it,
// and the history does not record it.
type Preference struct {
	Name string `json:"name"`
	// Value is a JSON object.
	Value json.RawMessage `json:"value"`
	// Changed is the time of the last change, to the second.
	Changed time.Time `json:"changed"`
}

// Limits of preferences.
const (
	// MaxPreferences is the maximum number of preferences of a user.
	MaxPreferences = 100
	// MaxPreference is the maximum size of a preference's value in bytes, without insignificant blanks.
	MaxPreference = 8 << 10
)

// preferenceName is the form of a preference's name.
var preferenceName = regexp.MustCompile(`^[a-z][A-Za-z0-9.-]{0,63}$`)

// Preferences returns the preferences of a user, ordered by name.
func (s *Service) Preferences(ctx context.Context, user int64) ([]Preference, error) {
	list := []Preference{}
	err := s.store.View(ctx, func(tx *store.Tx) error {
		return tx.Each(func(scan func(...any) error) error {
			var p Preference
			var value string
			var changed int64
			if err := scan(&p.Name, &value, &changed); err != nil {
				return err
			}
			p.Value, p.Changed = json.RawMessage(value), time.Unix(changed, 0).UTC()
			list = append(list, p)
			return nil
		}, "SELECT name, value, changed FROM user_preference WHERE user_id = ? ORDER BY name", user)
	})
	return list, err
}

// SetPreference creates or replaces a preference of a user. It rejects a value that is too large or is not a JSON object.
func (s *Service) SetPreference(ctx context.Context, user int64, name string, value json.RawMessage) (Preference, error) {
	p := Preference{Name: name}
	if !preferenceName.MatchString(name) {
		return p, problem.Invalid("name", "%q must have 1 to 64 letters, digits, dots and hyphens, and start with a lower-case letter", name)
	}
	var compact bytes.Buffer
	if len(value) == 0 || value[0] != '{' || json.Compact(&compact, value) != nil {
		return p, problem.Invalid("value", "must be a JSON object")
	}
	if compact.Len() > MaxPreference {
		return p, problem.Invalid("value", "has %d bytes; a preference must have at most %d", compact.Len(), MaxPreference)
	}
	p.Value = compact.Bytes()
	err := s.store.UpdateIn(ctx, store.ExtensionScope(), store.Author{}, func(tx *store.Tx) error {
		if _, err := tx.Head(user); err != nil { // deleted since the request was admitted
			return err
		}
		p.Changed = tx.Now().UTC().Truncate(time.Second)
		var others int
		if err := tx.QueryRow("SELECT count(*) FROM user_preference WHERE user_id = ? AND name <> ?", user, name).Scan(&others); err != nil {
			return err
		}
		if others >= MaxPreferences {
			return problem.Conflict("TooManyPreferences", "a user has at most %d preferences: delete one first", MaxPreferences)
		}
		return tx.Write("INSERT INTO user_preference (user_id, name, value, changed) VALUES (?, ?, ?, ?)"+
			" ON CONFLICT (user_id, name) DO UPDATE SET value = excluded.value, changed = excluded.changed",
			user, name, string(p.Value), p.Changed.Unix())
	})
	return p, err
}

// DeletePreference deletes a preference of a user, if it exists.
func (s *Service) DeletePreference(ctx context.Context, user int64, name string) error {
	return s.store.UpdateIn(ctx, store.ExtensionScope(), store.Author{}, func(tx *store.Tx) error {
		return tx.Write("DELETE FROM user_preference WHERE user_id = ? AND name = ?", user, name)
	})
}
