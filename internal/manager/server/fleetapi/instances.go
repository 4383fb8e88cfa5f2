package fleetapi

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"portolan/internal/base/problem"
	"portolan/internal/engine/family"
	"portolan/internal/manager/authz"
	"portolan/internal/manager/fleet"
	"portolan/internal/manager/server/middleware"
)

// instancePaths are the operations on fleet service points.
func (a *API) instancePaths() []family.Path {
	created := family.Success{Status: http.StatusAccepted, Description: "The registration data of the service point.",
		Schema: family.Ref("FleetServicePointCreated")}
	gone := family.Success{Status: http.StatusNoContent, Description: "Deleted."}
	detail := family.Success{Status: http.StatusOK, Description: "The service point.", Schema: family.Ref("FleetServicePointDetail")}
	id := pathParameter(servicePointID)
	return []family.Path{
		{Pattern: instancesPath, Operations: []family.Operation{{
			Method: http.MethodGet, ID: "listFleetInstances", Summary: "List the fleet service points", Access: a.reading(),
			Description: "Lists all of them, or the one with exactly this name. Other fields also filter the list (Portolan extension).",
			Query:       instanceFilters(), Handle: a.listInstances,
			Success: family.Success{Status: http.StatusOK, Description: "The service points.", Schema: family.DataOf("FleetServicePoint")},
		}}},
		{Pattern: instancesPath + "/{id}", Parameters: id, Operations: []family.Operation{{
			Method: http.MethodGet, ID: "getFleetInstance", Summary: "Fetch one of the fleet service points", Access: a.reading(),
			Description: "Gives one, with its proxy and the DNS servers of its nodes.",
			Success:     detail, Problems: []int{404}, Handle: a.getInstance,
		}, {
			Method: http.MethodPatch, ID: "modifyFleetInstance", Summary: "Change one of the fleet service points (Portolan extension)",
			Access: a.changing(),
			Description: "Members that are missing in the body stay unchanged. targetVersion is the release to run; null cancels an update. " +
				"A label of null is removed. anycast sets how anycast addresses are announced to routers; null ends it.",
			Body: &family.Body{Schema: family.Object(family.Schema{"name": nameSchema(), "description": descriptionSchema(),
				"targetVersion": family.Schema{"type": []string{"string", "null"}},
				"anycast":       family.Schema{"oneOf": []any{family.Ref("AnycastService"), family.Schema{"type": "null"}}},
				"nodeCount":     nodeCountSchema(),
				"labels": family.Schema{"type": "object", "additionalProperties": family.Schema{"type": []string{"string",
					"null"}}}}),
				Example: family.Schema{"labels": family.Schema{"site": "oslo"}}},
			Success: detail, Problems: []int{403, 404, 409}, Handle: a.modifyInstance,
		}, {
			Method: http.MethodDelete, ID: "deleteFleetInstance", Summary: "Delete one of the fleet service points", Access: a.changing(),
			Description: "Deletes it; its certificate is refused from then on, and its machines stop their applications.",
			Success:     gone, Problems: []int{403, 404}, Handle: a.deleteInstance,
		}}},
		{Pattern: instancesPath + "/{id}/registrationKey", Parameters: id, Operations: []family.Operation{{
			Method: http.MethodPost, ID: "rekeyFleetInstance",
			Summary:     "Give one of the fleet service points a new registration key (Portolan extension)",
			Access:      a.changing(),
			Description: "It waits for its registration from then on, and its previous certificate is refused: for a lost machine.",
			Success:     created, Problems: []int{403, 404}, Handle: a.rekeyInstance,
		}}},
		{Pattern: instancesPath + "/{id}/nodes", Parameters: id, Operations: []family.Operation{{
			Method: http.MethodPost, ID: "addFleetNode", Summary: "Add a node to one of the fleet service points (Portolan extension)",
			Access:      a.changing(),
			Description: "Returns the registration key of the node; an earlier unused key becomes invalid.",
			Success:     family.Success{Status: http.StatusAccepted, Description: "The registration data of the node.", Schema: created.Schema},
			Problems:    []int{403, 404}, Handle: a.addNode,
		}}},
		{Pattern: instancesPath + "/{id}/nodes/{node}",
			Parameters: append(id, family.Parameter{Name: "node", Description: "The id of the node."}), Operations: []family.Operation{{
				Method: http.MethodDelete, ID: "removeFleetNode", Summary: "Remove a node from one of the fleet service points (Portolan extension)",
				Access:      a.changing(),
				Description: "Its certificate is refused from then on, and another node can enrol.",
				Success:     gone, Problems: []int{403, 404, 409}, Handle: a.removeNode,
			}}},
		{Pattern: instancesPath + "/{id}/events", Parameters: id, Operations: []family.Operation{{
			Method: http.MethodGet, ID: "listFleetEvents",
			Summary: "List the latest events of a service point and its applications (Portolan extension)",
			Access:  a.reading(), Description: "Returns at most 200, the earliest first.",
			Success:  family.Success{Status: http.StatusOK, Description: "The events.", Schema: family.DataOf("FleetEvent")},
			Problems: []int{404}, Handle: a.listEvents,
		}}},
		{Pattern: "/api/v1/fleetInstanceMinimumConfig", Operations: []family.Operation{{
			Method: http.MethodPost, ID: "createFleetInstance", Summary: "Create a fleet service point with minimal configuration",
			Access: a.changing(),
			Description: "Creates a service point that waits for enrolment. The registration key is shown once. It is valid for seven days " +
				"and for nodeCount machines (Portolan extension; 1 if omitted). A repeated request with the same Idempotency-Key returns the " +
				"same answer until the key was used.",
			Body: &family.Body{Schema: family.Object(family.Schema{"name": nameSchema(), "description": descriptionSchema(),
				"nodeCount": nodeCountSchema()}, "name"),
				Example: family.Schema{"name": "quay", "description": "the box in the harbour"}},
			Success: created, Problems: []int{403, 409}, Handle: a.createInstance,
		}}},
	}
}

