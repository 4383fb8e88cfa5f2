package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"

	"portolan/internal/base/problem"
	"portolan/internal/engine/rest"
	"portolan/internal/manager/fleet"
	"portolan/internal/wire/checkin"
)

// The applications of a service point (ours): what it is to run, and how that goes.

func (m *Manager) listApplications(w http.ResponseWriter, r *http.Request) error {
	all, err := m.Fleet.Applications(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, struct {
		Data []fleet.ApplicationDetail `json:"data"`
	}{all})
	return nil
}

func (m *Manager) getApplication(w http.ResponseWriter, r *http.Request) error {
	all, err := m.Fleet.Applications(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	for _, one := range all {
		if one.ID == r.PathValue("application") {
			writeJSON(w, http.StatusOK, one)
			return nil
		}
	}
	return problem.NotFound("service point %q has no application %q", r.PathValue("id"), r.PathValue("application"))
}

// readChange reads the body of a request that deploys or changes an application: these texts, and its configuration.
func readChange(w http.ResponseWriter, r *http.Request, names ...string) (c fleet.ApplicationChange, values map[string]string, err error) {
	members, _, err := readJSON(w, r, rest.ReportBody)
	if err != nil {
		return c, nil, err
	}
	if values, err = texts(members, names...); err != nil {
		return c, nil, err
	}
	rest.Note(w, r, members, append(names, "configuration", "anycastAddresses", "limits")...)
	if raw, ok := members["configuration"]; ok && string(raw) != "null" {
		if !bytes.HasPrefix(raw, []byte("{")) {
			return c, nil, problem.Invalid("configuration", "must be an object")
		}
		var compact bytes.Buffer
		if err := json.Compact(&compact, raw); err != nil {
			return c, nil, problem.Invalid("configuration", "cannot be read")
		}
		c.Configuration = compact.Bytes()
	}
	if raw, ok := members["anycastAddresses"]; ok && (json.Unmarshal(raw, &c.AnycastAddresses) != nil || c.AnycastAddresses == nil) {
		return c, nil, problem.Invalid("anycastAddresses", "must be an array of addresses; an empty one takes all away")
	}
	if raw, ok := members["limits"]; ok {
		if string(raw) == "null" {
			return c, nil, problem.Invalid("limits", "must be an object; an empty one takes all away")
		}
		c.Limits = new(checkin.Limits)
		return c, values, strictly("limits", raw, c.Limits)
	}
	return c, values, nil
}

// strictly reads a member that is an object, and refuses what the object does not have.
func strictly(field string, raw json.RawMessage, into any) error {
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

// given gives a text that a body has; nil where it has none.
func given(values map[string]string, name string) *string {
	text, ok := values[name]
	if !ok {
		return nil
	}
	return &text
}

func (m *Manager) deployApplication(w http.ResponseWriter, r *http.Request) error {
	c, values, err := readChange(w, r, "name", "version")
	if err != nil {
		return err
	}
	if c.Name, c.Version = given(values, "name"), given(values, "version"); c.Name == nil {
		return missing("name")
	}
	return m.deploy(w, r, c)
}

// deploy lets the service point of a request run an application, and answers its id.
func (m *Manager) deploy(w http.ResponseWriter, r *http.Request, c fleet.ApplicationChange) (err error) {
	if c.Repeatable, err = m.repeatable(r); err != nil {
		return err
	}
	id, err := m.Fleet.Deploy(r.Context(), r.PathValue("id"), c)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusAccepted, struct {
		ID string `json:"id"`
	}{id})
	return nil
}

func (m *Manager) changeApplication(w http.ResponseWriter, r *http.Request) error {
	c, values, err := readChange(w, r, "targetVersion")
	if err != nil {
		return err
	}
	c.TargetVersion = given(values, "targetVersion")
	if c.TargetVersion == nil && c.Configuration == nil && c.AnycastAddresses == nil && c.Limits == nil {
		return problem.BadRequest("MissingRequiredField", "the body has none of configuration, targetVersion, anycastAddresses and limits")
	}
	if err := m.Fleet.Change(r.Context(), r.PathValue("id"), r.PathValue("application"), c); err != nil {
		return err
	}
	w.WriteHeader(http.StatusAccepted)
	return nil
}

func (m *Manager) undeployApplication(w http.ResponseWriter, r *http.Request) error {
	if err := m.Fleet.Undeploy(r.Context(), r.PathValue("id"), r.PathValue("application")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusAccepted)
	return nil
}

// listEvents gives the last moves of a service point and its applications.
func (m *Manager) listEvents(w http.ResponseWriter, r *http.Request) error {
	all, err := m.Fleet.Events(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, struct {
		Data []fleet.Event `json:"data"`
	}{all})
	return nil
}

// logBytes is how much of a log is given where nothing is said.
const logBytes = 64 << 10

// getLog gives the end of an application's log, as its service point has it now.
func (m *Manager) getLog(w http.ResponseWriter, r *http.Request) error {
	bytes := logBytes
	if text := r.URL.Query().Get("bytes"); text != "" {
		var err error
		if bytes, err = strconv.Atoi(text); err != nil {
			return problem.Query("bytes", "%q is no number", text)
		}
	}
	rest.Note(w, r, nil, "bytes")
	text, err := m.Fleet.Log(r.Context(), r.PathValue("id"), r.PathValue("application"), bytes)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_, _ = io.WriteString(w, strings.ToValidUTF8(string(text), "\uFFFD")) //nolint:gosec // plain text, and said so
	return nil
}
