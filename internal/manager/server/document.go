package server

import (
	"reflect"

	"portolan/internal/engine/rest"
	"portolan/internal/engine/schema"
	"portolan/internal/manager/authz"
	"portolan/internal/manager/fleet"
	"portolan/internal/manager/identity"
	"portolan/internal/wire/checkin"
	"portolan/internal/wire/release"
)

// Document gives the OpenAPI document of everything a client may ask: the address API, the fleet API, and what a
// service point tells of itself. The first comes from the declarations, the others from the types that are
// answered.
func Document(api *rest.Server) ([]byte, error) {
	schemas := map[string]any{}
	for name, sample := range map[string]any{
		"FleetServicePoint": fleet.Instance{}, "FleetServicePointDetail": fleet.Detail{}, "FleetServicePointCreated": fleet.Created{},
		"FleetApplication": fleet.ApplicationDetail{}, "FleetEvent": fleet.Event{},
		"FleetRollout": fleet.Rollout{}, "FleetRolloutMember": fleet.Member{}, "FleetRelease": release.Release{},
		"Token": identity.Token{}, "MadeToken": madeToken{},
		"ServicePointV4": fleet.ServicePoint{}, "AnycastService": checkin.AnycastService{}, "ApplicationLimits": checkin.Limits{},
		"Diagnostics": checkin.Diagnostics{}, "ServicePointV4Diagnostics": checkin.V4Diagnostics{},
		"DiagnosticsStatus": checkin.Status{}, "Status": Status{},
	} {
		schemas[name] = schema.OfGo(reflect.TypeOf(sample))
	}
	return api.OpenAPI(APITitle, APIVersion, documentedPaths(), schemas)
}

// object is a piece of the document.
type object = map[string]any

func schemaRef(name string) object { return object{"$ref": "#/components/schemas/" + name} }

// answers are those of an operation: its own, and the problems that it may be answered with.
func answers(status, description string, schema object, problems ...string) object {
	own := object{"description": description}
	if schema != nil {
		own["content"] = object{"application/json": object{"schema": schema}}
	}
	all := object{status: own}
	for _, p := range append(problems, "400", "401", "405", "414", "429", "500", "503") {
		all[p] = object{"$ref": "#/components/responses/" + p}
	}
	return all
}

func jsonBody(schema, example object) object {
	return object{"required": true, "content": object{"application/json": object{"schema": schema, "example": example}}}
}

// instanceFilters are the query parameters that narrow the list of service points.
func instanceFilters(text func(name, where, description string, required bool) object) (all []any) {
	for _, one := range fleet.FilterFields() {
		ours := " (ours)"
		if one.Name == "name" {
			ours = "" // as published
		}
		parameter := text(one.Name, "query", one.Meaning+ours+".", false)
		parameter["schema"] = textOf(one)
		all = append(all, parameter)
	}
	limit := text(limitParameter, "query", "How many to give at most (ours); without it all.", false)
	limit["schema"] = object{"type": "integer", "minimum": 1}
	all = append(all, limit)
	return append(all, text(labelParameter, "query", "A label that they have, as NAME:VALUE, or as NAME for any value (ours). It may "+
		"be repeated.", false))
}

// textOf is the schema of a field of a filter.
func textOf(field fleet.FilterField) object {
	schema := object{"type": "string"}
	if field.Allowed != nil {
		schema["enum"] = field.Allowed
	}
	return schema
}

// planProperties are the fields of a rollout's plan.
func planProperties() object {
	filter := object{"labels": object{"type": "object", "additionalProperties": object{"type": "string"}}}
	for _, one := range fleet.FilterFields() {
		property := textOf(one)
		property["description"] = one.Meaning + "."
		filter[one.Name] = property
	}
	amount := object{"type": []string{"string", "integer"}, "pattern": "^[0-9]+%?$", "minimum": 0}
	clock := object{"type": "string", "pattern": "^[0-2]?[0-9]:[0-5][0-9]$"}
	return object{"version": object{"type": "string"}, "description": object{"type": "string"},
		"filter": object{"type": "object", "properties": filter}, "waves": object{"type": "array", "items": amount},
		"mostAway": amount, "mostFailed": amount, "timeZone": object{"type": "string"},
		"giveUpSeconds": object{"type": "integer", "minimum": 30, "maximum": 604800},
		"windows": object{"type": "array", "items": object{"type": "object", "required": []string{"from", "to"}, "properties": object{
			"days": object{"type": "array", "items": object{"type": "string"}}, "from": clock, "to": clock}}}}
}

