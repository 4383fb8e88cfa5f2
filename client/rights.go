package client

import (
	"context"
	"net/http"
	"strconv"
)

// Effective is what somebody may do with a resource, and what decides.
type Effective struct {
	// User is whose rights these are; nil for a token that belongs to no user.
	User          *int64 `json:"user"`
	Administrator bool   `json:"administrator"`
	// AccessLevel is HIDE, VIEW, CHANGE, ADD or FULL; LevelBelow is that of what lies below, but for the types of AccessOverrides.
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
	// DecidedBy is nil where nothing decides.
	DecidedBy *struct {
		// Resource is where the rights are set; nil for those by default.
		Resource     *int64  `json:"resource"`
		AccessRights []int64 `json:"accessRights"`
	} `json:"decidedBy"`
}

// EffectiveRights gives what the caller may do with a resource, such as networks/100717, or another user, where user is not 0.
func (c *Client) EffectiveRights(ctx context.Context, resource string, user int64) (e Effective, err error) {
	path := "/api/v2/" + resource + "/effectiveRights"
	if user != 0 {
		path += "?user=" + strconv.FormatInt(user, 10)
	}
	err = c.Do(ctx, http.MethodGet, path, nil, &e)
	return e, err
}
