package dnspublish

import (
	"slices"
	"strings"

	"portolan/internal/base/naming"
	"portolan/internal/engine/store"
)

// maxBranches is the maximum number of zones of a configuration in a transaction that are queued by name. Beyond it the configuration is
// examined once.
const maxBranches = 20

// markBranches queues the zones at, above and below the name of a changed zone, and below its former name, if the configuration has live
// views.
func (f *liveFollower) markBranches(before, after *store.Resource) error {
	for _, r := range []*store.Resource{before, after} {
		if r == nil || f.due[due{r.Configuration, dueAll, ""}] {
			continue
		}
		if err := f.mark(r, r.Key); err != nil {
			return err
		}
		branch := due{r.Configuration, dueAll, r.Key}
		if !f.due[branch] || slices.Contains(f.branches[r.Configuration], branch) {
			continue
		}
		f.branches[r.Configuration] = append(f.branches[r.Configuration], branch)
		if len(f.branches[r.Configuration]) <= maxBranches {
			continue
		}
		for _, one := range f.branches[r.Configuration] {
			delete(f.due, one)
		}
		if err := f.markAll(r); err != nil {
			return err
		}
	}
	return nil
}

// branches are the keys of changed zones; nil if all zones may be affected.
type branches map[string]bool

// affects reports whether the change of zones can affect what the plan contributes to a zone: it is one of them, above or below one. An
// implied reverse zone may be between two others, whatever their names are. Zones of other types contain data of any zone.
func (b branches) affects(z *plannedZone) bool {
	if b == nil {
		return true
	}
	implied := z.row.ID == 0
	if !implied && z.row.Type != "Zone" || z.row.Key == "" {
		return true
	}
	for above, more := z.row.Key, true; more; _, above, more = naming.Cut(above) {
		if b[above] {
			return true
		}
	}
	for key := range b {
		if strings.HasSuffix(key, "."+z.row.Key) || implied && (strings.HasSuffix(key, ".in-addr.arpa") || strings.HasSuffix(key, ".ip6.arpa")) {
			return true
		}
	}
	return false
}

// maxChanged is the maximum number of zones whose branches are examined. Beyond it all zones are.
const maxChanged = 100

// add returns the branches with that of one more zone; an empty key means all zones. first reports that there is no change yet.
func (b branches) add(key string, first bool) branches {
	switch {
	case key == "" || len(b) == maxChanged || b == nil && !first:
		return nil
	case first:
		return branches{key: true}
	}
	b[key] = true
	return b
}
