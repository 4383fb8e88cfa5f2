package fleetapi

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"

	"portolan/internal/base/problem"
	"portolan/internal/engine/family"
	"portolan/internal/engine/rest"
	"portolan/internal/manager/fleet"
	"portolan/internal/manager/server/middleware"
	"portolan/internal/wire/checkin"
)

// The API of Service Points v4 (reference/fleet.md). A service point is a program on a machine of the operator. Settings of an appliance in
// the published API are refused, with the place where the operator sets them.

// elsewhere are fields of the published API that nothing here would act on, and where that is set up.
var elsewhere = map[string]string{
	"hostname": "on the machine itself", "ipv4CIDRAddress": "on the machine itself", "ipv4GatewayAddress": "on the machine itself",
	"ipv6CIDRAddress": "on the machine itself", "ipv6GatewayAddress": "on the machine itself", "dnsServers": "on the machine itself",
	"sshPublicKey": "on the machine itself", "consolePassword": "on the machine itself",
	"httpProxySettings": "by portolan agent --http-proxy",
}

// refuseOtherMembers refuses fields that are set up elsewhere, where they have a value.
func refuseOtherMembers(members map[string]json.RawMessage) error {
	var problems []*problem.Problem
	for _, name := range slices.Sorted(maps.Keys(elsewhere)) {
		if raw, ok := members[name]; ok && !slices.Contains([]string{"null", `""`, "[]", "{}"}, string(raw)) {
			problems = append(problems, problem.Invalid(name, "cannot be set here: it is set %s", elsewhere[name]))
		}
	}
	return problem.Join(problems)
}

