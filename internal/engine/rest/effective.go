package rest

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"reflect"

	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// effective answers with the rights of the caller, or of the user in the parameter user, on a resource, and with the access rights that
// decide.
func (a *Server) effective(w http.ResponseWriter, r *http.Request, t resource.Target, caller resource.Caller) error {
	form, query, err := a.parseReportRequest(w, r, t, caller, "user")
	if err != nil || r.Method == http.MethodOptions {
		return err
	}
	user, err := intParameter(query, "user", 1, math.MaxInt64, 0)
	if err != nil {
		return err
	}
	var answer struct {
		resource.Effective
		Links any `json:"_links,omitempty"`
	}
	if err := a.Store.View(r.Context(), func(tx *store.Tx) error {
		row, err := a.Locate(tx, t, caller)
		if err == nil {
			answer.Effective, err = a.Effective(tx, caller, row, user)
		}
		return err
	}); err != nil {
		return err
	}
	if form == asHAL {
		above := fmt.Sprintf("%s/%s/%d", a.Base, t.Collection.Name, t.ID)
		answer.Links = doc{"self": doc{"href": above + "/" + resource.EffectiveName}, "up": doc{"href": above}}
	}
	text, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	send(w, r, http.StatusOK, form, text)
	return nil
}

// effectiveSchema returns the OpenAPI schema of the effective rights.
func effectiveSchema() doc {
	answer := schema.ReflectSchema(reflect.TypeFor[resource.Effective]())
	if properties, ok := answer["properties"].(map[string]any); ok {
		properties["_links"] = ref("schemas/Links")
	}
	return answer
}

// effectivePath returns the OpenAPI path item of the effective rights.
func (a *Server) effectivePath(c *resource.Collection) doc {
	answer := ref("schemas/EffectiveRights")
	answers := doc{"200": doc{"description": "The effective rights, and the access rights that decide.",
		"content": doc{asHAL.String(): doc{"schema": answer}, asJSON.String(): doc{"schema": answer}}}}
	for _, status := range anyAnswer {
		answers[status] = ref("responses/" + status)
	}
	return doc{"get": doc{"operationId": resource.EffectiveName + "-" + c.Name, "tags": []string{c.Name},
		"summary": "Fetch the effective rights on a resource",
		"description": "The rights of the caller or of another user. For another user, the caller needs the privilege to see others' " +
			"access rights. Portolan extension.",
		"parameters": []any{doc{"name": "id", "in": "path", "required": true, "description": "The number of the resource.",
			"schema": doc{"type": "integer", "format": "int64"}},
			doc{"name": "user", "in": "query", "description": "The number of the user.", "schema": doc{"type": "integer", "format": "int64",
				"minimum": 1}}},
		"responses": answers}}
}
