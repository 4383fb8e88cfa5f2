package resource

import "portolan/internal/store"

// Action is what a caller wants to do with a resource, or a collection of them.
type Action int

// The actions.
const (
	// ActionFind is to come upon it, in whatever request: what is not found is not there for the caller.
	ActionFind Action = iota
	// ActionSee is to ask for it.
	ActionSee
	// ActionMake is to make one, or to link one.
	ActionMake
	// ActionChange is to change some of its fields, ActionReplace to write it anew, ActionDelete to delete or unlink it.
	ActionChange
	ActionReplace
	ActionDelete
)

// Guard says what of a caller decides about a collection, beyond what holds for all collections.
type Guard int

// The guards.
const (
	// Everybody: nothing more.
	Everybody Guard = iota
	// Accounts: its resources are the users themselves.
	Accounts
	// Sessions: its resources belong to the user that is their parent.
	Sessions
	// HistoryList: its resources are the history, as a list.
	HistoryList
	// HistoryImages: its resources are what exactly the history changed.
	HistoryImages
	// Administration: its resources are how the manager itself is set up.
	Administration
)

// Subject is what a caller wants to do something with.
type Subject struct {
	// Collection is its collection; nil where it may be of any.
	Collection *Collection
	// Sub is the subcollection below the resource that it is about; nil where it is about the resource itself.
	Sub *Sub
	// ID is the resource; 0 for the collection as a whole.
	ID int64
	// Plain: nothing is asked beside the fields of the resource.
	Plain bool
}

// Decide says what a caller may do: for ActionFind, the condition that narrows what it sees of a collection, nil where that is
// all of it; for the others, the problem that refuses it.
type Decide func(caller Caller, action Action, on Subject) (seen store.Expr, err error)

// seen narrows what a caller sees of a collection: the one place where reading is within the caller's rights. nil is all of it,
// store.Nothing none of it.
func (a *API) seen(c *Collection, caller Caller) store.Expr {
	if a.May == nil {
		return nil
	}
	seen, err := a.May(caller, ActionFind, Subject{Collection: c})
	if err != nil {
		return store.Nothing
	}
	return seen
}

// narrowed is a condition together with what narrows it.
func narrowed(where, by store.Expr) store.Expr {
	if by == nil {
		return where
	}
	return store.All{where, by}
}