// servicePointPaths are the operations on Service Points v4.
func (a *API) servicePointPaths() []family.Path {
	id := pathParameter(servicePointID)
	point := family.Success{Status: http.StatusOK, Description: "The service point.", Schema: family.Ref("ServicePointV4")}
	text := family.Text()
	value := family.Object(family.Schema{"name": text, "value": text})
	endpoint := family.Object(family.Schema{"portLabel": text, "addresses": textsSchema()})
	instance := func(further string) family.Schema {
		return family.Schema{"serviceDescriptorID": text, further: text, "parameters": family.List(value),
			"ingressEndpoints": family.List(endpoint)}
	}
	return []family.Path{
		{Pattern: servicePointsPath, Operations: []family.Operation{{
			Method: http.MethodGet, ID: "listServicePoints", Summary: "List the Service Points v4", Access: a.reading(),
			Description: "Gives all of them, or those that a parameter names.",
			Query: []family.Parameter{{Name: "name", Description: "The name of one service point."},
				{Name: "serviceName", Description: "The name of a service that they have."}},
			Success: family.Success{Status: http.StatusOK, Description: "The service points.", Schema: family.DataOf("ServicePointV4")},
			Handle:  a.listServicePoints,
		}, {
			Method: http.MethodPost, ID: "createServicePoint", Summary: "Create a Service Point v4", Access: a.changing(),
			Description: "Creates one that waits for its registration. Settings of its machine are refused.",
			Body: &family.Body{Schema: family.Object(family.Schema{"name": nameSchema(), "description": descriptionSchema(),
				"ntpServers": textsSchema()}, "name"),
				Refused: slices.Collect(maps.Keys(elsewhere)),
				Example: family.Schema{"name": "quay", "ntpServers": []any{"192.0.2.123"}}},
			Success: family.Success{Status: http.StatusAccepted, Description: "The registration data.",
				Schema: family.Object(family.Schema{"id": text, "registrationKey": text, "registrationEndpoint": text},
					"id", "registrationKey", "registrationEndpoint")},
			Problems: []int{403, 409}, Handle: a.createServicePoint,
		}}},
		{Pattern: servicePointsPath + "/{id}", Parameters: id, Operations: []family.Operation{{
			Method: http.MethodGet, ID: "getServicePoint", Summary: "Fetch one of the Service Points v4", Access: a.reading(),
			Description: "Gives it with its services and resources.",
			Success:     point, Problems: []int{404}, Handle: a.getServicePoint,
		}, {
			Method: http.MethodDelete, ID: "deleteServicePoint", Summary: "Delete one of the Service Points v4", Access: a.changing(),
			Description: "Deletes it; its certificate is refused from then on.",
			Success:     family.Success{Status: http.StatusNoContent, Description: "Deleted."},
			Problems:    []int{403, 404}, Handle: a.deleteServicePoint,
		}}},
		{Pattern: servicePointsPath + "/{id}/settings", Parameters: id, Operations: []family.Operation{{
			Method: http.MethodPatch, ID: "changeServicePointSettings", Summary: "Change the settings of a Service Point v4",
			Access:      a.changing(),
			Description: "Members that are missing in the body stay unchanged. It queries the NTP servers, and does not serve time itself.",
			Body: &family.Body{Schema: family.Object(family.Schema{"name": nameSchema(), "description": text,
				"ntpConfiguration": family.Object(family.Schema{"servers": textsSchema(), "clientNetworks": textsSchema()})}),
				Example: family.Schema{"ntpConfiguration": family.Schema{"servers": []any{"192.0.2.123"}}}},
			Success: point, Problems: []int{403, 404, 409}, Handle: a.changeSettings,
		}}},
		{Pattern: servicePointsPath + "/{id}/serviceInstances", Parameters: id, Operations: []family.Operation{{
			Method: http.MethodPost, ID: "createServiceInstance", Summary: "Deploy a service to a Service Point v4", Access: a.changing(),
			Description: "A parameter is a member of the configuration; its value is JSON, or a text. The endpoint dns is the address of a " +
				"resolver.",
			Body: &family.Body{Within: rest.ReportBody, Schema: family.Object(instance("name"), "serviceDescriptorID"),
				Example: family.Schema{"serviceDescriptorID": "http-probe-service-1.0.0", "name": "probe",
					"parameters": []any{family.Schema{"name": "targets", "value": `[{"address":"192.0.2.1"}]`}}}},
			Success: family.Success{Status: http.StatusAccepted, Description: "Accepted.",
				Schema: family.Object(family.Schema{"id": text}, "id")},
			Problems: []int{403, 404, 409}, Handle: a.createServiceInstance,
		}}},
		{Pattern: root + "/serviceInstances/{id}", Parameters: pathParameter("The id of the service instance."),
			Operations: []family.Operation{{
				Method: http.MethodPatch, ID: "changeServiceInstance", Summary: "Change a service of a Service Point v4", Access: a.changing(),
				Description: "Its version, or parameters and endpoints of its configuration; the others stay.",
				Body: &family.Body{Within: rest.ReportBody, Schema: family.Object(instance("version")),
					Example: family.Schema{"parameters": []any{family.Schema{"name": "intervalSeconds", "value": "60"}}}},
				Success:  family.Success{Status: http.StatusAccepted, Description: "Accepted."},
				Problems: []int{403, 404, 409}, Handle: a.changeServiceInstance,
			}, {
				Method: http.MethodDelete, ID: "deleteServiceInstance", Summary: "Remove a service from a Service Point v4",
				Access:      a.changing(),
				Description: "Its status is DELETED when the service point has confirmed it.",
				Success:     family.Success{Status: http.StatusAccepted, Description: "Accepted."},
				Problems:    []int{403, 404, 409}, Handle: a.deleteServiceInstance,
			}}},
	}
}

// servicePointsPath is the collection of Service Points v4.
const servicePointsPath = root + "/servicePoints"

