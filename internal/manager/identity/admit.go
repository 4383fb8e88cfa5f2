package identity

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
	"portolan/internal/manager/authn"
	"portolan/internal/manager/authz"
)

// maxName is the maximum length of the names of users that are created here, in bytes.
const maxName = 128

// admit returns the principal of a user that an authenticator has verified. A user that does not exist is created if one of its groups
// exists here. If whole is true, the user's groups here are updated to those of the authenticator; otherwise they stay. It returns errLogin
// if the user may not sign in.
func (s *Service) admit(ctx context.Context, e *external, id authn.Identity, user *User, whole bool,
	by authz.Interface) (p authz.Principal, err error) {
	if !isStorableName(id.Name) || len(id.Name) > maxName || id.Name == "" || strings.TrimSpace(id.Name) != id.Name ||
		strings.ContainsFunc(id.Name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return p, errLogin
	}
	api := authz.PolicyOf(s.store).API()
	var groups, gone []int64 // the groups to add and to remove
	look := func(tx *store.Tx) error {
		groups, gone = nil, nil
		if !whole {
			return nil
		}
		var in []int64
		if user != nil {
			if in, err = tx.Links(user.ID, "groups"); err != nil {
				return err
			}
		}
		return eachRemoteGroup(tx, func(row *store.Resource, authenticator int64) {
			member := authenticator == e.id && slices.ContainsFunc(id.Groups, func(there string) bool { return e.sameGroup(row.Name, there) })
			switch has := slices.Contains(in, row.ID); {
			case member && !has:
				groups = append(groups, row.ID)
			case !member && has && authenticator == e.id:
				gone = append(gone, row.ID)
			}
		})
	}
	if err := s.store.View(ctx, func(tx *store.Tx) error {
		if user == nil {
			rows, err := tx.ByName("users", 0, id.Name)
			if err != nil {
				return err
			}
			if len(rows) > 0 {
				if user, err = asUser(rows[0]); err != nil {
					return err
				}
			}
		}
		return look(tx)
	}); err != nil {
		return p, err
	}
	switch {
	case user != nil && (user.Authenticator.ID != e.id || !user.canSignIn(by)):
		return p, errLogin
	case user == nil && len(groups) == 0:
		if s.observer.UnknownUser != nil {
			s.observer.UnknownUser(e.name, id.Name, id.Groups)
		}
		return p, errLogin
	case user != nil && len(groups)+len(gone) == 0:
		return s.signInPrincipal(ctx, user.ID, e.id, by)
	}
	var made int64
	if err := s.store.Update(ctx, store.Author{Name: "authenticator " + e.name}, func(tx *store.Tx) error {
		c := &resource.Change{Tx: tx, API: api, SetFields: map[string]bool{}, Extra: map[string]string{}}
		if user == nil {
			row, err := s.enrol(c, e, id)
			if err != nil {
				return err
			}
			made = row.ID
		} else {
			made = user.ID
		}
		if err := look(tx); err != nil {
			return err
		}
		return s.updateGroups(c, made, groups, gone)
	}); err != nil {
		return p, fmt.Errorf("sign in %s: %w", id.Name, err)
	}
	return s.signInPrincipal(ctx, made, e.id, by)
}

// enrol creates the user of a verified identity, or returns it if another manager has created it in the meantime.
func (s *Service) enrol(c *resource.Change, e *external, id authn.Identity) (*store.Resource, error) {
	rows, err := c.Tx.ByName("users", 0, id.Name)
	if err != nil {
		return nil, err
	}
	if len(rows) > 0 {
		if rows[0].Ref("authenticator") != e.id {
			return nil, errLogin
		}
		return rows[0], nil
	}
	var alike int // users whose names differ only in case
	if err := c.Tx.QueryRow("SELECT count(*) FROM resource WHERE collection = 'users' AND lower(name) = ?", strings.ToLower(id.Name)).
		Scan(&alike); err != nil {
		return nil, err
	}
	if alike > 0 {
		return nil, errLogin
	}
	x := &User{Authenticator: schema.Ref{ID: e.id}, Email: id.Email, SecurityPrivilege: "NO_ACCESS", HistoryPrivilege: "HIDE",
		AccessType: "GUI_AND_API"}
	x.Type, x.Name = userType.Name, id.Name
	if !isMail(x.Email) {
		x.Email = strings.Map(func(r rune) rune {
			if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
				return r
			}
			return '-'
		}, id.Name) + "@invalid" // no such domain exists (RFC 6761 section 6.4)
	}
	return c.Create(c.API.TypeNamed(x.Type), x)
}

// updateGroups adds a user to groups and removes it from others.
func (s *Service) updateGroups(c *resource.Change, user int64, groups, gone []int64) error {
	if len(groups)+len(gone) == 0 {
		return nil
	}
	row, err := c.Tx.Get(user)
	if err == nil {
		err = c.Tx.LoadLinks(row)
	}
	if err != nil {
		return err
	}
	with := *row
	with.Links = slices.DeleteFunc(slices.Clone(row.Links), func(l store.Ref) bool {
		return l.Field == "groups" && slices.Contains(gone,
			l.Target)
	})
	for _, id := range groups {
		with.Links = append(with.Links, store.Ref{Field: "groups", Target: id})
	}
	c.Tx.Describe("UPDATE_USER", "Groups of User "+row.Name+" as its authenticator knows them")
	c.Tx.Touch(groupsName) // the rights of the user depend on it
	return c.Tx.Replace(row, &with)
}

// signInPrincipal returns the principal of a user of an authenticator who may sign in at an interface; errLogin otherwise.
func (s *Service) signInPrincipal(ctx context.Context, id, authenticator int64, by authz.Interface) (p authz.Principal, err error) {
	err = s.store.View(ctx, func(tx *store.Tx) error {
		user, err := userOf(tx, id)
		if errors.Is(err, store.ErrNotFound) || err == nil && (!user.canSignIn(by) || user.Authenticator.ID != authenticator) {
			return errLogin
		}
		if err == nil {
			p, err = s.principalOf(tx, user)
		}
		return err
	})
	return p, err
}

// eachRemoteGroup calls fn for each group that belongs to an authenticator.
func eachRemoteGroup(tx *store.Tx, fn func(row *store.Resource, authenticator int64)) error {
	return tx.List(store.Query{From: store.Resources, Where: store.InCollection(groupsName)}, func(r *store.Resource) error {
		if id := r.Ref("authenticator"); id != 0 {
			fn(r.Clone(), id)
		}
		return nil
	})
}
