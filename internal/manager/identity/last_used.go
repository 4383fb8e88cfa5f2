package identity

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"portolan/internal/engine/store"
)

// noteAt gives when it is to be noted that a session is used, in seconds since 1970: when a tenth of what it lasts without a request is
// over; 0 where it lasts no longer for it.
func (s *Service) noteAt(tx *store.Tx, session, expires int64) (int64, error) {
	said, err := s.manners.get(tx)
	if err != nil {
		return 0, err
	}
	end, err := endOf(tx, session)
	if err != nil || expires >= end {
		return 0, err
	}
	return expires - int64(said.timeout/time.Second)*9/10, nil
}

// noteTime is how long a request waits until it is noted that its credential is used.
const noteTime = 200 * time.Millisecond

// used notes that a session is used (note).
func (s *Service) used(ctx context.Context, key tokenKey, session int64, kinds []string) {
	s.note(ctx, key, session, kinds, func(ctx context.Context) error {
		return s.store.Update(ctx, store.Author{}, func(tx *store.Tx) error {
			said, err := s.manners.get(tx)
			if err != nil {
				return err
			}
			end, err := endOf(tx, session)
			if err != nil {
				return err
			}
			now := tx.Now()
			return tx.Write("UPDATE credential SET expires = ? WHERE session = ? AND kind = ? AND expires > ?",
				min(end, now.Add(said.timeout).Unix()), session, kindSession, now.Unix())
		})
	})
}

// note notes that a credential is used, once where many requests come at a time. Where that fails, because the database is busy or away,
// it is as before, and the next request tries again.
func (s *Service) note(ctx context.Context, key tokenKey, credential any, kinds []string, update func(context.Context) error) {
	if _, there := s.noting.LoadOrStore(credential, true); there {
		return
	}
	defer s.noting.Delete(credential)
	ctx, cancel := context.WithTimeout(ctx, noteTime)
	defer cancel()
	if err := update(ctx); err == nil {
		_, _ = s.lookUp(ctx, key, kinds) // which remembers what was noted; whoever cannot remember it looks again
	}
}

// noteTokens is how often it is noted that a token is used.
const noteTokens = time.Hour

// usedAt gives when a token was used last, in seconds since 1970; 0 for never.
func usedAt(tx *store.Tx, token string) (at int64, err error) {
	err = tx.QueryRow("SELECT used FROM credential_used WHERE id = ?", token).Scan(&at)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return at, err
}

// tokenUsed notes that a token is used (note).
func (s *Service) tokenUsed(ctx context.Context, key tokenKey, token string, kinds []string) {
	s.note(ctx, key, token, kinds, func(ctx context.Context) error {
		return s.store.UpdateIn(ctx, store.OwnTables(), store.Author{}, func(tx *store.Tx) error {
			return tx.Write("INSERT INTO credential_used (id, used) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET used = excluded.used", token,
				tx.Now().Unix())
		})
	})
}
