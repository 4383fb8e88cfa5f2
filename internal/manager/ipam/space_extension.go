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

// spaceName is the name of the store extension for address space.
const spaceName = "space"

// spaces lists the collections with address space, by their declared use of it (Collection.Space).
type spaces struct {
	// holders provide space to other resources. takers use space of their parent, holders first. all also includes the collections that
	// only cover space.
	holders, takers, all []string
	// withMarks are the collections with water marks, withPing those with the setting for a ping before assignment.
	withMarks, withPing []string
}

// collectSpaces reads the uses of address space from the declared collections.
func collectSpaces(r *resource.Registry) *spaces {
	use := func(use resource.SpaceUse) []string {
		return r.SelectCollections(func(c *resource.Collection) bool { return c.Space == use })
	}
	with := func(field string) []string {
		return r.SelectCollections(func(c *resource.Collection) bool {
			return c.Space != resource.NoSpace && slices.ContainsFunc(c.Types, func(t *schema.Type) bool { return t.ByName[field] != nil })
		})
	}
	s := &spaces{holders: use(resource.HoldsSpace), withMarks: with(lowWaterMark), withPing: with(pingBeforeAssign)}
	s.takers = slices.Concat(s.holders, use(resource.TakesSpace))
	s.all = slices.Concat(s.takers, use(resource.SpansSpace))
	return s
}

// spacesIn returns the collections with address space.
func spacesIn(tx *store.Tx) *spaces {
	return tx.Extension(spaceName).State.(*spaceExtension).spaces()
}

// spaceExtension keeps free space, usage and water levels consistent with blocks, networks and addresses.
type spaceExtension struct {
	// ancestors caches the path of each block or network: its own id, then the blocks above it, nearest first. It is used only on SQLite.
	// On PostgreSQL the additional round trip would cost more than it saves.
	ancestors *store.Cache[int64, []int64]
	// settings computes inherited settings.
	settings *inheritance
	// spaces returns the collections with address space. The first call must come after all collections were declared.
	spaces func() *spaces
}

// registerSpace declares the store extension for address space, and what an undo does to free space.
func registerSpace(r *resource.Registry) {
	r.Extension(newSpaceExtension(r))
	r.Respan(reallocate)
}

// newSpaceExtension returns the extension for one store. All types must be declared before its first use.
func newSpaceExtension(r *resource.Registry) *store.Extension {
	s := &spaceExtension{spaces: sync.OnceValue(func() *spaces { return collectSpaces(r) })}
	return &store.Extension{Name: spaceName, State: s, Migrations: spaceMigrations,
		Tables:     []store.Table{freeTable, usageTable, {Name: "water", Columns: []string{"container", "level"}, Key: 1}},
		JoinedText: store.JoinedText{Collections: func() []string { return s.spaces().holders }, SQL: usageBeside},
		Rebuild:    recountUsage, Verify: verifySpace,
		Opened: func(opened *store.Store) {
			s.ancestors = store.NewCache[int64](opened, store.CacheOptions[[]int64]{Topics: []string{ancestorsTopic}})
			s.settings = newInheritance(opened, sync.OnceValue(func() *inheritedFields { return collectInherited(r) }))
		},
		Follow: func(tx *store.Tx) store.Follower {
			return &spaceFollower{space: s, usage: usageDelta{tx: tx, ancestors: s.ancestors}}
		}}
}

// spaceFollower observes the changes of one transaction.
type spaceFollower struct {
	space *spaceExtension
	usage usageDelta
}

// usageDeltaOf returns the usage changes of a transaction; nil for a read-only snapshot.
func usageDeltaOf(tx *store.Tx) *usageDelta {
	if f, ok := tx.Follower(tx.Extension(spaceName)).(*spaceFollower); ok {
		return &f.usage
	}
	return nil
}

// Changed counts a change. It deletes the free space and the water level of a deleted resource.
func (f *spaceFollower) Changed(before, after *store.Resource) error {
	if after == nil && slices.Contains(f.space.spaces().holders, before.Collection) {
		if err := f.usage.tx.Write("DELETE FROM free WHERE container = ?", before.ID); err != nil {
			return fmt.Errorf("delete free space: %w", err)
		}
	}
	if after == nil && slices.Contains(f.space.spaces().withMarks, before.Collection) {
		if err := f.usage.tx.Write("DELETE FROM water WHERE container = ?", before.ID); err != nil {
			return fmt.Errorf("delete a utilization threshold: %w", err)
		}
	}
	return f.usage.count(before, after)
}

// BeforeCommit writes the counted usage and updates the water levels that may have changed.
func (f *spaceFollower) BeforeCommit() error {
	if err := f.usage.write(); err != nil {
		return err
	}
	if len(f.usage.touched) == 0 {
		return nil
	}
	slices.Sort(f.usage.touched)
	m := marks{settings: f.space.settings}
	return m.updateLevels(f.usage.tx, slices.Compact(f.usage.touched))
}

// NetworkOf returns the network of a configuration that contains an address, or store.ErrNotFound.
func NetworkOf(tx *store.Tx, configuration int64, a netip.Addr) (*store.Resource, error) {
	return tx.Holding(configuration, "networks", a)
}

// lineage reads blocks and networks with their links, and all blocks above them.
func lineage(tx *store.Tx, ids []int64) (map[int64]*store.Resource, error) {
	return tx.Lineage(ids, spacesIn(tx).holders...)
}