// instanceFilters are the query parameters that narrow the list of service points.
func instanceFilters() (all []family.Parameter) {
	for _, one := range fleet.FilterFields() {
		ours := " (Portolan extension)"
		if one.Name == "name" {
			ours = "" // as published
		}
		all = append(all, family.Parameter{Name: one.Name, Description: one.Meaning + ours + ".", Schema: textOf(one)})
	}
	return append(all, family.Parameter{Name: limitParameter,
		Description: "The maximum number to return (Portolan extension); all without it.",
		Schema:      family.Schema{"type": "integer", "minimum": 1}},
		family.Parameter{Name: labelParameter,
			Description: "A label that they have, as NAME:VALUE, or as NAME for any value (Portolan extension). It may be repeated."})
}

// textOf is the schema of a field of a filter.
func textOf(field fleet.FilterField) family.Schema {
	schema := family.Text()
	if field.Allowed != nil {
		schema["enum"] = field.Allowed
	}
	return schema
}

// labelParameter is the query parameter that names a label: NAME, or NAME:VALUE, or NAME=VALUE.
const labelParameter = "label"

// listInstances lists the service points that the query names: name as published, the other fields are ours.
func (a *API) listInstances(w http.ResponseWriter, r *family.Request) error {
	query := r.URL.Query()
	var f fleet.Filter
	names := fleet.FilterNames()
	for _, name := range names {
		switch values := query[name]; {
		case len(values) > 1:
			return problem.Query(name, "must be given once, not %d times", len(values))
		case len(values) == 1:
			if err := f.Set(name, values[0]); err != nil {
				return err
			}
		}
	}
	for _, text := range query[labelParameter] {
		name, value := text, "" // a label has neither in its name
		if at := strings.IndexAny(text, ":="); at >= 0 {
			name, value = text[:at], text[at+1:]
		}
		if _, twice := f.Labels[name]; twice {
			return problem.Query(labelParameter, "label %s is given more than once", name)
		}
		if f.Labels == nil {
			f.Labels = map[string]string{}
		}
		f.Labels[name] = value
	}
	limit, err := listLimit(query)
	if err != nil {
		return err
	}
	if l := limitsOf(r.Context()); l != nil {
		for _, s := range l.scopes {
			f.Within = append(f.Within, s.Labels)
		}
	}
	list := middleware.NewList(w)
	left := limit
	err = a.Fleet.Show(r.Context(), f, func(text []byte) error {
		if left--; limit > 0 && left < 0 {
			return errListEnds
		}
		return list.AddText(text)
	})
	if errors.Is(err, errListEnds) {
		err = nil
	}
	return list.End(err)
}

// limitParameter is the maximum number of service points in a list (Portolan extension). Without it, the list is complete, as published.
const limitParameter = "limit"

// errListEnds ends a list that has reached its limit.
var errListEnds = errors.New("enough")

// listLimit reads limitParameter; 0 without it.
func listLimit(query url.Values) (int, error) {
	values := query[limitParameter]
	if len(values) == 0 {
		return 0, nil
	}
	n, err := strconv.Atoi(values[0])
	if err != nil || n < 1 || len(values) > 1 {
		return 0, problem.Query(limitParameter, "must be one whole number, 1 or more")
	}
	return n, nil
}

