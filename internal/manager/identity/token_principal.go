package identity

import (
	"context"
	"crypto/subtle"
	"database/sql"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
	"portolan/internal/manager/authz"
)

// lookUp reads a token by its hash and caches the result.
func (s *Service) lookUp(ctx context.Context, key tokenKey, kinds []string) (found tokenEntry, err error) {
	hash := hex.EncodeToString(key.hash[:])
	err = s.store.View(ctx, func(tx *store.Tx) error {
		if found.principal, found.expires, err = s.readToken(tx, hash, key.name, kinds); err != nil {
			return err
		}
		switch session, token := found.principal.Session, found.principal.Token; {
		case session != 0:
			found.updateUseAt, err = s.nextUseUpdate(tx, session, found.expires)
		case token != "":
			found.updateUseAt, err = lastUsedAt(tx, token)
			found.updateUseAt = max(1, found.updateUseAt+int64(tokenUseInterval/time.Second))
		}
		if err != nil {
			return err
		}
		s.tokens.Put(tx, key, found)
		return nil
	})
	return found, err
}

// readToken returns the principal of the token with a hash, and its expiry in Unix seconds; 0 if it does not expire.
func (s *Service) readToken(tx *store.Tx, hash, name string, kinds []string) (p authz.Principal, expires int64, err error) {
	var id, found, kind, label, role, scopes string
	var userID, session, revoked int64
	for _, one := range kinds {
		err = tx.QueryRow("SELECT id, hash, kind, name, role, user_id, session, expires, revoked, scopes FROM credential"+
			" WHERE kind = ? AND hash = ?", one, hash).
			Scan(&id, &found, &kind, &label, &role, &userID, &session, &expires, &revoked, &scopes)
		if err == nil && kind == kindAccess { // its name is the id of the key set
			id = label
			err = tx.QueryRow("SELECT name FROM credential WHERE id = ? AND kind = ?", id, kindKeySet).Scan(&label)
			if errors.Is(err, sql.ErrNoRows) {
				revoked, err = 1, nil
			}
		}
		if !errors.Is(err, sql.ErrNoRows) {
			break
		}
	}
	if errors.Is(err, sql.ErrNoRows) {
		return authz.Principal{}, 0, errToken
	}
	if err != nil {
		return authz.Principal{}, 0, fmt.Errorf("look up a token: %w", err)
	}
	user := &User{}
	if userID != 0 {
		if user, err = userOf(tx, userID); errors.Is(err, store.ErrNotFound) {
			return authz.Principal{}, 0, errToken
		}
		if err != nil {
			return authz.Principal{}, 0, fmt.Errorf("look up a user: %w", err)
		}
	}
	switch {
	case subtle.ConstantTimeCompare([]byte(found), []byte(hash)) != 1,
		revoked != 0, expires != 0 && expires <= s.store.Now().Unix(), userID != 0 && !user.usable(interfaceOf(kind, role)),
		name != "" && name != user.Name:
		return authz.Principal{}, 0, errToken
	}
	if known, err := s.hasAuthenticator(tx, user); err != nil || !known {
		return authz.Principal{}, 0, errors.Join(err, errToken)
	}
	if p, err = s.principalOf(tx, user); err != nil {
		return authz.Principal{}, 0, err
	}
	if kind != kindSession {
		p = tokenPrincipal(kind, id, label, role, p)
		p.Scopes = authz.Scopes(scopes)
		return p, expires, nil
	}
	p.Session, p.Interface = session, interfaceOf(kind, role)
	p.ReadOnly, err = isReadOnly(tx, session)
	return p, expires, err
}

// hasAuthenticator reports whether the authenticator of a user exists and is enabled. For users of the manager it always is.
func (s *Service) hasAuthenticator(tx *store.Tx, user *User) (bool, error) {
	own, err := user.isLocal(tx)
	if err != nil || own || authz.PolicyOf(s.store).API() == nil {
		return err == nil, err
	}
	all, err := s.loadExternals(tx)
	return slices.ContainsFunc(all, func(e *external) bool { return e.id == user.Authenticator.ID }), err
}

