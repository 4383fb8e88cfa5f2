package ipam

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
)

// Usage counts the addresses of a network or block by state, at any depth. The key networkSpace is not a state.
type Usage map[string]int64

// networkSpace is the Usage key for the number of addresses that the IPv4 networks of a block or network span.
const networkSpace = "networks"

// Used returns the number of addresses in any state. It leaves out networkSpace.
func (u Usage) Used() (n int64) {
	for state, count := range u {
		if state != networkSpace {
			n += count
		}
	}
	return n
}

// usageTable has a row for each container and state. On PostgreSQL several rows may exist for a pair; their sum counts.
var usageTable = store.Table{Name: "usage", Columns: []string{"container", "state", "n"}, Key: 2,
	Derived: "recomputed from the addresses"}

// usageBeside is the SQL expression that reads the usage of a block or network together with its row (see parseUsage).
const usageBeside = "(SELECT string_agg(u.state || ' ' || u.n, ',') FROM usage u WHERE u.container = r.id)"

// UsageOf returns the usage of blocks and networks by id. A container without usage may be missing from the map. Inside a write transaction
// it first writes the pending delta, so that the result includes the transaction's own changes.
func UsageOf(tx *store.Tx, ids []int64) (map[int64]Usage, error) {
	if d := usageDeltaOf(tx); d != nil { // include the pending changes of this transaction
		if err := d.write(); err != nil {
			return nil, err
		}
	}
	all, others := make(map[int64]Usage, len(ids)), []int64{}
	for _, id := range ids {
		text, ok := tx.ExtensionText(tx.Extension(spaceName), id)
		if !ok {
			others = append(others, id)
			continue
		}
		u, err := parseUsage(text)
		if err != nil {
			return nil, err
		}
		all[id] = u
	}
	if len(others) > 0 {
		written, err := storedUsage(tx, others)
		maps.Copy(all, written)
		return all, err
	}
	return all, nil
}

// addressCounts is the number of stored addresses of each state in a block or network, at any depth. Leases are not counted.
var addressCounts = resource.Counts{Name: "addressCounts", Summary: "The number of addresses of each state in it, at any depth",
	Of: func(tx *store.Tx, above *store.Resource) (map[string]int64, error) {
		all, err := UsageOf(tx, []int64{above.ID})
		counts := map[string]int64{}
		for state, n := range all[above.ID].withoutLeases() {
			if state != networkSpace && n != 0 {
				counts[state] = n
			}
		}
		return counts, err
	}}

// networkCounts is addressCounts for networks, whose addresses are directly below them.
func networkCounts() resource.Counts {
	counts := addressCounts
	counts.Children, counts.Field = "addresses", "state"
	return counts
}

// usageBatch is the number of containers that one statement reads.
const usageBatch = 500

// storedUsage reads the usage table, without the pending changes of the transaction.
func storedUsage(tx *store.Tx, ids []int64) (map[int64]Usage, error) {
	all := make(map[int64]Usage, len(ids))
	for part := range slices.Chunk(ids, usageBatch) {
		list, args := store.InList(part)
		if err := tx.Each(func(scan func(...any) error) error {
			var id, n int64
			var state string
			if err := scan(&id, &state, &n); err != nil || n == 0 {
				return err
			}
			if all[id] == nil {
				all[id] = Usage{}
			}
			all[id][state] = n
			return nil
		}, "SELECT container, state, CAST(sum(n) AS BIGINT) FROM usage WHERE container IN "+list+" GROUP BY container, state",
			args...); err != nil {
			return nil, fmt.Errorf("read usage: %w", err)
		}
	}
	return all, nil
}

// usageDelta collects the usage changes of a transaction. They are written before the commit, or earlier when UsageOf reads usage.
type usageDelta struct {
	tx *store.Tx
	// ancestors is the cache of the space extension.
	ancestors *store.Cache[int64, []int64]
	// direct is the change of usage by network and state, without the change that passes on to the blocks above.
	direct map[int64]Usage
	// from maps the blocks and networks that were moved or deleted to their previous parents.
	from map[int64]int64
	// touched lists the containers whose usage was changed and written.
	touched []int64
}

// markDirty schedules a check of the water level of a block or network whose usage did not change.
func markDirty(tx *store.Tx, container int64) {
	d := usageDeltaOf(tx)
	d.touched = append(d.touched, container)
}

func (c *usageDelta) add(container int64, state string, n int64) {
	if c.direct == nil {
		c.direct = map[int64]Usage{}
	}
	if c.direct[container] == nil {
		c.direct[container] = Usage{}
	}
	c.direct[container][state] += n
}