// documentedPaths are the paths of the fleet API (spec.md section 4, reference/fleet.md), and those of a service
// point, which are served at its own address.
func documentedPaths() object {
	bearer := []any{object{"bearer": []any{}}}
	text := func(name, where, description string, required bool) object {
		return object{"name": name, "in": where, "description": description, "required": required, "schema": object{"type": "string"}}
	}
	operation := func(id, summary, description string, responses object, more object) object {
		op := object{"operationId": id, "tags": []string{"fleet"}, "summary": summary, "description": description, "security": bearer,
			"responses": responses}
		for name, value := range more {
			op[name] = value
		}
		return op
	}
	own := []any{object{"url": "http://{servicePoint}:8083", "description": "The service point itself.",
		"variables": object{"servicePoint": object{"default": "127.0.0.2"}}}}
	name := object{"type": "string", "minLength": 1, "maxLength": 128}
	credentials := object{"type": "object", "required": []string{"grantType", "clientCredentials"},
		"properties": object{"grantType": object{"const": "ClientCredentials"},
			"clientCredentials": object{"type": "object", "required": []string{"clientId", "clientSecret"},
				"properties": object{"clientId": object{"type": "string"}, "clientSecret": object{"type": "string"}}}}}
	token := object{"type": "object", "required": []string{"accessToken", "expiresIn", "tokenType"},
		"properties": object{"accessToken": object{"type": "string"},
			"expiresIn": object{"type": "integer"}, "tokenType": object{"type": "string"}}}
	data := func(of string) object {
		return object{"type": "object", "required": []string{"data"},
			"properties": object{"data": object{"type": "array", "items": schemaRef(of)}}}
	}
	list := object{"type": "array", "items": object{"type": "string"}}
	value := object{"type": "object", "properties": object{"name": object{"type": "string"}, "value": object{"type": "string"}}}
	endpoint := object{"type": "object", "properties": object{"portLabel": object{"type": "string"}, "addresses": list}}
	instance := object{"serviceDescriptorID": object{"type": "string"}, "name": object{"type": "string"}, "version": object{"type": "string"},
		"parameters": object{"type": "array", "items": value}, "ingressEndpoints": object{"type": "array", "items": endpoint}}
	nodeCount := object{"type": "integer", "minimum": 1, "maximum": fleet.MaxNodeCount}
	made := object{"name": name, "kind": object{"enum": []string{identity.BearerToken, identity.KeySet}},
		"role": object{"enum": []string{authz.Analyst,
			authz.Administrator}}, "expires": object{"type": "string", "format": "date-time"},
		"scopes": object{"type": "array", "items": object{"type": "string"}, "description": "What it is good for, beside its role: " +
			"address, fleet, or collections whose resources it may change. None: everything."}}
	id, rollout := text("id", "path", "The id of the service point.", true), text("id", "path", "The id of the rollout.", true)
	tokens := func(op object) object {
		op["tags"], op["security"] = []string{"tokens"}, []any{object{"basic": []any{}}, object{"bearer": []any{}}}
		return op
	}
	return object{
		statusPath: object{"get": tokens(operation("getStatus", "How the manager is, and what somebody should do something about (ours)",
			"Versions, the database, backups, the fleet, networks that are nearly full, certificates, and alarms. For those who see everything.",
			answers("200", "The status.", schemaRef("Status"), "403"), nil))},
		tokensPath: object{"get": tokens(operation("listTokens", "List the bearer tokens and key sets (ours)",
			"Gives those that belong to who asks, to administrators all of them, without their secrets.",
			answers("200", "The tokens.", data("Token")), nil)),
			"post": tokens(operation("makeToken", "Make a bearer token or a key set (ours)",
				"It belongs to who asks, a person who is signed in by a session or a password, and never does more than that user may. Its secret "+
					"is shown once. It is good for 90 days where expires does not say otherwise.",
				answers("201", "The token, with its secret.", schemaRef("MadeToken"), "403", "409", "413", "415"),
				object{"requestBody": jsonBody(object{"type": "object", "required": []string{"name"}, "properties": made},
					object{"name": "ci", "role": authz.Analyst})}))},
		tokensPath + "/{id}": object{"parameters": []any{text("id", "path", "The id of the token or key set.", true)},
			"delete": tokens(operation("revokeToken", "Revoke a bearer token or a key set (ours)",
				"It is refused from then on, and so is what was exchanged for it.", answers("204", "It is revoked.", nil, "403", "404"), nil))},
		"/user/api/v1/fleetInstances": object{"get": operation("listFleetInstances", "List the fleet service points",
			"Gives all of them, or the one that has exactly the name. Other fields narrow the list, too (ours).",
			answers("200", "The service points.", data("FleetServicePoint")), object{"parameters": instanceFilters(text)})},
		"/user/api/v1/fleetInstances/{id}": object{"parameters": []any{id},
			"get": operation("getFleetInstance", "Fetch one of the fleet service points",
				"Gives one, with its proxy and the DNS servers of its nodes.",
				answers("200", "The service point.", schemaRef("FleetServicePointDetail"), "404"), nil),
			"patch": operation("modifyFleetInstance", "Change one of the fleet service points (ours)",
				"What is not in the body stays as it is. targetVersion is the release that it is to run; null calls an update off. Of labels, "+
					"null takes one away. anycast says how routers are told of anycast addresses; null ends that.",
				answers("200", "The service point.", schemaRef("FleetServicePointDetail"), "403", "404", "409", "413", "415"),
				object{"requestBody": jsonBody(object{"type": "object", "properties": object{"name": name,
					"description":   object{"type": []string{"string", "null"}, "maxLength": 4000},
					"targetVersion": object{"type": []string{"string", "null"}},
					"anycast":       object{"oneOf": []any{schemaRef("AnycastService"), object{"type": "null"}}},
					"nodeCount":     nodeCount,
					"labels":        object{"type": "object", "additionalProperties": object{"type": []string{"string", "null"}}}}},
					object{"labels": object{"site": "oslo"}})}),
			"delete": operation("deleteFleetInstance", "Delete one of the fleet service points",
				"Forgets it; its certificate is refused from then on, and its machines end what they run.",
				answers("204", "It is gone.", nil, "403", "404"), nil)},
		"/user/api/v1/fleetInstances/{id}/registrationKey": object{"parameters": []any{id},
			"post": operation("rekeyFleetInstance", "Give one of the fleet service points a new registration key (ours)",
				"It waits for its registration from then on, and the certificate that it had is refused: for a machine that was lost.",
				answers("202", "What the service point registers with.", schemaRef("FleetServicePointCreated"), "403", "404"), nil)},
		"/user/api/v1/fleetInstances/{id}/nodes": object{"parameters": []any{id},
			"post": operation("addFleetNode", "Let one of the fleet service points have one node more (ours)",
				"Gives the registration key that the node enrols with; one that was given before and not used is not good any more.",
				answers("202", "What the node registers with.", schemaRef("FleetServicePointCreated"), "403", "404"), nil)},
		"/user/api/v1/fleetInstances/{id}/nodes/{node}": object{
			"parameters": []any{id, text("node", "path", "The id of the node.", true)},
			"delete": operation("removeFleetNode", "Take a node away from one of the fleet service points (ours)",
				"Its certificate is refused from then on; there is room for another one.",
				answers("204", "It is gone.", nil, "403", "404", "409"), nil)},
		"/user/api/v1/fleetInstances/{id}/events": object{"parameters": []any{id},
			"get": operation("listFleetEvents", "List the last moves of a service point and its applications (ours)",
				"Gives at most 200, the earliest first.", answers("200", "The moves.", data("FleetEvent"), "404"), nil)},
		"/user/api/v1/fleetInstances/{id}/applications": object{"parameters": []any{id},
			"get": operation("listFleetApplications", "List the applications of a service point (ours)",
				"Gives them with their configuration.", answers("200", "The applications.", data("FleetApplication"), "404"), nil),
			"post": operation("deployFleetApplication", "Let a service point run an application (ours)",
				"The service point is told at once; how that goes is in the application's status.",
				answers("202", "It is to run.", object{"type": "object", "required": []string{"id"}, "properties": object{
					"id": object{"type": "string"}}}, "403", "404", "409", "413", "415"),
				object{"requestBody": jsonBody(object{"type": "object", "required": []string{"name"}, "properties": object{
					"name": object{"type": "string"}, "version": object{"type": "string"}, "configuration": object{"type": "object"},
					"anycastAddresses": list, "limits": schemaRef("ApplicationLimits")}},
					object{"name": "http-probe-service", "configuration": object{"targets": []any{object{"url": "http://192.0.2.1/"}}}})})},
		"/user/api/v1/fleetInstances/{id}/applications/{application}": object{
			"parameters": []any{id, text("application", "path", "The id of the application.", true)},
			"get": operation("getFleetApplication", "Fetch one of the applications of a service point (ours)",
				"Gives it with its configuration.", answers("200", "The application.", schemaRef("FleetApplication"), "404"), nil),
			"patch": operation("changeFleetApplication", "Change one of the applications of a service point (ours)",
				"Gives it another configuration, whole, the version that it is to be updated to, all of its anycast addresses, or limits.",
				answers("202", "It is to be changed.", nil, "403", "404", "409", "413", "415"),
				object{"requestBody": jsonBody(object{"type": "object", "properties": object{
					"targetVersion": object{"type": "string"}, "configuration": object{"type": "object"},
					"anycastAddresses": list, "limits": schemaRef("ApplicationLimits")}},
					object{"configuration": object{"targets": []any{}}})}),
			"delete": operation("undeployFleetApplication", "Let a service point end and forget an application (ours)",
				"It is DELETED once the service point says so, and gone a minute later.",
				answers("202", "It is to end.", nil, "403", "404", "409"), nil)},
		"/user/api/v1/servicePoints": object{
			"get": operation("listServicePoints", "List the Service Points v4", "Gives all of them, or those that a parameter names.",
				answers("200", "The service points.", data("ServicePointV4")),
				object{"parameters": []any{text("name", "query", "The name of one service point.", false),
					text("serviceName", "query", "The name of a service that they have.", false)}}),
			"post": operation("createServicePoint", "Create a Service Point v4",
				"Makes one that waits for its registration. What is set up on its machine is refused here.",
				answers("202", "What it registers with.", object{"type": "object",
					"required": []string{"id", "registrationKey", "registrationEndpoint"}, "properties": object{"id": object{"type": "string"},
						"registrationKey":      object{"type": "string"},
						"registrationEndpoint": object{"type": "string"}}}, "403", "409", "413", "415"),
				object{"requestBody": jsonBody(object{"type": "object", "required": []string{"name"}, "properties": object{"name": name,
					"description": object{"type": []string{"string", "null"}, "maxLength": 4000}, "ntpServers": list}},
					object{"name": "quay", "ntpServers": []any{"192.0.2.123"}})})},
		"/user/api/v1/servicePoints/{id}": object{"parameters": []any{id},
			"get": operation("getServicePoint", "Fetch one of the Service Points v4", "Gives it with its services and resources.",
				answers("200", "The service point.", schemaRef("ServicePointV4"), "404"), nil),
			"delete": operation("deleteServicePoint", "Delete one of the Service Points v4",
				"Forgets it; its certificate is refused from then on.", answers("204", "It is gone.", nil, "403", "404"), nil)},
		"/user/api/v1/servicePoints/{id}/settings": object{"parameters": []any{id},
			"patch": operation("changeServicePointSettings", "Change the settings of a Service Point v4",
				"What is not in the body stays as it is. It asks the NTP servers for the time, and serves none.",
				answers("200", "The service point.", schemaRef("ServicePointV4"), "403", "404", "409", "413", "415"),
				object{"requestBody": jsonBody(object{"type": "object", "properties": object{"name": name, "description": object{"type": "string"},
					"ntpConfiguration": object{"type": "object", "properties": object{"servers": list, "clientNetworks": list}}}},
					object{"ntpConfiguration": object{"servers": []any{"192.0.2.123"}}})})},
		"/user/api/v1/servicePoints/{id}/serviceInstances": object{"parameters": []any{id},
			"post": operation("createServiceInstance", "Let a Service Point v4 run a service",
				"A parameter is a member of its configuration, its value JSON or else a text; the endpoint dns is where a resolver listens.",
				answers("202", "It is to run.", object{"type": "object", "required": []string{"id"}, "properties": object{
					"id": object{"type": "string"}}}, "403", "404", "409", "413", "415"),
				object{"requestBody": jsonBody(object{"type": "object", "required": []string{"serviceDescriptorID"}, "properties": instance},
					object{"serviceDescriptorID": "http-probe-service-1.0.0", "name": "probe",
						"parameters": []any{object{"name": "targets", "value": `[{"address":"192.0.2.1"}]`}}})})},
		"/user/api/v1/serviceInstances/{id}": object{"parameters": []any{text("id", "path", "The id of the service instance.", true)},
			"patch": operation("changeServiceInstance", "Change a service of a Service Point v4",
				"Its version, or parameters and endpoints of its configuration; the others stay.",
				answers("202", "It is to be changed.", nil, "403", "404", "409", "413", "415"),
				object{"requestBody": jsonBody(object{"type": "object", "properties": instance},
					object{"parameters": []any{object{"name": "intervalSeconds", "value": "60"}}})}),
			"delete": operation("deleteServiceInstance", "Let a Service Point v4 end and forget a service",
				"It is DELETED once the service point says so.", answers("202", "It is to end.", nil, "403", "404", "409"), nil)},
		"/user/api/v1/fleetInstances/{id}/applications/{application}/log": object{
			"parameters": []any{id, text("application", "path", "The id of the application.", true)},
			"get": operation("getFleetApplicationLog", "Read the end of the log of an application (ours)",
				"Asks the service point for it, and waits up to 20 seconds.", object{"200": object{"description": "The end of the log.",
					"content": object{"text/plain": object{"schema": object{"type": "string"}}}},
					"404": object{"$ref": "#/components/responses/404"}, "409": object{"$ref": "#/components/responses/409"},
					"400": object{"$ref": "#/components/responses/400"}, "401": object{"$ref": "#/components/responses/401"}},
				object{"parameters": []any{object{"name": "bytes", "in": "query", "description": "How many of the last bytes.", "required": false,
					"schema": object{"type": "integer", "minimum": 1, "maximum": checkin.MostLog, "default": logBytes}}}})},
		"/user/api/v1/releases": object{"get": operation("listReleases", "List the releases that service points can be updated to (ours)",
			"expires is until when service points take them; null where there are none.",
			answers("200", "The releases.", object{"type": "object", "required": []string{"data", "expires"}, "properties": object{
				"data":    object{"type": "array", "items": schemaRef("FleetRelease")},
				"expires": object{"type": []string{"string", "null"}, "format": "date-time"}}}), nil)},
		"/user/api/v1/rollouts": object{
			"get": operation("listRollouts", "List the rollouts (ours)", "Gives all, the latest first.",
				answers("200", "The rollouts.", data("FleetRollout")), nil),
			"post": operation("startRollout", "Update many service points, in waves (ours)",
				"Takes the service points that the filter names now. What the body leaves out holds as the example says.",
				answers("201", "It has begun.", schemaRef("FleetRollout"), "403", "409", "413", "415"),
				object{"requestBody": jsonBody(object{"type": "object", "required": []string{"version"}, "properties": planProperties()},
					object{"version": "1.2.0", "waves": []any{"1", "5%", "25%"}, "mostAway": "10%", "mostFailed": "0", "giveUpSeconds": 900})})},
		"/user/api/v1/rollouts/{id}": object{"parameters": []any{rollout},
			"get": operation("getRollout", "Fetch one of the rollouts (ours)", "Gives it with its counts.",
				answers("200", "The rollout.", schemaRef("FleetRollout"), "404"), nil),
			"delete": operation("deleteRollout", "Forget a rollout that has ended (ours)", "Nothing is taken back.",
				answers("204", "It is gone.", nil, "403", "404", "409"), nil)},
		"/user/api/v1/rollouts/{id}/members": object{"parameters": []any{rollout},
			"get": operation("listRolloutMembers", "List who takes part in a rollout (ours)", "In the order in which they have their turns.",
				answers("200", "The service points.", data("FleetRolloutMember"), "404"),
				object{"parameters": []any{text("state", "query", "The state that they are in.", false)}})},
		"/user/api/v1/rollouts/{id}/{action}": object{"parameters": []any{rollout,
			object{"name": "action", "in": "path", "description": "What is done.", "required": true,
				"schema": object{"type": "string", "enum": []string{"pause", "resume", "takeBack"}}}},
			"post": operation("actOnRollout", "Pause, resume or take back a rollout (ours)",
				"Taken back, everybody who has the version goes back to the one from before.",
				answers("202", "It is so.", schemaRef("FleetRollout"), "403", "404", "409"), nil)},
		"/api/v1/fleetInstanceMinimumConfig": object{"post": operation("createFleetInstance",
			"Create a fleet service point with minimal configuration",
			"Makes a service point that waits for enrolment. The registration key is shown once, and good for seven days and as "+
				"many machines as there may be nodes, one where nodeCount (ours) is not given. "+
				"Asked again with the same Idempotency-Key, the answer is the same until the key was used.",
			answers("202", "What the service point registers with.", schemaRef("FleetServicePointCreated"), "403", "409", "413", "415"),
			object{"requestBody": jsonBody(object{"type": "object", "required": []string{"name"},
				"properties": object{"name": name, "description": object{"type": []string{"string", "null"}, "maxLength": 4000},
					"nodeCount": nodeCount}},
				object{"name": "quay", "description": "the box in the harbour"})})},
		"/v1/api/authentication/token": object{"post": operation("exchangeToken", "Get an access token for a key set",
			"Gives a bearer token that is good for five minutes.", answers("200", "The token.", token, "413", "415"),
			object{"security": []any{}, "requestBody": jsonBody(credentials,
				object{"grantType": "ClientCredentials", "clientCredentials": object{"clientId": "id", "clientSecret": "secret"}})})},
		checkin.DiagnosticsPath: object{"servers": own, "get": object{"operationId": "getDiagnostics", "tags": []string{"service point"},
			"security":    []any{},
			"summary":     "What a service point tells of itself",
			"description": "Gives the results of its last probes and whether it is registered; the form depends on its variant.",
			"responses": object{"200": object{"description": "The diagnostics.",
				"content": object{"application/json": object{"schema": object{"anyOf": []any{schemaRef("Diagnostics"),
					schemaRef("ServicePointV4Diagnostics")}}}}}}}},
		checkin.StatusPath: object{"servers": own, "get": object{"operationId": "getStatus", "tags": []string{"service point"},
			"security": []any{},
			"summary":  "The short form of the diagnostics", "description": "Gives whether the service point reaches its manager and is registered.",
			"responses": object{"200": object{"description": "The status.",
				"content": object{"application/json": object{"schema": schemaRef("DiagnosticsStatus")}}}}}},
	}
}
