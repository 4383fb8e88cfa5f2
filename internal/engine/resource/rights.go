package resource

import "portolan/internal/engine/store"

// Effective is what somebody may do with a resource.
type Effective struct {
	// User is whose rights these are; nil for a token that belongs to no user.
	User *int64 `json:"user"`
	// Administrator says that no right limits it.
	Administrator bool `json:"administrator"`
	// AccessLevel is that of the resource, LevelBelow that of what lies below it, but for types that AccessOverrides have.
	AccessLevel     string      `json:"accessLevel"`
	LevelBelow      string      `json:"levelBelow"`
	AccessOverrides []TypeLevel `json:"accessOverrides"`
	// The ways to deploy that are allowed there.
	DeploymentsAllowed          bool `json:"deploymentsAllowed"`
	QuickDeploymentsAllowed     bool `json:"quickDeploymentsAllowed"`
	SelectiveDeploymentsAllowed bool `json:"selectiveDeploymentsAllowed"`
	// WorkflowLevel says whether changes are made, asked for (RECOMMEND), or approved, too (APPROVE).
	WorkflowLevel string `json:"workflowLevel"`
	// DecidedBy is what decides; nil where nothing does.
	DecidedBy *DecidedBy `json:"decidedBy"`
}

// Hidden reports whether the resource is not there for whom it is asked.
func (e Effective) Hidden() bool { return e.AccessLevel == "HIDE" }

// Changes reports whether it may be changed.
func (e Effective) Changes() bool { return !e.Hidden() && e.AccessLevel != "VIEW" }

// TypeLevel is the level of resources of a type.
type TypeLevel struct {
	ResourceType string `json:"resourceType"`
	AccessLevel  string `json:"accessLevel"`
}

// DecidedBy are access rights, and the resource that they are set at; nil for those by default.
type DecidedBy struct {
	Resource     *int64  `json:"resource"`
	AccessRights []int64 `json:"accessRights"`
}

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
	// Logs: its resources are the manager's logs, which administrators see, and those with a right to see them.
	Logs
	// Managed: its resources are seen as others are, and changed by administrators alone.
	Managed
	// Common: its resources say what there can be; whoever sees anything by its rights sees them all, and administrators alone change them.
	Common
	// Granted: its resources are the access rights.
	Granted
	// Between: its resources are links from their reference source to their reference destination.
	Between
	// Own: its resources are what users ask for, who are in the reference user; who may ask is for the collection's rules.
	Own
	// Events: its resources are what has happened.
	Events
	// Asking: its resources are changes that the user in the reference creator asks for, about what lies in the reference place.
	Asking
)

// ordinary reports whether resources are kept, undone and deleted as all others are: rights alone say who does that.
func (g Guard) ordinary() bool {
	return g == Everybody || g == Managed || g == Common || g == Between || g == Own || g == Asking
}

// Rights are what a user who is no administrator may do (authz.Rights).
type Rights interface {
	// Everything reports whether the user sees all resources there are, also those that are still to come.
	Everything() bool
	// Sees gives those of some resources, by their heads, that the user sees. All are decided about by where they lie.
	Sees(tx *store.Tx, heads []store.Head) (map[int64]bool, error)
	// SeesParent reports that what a resource that is seen lies in is seen, too; false where that has to be looked up.
	SeesParent(id int64) bool
	// Whole reports of some resources that the user sees whether it sees all that lies below, too, also what is still to come.
	Whole(tx *store.Tx, ids []int64) (map[int64]bool, error)
}

// Subject is what a caller wants to do something with.
type Subject struct {
	// Collection is its collection; nil where it may be of any.
	Collection *Collection
	// Sub is the subcollection below the resource that it is about; nil where it is about the resource itself.
	Sub *Sub
	// ID is the resource; 0 for the collection as a whole.
	ID int64
	// Alone: resources of the collection alone are looked for, most likely many.
	Alone bool
	// Plain: nothing is asked beside the fields of the resource.
	Plain bool
}

// Decide says what a caller may do: for ActionFind, the condition that narrows what it sees of a collection, nil where that is
// all of it; for the others, the problem that refuses it.
type Decide func(caller Caller, action Action, on Subject) (seen store.Expr, err error)

// seen narrows what a caller sees of a collection: the one place where reading is within the caller's rights. nil is all of it,
// store.Nothing none of it.
func (a *API) seen(c *Collection, caller Caller) store.Expr {
	return a.seenBy(caller, Subject{Collection: c})
}

// seenAlone is seen where resources of that collection alone are looked for.
func (a *API) seenAlone(c *Collection, caller Caller) store.Expr {
	return a.seenBy(caller, Subject{Collection: c, Alone: true})
}

func (a *API) seenBy(caller Caller, on Subject) store.Expr {
	if a.May == nil {
		return nil
	}
	seen, err := a.May(caller, ActionFind, on)
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
