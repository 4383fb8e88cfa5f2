package ipam

import (
	"embed"
	"fmt"
	"net/netip"
	"slices"
	"sync"

	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

//go:embed migrations/*/*_free.sql migrations/*/*_usage.sql
var spaceMigrations embed.FS

// spaceName is the name of the space extension.
const spaceName = "space"

// spaces are the collections with address space, by what is declared of them (Collection.Space).
type spaces struct {
	// holders hold what others take; takers take it, holders first; all are these and what lies over them.
	holders, takers, all []string
	// levelled have water marks, asking may have their addresses asked before they are assigned.
	levelled, asking []string
}

// spacesOf finds them among what is declared.
func spacesOf(r *resource.Registry) *spaces {
	use := func(use resource.SpaceUse) []string {
		return r.Having(func(c *resource.Collection) bool { return c.Space == use })
	}
	with := func(field string) []string {
		return r.Having(func(c *resource.Collection) bool {
			return c.Space != resource.NoSpace && slices.ContainsFunc(c.Types, func(t *schema.Type) bool { return t.ByName[field] != nil })
		})
	}
	s := &spaces{holders: use(resource.HoldsSpace), levelled: with(lowWaterMark), asking: with(pingBeforeAssign)}
	s.takers = slices.Concat(s.holders, use(resource.TakesSpace))
	s.all = slices.Concat(s.takers, use(resource.LiesOverSpace))
	return s
}

// spacesIn gives the collections with address space.
func spacesIn(tx *store.Tx) *spaces {
	return tx.Extension(spaceName).State.(*spaceExtension).spaces()
}

// spaceExtension keeps free space, usage and water levels in step with blocks, networks and addresses.
type spaceExtension struct {
	// ancestors are blocks and networks, each with the blocks above it, nearest first, itself before them. Only on SQLite
	// they are asked for: on PostgreSQL a round trip more would cost what is saved.
	ancestors *store.Cache[int64, []int64]
	// settings finds what comes down the tree.
	settings *inheritance
	// spaces gives the collections with address space; all must be declared by then.
	spaces func() *spaces
}

// registerSpace declares what is kept beside blocks, networks and addresses.
func registerSpace(r *resource.Registry) {
	r.Extension(newSpaceExtension(r))
	r.Respan(Reallocate)
}

// newSpaceExtension gives the extension for one store. What comes down is found among the types that are declared by then.
func newSpaceExtension(r *resource.Registry) *store.Extension {
	s := &spaceExtension{spaces: sync.OnceValue(func() *spaces { return spacesOf(r) })}
	return &store.Extension{Name: spaceName, State: s, Migrations: spaceMigrations,
		Tables:  []store.Table{freeTable, usageTable, {Name: "water", Columns: []string{"container", "level"}, Key: 1}},
		Beside:  store.Beside{Collections: func() []string { return s.spaces().holders }, SQL: usageBeside},
		Rebuild: recountUsage, Verify: verifySpace,
		Opened: func(opened *store.Store) {
			s.ancestors = store.NewCache[int64](opened, store.CacheOptions[[]int64]{Topics: []string{ancestorsTopic}})
			s.settings = newInheritance(opened, sync.OnceValue(func() *inheritedFields { return inheritedOf(r) }))
		},
		Follow: func(tx *store.Tx) store.Follower {
			return &spaceFollower{space: s, usage: usageDelta{tx: tx, ancestors: s.ancestors}}
		}}
}

// spaceFollower follows one transaction.
type spaceFollower struct {
	space *spaceExtension
	usage usageDelta
}

// usageDeltaOf gives what a transaction changes of the usage; nil in a snapshot.
func usageDeltaOf(tx *store.Tx) *usageDelta {
	if f, ok := tx.Follower(tx.Extension(spaceName)).(*spaceFollower); ok {
		return &f.usage
	}
	return nil
}

// Changed counts, and takes the free space and the water level of what is deleted away.
func (f *spaceFollower) Changed(before, after *store.Resource) error {
	if after == nil && slices.Contains(f.space.spaces().holders, before.Collection) {
		if err := f.usage.tx.Write("DELETE FROM free WHERE container = ?", before.ID); err != nil {
			return fmt.Errorf("deleting free space: %w", err)
		}
	}
	if after == nil && slices.Contains(f.space.spaces().levelled, before.Collection) {
		if err := f.usage.tx.Write("DELETE FROM water WHERE container = ?", before.ID); err != nil {
			return fmt.Errorf("deleting a water level: %w", err)
		}
	}
	return f.usage.count(before, after)
}

// BeforeCommit writes what was counted, and looks at the water levels that may have changed.
func (f *spaceFollower) BeforeCommit() error {
	if err := f.usage.write(); err != nil {
		return err
	}
	if len(f.usage.touched) == 0 {
		return nil
	}
	slices.Sort(f.usage.touched)
	m := marks{settings: f.space.settings}
	return m.counted(f.usage.tx, slices.Compact(f.usage.touched))
}

// NetworkOf gives the network of a configuration that holds an address; store.ErrNotFound where none does.
func NetworkOf(tx *store.Tx, configuration int64, a netip.Addr) (*store.Resource, error) {
	return tx.Holding(configuration, "networks", a)
}

// lineage reads blocks and networks with their links, and all blocks above them.
func lineage(tx *store.Tx, ids []int64) (map[int64]*store.Resource, error) {
	return tx.Lineage(ids, spacesIn(tx).holders...)
}
