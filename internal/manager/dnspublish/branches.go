package dnspublish

import (
	"strings"

	"portolan/internal/base/naming"
	"portolan/internal/engine/store"
)

// maxBranches is the maximum number of zones in a transaction that are queued by name. Beyond it the configuration is examined once.
const maxBranches = 20

// markBranches queues the zones at, above and below the name of a changed zone, and below its former name, if the configuration has live
// views.
func (f *liveFollower) markBranches(before, after *store.Resource) error {
	for _, r := range []*store.Resource{before, after} {
		if r == nil || f.branches > maxBranches {
			continue
		}
		if f.branches++; f.branches > maxBranches {
			return f.markAll(r)
		}
		if err := f.mark(r, r.Key); err != nil {
			return err
		}
	}
	return nil
}

// branches are the keys of changed zones; nil if all zones may be affected.
type branches map[string]bool

// affects reports whether the change of zones can affect what the plan contributes to a zone: it is one of them, above or below one. An
// implied reverse zone may be between two others. Zones of other types contain data of any zone.
func (b branches) affects(z *plannedZone) bool {
	if b == nil {
		return true
	}
	if z.row.ID == 0 {
		for key := range b {
			if _, _, reverse := naming.ReverseRange(key); reverse {
				return true
			}
		}
		return false
	}
	if z.row.Type != "Zone" || z.row.Key == "" {
		return true
	}
	for above, more := z.row.Key, true; more; _, above, more = naming.Cut(above) {
		if b[above] {
			return true
		}
	}
	for key := range b {
		if strings.HasSuffix(key, "."+z.row.Key) {
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
