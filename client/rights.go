package client

import (
	"context"
	"net/http"
	"strconv"
)

// Effective is the set of rights of a user on a resource, and their source.
type Effective struct {
	// User is the ID of the user; nil for a token that does not belong to a user.
	User          *int64 `json:"user"`
	Administrator bool   `json:"administrator"`
	// AccessLevel is HIDE, VIEW, CHANGE, ADD or FULL. LevelBelow applies to the resources below, except for the types in AccessOverrides.
	AccessLevel     string `json:"accessLevel"`
	LevelBelow      string `json:"levelBelow"`
	AccessOverrides []struct {
		ResourceType string `json:"resourceType"`
		AccessLevel  string `json:"accessLevel"`
	} `json:"accessOverrides"`
	// WorkflowLevel is NONE, RECOMMEND or APPROVE.
	WorkflowLevel               string `json:"workflowLevel"`
	DeploymentsAllowed          bool   `json:"deploymentsAllowed"`
	QuickDeploymentsAllowed     bool   `json:"quickDeploymentsAllowed"`
	SelectiveDeploymentsAllowed bool   `json:"selectiveDeploymentsAllowed"`
	// DecidedBy is the source of the rights, or nil if there is none.
	DecidedBy *struct {
		// Resource is the resource that the rights are set on; nil for default rights.
		Resource     *int64  `json:"resource"`
		AccessRights []int64 `json:"accessRights"`
	} `json:"decidedBy"`
}

// EffectiveRights returns the rights of the caller on a resource, such as networks/100717. If user is not 0, it returns the rights of that
// user.
func (c *Client) EffectiveRights(ctx context.Context, resource string, user int64) (e Effective, err error) {
	path := AddressPath + resource + "/effectiveRights"
	if user != 0 {
		path += "?user=" + strconv.FormatInt(user, 10)
	}
	err = c.Do(ctx, http.MethodGet, path, nil, &e)
	return e, err
}

// Access lists the resources that a user sees, and the rights of the user on them.
type Access struct {
	User              int64  `json:"user"`
	Administrator     bool   `json:"administrator"`
	SecurityPrivilege string `json:"securityPrivilege"`
	HistoryPrivilege  string `json:"historyPrivilege"`
	// Everything is true if the user sees all existing and future resources.
	Everything bool `json:"everything"`
	// Fleet is ALL, SOME or NONE.
	Fleet string `json:"fleet"`
	// Collections has every collection. Visible is ALL, SOME or NONE.
	Collections []struct {
		Collection string `json:"collection"`
		Visible    string `json:"visible"`
		Changeable bool   `json:"changeable"`
	} `json:"collections"`
	// Types has every type that access rights govern.
	Types []struct {
		ResourceType string `json:"resourceType"`
		DefaultLevel string `json:"defaultLevel"`
		HighestLevel string `json:"highestLevel"`
	} `json:"types"`
	// Places are the resources with access rights of the user. Resource is nil for the default rights (Default) and for a resource that the
	// caller does not see.
	Places []struct {
		Resource *struct {
			ID    int64  `json:"id"`
			Type  string `json:"type"`
			Label string `json:"label"`
		} `json:"resource"`
		Default bool `json:"default"`
		Effective
	} `json:"places"`
}

// UserAccess returns what a user sees and may do.
func (c *Client) UserAccess(ctx context.Context, user int64) (a Access, err error) {
	err = c.Do(ctx, http.MethodGet, AddressPath+"users/"+strconv.FormatInt(user, 10)+"/access", nil, &a)
	return a, err
}
