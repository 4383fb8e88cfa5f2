package fleet

import (
	"context"
	"encoding/json"
	"maps"
	"net/netip"
	"reflect"
	"slices"

	"portolan/internal/engine/schema"
	"portolan/internal/wire/checkin"
)

// Kind is an application that can be deployed to a service point (a Portolan extension).
type Kind struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	// Deployed is the number of such applications that the service point has.
	Deployed int `json:"deployed"`
	// Schema is the JSON schema of its configuration.
	Schema map[string]any `json:"schema"`
	// Configuration is the configuration that it gets if a request has none; null if a request must have one.
	Configuration json.RawMessage `json:"configuration"`
	// Reason is the reason why there is no default configuration, or why it is incomplete.
	Reason string `json:"reason,omitempty"`
}

// Kinds returns the applications that can be deployed to a service point, sorted by name.
func (s *Service) Kinds(ctx context.Context, id string) ([]Kind, error) {
	all, err := s.Applications(ctx, id)
	if err != nil {
		return nil, err
	}
	kinds := []Kind{}
	for _, name := range slices.Sorted(maps.Keys(s.programs)) {
		program := s.programs[name]
		k := Kind{Name: name, Version: program.Version, Schema: map[string]any{}, Configuration: json.RawMessage("null")}
		for _, one := range all {
			if one.Name == name && one.Status != checkin.Deleted {
				k.Deployed++
			}
		}
		if program.Sample != nil {
			k.Schema = schema.ReflectSchema(reflect.TypeOf(program.Sample))
		}
		text, err := s.defaultConfiguration(ctx, id, name)
		if err != nil {
			return nil, err
		}
		if text != nil {
			k.Configuration = text
			if err := program.Check(text); err != nil {
				k.Reason = err.Error()
			}
		}
		kinds = append(kinds, k)
	}
	return kinds, nil
}

// defaultConfiguration returns the configuration of an application that is deployed to a service point without one; nil if the application
// has no default.
func (s *Service) defaultConfiguration(ctx context.Context, id, name string) (json.RawMessage, error) {
	program := s.programs[name]
	if program.Default == nil {
		return nil, nil
	}
	d, err := s.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	all, err := s.Applications(ctx, id)
	if err != nil {
		return nil, err
	}
	var used []string
	for _, one := range all {
		if one.Status != checkin.Deleted {
			used = append(used, s.claims(one.Name, one.Configuration)...)
		}
	}
	return json.Marshal(program.Default(hostOf(d.Nodes, used)))
}

// dnsPort is the port of DNS.
const dnsPort = 53

// hostOf returns the machine of a service point, without addresses at which port 53 is used. The machines of several nodes have different
// addresses: they use every address of theirs.
func hostOf(nodes []DetailNode, used []string) (h checkin.Host) {
	var candidates []netip.Addr
	for i, n := range nodes {
		for _, a := range n.Addresses {
			if address, err := netip.ParseAddr(a.IPAddress); err == nil && a.Type != checkin.Anycast {
				candidates = append(candidates, address)
			}
		}
		if i > 0 {
			candidates = []netip.Addr{netip.IPv4Unspecified()}
		}
		for _, text := range n.DNSServers {
			if address, err := netip.ParseAddr(text); err == nil && address.Zone() == "" && !slices.Contains(h.NameServers, address) {
				h.NameServers = append(h.NameServers, address)
			}
		}
	}
	for _, address := range candidates {
		at := netip.AddrPortFrom(address, dnsPort).String()
		if !slices.ContainsFunc(used, func(one string) bool { return conflicts(at, one) }) {
			h.Free = append(h.Free, address)
		}
	}
	return h
}
