package fleetapi

import (
	"encoding/json"
	"errors"
	"net/http"

	"portolan/internal/base/problem"
	"portolan/internal/engine/family"
	"portolan/internal/engine/rest"
	"portolan/internal/manager/fleet"
	"portolan/internal/manager/server/middleware"
)

// Rollouts (Portolan extension): updates of many service points, in waves.

// rolloutPaths are the operations on rollouts.
func (a *API) rolloutPaths() []family.Path {
	rollout := func(status int, description string) family.Success {
		return family.Success{Status: status, Description: description, Schema: family.Ref("FleetRollout")}
	}
	id := pathParameter("The id of the rollout.")
	return []family.Path{
		{Pattern: rolloutsPath, Operations: []family.Operation{{
			Method: http.MethodGet, ID: "listRollouts", Summary: "List the rollouts (Portolan extension)", Access: a.reading(),
			Description: "Returns all, the latest first.",
			Success:     family.Success{Status: http.StatusOK, Description: "The rollouts.", Schema: family.DataOf("FleetRollout")},
			Handle:      a.listRollouts,
		}, {
			Method: http.MethodPost, ID: "startRollout", Summary: "Update many service points, in waves (Portolan extension)", Access: a.changing(),
			Description: "Selects the service points that match the filter now. Omitted members have the values of the example.",
			Body: &family.Body{Within: rest.ReportBody, Schema: family.Object(planProperties(), "version"),
				Example: family.Schema{"version": "1.2.0", "waves": []any{"1", "5%", "25%"}, "mostAway": "10%", "mostFailed": "0",
					"giveUpSeconds": 900}},
			Success:  rollout(http.StatusCreated, "Started."),
			Problems: []int{403, 409}, Handle: a.startRollout,
		}}},
		{Pattern: rolloutsPath + "/{id}", Parameters: id, Operations: []family.Operation{{
			Method: http.MethodGet, ID: "getRollout", Summary: "Fetch one of the rollouts (Portolan extension)", Access: a.reading(),
			Description: "Returns it with its counts.",
			Success:     rollout(http.StatusOK, "The rollout."), Problems: []int{404}, Handle: a.getRollout,
		}, {
			Method: http.MethodDelete, ID: "deleteRollout", Summary: "Delete a rollout that has ended (Portolan extension)", Access: a.changing(),
			Description: "Service points keep their versions.",
			Success:     family.Success{Status: http.StatusNoContent, Description: "Deleted."},
			Problems:    []int{403, 404, 409}, Handle: a.deleteRollout,
		}}},
		{Pattern: rolloutsPath + "/{id}/members", Parameters: id, Operations: []family.Operation{{
			Method: http.MethodGet, ID: "listRolloutMembers", Summary: "List the service points of a rollout (Portolan extension)",
			Access:      a.reading(),
			Description: "In the order of their updates.",
			Query:       []family.Parameter{{Name: "state", Description: "The state that they are in."}},
			Success: family.Success{Status: http.StatusOK, Description: "The service points.",
				Schema: family.DataOf("FleetRolloutMember")},
			Problems: []int{404}, Handle: a.listMembers,
		}}},
		{Pattern: rolloutsPath + "/{id}/{action}", Parameters: append(id, family.Parameter{Name: "action", Description: "The action.",
			Schema: family.Schema{"type": "string", "enum": []string{"pause", "resume", "takeBack"}}}),
			Operations: []family.Operation{{
				Method: http.MethodPost, ID: "actOnRollout", Summary: "Pause, resume or roll back a rollout (Portolan extension)", Access: a.changing(),
				Description: "takeBack returns the updated service points to their previous version.",
				Success:     rollout(http.StatusAccepted, "Accepted."), Problems: []int{403, 404, 409}, Handle: a.actOnRollout,
			}}},
	}
}

// rolloutsPath is the collection of rollouts.
const rolloutsPath = root + "/rollouts"

// planProperties are the fields of a rollout's plan.
func planProperties() family.Schema {
	filter := family.Schema{"labels": family.Schema{"type": "object", "additionalProperties": family.Text()}}
	for _, one := range fleet.FilterFields() {
		property := textOf(one)
		property["description"] = one.Meaning + "."
		filter[one.Name] = property
	}
	amount := family.Schema{"type": []string{"string", "integer"}, "pattern": "^[0-9]+%?$", "minimum": 0}
	clock := family.Schema{"type": "string", "pattern": "^[0-2]?[0-9]:[0-5][0-9]$"}
	return family.Schema{"version": family.Text(), "description": family.Text(),
		"filter": family.Schema{"type": "object", "properties": filter}, "waves": family.List(amount),
		"mostAway": amount, "mostFailed": amount, "timeZone": family.Text(),
		"giveUpSeconds": family.Schema{"type": "integer", "minimum": 30, "maximum": 604800},
		"windows":       family.List(family.Object(family.Schema{"days": textsSchema(), "from": clock, "to": clock}, "from", "to"))}
}

func (a *API) startRollout(w http.ResponseWriter, r *family.Request) error {
	p := fleet.NewPlan()
	for name, raw := range r.Members { // one by one, so that a refusal names its field
		if string(raw) == "null" {
			continue
		}
		one, err := json.Marshal(map[string]json.RawMessage{name: raw})
		if err != nil {
			return err
		}
		if name == "waves" {
			p.Waves = nil
		}
		if err := json.Unmarshal(one, &p); err != nil {
			if _, refused := problem.As(err); refused {
				return err
			}
			var wrong *json.UnmarshalTypeError
			if errors.As(err, &wrong) {
				return problem.Invalid(wrong.Field, "must not be a JSON %s", wrong.Value)
			}
			return problem.Invalid(name, "%v", err)
		}
	}
	if p.Version == "" {
		return family.Missing("version")
	}
	id, err := a.Fleet.StartRollout(r.Context(), p)
	if err != nil {
		return err
	}
	started, err := a.Fleet.Rollout(r.Context(), id)
	if err != nil {
		return err
	}
	w.Header().Set("Location", rolloutsPath+"/"+id)
	family.WriteJSON(w, http.StatusCreated, started)
	return nil
}

func (a *API) listRollouts(w http.ResponseWriter, r *family.Request) error {
	all, err := a.Fleet.Rollouts(r.Context())
	if err != nil {
		return err
	}
	family.WriteJSON(w, http.StatusOK, struct {
		Data []fleet.Rollout `json:"data"`
	}{all})
	return nil
}

func (a *API) getRollout(w http.ResponseWriter, r *family.Request) error {
	one, err := a.Fleet.Rollout(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	family.WriteJSON(w, http.StatusOK, one)
	return nil
}

func (a *API) deleteRollout(w http.ResponseWriter, r *family.Request) error {
	if err := a.Fleet.DeleteRollout(r.Context(), r.PathValue("id")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// listMembers lists the members of a rollout, filtered by state.
func (a *API) listMembers(w http.ResponseWriter, r *family.Request) error {
	state := r.URL.Query().Get("state")
	if err := fleet.CheckMemberState(state); err != nil {
		return err
	}
	list := middleware.NewList(w)
	err := a.Fleet.Members(r.Context(), r.PathValue("id"), state, func(one fleet.Member) error { return list.Add(one) })
	return list.End(err)
}

// actOnRollout pauses, resumes or rolls back a rollout.
func (a *API) actOnRollout(w http.ResponseWriter, r *family.Request) error {
	if err := a.Fleet.Act(r.Context(), r.PathValue("id"), r.PathValue("action")); err != nil {
		return err
	}
	one, err := a.Fleet.Rollout(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	family.WriteJSON(w, http.StatusAccepted, one)
	return nil
}
