package fleetapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"portolan/internal/base/problem"
	"portolan/internal/engine/family"
	"portolan/internal/engine/rest"
	"portolan/internal/manager/fleet"
	"portolan/internal/wire/checkin"
)

// The applications of a service point (Portolan extension): their desired state and their progress.

// applicationPaths are the operations on the applications of a fleet service point.
func (a *API) applicationPaths() []family.Path {
	id := pathParameter(servicePointID)
	both := slices.Concat(id, []family.Parameter{{Name: "application", Description: "The id of the application."}})
	applications := instancesPath + "/{id}/applications"
	members := func(own family.Schema) family.Schema {
		own["configuration"] = family.Schema{"type": "object"}
		own["anycastAddresses"] = textsSchema()
		own["limits"] = family.Ref("ApplicationLimits")
		return own
	}
	return []family.Path{
		{Pattern: applications, Parameters: id, Operations: []family.Operation{{
			Method: http.MethodGet, ID: "listFleetApplications", Summary: "List the applications of a service point (Portolan extension)",
			Access: a.reading(), Description: "Returns them with their configuration.",
			Success:  family.Success{Status: http.StatusOK, Description: "The applications.", Schema: family.DataOf("FleetApplication")},
			Problems: []int{404}, Handle: a.listApplications,
		}, {
			Method: http.MethodPost, ID: "deployFleetApplication", Summary: "Deploy an application to a service point (Portolan extension)",
			Access: a.changing(),
			Description: "The service point is notified at once. The application's status shows the progress. Without a configuration the " +
				"application gets its default on this service point (see applicationKinds).",
			Body: &family.Body{Within: rest.ReportBody,
				Schema: family.Object(members(family.Schema{"name": family.Text(), "version": family.Text()}), "name"),
				Example: family.Schema{"name": "http-probe-service",
					"configuration": family.Schema{"targets": []any{family.Schema{"url": "http://192.0.2.1/"}}}}},
			Success: family.Success{Status: http.StatusAccepted, Description: "Accepted.",
				Schema: family.Object(family.Schema{"id": family.Text()}, "id")},
			Problems: []int{403, 404, 409}, Handle: a.deployApplication,
		}}},
		{Pattern: instancesPath + "/{id}/applicationKinds", Parameters: id, Operations: []family.Operation{{
			Method: http.MethodGet, ID: "listFleetApplicationKinds",
			Summary: "List the applications that a service point can run (Portolan extension)",
			Access:  a.reading(), Description: "Returns the JSON schema of the configuration of each, and the configuration that it gets " +
				"by default on this service point.",
			Success:  family.Success{Status: http.StatusOK, Description: "The applications.", Schema: family.DataOf("FleetApplicationKind")},
			Problems: []int{404}, Handle: a.listKinds,
		}}},
		{Pattern: applications + "/{application}", Parameters: both, Operations: []family.Operation{{
			Method: http.MethodGet, ID: "getFleetApplication", Summary: "Fetch one of the applications of a service point (Portolan extension)",
			Access: a.reading(), Description: "Returns it with its configuration.",
			Success:  family.Success{Status: http.StatusOK, Description: "The application.", Schema: family.Ref("FleetApplication")},
			Problems: []int{404}, Handle: a.getApplication,
		}, {
			Method: http.MethodPatch, ID: "changeFleetApplication",
			Summary:     "Change one of the applications of a service point (Portolan extension)",
			Access:      a.changing(),
			Description: "Replaces the configuration, the target version, all anycast addresses, or the limits.",
			Body: &family.Body{Within: rest.ReportBody, Schema: family.Object(members(family.Schema{"targetVersion": family.Text()})),
				Example: family.Schema{"configuration": family.Schema{"targets": []any{}}}},
			Success:  family.Success{Status: http.StatusAccepted, Description: "Accepted."},
			Problems: []int{403, 404, 409}, Handle: a.changeApplication,
		}, {
			Method: http.MethodDelete, ID: "undeployFleetApplication", Summary: "Remove an application from a service point (Portolan extension)",
			Access:      a.changing(),
			Description: "Its status is DELETED when the service point has confirmed it. A minute later it does not exist any more.",
			Success:     family.Success{Status: http.StatusAccepted, Description: "Accepted."},
			Problems:    []int{403, 404, 409}, Handle: a.undeployApplication,
		}}},
		{Pattern: applications + "/{application}/log", Parameters: both, Operations: []family.Operation{{
			Method: http.MethodGet, ID: "getFleetApplicationLog", Summary: "Read the end of the log of an application (Portolan extension)",
			Access: a.reading(), Description: "Requests it from the service point, and waits up to 20 seconds.",
			Query: []family.Parameter{{Name: "bytes", Description: "The number of bytes at the end.",
				Schema: family.Schema{"type": "integer", "minimum": 1, "maximum": checkin.MaxLog, "default": logBytes}}},
			Success:  family.Success{Status: http.StatusOK, Description: "The end of the log.", Schema: family.Text(), Type: "text/plain"},
			Problems: []int{404, 409}, Handle: a.getLog,
		}}},
	}
}

