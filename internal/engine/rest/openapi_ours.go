package rest

import "portolan/internal/engine/resource"

// searchPath returns the OpenAPI path item of the search.
func (a *Server) searchPath() doc {
	head := doc{"type": "object", "required": []string{"id", "type", "name"}, "properties": doc{"id": doc{"type": "integer"},
		"type": doc{"type": "string"}, "name": doc{"type": []string{"string", "null"}}}}
	hit := doc{"type": "object", "required": []string{"match", "path", "resource"}, "properties": doc{
		"match":    doc{"type": "string", "enum": resource.Matches(), "description": "The reason for the hit; better ones come first."},
		"path":     doc{"type": "array", "items": head, "description": "The resources above it, the outermost first."},
		"resource": doc{"type": "object", "description": "The resource, as GET returns it.", "required": []string{"id", "type", "name"}}}}
	answer := doc{"type": "object", "required": []string{"count", "more", "complete", "data"}, "properties": doc{
		"count":    doc{"type": "integer"},
		"more":     doc{"type": "boolean", "description": "There may be more hits than the limit."},
		"complete": doc{"type": "boolean", "description": "false: the search for parts of texts was not completed."},
		"data":     doc{"type": "array", "items": hit},
		"_links":   ref("schemas/Links")}}
	answers := doc{"200": doc{"description": "The hits, best first.",
		"content": doc{asHAL.String(): doc{"schema": answer}, asJSON.String(): doc{"schema": answer}}}}
	for _, status := range anyAnswer {
		answers[status] = ref("responses/" + status)
	}
	return doc{"get": doc{"operationId": "search", "tags": []string{"Everything"}, "summary": "Find resources by a text",
		"description": "An id, an address, a prefix or a range, a hardware address in any notation, a name, an absolute name, or a part of a " +
			"text of at least three characters. Portolan extension.",
		"parameters": []any{
			doc{"name": "q", "in": "query", "required": true, "description": "The text to search for.",
				"schema": doc{"type": "string", "minLength": 1, "maxLength": maxSearched, "pattern": `\S`, "example": "10.0.0.1"}},
			doc{"name": "limit", "in": "query", "description": "The maximum number of hits to return.",
				"schema": doc{"type": "integer", "minimum": 1, "maximum": maxHits, "default": defaultHits}}},
		"responses": answers}}
}

// mapPath returns the OpenAPI path item of the utilization map.
func (a *Server) mapPath(c *resource.Collection) doc {
	whole := func(text string) doc { return doc{"type": "integer", "description": text} }
	required := []string{"range", "prefix", "cells", "cellLength", "levels", "kinds", "map"}
	answer := doc{"type": "object", "required": required, "properties": doc{
		"range":      doc{"type": "string"},
		"prefix":     doc{"type": "string", "description": "The smallest prefix that contains the range. The map divides it."},
		"cells":      whole("The number of cells: the requested number, or one for each address of a smaller prefix."),
		"cellLength": whole("The prefix length of one cell."),
		"levels":     whole("The number of utilization levels: 0 is empty, the highest is full."),
		"kinds":      doc{"type": "array", "items": doc{"type": "string"}, "description": "The kinds of cells, by number."},
		"map": doc{"type": "string", "description": "One character for each cell, in order: its position in the alphabet of Base64 (A is 0, / " +
			"is 63) is the number of its kind times levels, plus its level. A dot is a cell outside the range."},
		"_links": ref("schemas/Links")}}
	answers := doc{"200": doc{"description": "The map.",
		"content": doc{asHAL.String(): doc{"schema": answer}, asJSON.String(): doc{"schema": answer}}}}
	for _, status := range anyAnswer {
		answers[status] = ref("responses/" + status)
	}
	return doc{"get": doc{"operationId": "map-" + c.Name, "tags": []string{c.Name}, "summary": "Fetch the utilization map",
		"description": "One character for each of up to 65,536 equal cells. Portolan extension.",
		"parameters": []any{
			doc{"name": "id", "in": "path", "required": true, "description": "The number of the resource.",
				"schema": doc{"type": "integer", "format": "int64"}},
			doc{"name": "cells", "in": "query", "description": "The number of cells: a power of two.", "schema": doc{"type": "integer",
				"enum": []any{256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536}, "default": minCells}},
			doc{"name": "prefix", "in": "query",
				"description": "The prefix of the map; it must overlap the resource. Without it, the map covers the whole resource.",
				"schema":      doc{"type": "string", "example": "10.3.0.0/16"}}},
		"responses": answers}}
}

// countsPath returns the OpenAPI path item of the counts below a resource.
func (a *Server) countsPath(c *resource.Collection) doc {
	answer := doc{"type": "object", "required": []string{"totalCount", "counts"}, "properties": doc{
		"totalCount": doc{"type": "integer", "format": "int64"},
		"counts": doc{"type": "object", "description": "The numbers by type or state. Zeros may be missing.",
			"additionalProperties": doc{"type": "integer", "format": "int64"}},
		"_links": ref("schemas/Links")}}
	answers := doc{"200": doc{"description": "The numbers.",
		"content": doc{asHAL.String(): doc{"schema": answer}, asJSON.String(): doc{"schema": answer}}}}
	for _, status := range anyAnswer {
		answers[status] = ref("responses/" + status)
	}
	return doc{"get": doc{"operationId": c.Counts.Name + "-" + c.Name, "tags": []string{c.Name}, "summary": c.Counts.Summary,
		"description": "The numbers are stored, not counted for each request. Portolan extension.",
		"parameters": []any{doc{"name": "id", "in": "path", "required": true, "description": "The number of the resource.",
			"schema": doc{"type": "integer", "format": "int64"}}},
		"responses": answers}}
}

// changesPath returns the OpenAPI path item of the change feed.
func (a *Server) changesPath() doc {
	answers := doc{"200": doc{"description": "Events, until the client disconnects or the manager stops.",
		"content": doc{"text/event-stream": doc{"schema": doc{"type": "string"}}}},
		"410": ref("responses/410")}
	for _, status := range anyAnswer {
		answers[status] = ref("responses/" + status)
	}
	return doc{"get": doc{"operationId": "changes", "tags": []string{"Everything"}, "summary": "Follow the changes",
		"description": "Server-Sent Events: the changes of a transaction, each an event `change`, then an event `transaction`, whose id is the " +
			"position to continue from. Portolan extension.",
		"parameters": []any{
			doc{"name": "after", "in": "query", "description": "The id of the last received event, or start; without it, the feed starts now.",
				"schema": doc{"type": "string", "minLength": 1}},
			doc{"name": "Last-Event-ID", "in": "header", "description": "The same, as a browser sends it when it reconnects.",
				"schema": doc{"type": "string"}},
			doc{"name": "collection", "in": "query", "description": "Only changes of resources of these collections.",
				"schema": doc{"type": "string", "example": "addresses,networks"}},
			doc{"name": "parent", "in": "query", "description": "Only changes of resources that are or were children of this resource.",
				"schema": doc{"type": "integer", "format": "int64", "minimum": 1}}},
		"responses": answers}}
}