// count records the effect of a change on the usage of blocks and networks. before is nil for a created resource, after is nil for a
// deleted one.
func (c *usageDelta) count(before, after *store.Resource) error {
	r := after
	if r == nil {
		r = before
	}
	switch r.Collection {
	case "addresses":
		return c.countAddress(before, after)
	case "networks":
		if before != nil && before.Low[0] == 4 {
			c.add(before.ID, networkSpace, -ipv4Size(before))
		}
		if after != nil && after.Low[0] == 4 {
			c.add(after.ID, networkSpace, ipv4Size(after))
		}
	case "blocks":
	default:
		return nil
	}
	if before == nil || after == nil || after.Parent != before.Parent {
		c.tx.Touch(ancestorsTopic)
	}
	if _, known := c.from[r.ID]; before != nil && !known && (after == nil || after.Parent != before.Parent) {
		if c.from == nil {
			c.from = map[int64]int64{}
		}
		c.from[r.ID] = before.Parent
	}
	return nil
}

func (c *usageDelta) countAddress(before, after *store.Resource) error {
	var states [2]string
	for i, r := range []*store.Resource{before, after} {
		if r == nil {
			continue
		}
		var err error
		if states[i], err = stateOf(r); err != nil {
			return err
		}
	}
	if before != nil && after != nil && before.Parent == after.Parent && states[0] == states[1] {
		return nil
	}
	if before != nil {
		c.add(before.Parent, states[0], -1)
	}
	if after != nil {
		c.add(after.Parent, states[1], 1)
	}
	return nil
}

// ipv4Size returns the number of addresses of an IPv4 network.
func ipv4Size(r *store.Resource) int64 {
	number := func(key []byte) int64 {
		return int64(key[13])<<24 | int64(key[14])<<16 | int64(key[15])<<8 | int64(key[16])
	}
	return number(r.High) - number(r.Low) + 1
}

// addUsage is the SQL before and after a SELECT of containers, states and numbers. The statement adds the numbers to the usage table.
var addUsage = [2]store.SQL{
	{SQLite: "INSERT INTO usage (container, state, n) ", PostgreSQL: "INSERT INTO usage (container, state, n) "},
	{SQLite: " ON CONFLICT (container, state) DO UPDATE SET n = n + excluded.n"}}

// foldUsage replaces the rows of the containers in "up" by one row for each state. It skips rows that another transaction has locked.
const foldUsage = ", old AS (DELETE FROM usage WHERE ctid = ANY (ARRAY(SELECT ctid FROM usage WHERE container = ANY (ARRAY(SELECT id " +
	"FROM " +
	"up)) FOR UPDATE SKIP LOCKED))" +
	" RETURNING container, state, n) INSERT INTO usage (container, state, n) SELECT container, state, sum(n) FROM old GROUP BY " +
	"container, state"

// write writes the changes that were counted since the last write.
func (c *usageDelta) write() error {
	if len(c.direct) == 0 && len(c.from) == 0 {
		return nil
	}
	direct, from := c.direct, c.from
	c.direct, c.from = nil, nil
	touched := slices.Sorted(maps.Keys(direct))
	if len(from) > 0 {
		var err error
		if touched, err = c.move(direct, from); err != nil {
			return err
		}
	} else {
		for _, id := range touched {
			for _, state := range slices.Sorted(maps.Keys(direct[id])) {
				if n := direct[id][state]; n != 0 {
					if err := c.addUpwards(id, state, n); err != nil {
						return fmt.Errorf("write usage: %w", err)
					}
				}
			}
		}
	}
	c.touched = append(c.touched, touched...)
	if !c.tx.RoundTrips() {
		return nil
	}
	for _, id := range touched {
		if store.ShouldFold() {
			if err := c.tx.Write(c.tx.Upwards("blocks")+foldUsage, id); err != nil {
				return fmt.Errorf("sum up usage: %w", err)
			}
		}
	}
	return nil
}

