package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"portolan/internal/base/problem"
	"portolan/internal/engine/store"
	"portolan/internal/manager/authz"
	"portolan/internal/manager/identity"
	"portolan/internal/manager/model"
	"portolan/internal/manager/secrets"
)

// dataFlag is the data directory of a manager. The manager may be running.
type dataFlag struct {
	Data     string `help:"The manager's data directory; the manager may be running." type:"existingdir" placeholder:"DIR"`
	Database string `help:"The URL of the manager's PostgreSQL." placeholder:"postgres://..."`
	masterFlag
}

// open opens the data and calls fn with it.
func (d dataFlag) open(fn func(*store.Store, *identity.Service) error) error {
	return d.openAs(store.Options{}, fn)
}

// openAs opens the data with other options, such as read-only.
func (d dataFlag) openAs(o store.Options, fn func(*store.Store, *identity.Service) error) error {
	if (d.Data == "") == (d.Database == "") {
		return usageError{errors.New("--data or --database is required")}
	}
	if d.Database == "" {
		if _, err := os.Stat(filepath.Join(d.Data, "portolan.db")); err != nil {
			return fmt.Errorf("%s contains no data of a manager", d.Data)
		}
	}
	o.Layout, o.Dir, o.Database, o.Readers, o.ListReaders = model.Layout(), d.Data, d.Database, 1, 1
	keys, err := d.keys()
	if err != nil {
		return usageError{err}
	}
	s, err := store.Open(o)
	if err != nil {
		return err
	}
	secrets.FromStore(s).KnowMasterKeys(keys)
	err = fn(s, identity.ServiceOf(s))
	if e := s.Close(); err == nil {
		err = e
	}
	if p, ok := problem.As(err); ok && p.Status == 400 {
		return usageError{err}
	}
	return err
}

type tokenCommand struct {
	Create tokenCreate `cmd:"" example:"portolan token create --data /var/lib/portolan --name ci --role analyst" help:"Create a bearer token and print it. It is shown only once."`
	List   tokenList   `cmd:"" example:"portolan token list --data /var/lib/portolan" help:"List bearer tokens and key sets, without their secrets."`
	Revoke tokenRevoke `cmd:"" example:"portolan token revoke --data /var/lib/portolan ID" help:"Revoke a bearer token or a key set by its id."`
}

type tokenCreate struct {
	dataFlag
	Name string `help:"The name of the token, which describes its purpose." required:""`
	Role string `help:"The role: ${enum}." enum:"administrator,analyst" default:"administrator"`
	User string `help:"The user that the token acts as; it never exceeds that user's rights. Without a user, it acts under its own name." placeholder:"NAME"`
	scopeFlag
	Expires time.Duration `help:"The lifetime; 0s for a token that never expires." default:"2160h"`
}

// Run creates the token.
func (c *tokenCreate) Run(s *session) error {
	return c.open(func(_ *store.Store, users *identity.Service) error {
		scopes, err := c.scopes()
		if err != nil {
			return err
		}
		token, err := users.CreateToken(s.ctx, identity.Grant{Name: c.Name, Role: c.Role, Scopes: scopes, Life: c.Expires, User: c.User,
			By: onMachine})
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(s.stdout, token)
		return err
	})
}

// onMachine is the author of tokens that are created and revoked on the manager's machine, in the history. It is any user who can write the
// database.
var onMachine = store.Author{Name: "the manager's machine"}

// scopeFlag is the scope of a token or key set.
type scopeFlag struct {
	Scope *string `help:"An additional limit of the role: address, fleet, or the collections that the token may change, such as resourceRecords, separated by commas. Default: no limit." placeholder:"NAME,..."`
}

func (f scopeFlag) scopes() (authz.Scopes, error) {
	if f.Scope == nil {
		return "", nil
	}
	return authz.ScopesOf(strings.Split(*f.Scope, ","), authz.ScopeNames(model.NewAPI(nil)))
}

type tokenList struct {
	dataFlag
	jsonFlag
}

// Run lists the tokens.
func (c *tokenList) Run(s *session) error {
	return c.open(func(_ *store.Store, users *identity.Service) error {
		tokens, err := users.Tokens(s.ctx)
		if err != nil {
			return err
		}
		if c.JSON {
			return json.NewEncoder(s.stdout).Encode(tokens)
		}
		w := tabwriter.NewWriter(s.stdout, 0, 4, 2, ' ', 0)
		fmt.Fprintln(w, "ID\tKIND\tNAME\tROLE\tSCOPES\tUSER\tCREATED\tEXPIRES\tLAST USED\tSTATE")
		for _, t := range tokens {
			expires, used, state := "never", "never", "valid"
			if !t.LastUsed.IsZero() {
				used = t.LastUsed.Format(time.RFC3339)
			}
			if !t.Expires.IsZero() {
				expires = t.Expires.Format(time.RFC3339)
				if t.Expires.Before(time.Now()) {
					state = "expired"
				}
			}
			if t.Revoked {
				state = "revoked"
			}
			role := t.Role
			if t.User != "" && role == authz.Administrator { // the token has the rights of its user
				role = "as user"
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", t.ID, t.Kind, t.Name, role,
				cmp.Or(strings.Join(t.Scopes, ","), "-"), cmp.Or(t.User, "-"), t.Created.Format(time.RFC3339),
				expires, used, state)
		}
		return w.Flush()
	})
}

type tokenRevoke struct {
	dataFlag
	ID string `arg:"" help:"The id, from token list."`
}

// Run revokes the token.
func (c *tokenRevoke) Run(s *session) error {
	return c.open(func(_ *store.Store, users *identity.Service) error { return users.Revoke(s.ctx, c.ID, onMachine) })
}

type keyCommand struct {
	Create keyCreate `cmd:"" example:"portolan key create --data /var/lib/portolan --name fleet" help:"Create a key set and print its clientId and clientSecret as JSON. The secret is shown only once."`
}

type keyCreate struct {
	dataFlag
	Name string `help:"The name of the key set, which describes its purpose." required:""`
	Role string `help:"The role of its tokens: ${enum}." enum:"administrator,analyst" default:"analyst"`
	User string `help:"The user that its tokens act as; they never exceed that user's rights." placeholder:"NAME"`
	scopeFlag
	Expires time.Duration `help:"The lifetime; 0s for a token that never expires." default:"2160h"`
}

// Run creates the key set.
func (c *keyCreate) Run(s *session) error {
	return c.open(func(_ *store.Store, users *identity.Service) error {
		scopes, err := c.scopes()
		if err != nil {
			return err
		}
		id, secret, err := users.CreateKeySet(s.ctx, identity.Grant{Name: c.Name, Role: c.Role, Scopes: scopes, Life: c.Expires, User: c.User,
			By: onMachine})
		if err != nil {
			return err
		}
		return json.NewEncoder(s.stdout).Encode(map[string]string{"clientId": id, "clientSecret": secret})
	})
}
