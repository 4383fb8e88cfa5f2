package rest

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"

	"portolan/internal/engine/resource"
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

// effectivePath returns the OpenAPI path item of the effective rights.
func (a *Server) effectivePath(c *resource.Collection) doc {
	level := doc{"type": "string", "enum": []string{"HIDE", "VIEW", "CHANGE", "ADD", "FULL"}}
	flag := doc{"type": "boolean"}
	answer := doc{"type": "object", "required": []string{"administrator", "accessLevel", "levelBelow", "accessOverrides"}, "properties": doc{
		"user": doc{"type": []string{"integer", "null"},
			"description": "The user with these rights; null for a token without a user."},
		"administrator": doc{"type": "boolean", "description": "True if access rights do not limit the user."},
		"accessLevel":   level, "levelBelow": level,
		"accessOverrides": doc{"type": "array", "description": "The levels of types below the resource that differ from levelBelow.",
			"items": doc{"type": "object",
				"properties": doc{"resourceType": doc{"type": "string"}, "accessLevel": level}}},
		"deploymentsAllowed": flag, "quickDeploymentsAllowed": flag, "selectiveDeploymentsAllowed": flag,
		"decidedBy": doc{"type": []string{"object", "null"},
			"description": "The access rights that decide; null if there are none.", "properties": doc{
				"resource": doc{"type": []string{"integer", "null"},
					"description": "The resource with the access rights; null for default rights."},
				"accessRights": doc{"type": "array", "items": doc{"type": "integer"}}}},
		"_links": ref("schemas/Links")}}
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
