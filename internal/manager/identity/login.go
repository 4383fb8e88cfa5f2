package identity

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"portolan/internal/engine/store"
	"portolan/internal/manager/authz"
)

// Login checks a user's name and password. remote is the client address, by is the interface. A correct password is cached by its HMAC
// until it changes, so that clients that send it with every request do not pay for hashing each time. Repeated failures return 429.
func (s *Service) Login(ctx context.Context, name, password, remote string, by authz.Interface) (p authz.Principal, err error) {
	var hash string
	var policy signInPolicy
	var others *externalLogin
	user := &User{}
	if !isStorableName(name) { // no user has such a name, and PostgreSQL rejects it
		name = "\ufffd"
	}
	err = s.store.View(ctx, func(tx *store.Tx) (err error) {
		if policy, err = s.policies.get(tx); err != nil {
			return err
		}
		rows, err := tx.ByName("users", 0, name)
		if err == nil && len(rows) > 0 {
			user, err = asUser(rows[0])
		}
		if err == nil {
			others, err = s.externalLoginFor(tx, user)
		}
		if err != nil || len(rows) == 0 || others != nil {
			return err
		}
		if p, err = s.principalOf(tx, user); err != nil {
			return err
		}
		err = tx.QueryRow("SELECT hash FROM credential WHERE user_id = ? AND kind = ?", user.ID, kindPassword).Scan(&hash)
		if errors.Is(err, sql.ErrNoRows) { // the user has no password
			return nil
		}
		return err
	})
	if err != nil {
		return authz.Principal{}, fmt.Errorf("look up a user: %w", err)
	}
	if others != nil {
		return s.loginExternal(ctx, others, name, password, remote, policy.throttle, by)
	}
	key := s.passwordKey(name, password)
	recalled := hash != "" && s.cachedHash(key) == hash && user.canSignIn(by)
	if err := s.throttle.check(name, remote, policy.throttle, recalled); err != nil {
		s.reportSignIn(Throttled, s.shownName(name, user.ID != 0), remote)
		return authz.Principal{}, err
	}
	if recalled {
		return p, nil
	}
	right, err := s.verify(ctx, hash, password, remote)
	if err != nil {
		return authz.Principal{}, err
	}
	if !right || !user.canSignIn(by) { // checked after hashing, so that a locked account takes as long
		s.throttle.countFailure(name, remote, policy.throttle)
		s.reportSignIn(Refused, s.shownName(name, user.ID != 0), remote)
		return authz.Principal{}, errLogin
	}
	s.throttle.succeeded(name, remote)
	s.reportSignIn(Accepted, name, remote)
	s.remember(key, hash)
	return p, nil
}

// shownName returns a name from a sign-in attempt as logs and events show it. The name of an existing user is returned unchanged. Any other
// name is replaced by a keyed hash, because people sometimes type a password there. The key is per process.
func (s *Service) shownName(name string, exists bool) string {
	if exists {
		return name
	}
	mac := hmac.New(sha256.New, s.pepper)
	mac.Write([]byte("shown\x00" + name))
	return "unknown user " + hex.EncodeToString(mac.Sum(nil)[:4])
}

// isStorableName reports whether a text can be stored as a name.
func isStorableName(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsRune(text, 0)
}

// maxRemembered is the maximum number of cached passwords.
const maxRemembered = 10000

// passwordKey returns the cache key of a name and a password.
func (s *Service) passwordKey(name, password string) [32]byte {
	mac := hmac.New(sha256.New, s.pepper)
	mac.Write([]byte(name + "\x00" + password))
	return [32]byte(mac.Sum(nil))
}

// cachedHash returns the stored hash that a password was checked against; empty if it is not cached.
func (s *Service) cachedHash(key [32]byte) string {
	s.knownMu.Lock()
	defer s.knownMu.Unlock()
	return s.known[key]
}

func (s *Service) remember(key [32]byte, hash string) {
	s.knownMu.Lock()
	defer s.knownMu.Unlock()
	if len(s.known) >= maxRemembered {
		clear(s.known)
	}
	s.known[key] = hash
}

// verify checks a password against a hash. Without a hash, for an unknown name, it takes as long as for a wrong password. The number of
// concurrent and waiting requests is limited.
func (s *Service) verify(ctx context.Context, hash, password, remote string) (right bool, err error) {
	through := s.unknownHashing
	if s.throttle.isKnown(remote) {
		through = s.knownHashing
	}
	err = through.run(ctx, remote, func() {
		if hash == "" {
			hash = decoy()
		}
		right = verifyPassword(hash, password)
	})
	return right, err
}

// Hash hashes a new password.
func (s *Service) Hash(ctx context.Context, password string) (hash string, err error) {
	err = s.knownHashing.run(ctx, "", func() { hash = HashPassword(password, s.store.Speedup()) })
	return hash, err
}
