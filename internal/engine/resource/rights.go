package resource

import "portolan/internal/engine/store"

// Effective are the effective rights of a user or token on a resource.
type Effective struct {
	User          *int64 `json:"user" about:"The user with these rights; null for a token without a user."`
	Administrator bool   `json:"administrator" about:"True if access rights do not limit the user."`
	AccessLevel   string `json:"accessLevel" enum:"HIDE|VIEW|CHANGE|ADD|FULL" about:"The level for the resource."`
	LevelBelow    string `json:"levelBelow" enum:"HIDE|VIEW|CHANGE|ADD|FULL" about:"The level for the resources below it."`
	// AccessOverrides are the exceptions of LevelBelow.
	AccessOverrides []TypeLevel `json:"accessOverrides" about:"The levels of types below the resource that differ from levelBelow."`
	// The kinds of deployment that are allowed at the resource.
	DeploymentsAllowed          bool `json:"deploymentsAllowed"`
	QuickDeploymentsAllowed     bool `json:"quickDeploymentsAllowed"`
	SelectiveDeploymentsAllowed bool `json:"selectiveDeploymentsAllowed"`
	// WorkflowLevel says whether changes need an approval.
	WorkflowLevel string `json:"workflowLevel" enum:"NONE|RECOMMEND|APPROVE" about:"NONE: changes are applied directly. RECOMMEND: they need an approval. APPROVE: the user also approves requests of others."`
	// DecidedBy is nil for default rights alone.
	DecidedBy *DecidedBy `json:"decidedBy" about:"The access rights that decide; null if there are none."`
}

// Hidden reports whether the resource is invisible to the user.
func (e Effective) Hidden() bool { return e.AccessLevel == "HIDE" }

// Changes reports whether the user may change the resource.
func (e Effective) Changes() bool { return !e.Hidden() && e.AccessLevel != "VIEW" }

// TypeLevel is the access level for resources of a type.
type TypeLevel struct {
	ResourceType string `json:"resourceType"`
	AccessLevel  string `json:"accessLevel" enum:"HIDE|VIEW|CHANGE|ADD|FULL"`
}

// DecidedBy are access rights, and the resource that they are set at; nil for default rights.
type DecidedBy struct {
	Resource     *int64  `json:"resource" about:"The resource with the access rights; null for default rights."`
	AccessRights []int64 `json:"accessRights"`
}

// Action is the kind of access to a resource or to a collection.
type Action int

// The actions.
const (
	// ActionFind is finding the resource in any request. A resource that may not be found does not exist for the caller.
	ActionFind Action = iota
	// ActionSee is reading it.
	ActionSee
	// ActionMake is creating or linking one.
	ActionMake
	// ActionChange is changing some of its fields, ActionReplace replacing it, ActionDelete deleting or unlinking it.
	ActionChange
	ActionReplace
	ActionDelete
)

// Guard is the additional access rule of a collection, beyond the rules for all collections.
type Guard int

// The guards.
const (
	// AnyCaller: no additional rule.
	AnyCaller Guard = iota
	// Accounts: the resources are the users themselves.
	Accounts
	// Sessions: the resources belong to the user that is their parent.
	Sessions
	// HistoryList: the resources are the entries of the history.
	HistoryList
	// HistoryImages: the resources are the exact changes in the history.
	HistoryImages
	// Administration: the resources are settings of the manager itself.
	Administration
	// Logs: the resources are the manager's logs. Administrators and users with the right to logs see them.
	Logs
	// Managed: the resources are visible by access rights; only administrators change them.
	Managed
	// Common: the resources define possible values. Every user with any access right sees them all; only administrators change them.
	Common
	// Granted: the resources are the access rights.
	Granted
	// Between: the resources are links from their reference source to their reference destination.
	Between
	// Own: the resources are requests of the user in the reference user. The collection's rules decide who may create them.
	Own
	// Events: the resources are the event log.
	Events
	// Asking: the resources are requests for approval by the user in the reference creator, about resources below the reference place.
	Asking
	// Along: the rows have a source of their own. Each is visible with its parent.
	Along
)

// isUnrestricted reports whether resources are stored, undone and deleted like all others, subject only to access rights.
func (g Guard) isUnrestricted() bool {
	return g == AnyCaller || g == Managed || g == Common || g == Between || g == Own || g == Asking
}

// Rights are the rights of a user who is not an administrator (authz.Rights).
type Rights interface {
	// SeesEverything reports whether the user sees all resources, including future ones.
	SeesEverything() bool
	// Sees reports which of the given resources the user sees, by id. The visibility of all of them depends on their place.
	Sees(tx *store.Tx, heads []store.Head) (map[int64]bool, error)
	// SeesParent returns true if the parent of a visible resource is certainly visible; false means that it has to be checked.
	SeesParent(id int64) bool
	// Whole reports for some visible resources whether the user sees everything below them, including future resources.
	Whole(tx *store.Tx, ids []int64) (map[int64]bool, error)
}

// Subject is the object of an access.
type Subject struct {
	// Collection is its collection; nil for any.
	Collection *Collection
	// Sub is the accessed subcollection of the resource; nil for the resource itself.
	Sub *Sub
	// ID is the id of the resource; 0 for the whole collection.
	ID int64
	// Alone: the query is limited to resources of the collection, most likely many of them.
	Alone bool
	// Plain: the request has nothing in addition to the fields of the resource.
	Plain bool
}

// Decide returns the decision about an access. For ActionFind it returns the condition on the resources of a collection that the caller
// sees, nil for all of them. For other actions it returns the problem that refuses the access, if it is refused.
type Decide func(caller Caller, action Action, on Subject) (seen store.Expr, err error)

// visibility returns the condition on the resources of a collection that a caller sees: nil for all of them, store.Nothing for none. It is
// the only place where access rights limit reading.
func (a *API) visibility(c *Collection, caller Caller) store.Expr {
	return a.visibilityBy(caller, Subject{Collection: c})
}

// visibilityAlone is seen for queries that are limited to this collection.
func (a *API) visibilityAlone(c *Collection, caller Caller) store.Expr {
	return a.visibilityBy(caller, Subject{Collection: c, Alone: true})
}

func (a *API) visibilityBy(caller Caller, on Subject) store.Expr {
	if a.May == nil {
		return nil
	}
	seen, err := a.May(caller, ActionFind, on)
	if err != nil {
		return store.False
	}
	return seen
}

// conjoin returns the conjunction of two conditions; by may be nil.
func conjoin(where, by store.Expr) store.Expr {
	if by == nil {
		return where
	}
	return store.All{where, by}
}
