package rest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"

	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// report returns the handler of a report (Collection.Reports).
func (a *Server) report(rep resource.Report) func(http.ResponseWriter, *http.Request, resource.Target, resource.Caller) error {
	return func(w http.ResponseWriter, r *http.Request, t resource.Target, caller resource.Caller) error {
		form, _, err := a.parseReportRequest(w, r, t, caller)
		if err != nil || r.Method == http.MethodOptions {
			return err
		}
		var answer any
		if err := a.Store.View(r.Context(), func(tx *store.Tx) error {
			row, err := a.Locate(tx, t, caller)
			if err == nil {
				answer, err = rep.Of(tx, a.API, caller, row)
			}
			return err
		}); err != nil {
			return err
		}
		text, err := json.Marshal(answer)
		if err != nil {
			return err
		}
		if form == asHAL {
			above := fmt.Sprintf("%s/%s/%d", a.Base, t.Collection.Name, t.ID)
			text = append(text[:len(text)-1], `,"_links":{"self":{"href":"`+above+"/"+rep.Name+`"},"up":{"href":"`+above+`"}}}`...)
		}
		send(w, r, http.StatusOK, form, text)
		return nil
	}
}

// reportPath returns the OpenAPI path item of a report.
func (a *Server) reportPath(c *resource.Collection, rep resource.Report) doc {
	answer := schema.ReflectSchema(reflect.TypeOf(rep.Answer))
	if properties, ok := answer["properties"].(map[string]any); ok {
		properties["_links"] = ref("schemas/Links")
	}
	answers := doc{"200": doc{"description": rep.Summary + ".",
		"content": doc{asHAL.String(): doc{"schema": answer}, asJSON.String(): doc{"schema": answer}}}}
	for _, status := range anyAnswer {
		answers[status] = ref("responses/" + status)
	}
	return doc{"get": doc{"operationId": rep.Name + "-" + c.Name, "tags": []string{c.Name}, "summary": rep.Summary,
		"description": rep.Description + " Portolan extension.",
		"parameters": []any{doc{"name": "id", "in": "path", "required": true, "description": "The number of the resource.",
			"schema": doc{"type": "integer", "format": "int64"}}},
		"responses": answers}}
}