// Acting returns the current caller for background work, started by a user or, if token is not empty, by a token or key set with that id.
// It returns the problem AccessDenied if the user or token may no longer sign in.
func (s *Service) Acting(tx *store.Tx, userID int64, token string) (resource.Caller, error) {
	gone := problem.Forbidden("AccessDenied", "the user who started this may no longer sign in")
	if token == "" {
		user, err := userOf(tx, userID)
		if errors.Is(err, store.ErrNotFound) || err == nil && user.AccountLocked {
			return resource.Caller{}, gone
		}
		if err != nil {
			return resource.Caller{}, fmt.Errorf("look up a user: %w", err)
		}
		p, err := s.principalOf(tx, user)
		return authz.CallerOf(p), err
	}
	var hash, kind string
	err := tx.QueryRow("SELECT hash, kind FROM credential WHERE id = ?", token).Scan(&hash, &kind)
	if errors.Is(err, sql.ErrNoRows) {
		return resource.Caller{}, gone
	}
	if err != nil {
		return resource.Caller{}, fmt.Errorf("look up a token: %w", err)
	}
	p, _, err := s.readToken(tx, hash, "", []string{kind})
	if errors.Is(err, errToken) {
		return resource.Caller{}, gone
	}
	return authz.CallerOf(p), err
}

// isReadOnly reports whether a session may only read.
func isReadOnly(tx *store.Tx, session int64) (bool, error) {
	x, err := sessionOf(tx, session)
	return err == nil && x.ReadOnly != nil && *x.ReadOnly, err
}

// expiryOf returns when a session expires regardless of its use, in Unix seconds.
func expiryOf(tx *store.Tx, session int64) (int64, error) {
	x, err := sessionOf(tx, session)
	if err != nil {
		return 0, err
	}
	return x.APITokenExpirationDateTime.Unix(), nil
}

func sessionOf(tx *store.Tx, session int64) (*UserSession, error) {
	row, err := tx.Get(session)
	if err != nil {
		return nil, fmt.Errorf("look up a session: %w", err)
	}
	o, err := sessionType.Object(row)
	if err != nil {
		return nil, err
	}
	return o.(*UserSession), nil
}

// principalOf returns the principal of a user with its access rights. A user without an id has no rights.
func (s *Service) principalOf(tx *store.Tx, user *User) (p authz.Principal, err error) {
	p = user.principal()
	if user.ID == 0 || p.Role == authz.Administrator {
		return p, nil
	}
	if p.Rights, err = authz.PolicyOf(s.store).RightsOf(tx, user.ID); err != nil {
		return p, fmt.Errorf("look up access rights: %w", err)
	}
	if p.Rights == nil {
		p.Role = authz.Administrator
	}
	return p, nil
}

// principalByID returns the principal of the user with an id; store.ErrNotFound if the user does not exist.
func (s *Service) principalByID(tx *store.Tx, id int64) (authz.Principal, error) {
	user, err := userOf(tx, id)
	if err != nil {
		return authz.Principal{}, err
	}
	return s.principalOf(tx, user)
}

// tokenPrincipal returns the principal of a token or key set: of its user, whose rights it never exceeds, or of the token itself.
func tokenPrincipal(kind, id, label, role string, user authz.Principal) authz.Principal {
	p := authz.Principal{Name: "token " + label, Role: role, History: "ADMINISTRATOR"}
	if kind != kindBearer {
		p.Name = "key set " + label
	}
	if user.User != 0 {
		p = user
		if role == authz.Analyst {
			p.Role = authz.Analyst
		}
	}
	p.Token = id
	p.ReadOnly = role == authz.Analyst // whatever the rights of its user
	return p
}

// basicCredentials returns the value that follows "Basic " in the Authorization header.
func basicCredentials(name, secret string) string {
	return base64.StdEncoding.EncodeToString([]byte(name + ":" + secret))
}
