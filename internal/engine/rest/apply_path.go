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
		"once": doc{"type": "object", "additionalProperties": text, "description": "Secrets of it that no other answer shows, by their fields."}}}
	number := doc{"type": "integer"}
	answer := doc{"type": "object", "required": []string{"created", "changed", "unchanged", "deleted", "resources"}, "properties": doc{
		"created": number, "changed": number, "unchanged": number, "deleted": number,
		"transaction": doc{"type": []string{"integer", "null"}}, "resources": doc{"type": "array", "items": one},
		"refused": doc{"type": "array", "description": "The resources that were skipped, by their place in the request.", "items": doc{
			"type": "object", "required": []string{"index", "code", "message"}, "properties": doc{"index": number, "code": text, "message": text,
				"fields": doc{"type": "array", "items": text}}}}}}
	answers := doc{"200": dryRunAnswer(doc{"description": "All are as they were sent.",
		"content": doc{asJSON.String(): doc{"schema": answer}}})}
	for _, status := range append(slices.Clone(anyAnswer), "409", "413", "415") {
		answers[status] = ref("responses/" + status)
	}
	var params []any
	for _, name := range ofBatches {
		params = append(params, ref("parameters/"+name))
	}
	return doc{"post": doc{"operationId": "post-apply", "tags": []string{"Everything"}, "summary": "Let resources be as they are sent",
		"description": "Those that are there otherwise are changed, those that are not there are made, in one transaction, all or none. " +
			"They are found by their place and name, not by number; references may be texts. With prune what has the tag and is not sent " +
			"goes. Ours.",
		"requestBody": body(doc{"type": "object", "required": []string{"resources"}, "additionalProperties": false, "properties": doc{
			"into":     doc{"type": "string", "description": "What they belong below, such as configurations/main."},
			"defaults": doc{"type": "object", "description": "Members of each whose type has them, such as the view."},
			"action": doc{"type": "string", "enum": []string{"CREATE_OR_UPDATE", "CREATE", "UPDATE"},
				"description": "CREATE refuses what is there, UPDATE what is not; CREATE_OR_UPDATE where it is left out."},
			"tag": doc{"type": "string", "description": "A tag that each gets, such as tags/north."},
			"prune": doc{"type": "boolean",
				"description": "Whether what has the tag and is not sent goes. Nothing goes where a resource was refused."},
			"skip": doc{"type": "boolean", "description": "Whether resources that are refused are skipped, and listed as refused, instead of " +
				"refusing all."},
			"resources": doc{"type": "array", "maxItems": maxChanges, "items": doc{"type": "object", "required": []string{"type"},
				"description": "A resource; in is what it belongs below, where its place does not follow."}}}},
			doc{"into": "configurations/main", "resources": []any{doc{"type": "IPv4Block", "range": "10.0.0.0/8", "name": "Harbour"}}},
			asJSON.String()),
		"parameters": params, "responses": answers}}
}
