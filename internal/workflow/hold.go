package workflow

import (
	"database/sql"
	"embed"
	"encoding/hex"
	"errors"
	"net/netip"

	"portolan/internal/problem"
	"portolan/internal/resource"
	"portolan/internal/store"
)

//go:embed migrations/*/*.sql
var migrations embed.FS

// What pending requests ask for is held: nobody else is given it meanwhile.

// holdsTopic is touched by whatever holds something, or gives it back.
const holdsTopic = "workflow holds"

// extensionName is the name of the extension.
const extensionName = "workflow"

// holds sees to it that nobody is given what is held.
type holds struct {
	// any remembers whether anything is held.
	any *store.Cache[int64, bool]
}

func newExtension() *store.Extension {
	e := &store.Extension{Name: extensionName, Migrations: migrations, Verify: verify,
		Tables: []store.Table{{Name: "workflow_hold", Columns: []string{"request", "collection", "parent", "key"}, Key: 4},
			{Name: "workflow_asked", Columns: []string{"request", "token", "asked"}, Key: 1}}}
	e.Opened = func(s *store.Store) {
		h := &holds{any: store.NewCache[int64](s, store.CacheOptions[bool]{Topics: []string{holdsTopic}, Late: true, Max: 1})}
		e.State = h
		e.Follow = func(tx *store.Tx) store.Follower { return &follower{h, tx} }
	}
	return e
}

// verify lists what is held for requests that are not there.
func verify(tx *store.Tx, fault func(string, ...any)) error {
	return tx.Faulty(fault, "something is held for workflow request %d, which is not there or decided%s",
		"SELECT h.request, '' FROM workflow_hold h LEFT JOIN resource r ON r.id = h.request AND r.collection = 'workflowRequests'"+
			" AND json_extract(r.body, '$.state') = 'PENDING' WHERE r.id IS NULL")
}

// isAny reports whether anything is held.
func (h *holds) isAny(tx *store.Tx) (held bool, err error) {
	if known, ok := h.any.Get(tx, 0); ok {
		return known, nil
	}
	if err = tx.QueryRow("SELECT EXISTS (SELECT 1 FROM workflow_hold)").Scan(&held); err == nil {
		h.any.Put(tx, 0, held)
	}
	return held, err
}

// keyOf is by what a resource is held, right below its parent; empty where it cannot be.
func keyOf(r *store.Resource) string {
	if r.Low != nil {
		return hex.EncodeToString(r.Low)
	}
	return r.Key
}

// hold holds what a request would make right below what is there. What lies below that is held with it.
func hold(c *resource.Change, request int64, came resource.Outcome) error {
	c.Tx.Touch(holdsTopic)
	made := map[int64]bool{}
	for i, one := range came.Changes {
		if one.Before != nil || one.After == nil {
			continue
		}
		made[one.Resource] = true
		if i < came.Foreseen { // which the other request holds
			continue
		}
		r, err := store.DecodeImage(one.After)
		if err != nil {
			return err
		}
		if on := c.API.Collection(r.Collection); on == nil || on.Workflow == nil || keyOf(r) == "" || made[r.Parent] {
			continue
		}
		if err := c.Tx.Write("INSERT INTO workflow_hold (request, collection, parent, key) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING", request,
			r.Collection, r.Parent, keyOf(r)); err != nil {
			return err
		}
	}
	return nil
}

// release gives back what is held for a request.
func release(tx *store.Tx, request int64) error {
	tx.Touch(holdsTopic)
	return tx.Write("DELETE FROM workflow_hold WHERE request = ?", request)
}

// follower refuses what is held.
type follower struct {
	holds *holds
	tx    *store.Tx
}

// Changed refuses a resource that comes where one is held.
func (f *follower) Changed(before, after *store.Resource) error {
	if after == nil || keyOf(after) == "" || before != nil && before.Parent == after.Parent && keyOf(before) == keyOf(after) {
		return nil
	}
	if held, err := f.holds.isAny(f.tx); err != nil || !held {
		return err
	}
	var request int64
	err := f.tx.QueryRow("SELECT request FROM workflow_hold WHERE collection = ? AND parent = ? AND key = ? LIMIT 1", after.Collection,
		after.Parent, keyOf(after)).Scan(&request)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	return problem.Conflict("ResourceConflictsWithOther", "workflow request %d asks for it, and is not decided yet", request)
}

// BeforeCommit keeps nothing.
func (f *follower) BeforeCommit() error { return nil }

// Held is resource.Workflow.
func (k *Keeper) Held(tx *store.Tx, network int64) (held map[netip.Addr]bool, err error) {
	if some, err := k.holds.isAny(tx); err != nil || !some {
		return nil, err
	}
	err = tx.Each(func(scan func(...any) error) error {
		var text string
		if err := scan(&text); err != nil {
			return err
		}
		key, err := hex.DecodeString(text)
		if err != nil {
			return err
		}
		if held == nil {
			held = map[netip.Addr]bool{}
		}
		held[store.KeyAddr(key)] = true
		return nil
	}, "SELECT key FROM workflow_hold WHERE collection = 'addresses' AND parent = ?", network)
	return held, err
}

// Keeper keeps changes that are asked for: resource.Workflow.
type Keeper struct {
	holds  *holds
	acting Acting
}

// Acting gives who works for a user, or for a token by its id, as they are now.
type Acting func(tx *store.Tx, user int64, token string) (resource.Caller, error)

// Open lets an API keep what is asked for. Its store must have been opened with the extension.
func Open(a *resource.API, acting Acting) {
	h, ok := a.Store.Layout().Extension(extensionName).State.(*holds)
	if !ok {
		panic("the database was opened without the extension of workflow")
	}
	a.Workflow = &Keeper{h, acting}
}

// keeperOf gives the keeper of a change's API.
func keeperOf(c *resource.Change) *Keeper {
	k, _ := c.API.Workflow.(*Keeper)
	return k
}
