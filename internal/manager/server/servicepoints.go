package server

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"

	"portolan/internal/base/problem"
	"portolan/internal/engine/rest"
	"portolan/internal/manager/fleet"
	"portolan/internal/wire/checkin"
)

// The API of Service Points v4 (reference/fleet.md). A service point is a program on a machine that is somebody else's: what the published
// API sets up of an appliance is refused, with where it is set up.

// elsewhere are fields of the published API that nothing here would act on, and where that is set up.
var elsewhere = map[string]string{
	"hostname": "on the machine itself", "ipv4CIDRAddress": "on the machine itself", "ipv4GatewayAddress": "on the machine itself",
	"ipv6CIDRAddress": "on the machine itself", "ipv6GatewayAddress": "on the machine itself", "dnsServers": "on the machine itself",
	"sshPublicKey": "on the machine itself", "consolePassword": "on the machine itself",
	"httpProxySettings": "by portolan agent --http-proxy",
}

// refuseElsewhere refuses fields that are set up elsewhere, where they have a value.
func refuseElsewhere(members map[string]json.RawMessage) error {
	var problems []*problem.Problem
	for _, name := range slices.Sorted(maps.Keys(elsewhere)) {
		if raw, ok := members[name]; ok && !slices.Contains([]string{"null", `""`, "[]", "{}"}, string(raw)) {
			problems = append(problems, problem.Invalid(name, "is set up %s", elsewhere[name]))
		}
	}
	return problem.Join(problems)
}

func (m *Manager) listServicePoints(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	f := fleet.Filter{Application: query.Get("serviceName")}
	if query.Has("name") {
		if err := f.Set("name", query.Get("name")); err != nil {
			return err
		}
	}
	rest.Note(w, r, nil, "name", "serviceName")
	list := newList(w)
	err := m.Fleet.ServicePoints(r.Context(), f, func(one fleet.ServicePoint) error { return list.add(one) })
	if err != nil && !list.begun {
		return err
	}
	return list.end(err)
}

func (m *Manager) getServicePoint(w http.ResponseWriter, r *http.Request) error {
	one, err := m.Fleet.ServicePoint(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, one)
	return nil
}

// ntpServers reads a list of NTP servers.
func ntpServers(field string, raw json.RawMessage) (servers []string, err error) {
	if json.Unmarshal(raw, &servers) != nil {
		return nil, problem.Invalid(field, "must be an array of texts")
	}
	return servers, fleet.CheckNTPServers(servers)
}

func (m *Manager) createServicePoint(w http.ResponseWriter, r *http.Request) error {
	members, _, err := readJSON(w, r, rest.SmallBody)
	if err != nil {
		return err
	}
	values, err := texts(members, "name", "description")
	if err != nil {
		return err
	}
	rest.Note(w, r, members, append(slices.Collect(maps.Keys(elsewhere)), "name", "description", "ntpServers")...)
	if _, ok := values["name"]; !ok {
		return missing("name")
	}
	if err := refuseElsewhere(members); err != nil {
		return err
	}
	wanted := fleet.Wanted{Name: values["name"], Description: given(values, "description"), Variant: checkin.V4,
		Endpoint: m.RegistrationEndpoint()}
	if raw, ok := members["ntpServers"]; ok && string(raw) != "null" {
		if wanted.NTPServers, err = ntpServers("ntpServers", raw); err != nil {
			return err
		}
	}
	if wanted.Repeatable, err = m.repeatable(r); err != nil {
		return err
	}
	created, err := m.Fleet.Create(r.Context(), wanted)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusAccepted, struct {
		ID                   string `json:"id"`
		RegistrationKey      string `json:"registrationKey"`
		RegistrationEndpoint string `json:"registrationEndpoint"`
	}{created.FleetInstanceID, created.RegistrationKey, created.RegistrationEndpoint})
	return nil
}

