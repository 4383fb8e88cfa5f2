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

// Login checks a user's name and password, which came from an address. A password that was right is
// remembered by its HMAC until it changes, so that clients that send it with every request do not pay for it
// each time. Who guesses is refused for a while, with 429.
func (s *Service) Login(ctx context.Context, name, password, remote string, by authz.Door) (p authz.Principal, err error) {
	var hash string
	var said manner
	var others *elsewhere
	user := &User{}
	if !nameable(name) { // which nobody is called, and PostgreSQL would not even look for
		name = "\ufffd"
	}
	err = s.store.View(ctx, func(tx *store.Tx) (err error) {
		if said, err = s.manners.get(tx); err != nil {
			return err
		}
		rows, err := tx.ByName("users", 0, name)
		if err == nil && len(rows) > 0 {
			user, err = asUser(rows[0])
		}
		if err == nil {
			others, err = s.elsewhereOf(tx, user)
		}
		if err != nil || len(rows) == 0 || others != nil {
			return err
		}
		if p, err = s.principalOf(tx, user); err != nil {
			return err
		}
		err = tx.QueryRow("SELECT hash FROM credential WHERE user_id = ? AND kind = ?", user.ID, kindPassword).Scan(&hash)
		if errors.Is(err, sql.ErrNoRows) { // a user without a password
			return nil
		}
		return err
	})
	if err != nil {
		return authz.Principal{}, fmt.Errorf("looking up a user: %w", err)
	}
	if others != nil {
		return s.loginElsewhere(ctx, others, name, password, remote, said.guesses, by)
	}
	key := s.passwordKey(name, password)
	recalled := hash != "" && s.recalls(key) == hash && user.enters(by)
	if err := s.guesses.may(name, remote, said.guesses, recalled); err != nil {
		s.saw(Throttled, s.shownName(name, user.ID != 0), remote)
		return authz.Principal{}, err
	}
	if recalled {
		return p, nil
	}
	right, err := s.verify(ctx, hash, password, remote)
	if err != nil {
		return authz.Principal{}, err
	}
	if !right || !user.enters(by) { // which takes as long for an account that is locked
		s.guesses.failed(name, remote, said.guesses)
		s.saw(Refused, s.shownName(name, user.ID != 0), remote)
		return authz.Principal{}, errLogin
	}
	s.guesses.succeeded(name, remote)
	s.saw(Accepted, name, remote)
	s.remember(key, hash)
	return p, nil
}

// shownName gives a name that was typed at a sign-in as logs and events have it: as it is where such a user exists, else a keyed hash,
// since people type passwords there. The key is that of the process: equal names have equal hashes until it ends.
func (s *Service) shownName(name string, exists bool) string {
	if exists {
		return name
	}
	mac := hmac.New(sha256.New, s.pepper)
	mac.Write([]byte("shown\x00" + name))
	return "unknown user " + hex.EncodeToString(mac.Sum(nil)[:4])
}

// nameable reports whether a text can be kept as a name at all.
func nameable(text string) bool { return utf8.ValidString(text) && !strings.ContainsRune(text, 0) }

// maxRemembered bounds the memory of checked passwords.
const maxRemembered = 10000

// passwordKey is how a password is remembered.
func (s *Service) passwordKey(name, password string) [32]byte {
	mac := hmac.New(sha256.New, s.pepper)
	mac.Write([]byte(name + "\x00" + password))
	return [32]byte(mac.Sum(nil))
}

// recalls gives the hash that a password was right for; empty where it is not remembered.
func (s *Service) recalls(key [32]byte) string {
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

// verify checks a password against a hash; an unknown name, which has none, takes as long as a wrong
// password. Few are hashed at a time, and few may wait.
func (s *Service) verify(ctx context.Context, hash, password, remote string) (right bool, err error) {
	through := s.strangers
	if s.guesses.friend(remote) {
		through = s.friends
	}
	err = through.pass(ctx, remote, func() {
		if hash == "" {
			hash = decoy()
		}
		right = verifyPassword(hash, password)
	})
	return right, err
}

// Hash hashes a new password.
func (s *Service) Hash(ctx context.Context, password string) (hash string, err error) {
	err = s.friends.pass(ctx, "", func() { hash = HashPassword(password, s.store.Hurry()) })
	return hash, err
}