func (a *API) listServicePoints(w http.ResponseWriter, r *family.Request) error {
	query := r.URL.Query()
	f := fleet.Filter{Application: query.Get("serviceName")}
	if query.Has("name") {
		if err := f.Set("name", query.Get("name")); err != nil {
			return err
		}
	}
	list := middleware.NewList(w)
	err := a.Fleet.ServicePoints(r.Context(), f, func(one fleet.ServicePoint) error { return list.Add(one) })
	return list.End(err)
}

func (a *API) getServicePoint(w http.ResponseWriter, r *family.Request) error {
	one, err := a.Fleet.ServicePoint(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	family.WriteJSON(w, http.StatusOK, one)
	return nil
}

// ntpServers reads a list of NTP servers.
func ntpServers(field string, raw json.RawMessage) (servers []string, err error) {
	if json.Unmarshal(raw, &servers) != nil {
		return nil, problem.Invalid(field, "must be an array of texts")
	}
	return servers, fleet.CheckNTPServers(servers)
}

func (a *API) createServicePoint(w http.ResponseWriter, r *family.Request) error {
	values, err := r.Strings("name", "description")
	if err != nil {
		return err
	}
	if _, ok := values["name"]; !ok {
		return family.Missing("name")
	}
	if err := refuseOtherMembers(r.Members); err != nil {
		return err
	}
	wanted := fleet.Wanted{Name: values["name"], Description: valueOf(values, "description"), Variant: checkin.V4,
		Endpoint: a.Endpoint()}
	if raw, ok := r.Members["ntpServers"]; ok && string(raw) != "null" {
		if wanted.NTPServers, err = ntpServers("ntpServers", raw); err != nil {
			return err
		}
	}
	if wanted.Repeatable, err = a.repeatable(r.Request); err != nil {
		return err
	}
	created, err := a.Fleet.Create(r.Context(), wanted)
	if err != nil {
		return err
	}
	family.WriteJSON(w, http.StatusAccepted, struct {
		ID                   string `json:"id"`
		RegistrationKey      string `json:"registrationKey"`
		RegistrationEndpoint string `json:"registrationEndpoint"`
	}{created.FleetInstanceID, created.RegistrationKey, created.RegistrationEndpoint})
	return nil
}

// changeSettings changes the settings of a service point.
func (a *API) changeSettings(w http.ResponseWriter, r *family.Request) error {
	values, err := r.Strings("name", "description")
	if err != nil {
		return err
	}
	var ntp struct {
		Servers        json.RawMessage `json:"servers"`
		ClientNetworks []string        `json:"clientNetworks"`
	}
	if raw, ok := r.Members["ntpConfiguration"]; ok {
		if json.Unmarshal(raw, &ntp) != nil {
			return problem.Invalid("ntpConfiguration", "must be an object of servers and clientNetworks, arrays of texts")
		}
		if len(ntp.ClientNetworks) > 0 {
			return problem.Invalid("ntpConfiguration.clientNetworks", "must be empty: a service point is not a time server")
		}
	}
	var servers []string
	if ntp.Servers != nil {
		if servers, err = ntpServers("ntpConfiguration.servers", ntp.Servers); err != nil {
			return err
		}
	}
	id := r.PathValue("id")
	if _, err := a.Fleet.ServicePoint(r.Context(), id); err != nil {
		return err
	}
	if err := a.Fleet.Modify(r.Context(), id, fleet.InstanceChange{Name: valueOf(values, "name"), Description: valueOf(values, "description"),
		NTPServers: servers}); err != nil {
		return err
	}
	return a.getServicePoint(w, r)
}

func (a *API) deleteServicePoint(w http.ResponseWriter, r *family.Request) error {
	if _, err := a.Fleet.ServicePoint(r.Context(), r.PathValue("id")); err != nil {
		return err
	}
	return a.deleteInstance(w, r)
}

// configured adds the parameters and endpoints of a request to a configuration. Each parameter is a member; its value is JSON, or a text.
// The addresses of the endpoint dns become the listeners of a resolver.
func configured(before json.RawMessage, members map[string]json.RawMessage) (json.RawMessage, error) {
	var parameters []struct{ Name, Value string }
	var endpoints []struct {
		PortLabel string   `json:"portLabel"`
		Addresses []string `json:"addresses"`
	}
	for name, into := range map[string]any{"parameters": &parameters, "ingressEndpoints": &endpoints} {
		if raw, ok := members[name]; ok && json.Unmarshal(raw, into) != nil {
			return nil, problem.Invalid(name, "must be an array of objects: {name, value}, and {portLabel, addresses}")
		}
	}
	if len(parameters)+len(endpoints) == 0 {
		return nil, nil
	}
	all := map[string]json.RawMessage{}
	if len(before) > 0 {
		if err := json.Unmarshal(before, &all); err != nil {
			return nil, err
		}
	}
	for _, p := range parameters {
		if p.Name == "" {
			return nil, problem.Invalid("parameters", "each entry must have a name")
		}
		all[p.Name] = json.RawMessage(p.Value)
		if !json.Valid(all[p.Name]) {
			text, err := json.Marshal(p.Value)
			if err != nil {
				return nil, err
			}
			all[p.Name] = text
		}
	}
	for _, e := range endpoints {
		if e.PortLabel != "dns" {
			return nil, problem.Invalid("ingressEndpoints.portLabel", "must be dns, not %q",
				e.PortLabel)
		}
		var listen []map[string]string
		for _, a := range e.Addresses {
			listen = append(listen, map[string]string{"address": a})
		}
		text, err := json.Marshal(listen)
		if err != nil {
			return nil, err
		}
		all["listen"] = text
	}
	return json.Marshal(all)
}

func (a *API) createServiceInstance(w http.ResponseWriter, r *family.Request) error {
	values, err := r.Strings("serviceDescriptorID", "name")
	if err != nil {
		return err
	}
	if values["serviceDescriptorID"] == "" {
		return family.Missing("serviceDescriptorID")
	}
	name, version, err := a.Fleet.Descriptor(values["serviceDescriptorID"])
	if err != nil {
		return err
	}
	if _, err := a.Fleet.ServicePoint(r.Context(), r.PathValue("id")); err != nil {
		return err
	}
	c := fleet.ApplicationChange{Name: &name, Version: &version, Title: valueOf(values, "name")}
	if c.Configuration, err = configured(nil, r.Members); err != nil {
		return err
	}
	return a.deploy(w, r, c)
}

func (a *API) changeServiceInstance(w http.ResponseWriter, r *family.Request) error {
	values, err := r.Strings("version", "serviceDescriptorID")
	if err != nil {
		return err
	}
	point, before, err := a.Fleet.FindApplication(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	c := fleet.ApplicationChange{TargetVersion: valueOf(values, "version")}
	if text, ok := values["serviceDescriptorID"]; ok {
		name, version, err := a.Fleet.Descriptor(text)
		if err != nil {
			return err
		}
		if name != before.Name {
			return problem.Invalid("serviceDescriptorID", "belongs to the application %s, but the service instance belongs to %s", name, before.Name)
		}
		c.TargetVersion = &version
	}
	if c.Configuration, err = configured(before.Configuration, r.Members); err != nil {
		return err
	}
	if c.TargetVersion == nil && c.Configuration == nil {
		return problem.BadRequest("MissingRequiredField",
			"the body must have at least one of version, serviceDescriptorID, parameters and ingressEndpoints")
	}
	if err := a.Fleet.Change(r.Context(), point, before.ID, c); err != nil {
		return err
	}
	w.WriteHeader(http.StatusAccepted)
	return nil
}

func (a *API) deleteServiceInstance(w http.ResponseWriter, r *family.Request) error {
	point, one, err := a.Fleet.FindApplication(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	if err := a.Fleet.Undeploy(r.Context(), point, one.ID); err != nil {
		return err
	}
	w.WriteHeader(http.StatusAccepted)
	return nil
}
