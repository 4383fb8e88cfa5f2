package resource

import (
	"encoding/json"
	"net/netip"
	"slices"

	"portolan/internal/base/space"
	"portolan/internal/engine/store"
)

// Target is what a path names.
type Target struct {
	Collection *Collection // of the resource or the list
	Sub        *Sub
	ID         int64 // of the resource above where there is a sub, else of the resource
	Item       int64 // of the resource in the subcollection
	Root       bool  // the list of everything
	Any        bool  // a resource by its id alone
	List       bool  // the path names a list
	Alias      bool  // the path has an alias in place of the id
	Unkept     bool  // an alias for what is kept nowhere: Collection.Unkept has it
}

// Vacancy is what lies in the free space of a resource.
type Vacancy struct {
	// Type is the type that the resources would have, By the field that tells them apart: an address.
	Type, By string
	// Field is the field that says by Value that one is vacant; they are listed where a filter asks for that.
	Field, Value string
	// Whole is the space that may be free.
	Whole space.Range
	// Parent and Configuration are where they would lie.
	Parent, Configuration int64
	// Free calls fn for what is free from low to high, in order, or from the last to the first, until fn says stop.
	Free func(low, high netip.Addr, backwards bool, fn func(space.Range) (more bool)) error
}

// SpaceMap is how full equal parts of a prefix are, and what lies there.
type SpaceMap struct {
	// Range is what the resource has, Whole the smallest prefix that has it, Length that of the prefix of one cell.
	Range, Whole space.Range
	Length       int
	// Kinds are the names of what lies in a cell; Cells are the parts, in the order of their addresses.
	Kinds []string
	Cells []Cell
}

// Cell is one part of a SpaceMap.
type Cell struct {
	// Outside: it is none of the resource's. Kind is a number of what lies there.
	Outside bool
	Kind    byte
	// Full is the share in use of the addresses that hosts may have, 0 to 1.
	Full float64
}

// Applying says how a resource of a document is applied.
type Applying struct {
	// Base is the path of what the resources of the document belong below; In, where it is given, that of what this one does.
	Base string
	In   *string
	// Action leaves it at CREATE or UPDATE; empty: both. UPDATE takes the number of what is changed (id), too.
	Action string
	// Taken reports whether another resource of the document is about one already: one without a name of its own is none of them.
	Taken func(id int64) bool
	// Nothing only looks whether Base and Action are good, and gives what Base names.
	Nothing bool
}

// Applied is what came of a resource that is to be as it was sent (POST /apply).
type Applied struct {
	// Row is the resource as it is now; nil where it could not be read.
	Row *store.Resource
	// Base is the number of what the resources of the document belong below; 0 for all.
	Base int64
	// Did is CREATED, CHANGED or UNCHANGED. Beside an error it is CREATED where the resource is not there, and could not be made.
	Did string
	// Changes are the fields that were changed.
	Changes []FieldChange
	// Said is what was passed over of it, in sentences.
	Said []string
	// Once are secrets of it that are shown this once, by their fields.
	Once map[string]string
}

// FieldChange is a field that was changed, with its value before and after it; both are null where they are not told.
type FieldChange struct {
	Field  string          `json:"field"`
	Before json.RawMessage `json:"before"`
	After  json.RawMessage `json:"after"`
}

// Counts are numbers by type or state that are kept for a resource, and answered below its path.
type Counts struct {
	// Name is the last part of the path; Summary says in a sentence what is counted.
	Name, Summary string
	// Of gives the numbers of one resource. What there is none of need not be there.
	Of func(tx *store.Tx, above *store.Resource) (map[string]int64, error)
}

// The last parts of the paths of what is told of resources beside counts and reports: how full one is, what a caller may do with it.
const (
	MapName       = "map"
	EffectiveName = "effectiveRights"
)

// Tells reports whether something of a name is told of each resource of the collection, below its path: its map, its counts, what a caller
// may do with it, or a report.
func (c *Collection) Tells(name string) bool {
	switch name {
	case MapName:
		return c.Map != nil
	case EffectiveName:
		return c.Guard == Everybody && !c.Inner
	case c.Counts.Name:
		return c.Counts.Of != nil
	}
	return slices.ContainsFunc(c.Reports, func(r Report) bool { return r.Name == name })
}

// Report tells what follows from a resource and from what else is kept, below its path. It is ours.
type Report struct {
	// Name is the last part of the path; Summary says in a sentence what is told, Description more.
	Name, Summary, Description string
	// Answer is a sample of what Of gives: a struct, as JSON.
	Answer any
	// Of gives what is told to a caller, who sees the resource; it leaves out what the caller does not see.
	Of func(tx *store.Tx, a *API, caller Caller, of *store.Resource) (any, error)
}
