package identity

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"portolan/internal/engine/store"
)

// nextUseUpdate returns when the use of a session has to be recorded next, in Unix seconds: after a tenth of the session timeout. It
// returns 0 if the session cannot be extended any more.
func (s *Service) nextUseUpdate(tx *store.Tx, session, expires int64) (int64, error) {
	policy, err := s.policies.get(tx)
	if err != nil {
		return 0, err
	}
	end, err := expiryOf(tx, session)
	if err != nil || expires >= end {
		return 0, err
	}
	return expires - int64(policy.timeout/time.Second)*9/10, nil
}

// useUpdateTimeout is the longest time that a request waits for the recording of its credential's use.
const useUpdateTimeout = 200 * time.Millisecond

// recordSessionUse records the use of a session, which extends it (recordUse).
func (s *Service) recordSessionUse(ctx context.Context, key tokenKey, session int64, kinds []string) {
	s.recordUse(ctx, key, session, kinds, func(ctx context.Context) error {
		return s.store.Update(ctx, store.Author{}, func(tx *store.Tx) error {
			policy, err := s.policies.get(tx)
			if err != nil {
				return err
			}
			end, err := expiryOf(tx, session)
			if err != nil {
				return err
			}
			now := tx.Now()
			return tx.Write("UPDATE credential SET expires = ? WHERE session = ? AND kind = ? AND expires > ?",
				min(end, now.Add(policy.timeout).Unix()), session, kindSession, now.Unix())
		})
	})
}

// recordUse records the use of a credential. Concurrent calls for the same credential are skipped. If the update fails, because the
// database is busy or unavailable, the next request tries again.
func (s *Service) recordUse(ctx context.Context, key tokenKey, credential any, kinds []string, update func(context.Context) error) {
	if _, there := s.useUpdates.LoadOrStore(credential, true); there {
		return
	}
	defer s.useUpdates.Delete(credential)
	ctx, cancel := context.WithTimeout(ctx, useUpdateTimeout)
	defer cancel()
	if err := update(ctx); err == nil {
		_, _ = s.lookUp(ctx, key, kinds) // updates the cache; an error only means another lookup
	}
}

// tokenUseInterval is the shortest time between two recordings of a token's use.
const tokenUseInterval = time.Hour

// lastUsedAt returns when a token was last used, in Unix seconds; 0 if never.
func lastUsedAt(tx *store.Tx, token string) (at int64, err error) {
	err = tx.QueryRow("SELECT used FROM credential_used WHERE id = ?", token).Scan(&at)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return at, err
}

// recordTokenUse records the use of a token (recordUse).
func (s *Service) recordTokenUse(ctx context.Context, key tokenKey, token string, kinds []string) {
	s.recordUse(ctx, key, token, kinds, func(ctx context.Context) error {
		return s.store.UpdateIn(ctx, store.ExtensionScope(), store.Author{}, func(tx *store.Tx) error {
			return tx.Write("INSERT INTO credential_used (id, used) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET used = excluded.used", token,
				tx.Now().Unix())
		})
	})
}
