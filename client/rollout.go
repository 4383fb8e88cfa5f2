package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
)

// Release is a release of Portolan that service points can be updated to.
type Release struct {
	Version   string   `json:"version"`
	Platforms []string `json:"platforms"`
}

// Releases lists the releases of the manager. expires is the time until which service points accept them; it is empty without releases.
func (c *Client) Releases(ctx context.Context) (all []Release, expires string, err error) {
	var answer struct {
		Data    []Release `json:"data"`
		Expires string    `json:"expires"`
	}
	err = c.Do(ctx, http.MethodGet, FleetPath+"releases", nil, &answer)
	return answer.Data, answer.Expires, err
}

// InstanceChange is a change of a service point. Nil fields stay unchanged, and a label with a nil value is deleted.
type InstanceChange struct {
	Name          *string            `json:"name,omitempty"`
	Description   *string            `json:"description,omitempty"`
	TargetVersion *string            `json:"targetVersion,omitempty"`
	Labels        map[string]*string `json:"labels,omitempty"`
	// Anycast is the configuration of anycast routing, a JSON object; null removes it.
	Anycast json.RawMessage `json:"anycast,omitempty"`
}

// ChangeInstance changes a service point and returns its new state.
func (c *Client) ChangeInstance(ctx context.Context, id string, change InstanceChange) (i Instance, err error) {
	err = c.Do(ctx, http.MethodPatch, FleetPath+"fleetInstances/"+url.PathEscape(id), change, &i)
	return i, err
}

// Plan is the plan of a rollout. Empty fields mean the manager's defaults.
type Plan struct {
	Version       string         `json:"version"`
	Description   string         `json:"description,omitempty"`
	Filter        map[string]any `json:"filter,omitempty"`
	Waves         []string       `json:"waves,omitempty"`
	MostAway      string         `json:"mostAway,omitempty"`
	MostFailed    string         `json:"mostFailed,omitempty"`
	Windows       []Window       `json:"windows,omitempty"`
	TimeZone      string         `json:"timeZone,omitempty"`
	GiveUpSeconds int            `json:"giveUpSeconds,omitempty"`
}

// Window is a maintenance window: times of day such as 22:00, on days such as MON. An empty list means every day.
type Window struct {
	Days []string `json:"days,omitempty"`
	From string   `json:"from"`
	To   string   `json:"to"`
}

// Rollout is an update of many service points.
type Rollout struct {
	ID      string `json:"id"`
	Created int64  `json:"created"` // Unix milliseconds
	Plan
	// Status is RUNNING, PAUSED, HALTED, DONE, TAKING_BACK or TAKEN_BACK.
	Status    string `json:"status"`
	Reason    string `json:"reason,omitempty"`
	Wave      int    `json:"wave"`
	WaveCount int    `json:"waveCount"`
	Total     int    `json:"total"`
	// Counts are the numbers of service points, by state.
	Counts map[string]int `json:"counts"`
}

// Member is a service point in a rollout.
type Member struct {
	ServicePoint string `json:"servicePoint"`
	Name         string `json:"name"`
	Wave         int    `json:"wave"`
	State        string `json:"state"`
	Before       string `json:"before"`
	Reason       string `json:"reason,omitempty"`
}

const rolloutsPath = FleetPath + "rollouts"

// StartRollout starts a rollout.
func (c *Client) StartRollout(ctx context.Context, p Plan) (r Rollout, err error) {
	err = c.Do(ctx, http.MethodPost, rolloutsPath, p, &r)
	return r, err
}

// Rollouts lists the rollouts, latest first.
func (c *Client) Rollouts(ctx context.Context) ([]Rollout, error) {
	var answer struct {
		Data []Rollout `json:"data"`
	}
	err := c.Do(ctx, http.MethodGet, rolloutsPath, nil, &answer)
	return answer.Data, err
}

// Rollout reads one rollout.
func (c *Client) Rollout(ctx context.Context, id string) (r Rollout, err error) {
	err = c.Do(ctx, http.MethodGet, rolloutsPath+"/"+url.PathEscape(id), nil, &r)
	return r, err
}

// RolloutMembers lists the service points of a rollout. If state is not empty, it lists only those in that state.
func (c *Client) RolloutMembers(ctx context.Context, id, state string) ([]Member, error) {
	path := rolloutsPath + "/" + url.PathEscape(id) + "/members"
	if state != "" {
		path += "?state=" + url.QueryEscape(state)
	}
	var answer struct {
		Data []Member `json:"data"`
	}
	err := c.Do(ctx, http.MethodGet, path, nil, &answer)
	return answer.Data, err
}

// ActOnRollout pauses, resumes or rolls back a rollout. action is pause, resume or takeBack.
func (c *Client) ActOnRollout(ctx context.Context, id, action string) (r Rollout, err error) {
	err = c.Do(ctx, http.MethodPost, rolloutsPath+"/"+url.PathEscape(id)+"/"+url.PathEscape(action), json.RawMessage("{}"), &r)
	return r, err
}

// DeleteRollout deletes a rollout that has ended.
func (c *Client) DeleteRollout(ctx context.Context, id string) error {
	return c.Do(ctx, http.MethodDelete, rolloutsPath+"/"+url.PathEscape(id), nil, nil)
}
