package rest

import "slices"

// applyPath returns the OpenAPI path item of POST /apply.
func (a *Server) applyPath() doc {
	text := doc{"type": "string"}
	change := doc{"type": "object", "properties": doc{"field": text, "before": doc{}, "after": doc{}}}
	one := doc{"type": "object", "required": []string{"did", "id", "type", "key", "path"}, "properties": doc{
		"did": doc{"type": "string", "enum": []string{"CREATED", "CHANGED", "UNCHANGED", "DELETED", "ABSENT"}},
		"id":  doc{"type": "integer"}, "type": text,
		"key": text, "path": text, "changes": doc{"type": "array", "items": change}, "notes": doc{"type": "array", "items": text},
		"once": doc{"type": "object", "additionalProperties": text,
			"description": "Secrets of the resource that no other answer shows, by field."}}}
	number := doc{"type": "integer"}
	answer := doc{"type": "object", "required": []string{"created", "changed", "unchanged", "deleted", "resources"}, "properties": doc{
		"created": number, "changed": number, "unchanged": number, "deleted": number,
		"transaction": doc{"type": []string{"integer", "null"}}, "resources": doc{"type": "array", "items": one},
		"refused": doc{"type": "array", "description": "The skipped resources, by their index in the request.", "items": doc{
			"type": "object", "required": []string{"index", "code", "message"}, "properties": doc{"index": number, "code": text, "message": text,
				"fields": doc{"type": "array", "items": text}}}}}}
	answers := doc{"200": dryRunAnswer(doc{"description": "All resources are in the requested state.",
		"content": doc{asJSON.String(): doc{"schema": answer}}})}
	for _, status := range append(slices.Clone(anyAnswer), "409", "413", "415") {
		answers[status] = ref("responses/" + status)
	}
	var params []any
	for _, name := range ofBatches {
		params = append(params, ref("parameters/"+name))
	}
	return doc{"post": doc{"operationId": "post-apply", "tags": []string{"Everything"},
		"summary": "Apply a document of resources in their desired state",
		"description": "Changes existing resources that differ and creates missing ones, in one transaction, all or none. " +
			"Resources are identified by their place and name, not by id; references may be texts. With prune, resources that have the tag " +
			"and are not in the request are deleted. Portolan extension.",
		"requestBody": body(doc{"type": "object", "required": []string{"resources"}, "additionalProperties": false, "properties": doc{
			"into":     doc{"type": "string", "description": "The path of the resource above the resources, such as configurations/main."},
			"defaults": doc{"type": "object", "description": "Default members for each resource whose type has them, such as the view."},
			"action": doc{"type": "string", "enum": []string{"CREATE_OR_UPDATE", "CREATE", "UPDATE"},
				"description": "CREATE refuses existing resources, UPDATE missing ones. The default is CREATE_OR_UPDATE."},
			"tag": doc{"type": "string", "description": "A tag for each resource, such as tags/north."},
			"prune": doc{"type": "boolean",
				"description": "Whether to delete resources that have the tag and are not in the request. Nothing is deleted if a " +
					"resource was refused."},
			"skip": doc{"type": "boolean", "description": "Whether to skip refused resources, and list them as refused, instead of " +
				"refusing the whole request."},
			"resources": doc{"type": "array", "maxItems": maxChanges, "items": doc{"type": "object", "required": []string{"type"},
				"description": "A resource. in is the path of the resource above it, if its members do not determine its place."}}}},
			doc{"into": "configurations/main", "resources": []any{doc{"type": "IPv4Block", "range": "10.0.0.0/8", "name": "Harbour"}}},
			asJSON.String()),
		"parameters": params, "responses": answers}}
}
