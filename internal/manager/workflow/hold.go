package workflow

import (
	"database/sql"
	"embed"
	"encoding/hex"
	"errors"

	"portolan/internal/base/problem"
	"portolan/internal/base/space"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
)

//go:embed migrations/*/*.sql
var migrations embed.FS

// What pending requests ask for is held: nobody else is given it meanwhile.

// holdsTopic is touched by whatever holds something, or gives it back.
const holdsTopic = "workflow holds"

// extensionName is the name of the extension.
const extensionName = resource.WorkflowExtension

// holds sees to it that nobody is given what is held.
type holds struct {
	// any remembers whether anything is held.
	any *store.Cache[int64, bool]
}

func newExtension() *store.Extension {
	e := &store.Extension{Name: extensionName, Migrations: migrations, Verify: verify,
		Tables: []store.Table{{Name: "workflow_hold", Columns: []string{"request", "collection", "scope", "key", "high"}, Key: 4},
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

// held is what is held: space in a configuration, whose ends are key and high (store.AddrKey), or a name right below a resource, where high
// is empty.
type claim struct {
	collection string
	scope      int64
	key, high  string
}

// heldOf is by what a resource is held; false where it cannot be.
func claimOf(r *store.Resource) (h claim, ok bool) {
	if r.Low != nil {
		return claim{r.Collection, r.Configuration, string(r.Low), string(r.High)}, true
	}
	return claim{r.Collection, r.Parent, r.Key, ""}, r.Key != ""
}

// stored gives the ends, or the name and nothing, as they are kept: spans as texts.
func (h claim) stored() (key, high string) {
	if h.high == "" {
		return h.key, ""
	}
	return hex.EncodeToString([]byte(h.key)), hex.EncodeToString([]byte(h.high))
}

// by gives the request for which something is held that meets this, another one than except; 0 where there is none.
func (h claim) holder(tx *store.Tx, except int64) (request int64, err error) {
	key, high := h.stored()
	query, args := "SELECT request FROM workflow_hold WHERE collection = ? AND scope = ? AND key = ? AND high = '' AND request <> ? LIMIT 1",
		[]any{h.collection, h.scope, key, except}
	if high != "" {
		query = "SELECT request FROM workflow_hold WHERE collection = ? AND scope = ? AND key <= ? AND high >= ? AND request <> ? LIMIT 1"
		args = []any{h.collection, h.scope, high, key, except}
	}
	err = tx.QueryRow(query, args...).Scan(&request)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return request, err
}

// askedFor words that a pending request asks for something.
func (h claim) conflict(request int64) error {
	return problem.Conflict("ResourceConflictsWithOther", "workflow request %d asks for %s, in %s, and is not decided yet", request, h,
		h.collection)
}

// String gives the name, the address or the range that is held.
func (h claim) String() string {
	if h.high == "" {
		return h.key
	}
	return space.Range{Low: store.KeyAddr([]byte(h.key)), High: store.KeyAddr([]byte(h.high))}.String()
}

// hold holds what a request would make, or give another name or place, right below what is there: the resource that it is about, and
// addresses. A name that others have already is nobody's to hold. It refuses what another request holds.
func holdResources(c *resource.Change, request int64, came resource.Outcome) error {
	c.Tx.Touch(holdsTopic)
	made := map[int64]bool{}
	for i, one := range came.Changes {
		if one.After == nil {
			continue
		}
		made[one.Resource] = made[one.Resource] || one.Before == nil
		if i < came.Foreseen { // which the other request holds
			continue
		}
		r, err := store.DecodeImage(one.After)
		if err != nil {
			return err
		}
		before, err := store.DecodeImage(one.Before)
		if err != nil {
			return err
		}
		h, ok := claimOf(r)
		on := c.API.Collection(r.Collection)
		if !ok || on == nil || on.Workflow == nil || made[r.Parent] || one.Resource != came.Row.ID && r.Low == nil {
			continue
		}
		if before != nil {
			if was, _ := claimOf(before); was == h {
				continue
			}
		}
		if err := h.save(c, request); err != nil {
			return err
		}
	}
	return nil
}

// keep holds it for a request.
func (h claim) save(c *resource.Change, request int64) error {
	other, err := h.holder(c.Tx, request)
	if err == nil && other != 0 {
		err = h.conflict(other)
	}
	if err != nil {
		return err
	}
	if h.high == "" {
		there, err := c.Tx.Exists(store.Query{From: store.Resources, Where: store.All{store.InCollection(h.collection), store.HasParent(h.scope),
			store.Compare{Field: store.Field{Kind: store.ColumnText, Path: []string{"key"}}, Op: "eq", Value: h.key}}})
		if err != nil || there {
			return err
		}
	}
	key, high := h.stored()
	return c.Tx.Write("INSERT INTO workflow_hold (request, collection, scope, key, high) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
		request, h.collection, h.scope, key, high)
}

// release gives back what is held for a request.
func releaseHolds(tx *store.Tx, request int64) error {
	tx.Touch(holdsTopic)
	return tx.Write("DELETE FROM workflow_hold WHERE request = ?", request)
}

// follower refuses what is held.
type follower struct {
	holds *holds
	tx    *store.Tx
}

// Changed refuses a resource that comes where something is held.
func (f *follower) Changed(before, after *store.Resource) error {
	if after == nil {
		return nil
	}
	h, ok := claimOf(after)
	if !ok {
		return nil
	}
	if before != nil {
		if was, _ := claimOf(before); was == h {
			return nil
		}
	}
	if some, err := f.holds.isAny(f.tx); err != nil || !some {
		return err
	}
	request, err := h.holder(f.tx, 0)
	if err == nil && request != 0 {
		err = h.conflict(request)
	}
	return err
}

// BeforeCommit keeps nothing.
func (f *follower) BeforeCommit() error { return nil }

// HeldSpace gives the space of a collection that pending requests ask for in a configuration (resource.HeldSpace).
func (h *holds) HeldSpace(tx *store.Tx, collection string, configuration int64) (all []space.Range, err error) {
	if some, err := h.isAny(tx); err != nil || !some {
		return nil, err
	}
	err = tx.Each(func(scan func(...any) error) error {
		var low, high string
		if err := scan(&low, &high); err != nil {
			return err
		}
		from, err := hex.DecodeString(low)
		if err != nil {
			return err
		}
		to, err := hex.DecodeString(high)
		all = append(all, space.Range{Low: store.KeyAddr(from), High: store.KeyAddr(to)})
		return err
	}, "SELECT key, high FROM workflow_hold WHERE collection = ? AND scope = ? AND high <> '' ORDER BY key", collection, configuration)
	return all, err
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
