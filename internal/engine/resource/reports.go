package resource

import (
	"encoding/json"
	"math/big"
	"net/netip"
	"slices"

	"portolan/internal/base/space"
	"portolan/internal/engine/store"
)

// Target is the resource or list that a path names.
type Target struct {
	Collection *Collection // of the resource or the list
	Sub        *Sub
	ID         int64 // of the resource above if Sub is set, otherwise of the resource
	Item       int64 // of the resource in the subcollection
	Root       bool  // the list of all resources
	Any        bool  // a resource by its id, of any collection
	List       bool  // the path names a list
	Alias      bool  // the path has an alias in place of the id
	Virtual    bool  // an alias for an object that is not stored: Collection.Virtual returns it
}

// Vacancy describes the resources that the free space of a resource could hold.
type Vacancy struct {
	// Type is the type of the resources, By the field that identifies them: an address.
	Type, By string
	// Field has the value Value in a vacant resource. Lists contain vacant resources if a filter asks for that value.
	Field, Value string
	// Whole is the space that is searched for free addresses.
	Whole space.Range
	// Size returns the number of free addresses in Whole.
	Size func() (*big.Int, error)
	// Parent and Configuration are those of the vacant resources.
	Parent, Configuration int64
	// Free calls fn for the free ranges from low to high, in order, or backwards, until fn returns false.
	Free func(low, high netip.Addr, backwards bool, fn func(space.Range) (more bool)) error
}

// SpaceMap is the utilization of the equal parts of a prefix, and the kind of their contents.
type SpaceMap struct {
	// Range is the space of the resource, Whole the smallest prefix that contains it, Length the prefix length of one cell.
	Range, Whole space.Range
	Length       int
	// Kinds are the names of the contents of cells. Count is the number of cells, and Cell returns one by its number in address order.
	Kinds []string
	Count int
	Cell  func(i int) Cell
}

// Cell is one part of a SpaceMap.
type Cell struct {
	// Outside: the cell is not part of the resource. Kind is the index of its content in Kinds.
	Outside bool
	Kind    byte
	// Full is the share of the host addresses that is in use, 0 to 1.
	Full float64
}

// Applying are the options for applying one resource of a document.
type Applying struct {
	// Base is the path of the resource above the resources of the document. In, if set, is the path of the resource above this one.
	Base string
	In   *string
	// Action limits the request to CREATE or UPDATE; empty: both. For UPDATE, the number (id) may name the resource.
	Action string
	// IsMatched reports whether another resource of the document was already matched to an existing resource. A resource without a name is
	// then not matched to it.
	IsMatched func(id int64) bool
	// CheckOnly only checks Base and Action, and returns the resource that Base names.
	CheckOnly bool
}

// Applied is the result of applying one resource of a document (POST /apply).
type Applied struct {
	// Row is the resource after the request; nil if it could not be read.
	Row *store.Resource
	// Base is the id of the resource above the resources of the document; 0 for none.
	Base int64
	// Did is CREATED, CHANGED or UNCHANGED. With an error it is CREATED if the resource does not exist and could not be created.
	Did     string
	Changes []FieldChange
	// Notes are the notes about ignored parts of the resource, in sentences.
	Notes []string
	// Once are the secrets that this answer shows once, by field.
	Once map[string]string
}

// FieldChange is a changed field with its values before and after; both are null if they are not shown.
type FieldChange struct {
	Field  string          `json:"field"`
	Before json.RawMessage `json:"before"`
	After  json.RawMessage `json:"after"`
}

// Counts are numbers by type or state that are kept for a resource, with a path below it.
type Counts struct {
	// Name is the last part of the path; Summary is a sentence about the counted objects.
	Name, Summary string
	// Children is the subcollection whose resources are exactly the counted ones, and Field their field that always has one of the keys.
	// Lists of it use the numbers. Empty: the numbers also count other resources.
	Children, Field string
	// Of returns the numbers of one resource. Zeros may be omitted.
	Of func(tx *store.Tx, above *store.Resource) (map[string]int64, error)
}

// The last parts of the paths of a resource's utilization map and of the caller's rights on it.
const (
	MapName       = "map"
	EffectiveName = "effectiveRights"
)

// HasReport reports whether resources of the collection have a report with this name below their path: the map, the counts, the effective
// rights, or a declared report.
func (c *Collection) HasReport(name string) bool {
	switch name {
	case MapName:
		return c.Map != nil
	case EffectiveName:
		return c.Guard == AnyCaller && !c.Inner
	case c.Counts.Name:
		return c.Counts.Of != nil
	}
	return slices.ContainsFunc(c.Reports, func(r Report) bool { return r.Name == name })
}

// Report is an answer below the path of a resource, computed from it and from other stored data. It is not part of the published API.
type Report struct {
	// Name is the last part of the path; Summary is a sentence about the report, Description a longer text.
	Name, Summary, Description string
	// Answer is a sample of the result of Of: a struct, encoded as JSON.
	Answer any
	// Of returns the report for a caller that sees the resource. It omits everything that the caller does not see.
	Of func(tx *store.Tx, a *API, caller Caller, of *store.Resource) (any, error)
}