// addUpwards adds n to the usage of a container and of all blocks above it.
func (c *usageDelta) addUpwards(id int64, state string, n int64) error {
	if c.tx.RoundTrips() {
		return c.tx.Write(c.tx.Upwards("blocks")+c.tx.SQL(addUsage[0])+"SELECT id, CAST(? AS TEXT), CAST(? AS BIGINT) FROM up", id, state, n)
	}
	chain, err := c.chain(id)
	if err != nil {
		return err
	}
	if len(chain) == 0 {
		return fmt.Errorf("count addresses: container %d does not exist", id)
	}
	args := make([]any, 0, 3*len(chain))
	for _, container := range chain {
		args = append(args, container, state, n)
	}
	return c.tx.Write(c.tx.SQL(addUsage[0])+"VALUES (?, ?, ?)"+strings.Repeat(", (?, ?, ?)", len(chain)-1)+c.tx.SQL(addUsage[1]), args...)
}

// ancestorsTopic is touched when a block or network is created or deleted, or changes its parent.
const ancestorsTopic = "ancestors"

// chain returns the id of a block or network followed by the ids of the blocks above it, nearest first.
func (c *usageDelta) chain(id int64) (ids []int64, err error) {
	if known, ok := c.ancestors.Get(c.tx, id); ok {
		return known, nil
	}
	err = c.tx.Each(func(scan func(...any) error) error {
		var above int64
		err := scan(&above)
		ids = append(ids, above)
		return err
	}, c.tx.Upwards("blocks")+"SELECT id FROM up", id)
	if err == nil {
		c.ancestors.Put(c.tx, id, ids)
	}
	return ids, err
}

// countUsage computes the usage of all blocks and networks from the stored addresses and the leases.
func countUsage(tx *store.Tx) (map[int64]Usage, error) {
	all, parents, networks := map[int64]Usage{}, map[int64]int64{}, []int64{}
	if err := tx.Each(func(scan func(...any) error) error {
		r := &store.Resource{}
		if err := scan(&r.ID, &r.Parent, &r.Collection, &r.Low, &r.High); err != nil {
			return err
		}
		parents[r.ID], all[r.ID] = r.Parent, Usage{}
		if r.Collection == "networks" {
			networks = append(networks, r.ID)
			if len(r.Low) == 17 && len(r.High) == 17 && r.Low[0] == 4 { // verifySpans reports a network without a span
				all[r.ID][networkSpace] = ipv4Size(r)
			}
		}
		return nil
	}, "SELECT id, parent, collection, low, high FROM resource WHERE collection IN ('blocks', 'networks')"); err != nil {
		return nil, fmt.Errorf("count usage: %w", err)
	}
	if err := tx.Each(func(scan func(...any) error) error {
		var id, n int64
		var state string
		if err := scan(&id, &state, &n); err != nil {
			return err
		}
		if all[id] != nil { // an address outside of every network is a different fault
			all[id][state] = n
		}
		return nil
	}, "SELECT parent, json_extract(body, '$.state'), count(*) FROM resource WHERE collection = 'addresses' GROUP BY 1, 2"); err != nil {
		return nil, fmt.Errorf("count usage: %w", err)
	}
	l := leasesIn(tx)
	stored, err := tx.HasTables(leasesName)
	if err != nil {
		return nil, err
	}
	if l != nil && stored { // a copy of an older schema has no leases yet
		leased, err := l.CountNetworks(tx)
		if err != nil {
			return nil, fmt.Errorf("count usage: %w", err)
		}
		for id, states := range leased {
			for _, state := range usedByLeases {
				if n := states[state]; n != 0 && all[id] != nil {
					all[id][state] += n
				}
			}
		}
	}
	for _, id := range networks {
		depth := 0
		for at := parents[id]; all[at] != nil; at = parents[at] {
			if depth++; depth > len(all) { // a cycle: a block is its own ancestor
				return nil, fmt.Errorf("count usage: the ancestors of network %d form a cycle", id)
			}
			for state, n := range all[id] {
				all[at][state] += n
			}
		}
	}
	return all, nil
}

// recountUsage replaces the usage of all blocks and networks by newly counted values.
func recountUsage(tx *store.Tx) error {
	all, err := countUsage(tx)
	if err != nil {
		return err
	}
	if err := tx.Write("DELETE FROM usage"); err != nil {
		return err
	}
	var rows [][]any
	for id, u := range all {
		for state, n := range u {
			rows = append(rows, []any{id, state, n})
		}
	}
	return tx.Bulk(&usageTable, rows)
}

// parseUsage parses "STATE n,STATE n". A state may occur more than once; the numbers are added.
func parseUsage(text string) (Usage, error) {
	u := Usage{}
	for part := range strings.SplitSeq(text, ",") {
		state, count, ok := strings.Cut(part, " ")
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(count, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("read usage: %w", err)
		}
		if u[state] += n; u[state] == 0 {
			delete(u, state)
		}
	}
	return u, nil
}