func (a *API) getInstance(w http.ResponseWriter, r *family.Request) error {
	i, err := a.Fleet.Get(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	family.WriteJSON(w, http.StatusOK, i)
	return nil
}

// modifyInstance changes a service point (Portolan extension).
func (a *API) modifyInstance(w http.ResponseWriter, r *family.Request) error {
	values, err := r.Strings("name", "description", "targetVersion")
	if err != nil {
		return err
	}
	c := fleet.InstanceChange{Name: valueOf(values, "name"), Description: valueOf(values, "description"),
		TargetVersion: valueOf(values, "targetVersion")}
	if string(r.Members["name"]) == "null" {
		return problem.Invalid("name", "must not be null")
	}
	none := ""
	for name, field := range map[string]**string{"description": &c.Description, "targetVersion": &c.TargetVersion} {
		if string(r.Members[name]) == "null" {
			*field = &none
		}
	}
	l := limitsOf(r.Context())
	if _, ok := r.Members["labels"]; ok && l != nil {
		return problem.Forbidden("AccessDenied", "labels: only an administrator can change labels, because rights depend on them")
	}
	if _, ok := r.Members["nodeCount"]; ok && l != nil && l.level < authz.Full {
		return problem.Forbidden("AccessDenied", "nodeCount: requires the level FULL for this service point (fleetRights)")
	}
	if raw, ok := r.Members["labels"]; ok {
		if json.Unmarshal(raw, &c.Labels) != nil || c.Labels == nil {
			return problem.Invalid("labels", "must be an object of texts; null removes a label")
		}
	}
	if raw, ok := r.Members["nodeCount"]; ok {
		if json.Unmarshal(raw, &c.NodeCount) != nil || c.NodeCount == nil {
			return problem.Invalid("nodeCount", "must be a whole number")
		}
	}
	if raw, ok := r.Members["anycast"]; ok {
		c.Anycast = &fleet.AnycastChange{}
		if err := decodeStrict("anycast", raw, &c.Anycast.Settings); err != nil {
			return err
		}
	}
	err = a.Fleet.Modify(r.Context(), r.PathValue("id"), c)
	if p, ok := problem.As(err); ok && l != nil && p.Code == "ResourceAlreadyExists" { // whose it is may not be seen
		return problem.Conflict("ResourceAlreadyExists", "name: %q is already in use", values["name"])
	}
	if err != nil {
		return err
	}
	return a.getInstance(w, r)
}

func (a *API) deleteInstance(w http.ResponseWriter, r *family.Request) error {
	if err := a.Fleet.Delete(r.Context(), r.PathValue("id")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// rekeyInstance gives a service point a new registration key (Portolan extension).
func (a *API) rekeyInstance(w http.ResponseWriter, r *family.Request) error {
	created, err := a.Fleet.Rekey(r.Context(), r.PathValue("id"), a.Endpoint())
	if err != nil {
		return err
	}
	family.WriteJSON(w, http.StatusAccepted, created)
	return nil
}

// addNode adds a node to a service point (Portolan extension).
func (a *API) addNode(w http.ResponseWriter, r *family.Request) error {
	created, err := a.Fleet.AddNode(r.Context(), r.PathValue("id"), a.Endpoint())
	if err != nil {
		return err
	}
	family.WriteJSON(w, http.StatusAccepted, created)
	return nil
}

// removeNode deletes a node (Portolan extension).
func (a *API) removeNode(w http.ResponseWriter, r *family.Request) error {
	if err := a.Fleet.RemoveNode(r.Context(), r.PathValue("id"), r.PathValue("node")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (a *API) createInstance(w http.ResponseWriter, r *family.Request) error {
	values, err := r.Strings("name", "description")
	if err != nil {
		return err
	}
	name, ok := values["name"]
	if !ok {
		return family.Missing("name")
	}
	var description *string
	if text, ok := values["description"]; ok {
		description = &text
	}
	wanted := fleet.Wanted{Name: name, Description: description, Endpoint: a.Endpoint(), NodeCount: 1}
	if raw, ok := r.Members["nodeCount"]; ok {
		if json.Unmarshal(raw, &wanted.NodeCount) != nil || wanted.NodeCount < 1 {
			return problem.Invalid("nodeCount", "must be a whole number, 1 or more")
		}
	}
	if wanted.Repeatable, err = a.repeatable(r.Request); err != nil {
		return err
	}
	created, err := a.Fleet.Create(r.Context(), wanted)
	if err != nil {
		return err
	}
	family.WriteJSON(w, http.StatusAccepted, created)
	return nil
}
