package server

import (
	"maps"
	"reflect"

	"portolan/internal/engine/family"
	"portolan/internal/engine/rest"
	"portolan/internal/engine/schema"
	"portolan/internal/manager/server/addressapi"
	"portolan/internal/manager/server/fleetapi"
	"portolan/internal/wire/checkin"
)

// Document returns the OpenAPI document of all APIs: the address API, which is derived from the declared types, the API families, and
// the API that a service point serves itself.
func Document(api *rest.Server) ([]byte, error) {
	return document(api, families(&addressapi.API{Sample: Status{}}, &fleetapi.API{})...)
}

func document(api *rest.Server, families ...*family.Family) ([]byte, error) {
	paths, samples := servicePointPaths(), map[string]any{"Diagnostics": checkin.Diagnostics{},
		"ServicePointV4Diagnostics": checkin.V4Diagnostics{}, "DiagnosticsStatus": checkin.Status{}}
	for _, f := range families {
		maps.Copy(paths, f.Document())
		maps.Copy(samples, f.Schemas)
	}
	schemas := map[string]any{}
	for name, sample := range samples {
		schemas[name] = schema.ReflectSchema(reflect.TypeOf(sample))
	}
	return api.OpenAPI(apiTitle, APIVersion, paths, schemas)
}

// object is a part of the document.
type object = map[string]any

// servicePointPaths returns the paths that a service point serves at its own address (reference/fleet.md).
func servicePointPaths() object {
	own := []any{object{"url": "http://{servicePoint}:8083", "description": "The service point itself.",
		"variables": object{"servicePoint": object{"default": "127.0.0.2"}}}}
	return object{
		checkin.DiagnosticsPath: object{"servers": own, "get": object{"operationId": "getDiagnostics", "tags": []string{"service point"},
			"security":    []any{},
			"summary":     "The diagnostics of a service point",
			"description": "Gives the results of its last probes and whether it is registered; the form depends on its variant.",
			"responses": object{"200": object{"description": "The diagnostics.",
				"content": object{"application/json": object{"schema": object{"anyOf": []any{family.Ref("Diagnostics"),
					family.Ref("ServicePointV4Diagnostics")}}}}}}}},
		checkin.StatusPath: object{"servers": own, "get": object{"operationId": "getStatus", "tags": []string{"service point"},
			"security": []any{},
			"summary":  "The short form of the diagnostics", "description": "Gives whether the service point reaches its manager and is registered.",
			"responses": object{"200": object{"description": "The status.",
				"content": object{"application/json": object{"schema": family.Ref("DiagnosticsStatus")}}}}}},
	}
}
