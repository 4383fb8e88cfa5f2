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
			", such as networks/100123/addresses, with a query if needed. " +
			"$3 as a segment is the id of the resource that changes[3] creates; changes[3] must come earlier.", "example": "networks/100123"},
		"headers": doc{"type": "object", "additionalProperties": doc{"type": "string"},
			"description": "Request headers of this change, such as If-Match."},
		"body": doc{"type": "object", "description": "The body of a single request; {\"id\":\"$3\"} is the resource that changes[3] creates."}}}
	answer := doc{"type": "object", "required": []string{"count", "transaction", "results"}, "properties": doc{
		"count":       doc{"type": "integer"},
		"transaction": doc{"type": []string{"integer", "null"}, "description": "The transaction of the history; null if nothing changed."},
		"results": doc{"type": "array", "items": doc{"type": "object", "required": []string{"status", "body"}, "properties": doc{
			"status": doc{"type": "integer"}, "location": doc{"type": "string"}, "etag": doc{"type": "string"},
			"ignored": doc{"type": "array", "items": doc{"type": "string"}}, "body": doc{"type": []string{"object", "null"}}}}}}}
	answers := doc{"200": dryRunAnswer(doc{"description": "All changes were applied.",
		"headers": doc{"x-portolan-ignored": answerHeader(ignoredText)},
		"content": doc{asHAL.String(): doc{"schema": answer}, asJSON.String(): doc{"schema": answer}}})}
	for _, status := range append(slices.Clone(anyAnswer), "409", "412", "413", "415") {
		answers[status] = ref("responses/" + status)
	}
	var params []any
	for _, name := range ofBatches {
		params = append(params, ref("parameters/"+name))
	}
	return doc{"post": doc{"operationId": "post-batch", "tags": []string{"Everything"}, "summary": "Apply many changes, all or none",
		"description": "Each change has the same rights and rules as a single request. All are one transaction of the history. " +
			"If one is refused, none is applied, and the answer names it: changes[3]. A batch cannot contain sign-ins and undo. " +
			"Portolan extension.",
		"requestBody": body(doc{"type": "object", "required": []string{"changes"}, "properties": doc{
			"changes": doc{"type": "array", "items": change, "minItems": 1, "maxItems": maxChanges}}},
			doc{"changes": []any{doc{"method": "PATCH", "path": "networks/100123", "body": doc{"name": "renamed"}}}}, asJSON.String()),
		"parameters": params, "responses": answers}}
}