func (a *API) listApplications(w http.ResponseWriter, r *family.Request) error {
	all, err := a.Fleet.Applications(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	family.WriteJSON(w, http.StatusOK, struct {
		Data []fleet.ApplicationDetail `json:"data"`
	}{all})
	return nil
}

// listKinds returns the applications that can be deployed to a service point.
func (a *API) listKinds(w http.ResponseWriter, r *family.Request) error {
	all, err := a.Fleet.Kinds(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	family.WriteJSON(w, http.StatusOK, struct {
		Data []fleet.Kind `json:"data"`
	}{all})
	return nil
}

func (a *API) getApplication(w http.ResponseWriter, r *family.Request) error {
	all, err := a.Fleet.Applications(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	for _, one := range all {
		if one.ID == r.PathValue("application") {
			family.WriteJSON(w, http.StatusOK, one)
			return nil
		}
	}
	return problem.NotFound("service point %q has no application %q", r.PathValue("id"), r.PathValue("application"))
}

// readChange reads the members of a body that deploys or changes an application.
func readChange(r *family.Request, names ...string) (c fleet.ApplicationChange, values map[string]string, err error) {
	if values, err = r.Strings(names...); err != nil {
		return c, nil, err
	}
	if raw, ok := r.Members["configuration"]; ok && string(raw) != "null" {
		if !bytes.HasPrefix(raw, []byte("{")) {
			return c, nil, problem.Invalid("configuration", "must be an object")
		}
		var compact bytes.Buffer
		if err := json.Compact(&compact, raw); err != nil {
			return c, nil, problem.Invalid("configuration", "cannot be read")
		}
		c.Configuration = compact.Bytes()
	}
	if raw, ok := r.Members["anycastAddresses"]; ok && (json.Unmarshal(raw, &c.AnycastAddresses) != nil || c.AnycastAddresses == nil) {
		return c, nil, problem.Invalid("anycastAddresses", "must be an array of addresses; an empty array removes all addresses")
	}
	if raw, ok := r.Members["limits"]; ok {
		if string(raw) == "null" {
			return c, nil, problem.Invalid("limits", "must be an object; an empty object removes all limits")
		}
		c.Limits = new(checkin.Limits)
		return c, values, decodeStrict("limits", raw, c.Limits)
	}
	return c, values, nil
}

// decodeStrict reads a member that is an object and rejects unknown fields.
func decodeStrict(field string, raw json.RawMessage, into any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrong) && wrong.Field != "":
		return problem.Invalid(field+"."+wrong.Field, "must not be a JSON %s", wrong.Value)
	case errors.As(err, &wrong):
		return problem.Invalid(field, "must be an object, not a JSON %s", wrong.Value)
	case err != nil:
		if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
			return problem.Invalid(field, "has no member %s", name)
		}
		return problem.Invalid(field, "cannot be read")
	}
	return nil
}

func (a *API) deployApplication(w http.ResponseWriter, r *family.Request) error {
	c, values, err := readChange(r, "name", "version")
	if err != nil {
		return err
	}
	if c.Name, c.Version = valueOf(values, "name"), valueOf(values, "version"); c.Name == nil {
		return family.Missing("name")
	}
	return a.deploy(w, r, c)
}

// deploy deploys an application to the service point of a request and returns its id.
func (a *API) deploy(w http.ResponseWriter, r *family.Request, c fleet.ApplicationChange) (err error) {
	if c.Repeatable, err = a.repeatable(r.Request); err != nil {
		return err
	}
	id, err := a.Fleet.Deploy(r.Context(), r.PathValue("id"), c)
	if err != nil {
		return err
	}
	family.WriteJSON(w, http.StatusAccepted, struct {
		ID string `json:"id"`
	}{id})
	return nil
}

func (a *API) changeApplication(w http.ResponseWriter, r *family.Request) error {
	c, values, err := readChange(r, "targetVersion")
	if err != nil {
		return err
	}
	c.TargetVersion = valueOf(values, "targetVersion")
	if c.TargetVersion == nil && c.Configuration == nil && c.AnycastAddresses == nil && c.Limits == nil {
		return problem.BadRequest("MissingRequiredField",
			"the body must have at least one of configuration, targetVersion, anycastAddresses and limits")
	}
	if err := a.Fleet.Change(r.Context(), r.PathValue("id"), r.PathValue("application"), c); err != nil {
		return err
	}
	w.WriteHeader(http.StatusAccepted)
	return nil
}

func (a *API) undeployApplication(w http.ResponseWriter, r *family.Request) error {
	if err := a.Fleet.Undeploy(r.Context(), r.PathValue("id"), r.PathValue("application")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusAccepted)
	return nil
}

// listEvents returns the latest events of a service point and its applications.
func (a *API) listEvents(w http.ResponseWriter, r *family.Request) error {
	all, err := a.Fleet.Events(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	family.WriteJSON(w, http.StatusOK, struct {
		Data []fleet.Event `json:"data"`
	}{all})
	return nil
}

// logBytes is the default amount of a log to return, in bytes.
const logBytes = 64 << 10

// getLog returns the end of an application's current log on its service point.
func (a *API) getLog(w http.ResponseWriter, r *family.Request) error {
	bytes := logBytes
	if text := r.URL.Query().Get("bytes"); text != "" {
		var err error
		if bytes, err = strconv.Atoi(text); err != nil {
			return problem.Query("bytes", "must be a number, not %q", text)
		}
	}
	text, err := a.Fleet.Log(r.Context(), r.PathValue("id"), r.PathValue("application"), bytes)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_, _ = io.WriteString(w, strings.ToValidUTF8(string(text), "\uFFFD")) //nolint:gosec // the answer is declared as plain text
	return nil
}