// changeSettings changes the settings of a service point.
func (m *Manager) changeSettings(w http.ResponseWriter, r *http.Request) error {
	members, _, err := readJSON(w, r, rest.SmallBody)
	if err != nil {
		return err
	}
	values, err := texts(members, "name", "description")
	if err != nil {
		return err
	}
	rest.Note(w, r, members, "name", "description", "ntpConfiguration")
	var ntp struct {
		Servers        json.RawMessage `json:"servers"`
		ClientNetworks []string        `json:"clientNetworks"`
	}
	if raw, ok := members["ntpConfiguration"]; ok {
		if json.Unmarshal(raw, &ntp) != nil {
			return problem.Invalid("ntpConfiguration", "must be an object of servers and clientNetworks, arrays of texts")
		}
		if len(ntp.ClientNetworks) > 0 {
			return problem.Invalid("ntpConfiguration.clientNetworks", "a service point serves no time: only an empty array fits")
		}
	}
	var servers []string
	if ntp.Servers != nil {
		if servers, err = ntpServers("ntpConfiguration.servers", ntp.Servers); err != nil {
			return err
		}
	}
	id := r.PathValue("id")
	if _, err := m.Fleet.ServicePoint(r.Context(), id); err != nil {
		return err
	}
	if err := m.Fleet.Modify(r.Context(), id, fleet.InstanceChange{Name: given(values, "name"), Description: given(values, "description"),
		NTPServers: servers}); err != nil {
		return err
	}
	return m.getServicePoint(w, r)
}

func (m *Manager) deleteServicePoint(w http.ResponseWriter, r *http.Request) error {
	if _, err := m.Fleet.ServicePoint(r.Context(), r.PathValue("id")); err != nil {
		return err
	}
	return m.deleteInstance(w, r)
}

// serviceFields are the fields of a request about a service instance.
var serviceFields = []string{"serviceDescriptorID", "name", "parameters", "ingressEndpoints"}

// configured puts the parameters and endpoints of a request into a configuration: each parameter is a member, whose value is JSON or else
// a text; the addresses of the endpoint dns are where a resolver listens.
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
			return nil, problem.Invalid("parameters", "one has no name")
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
			return nil, problem.Invalid("ingressEndpoints.portLabel", "%q is not dns: service points show nothing else at addresses of a service",
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

func (m *Manager) createServiceInstance(w http.ResponseWriter, r *http.Request) error {
	members, _, err := readJSON(w, r, rest.ReportBody)
	if err != nil {
		return err
	}
	values, err := texts(members, "serviceDescriptorID", "name")
	if err != nil {
		return err
	}
	rest.Note(w, r, members, serviceFields...)
	if values["serviceDescriptorID"] == "" {
		return missing("serviceDescriptorID")
	}
	name, version, err := m.Fleet.Descriptor(values["serviceDescriptorID"])
	if err != nil {
		return err
	}
	if _, err := m.Fleet.ServicePoint(r.Context(), r.PathValue("id")); err != nil {
		return err
	}
	c := fleet.ApplicationChange{Name: &name, Version: &version, Title: given(values, "name")}
	if c.Configuration, err = configured(nil, members); err != nil {
		return err
	}
	return m.deploy(w, r, c)
}

func (m *Manager) changeServiceInstance(w http.ResponseWriter, r *http.Request) error {
	members, _, err := readJSON(w, r, rest.ReportBody)
	if err != nil {
		return err
	}
	values, err := texts(members, "version", "serviceDescriptorID")
	if err != nil {
		return err
	}
	rest.Note(w, r, members, "version", "serviceDescriptorID", "parameters", "ingressEndpoints")
	point, before, err := m.Fleet.Whose(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	c := fleet.ApplicationChange{TargetVersion: given(values, "version")}
	if text, ok := values["serviceDescriptorID"]; ok {
		name, version, err := m.Fleet.Descriptor(text)
		if err != nil {
			return err
		}
		if name != before.Name {
			return problem.Invalid("serviceDescriptorID", "is of %s, and the service instance of %s", name, before.Name)
		}
		c.TargetVersion = &version
	}
	if c.Configuration, err = configured(before.Configuration, members); err != nil {
		return err
	}
	if c.TargetVersion == nil && c.Configuration == nil {
		return problem.BadRequest("MissingRequiredField", "the body has none of version, serviceDescriptorID, parameters and ingressEndpoints")
	}
	if err := m.Fleet.Change(r.Context(), point, before.ID, c); err != nil {
		return err
	}
	w.WriteHeader(http.StatusAccepted)
	return nil
}

func (m *Manager) deleteServiceInstance(w http.ResponseWriter, r *http.Request) error {
	point, one, err := m.Fleet.Whose(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	if err := m.Fleet.Undeploy(r.Context(), point, one.ID); err != nil {
		return err
	}
	w.WriteHeader(http.StatusAccepted)
	return nil
}
