package rest

import "slices"

// listOrOne adds a list of resources to the request schema of a POST.
func listOrOne(schema doc) doc {
	return doc{"anyOf": []any{schema, doc{"type": "array", "items": doc{"type": "object"}, "minItems": 1, "maxItems": maxChanges}}}
}

// madeListOrOne adds the answer for a list to the answers of a POST.
func madeListOrOne(answers doc) {
	made, _ := answers["201"].(doc)
	content, _ := made["content"].(doc)
	for media := range content {
		one, _ := content[media].(doc)
		content[media] = doc{"schema": doc{"anyOf": []any{one["schema"], ref("schemas/MadeList")}}}
	}
}

// batchPath returns the OpenAPI path item of POST /batch.
func (a *Server) batchPath() doc {
	change := doc{"type": "object", "required": []string{"method", "path"}, "additionalProperties": false, "properties": doc{
		"method": doc{"type": "string", "enum": changes},
		"path": doc{"type": "string", "description": "Below " + a.Base +
			", such as networks/100123/addresses, with a query where it would have " +
			"one. $3 as a segment is the id of what changes[3] makes, which must come before.", "example": "networks/100123"},
		"headers": doc{"type": "object", "additionalProperties": doc{"type": "string"},
			"description": "Request headers of this change, such as If-Match."},
		"body": doc{"type": "object", "description": "As it would be sent alone; {\"id\":\"$3\"} is what changes[3] makes."}}}
	answer := doc{"type": "object", "required": []string{"count", "transaction", "results"}, "properties": doc{
		"count":       doc{"type": "integer"},
		"transaction": doc{"type": []string{"integer", "null"}, "description": "The transaction of the history; null where nothing changed."},
		"results": doc{"type": "array", "items": doc{"type": "object", "required": []string{"status", "body"}, "properties": doc{
			"status": doc{"type": "integer"}, "location": doc{"type": "string"}, "etag": doc{"type": "string"},
			"ignored": doc{"type": "array", "items": doc{"type": "string"}}, "body": doc{"type": []string{"object", "null"}}}}}}}
	answers := doc{"200": dryRunAnswer(doc{"description": "All changes are made.",
		"headers": doc{"x-portolan-ignored": answerHeader(ignoredText)},
		"content": doc{asHAL.String(): doc{"schema": answer}, asJSON.String(): doc{"schema": answer}}})}
	for _, status := range append(slices.Clone(anyAnswer), "409", "412", "413", "415") {
		answers[status] = ref("responses/" + status)
	}
	var params []any
	for _, name := range ofBatches {
		params = append(params, ref("parameters/"+name))
	}
	return doc{"post": doc{"operationId": "post-batch", "tags": []string{"Everything"}, "summary": "Make many changes, all or none",
		"description": "Each change is what it would be if it was sent alone, with the same rights and rules, in one transaction of the " +
			"history. " +
			"Where one cannot be made none is, and the answer names it: changes[3]. Sign-ins and undo are not for a batch. Ours.",
		"requestBody": body(doc{"type": "object", "required": []string{"changes"}, "properties": doc{
			"changes": doc{"type": "array", "items": change, "minItems": 1, "maxItems": maxChanges}}},
			doc{"changes": []any{doc{"method": "PATCH", "path": "networks/100123", "body": doc{"name": "renamed"}}}}, asJSON.String()),
		"parameters": params, "responses": answers}}
}
