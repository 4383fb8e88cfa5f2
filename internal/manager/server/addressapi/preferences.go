package addressapi

import (
	"net/http"

	"portolan/internal/base/problem"
	"portolan/internal/engine/family"
	"portolan/internal/engine/published"
	"portolan/internal/engine/resource"
	"portolan/internal/manager/identity"
)

// preferencesPath is the path at which users store settings of clients, such as the columns of the console's tables (Portolan extension).
const preferencesPath = published.Base + "/preferences"

// preferencePaths declares the operations on the caller's preferences.
func (a *API) preferencePaths() []family.Path {
	access := family.Access{Schemes: schemes, Admit: a.admit}
	value := family.Object(family.Schema{"value": family.Schema{"type": "object", "description": "Any JSON object of up to 8 KiB."}}, "value")
	return []family.Path{
		{Pattern: preferencesPath, Operations: []family.Operation{{
			Method: http.MethodGet, ID: "listPreferences", Summary: "List the preferences of the caller (Portolan extension)", Access: access,
			Description: "Settings that a client stores for its user, such as the columns of tables in the console. They follow the user, and " +
				"are not part of the history.",
			Success:  family.Success{Status: http.StatusOK, Description: "The preferences.", Schema: family.DataOf("Preference")},
			Problems: []int{403}, Handle: a.listPreferences,
		}}},
		{Pattern: preferencesPath + "/{name}", Parameters: []family.Parameter{{Name: "name",
			Description: "Letters, digits, dots and hyphens, with a lower-case letter first."}},
			Operations: []family.Operation{{
				Method: http.MethodGet, ID: "getPreference", Summary: "Show a preference of the caller (Portolan extension)", Access: access,
				Description: "The preference with this name.",
				Success:     family.Success{Status: http.StatusOK, Description: "The preference.", Schema: family.Ref("Preference")},
				Problems:    []int{403, 404}, Handle: a.getPreference,
			}, {
				Method: http.MethodPut, ID: "putPreference", Summary: "Create or replace a preference of the caller (Portolan extension)",
				Description: "A user has at most 100 preferences of 8 KiB.", Access: access,
				Body:     &family.Body{Schema: value, Example: family.Schema{"value": family.Schema{"columns": []string{"name", "state"}}}},
				Success:  family.Success{Status: http.StatusOK, Description: "The preference.", Schema: family.Ref("Preference")},
				Problems: []int{403, 409}, Handle: a.putPreference,
			}, {
				Method: http.MethodDelete, ID: "deletePreference", Summary: "Delete a preference of the caller (Portolan extension)",
				Description: "It is not an error if it does not exist.", Access: access,
				Success:  family.Success{Status: http.StatusNoContent, Description: "It does not exist any more."},
				Problems: []int{403}, Handle: a.deletePreference,
			}}},
	}
}

// ownPreferences returns the caller, who must be a user. A caller that writes must not be limited to reading or to collections.
func ownPreferences(r *family.Request, writes bool) (resource.Caller, error) {
	caller := callerOf(r)
	switch {
	case caller.User == 0:
		return caller, problem.Forbidden("AccessDenied", "preferences belong to users; this token does not belong to a user")
	case writes && caller.ReadOnly:
		return caller, problem.Forbidden("ReadOnlySession", "this session or token may only read")
	case writes && caller.Scopes != "":
		return caller, problem.Forbidden("AccessDenied", "a token with scopes cannot change preferences")
	case writes && r.Header.Get("x-portolan-dry-run") != "":
		return caller, problem.BadRequest("InvalidHeaderValue", "x-portolan-dry-run: a change of a preference does not support a dry run")
	}
	return caller, nil
}

func (a *API) listPreferences(w http.ResponseWriter, r *family.Request) error {
	caller, err := ownPreferences(r, false)
	if err != nil {
		return err
	}
	list, err := a.Identity.Preferences(r.Context(), caller.User)
	if err == nil {
		family.WriteJSON(w, http.StatusOK, map[string]any{"count": len(list), "data": list})
	}
	return err
}

func (a *API) getPreference(w http.ResponseWriter, r *family.Request) error {
	caller, err := ownPreferences(r, false)
	if err != nil {
		return err
	}
	var list []identity.Preference
	if list, err = a.Identity.Preferences(r.Context(), caller.User); err != nil {
		return err
	}
	for _, p := range list {
		if p.Name == r.PathValue("name") {
			family.WriteJSON(w, http.StatusOK, p)
			return nil
		}
	}
	return problem.NotFound("preference %q does not exist", r.PathValue("name"))
}

func (a *API) putPreference(w http.ResponseWriter, r *family.Request) error {
	caller, err := ownPreferences(r, true)
	if err != nil {
		return err
	}
	value, ok := r.Members["value"]
	if !ok {
		return family.Missing("value")
	}
	p, err := a.Identity.SetPreference(r.Context(), caller.User, r.PathValue("name"), value)
	if err == nil {
		family.WriteJSON(w, http.StatusOK, p)
	}
	return err
}

func (a *API) deletePreference(w http.ResponseWriter, r *family.Request) error {
	caller, err := ownPreferences(r, true)
	if err != nil {
		return err
	}
	if err := a.Identity.DeletePreference(r.Context(), caller.User, r.PathValue("name")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
