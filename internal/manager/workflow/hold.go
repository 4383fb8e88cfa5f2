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

// Pending requests reserve the names and addresses of the resources that they would create. Other changes cannot take them meanwhile.

// holdsTopic is touched when reservations are made or released.
const holdsTopic = "workflow holds"

// extensionName is the name of the extension.
const extensionName = resource.WorkflowExtension

// holds enforces the reservations of a database.
type holds struct {
	// any caches whether there are reservations.
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

// verify reports reservations of missing or decided requests.
func verify(tx *store.Tx, fault func(string, ...any)) error {
	return tx.ReportFaults(fault, "workflow request %d does not exist or is decided, but reserves a name or an address%s",
		"SELECT h.request, '' FROM workflow_hold h LEFT JOIN resource r ON r.id = h.request AND r.collection = 'workflowRequests'"+
			" AND json_extract(r.body, '$.state') = 'PENDING' WHERE r.id IS NULL")
}

// isAny reports whether there are reservations.
func (h *holds) isAny(tx *store.Tx) (held bool, err error) {
	if known, ok := h.any.Get(tx, 0); ok {
		return known, nil
	}
	if err = tx.QueryRow("SELECT EXISTS (SELECT 1 FROM workflow_hold)").Scan(&held); err == nil {
		h.any.Put(tx, 0, held)
	}
	return held, err
}

// claim is a reservation. It is a range of addresses in a configuration, with the ends key and high (store.AddrKey), or a name below a
// resource with an empty high.
type claim struct {
	collection string
	scope      int64
	key, high  string
}

// claimOf returns the claim on a resource's range or name; false if it has neither.
func claimOf(r *store.Resource) (h claim, ok bool) {
	if r.Low != nil {
		return claim{r.Collection, r.Configuration, string(r.Low), string(r.High)}, true
	}
	return claim{r.Collection, r.Parent, r.Key, ""}, r.Key != ""
}

// encode returns key and high in stored form: addresses as hexadecimal text.
func (h claim) encode() (key, high string) {
	if h.high == "" {
		return h.key, ""
	}
	return hex.EncodeToString([]byte(h.key)), hex.EncodeToString([]byte(h.high))
}

// holder returns the request with a reservation that overlaps this claim, except for one request; 0 if there is none.
func (h claim) holder(tx *store.Tx, except int64) (request int64, err error) {
	key, high := h.encode()
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

// conflict returns the error that a pending request asks for the same name or address.
func (h claim) conflict(request int64) error {
	return problem.Conflict("ResourceConflictsWithOther", "workflow request %d for %s in %s is still pending", request, h,
		h.collection)
}

// String returns the name, the address or the range.
func (h claim) String() string {
	if h.high == "" {
		return h.key
	}
	return space.Range{Low: store.KeyAddr([]byte(h.key)), High: store.KeyAddr([]byte(h.high))}.String()
}

// holdResources reserves the names and addresses that a request would create or change to below existing resources. This includes the name
// of its resource and all ranges and addresses. Names that already exist are not reserved. It returns an error if another request has a
// reservation.
func holdResources(c *resource.Change, request int64, outcome resource.Outcome) error {
	c.Tx.Touch(holdsTopic)
	made := map[int64]bool{}
	for i, one := range outcome.Changes {
		if one.After == nil {
			continue
		}
		made[one.Resource] = made[one.Resource] || one.Before == nil
		if i < outcome.Foreseen { // the other request has reserved it
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
		if !ok || on == nil || on.Workflow == nil || made[r.Parent] || one.Resource != outcome.Row.ID && r.Low == nil {
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

// save stores the reservation for a request.
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
	key, high := h.encode()
	return c.Tx.Write("INSERT INTO workflow_hold (request, collection, scope, key, high) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
		request, h.collection, h.scope, key, high)
}

// releaseHolds deletes the reservations of a request.
func releaseHolds(tx *store.Tx, request int64) error {
	tx.Touch(holdsTopic)
	return tx.Write("DELETE FROM workflow_hold WHERE request = ?", request)
}

// follower rejects changes that conflict with reservations.
type follower struct {
	holds *holds
	tx    *store.Tx
}

// Changed returns an error if a changed resource takes a reserved name or address.
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

// BeforeCommit does nothing.
func (f *follower) BeforeCommit() error { return nil }

// ReservedSpace returns the ranges of a collection that are reserved in a configuration (resource.ReservedSpace).
func (h *holds) ReservedSpace(tx *store.Tx, collection string, configuration int64) (all []space.Range, err error) {
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

// Keeper implements resource.Workflow.
type Keeper struct {
	holds  *holds
	acting Acting
}

// Acting returns a caller with the current rights of a user, or of a token by its id.
type Acting func(tx *store.Tx, user int64, token string) (resource.Caller, error)

// Open sets the workflow of an API. Its store must have been opened with the extension.
func Open(a *resource.API, acting Acting) {
	h, ok := a.Store.Layout().Extension(extensionName).State.(*holds)
	if !ok {
		panic("the database was opened without the extension of workflow")
	}
	a.Workflow = &Keeper{h, acting}
}

// keeperOf returns the keeper of a change's API.
func keeperOf(c *resource.Change) *Keeper {
	k, _ := c.API.Workflow.(*Keeper)
	return k
}
