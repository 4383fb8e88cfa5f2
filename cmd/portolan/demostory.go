package main

import (
	"context"
	"fmt"

	"portolan/client"
	"portolan/internal/manager/server"
)

// demoUser is the user of the demo whose changes need an approval. It has the password of the administrator.
const demoUser = "junior"

// story collects the changes of the sample data that show the features of the console.
type story struct {
	configuration int64
	changes       []client.BatchChange
}

// add adds a change and returns a reference to the resource that it creates.
func (s *story) add(method, path string, body map[string]any) map[string]any {
	s.changes = append(s.changes, client.BatchChange{Method: method, Path: path, Body: body})
	return map[string]any{"id": fmt.Sprintf("$%d", len(s.changes)-1)}
}

// pathBelow returns a path below the resource of a reference.
func pathBelow(of map[string]any, collection string) string {
	return fmt.Sprintf("%v/%s", of["id"], collection)
}

// demoStory adds to the sample data, once: sites, networks near their limits, VLANs, a signed zone, a reconciliation policy, users, and
// requests that wait for approval. The data is the same in every demo.
func demoStory(ctx context.Context, api *client.Client, password string) error {
	ids, err := api.IDs(ctx, "configurations", "name:'"+server.SampleName+"'", 1)
	if err != nil || len(ids) == 0 { // the user deleted the sample
		return err
	}
	if there, err := api.IDs(ctx, "users", "name:'"+demoUser+"'", 1); err != nil || len(there) > 0 {
		return err
	}
	s := &story{configuration: ids[0]}
	if err := s.sites(ctx, api); err != nil {
		return err
	}
	if err := s.fullNetworks(ctx, api); err != nil {
		return err
	}
	if err := s.signedZone(ctx, api); err != nil {
		return err
	}
	if err := s.policy(ctx, api); err != nil {
		return err
	}
	s.users(password)
	if _, err := api.Batch(ctx, s.changes, client.BatchOptions{Comment: "demo"}); err != nil {
		return err
	}
	return s.requests(ctx, api, &client.Client{Base: api.Base, User: demoUser, Password: password})
}

// demoSites are the sites of the sample, by code below Norway, with the second octets of their blocks.
var demoSites = []struct {
	code, name string
	blocks     []int
}{
	{"NO HBN", "North basin", []int{0, 1, 2, 3}},
	{"NO HBS", "South basin", []int{4, 5, 6, 7}},
	{"NO HBI", "Outer island", []int{8, 9}},
}

// demoVLANs are the VLANs of each site. The networks of a floor have the VLAN with the number of the floor.
var demoVLANs = []string{"cranes", "scales", "cameras", "printers", "desks", "radio", "gauges", "gates"}

// sites adds the locations of the blocks, and a VLAN group for each.
func (s *story) sites(ctx context.Context, api *client.Client) error {
	country, err := api.IDs(ctx, "locations", "code:'NO'", 1)
	if err != nil || len(country) == 0 {
		return err
	}
	for _, site := range demoSites {
		location := s.add("POST", fmt.Sprintf("locations/%d/locations", country[0]), map[string]any{"type": "Location", "code": site.code,
			"name": site.name})
		group := s.add("POST", fmt.Sprintf("configurations/%d/vlanGroups", s.configuration), map[string]any{"type": "VLANGroup",
			"name": site.name, "firstNumber": 100, "lastNumber": 199, "location": location})
		for i, name := range demoVLANs {
			vlan := s.add("POST", "vlanGroups/"+pathBelow(group, "vlans"), map[string]any{"type": "VLAN", "name": name, "number": 101 + i})
			network, err := s.findOne(ctx, api, "networks", fmt.Sprintf("range:'10.%d.%d.0/24'", site.blocks[0], i))
			if err != nil {
				return err
			}
			s.add("PATCH", fmt.Sprintf("networks/%d", network), map[string]any{"vlan": vlan})
		}
		for _, octet := range site.blocks {
			block, err := s.findOne(ctx, api, "blocks", fmt.Sprintf("range:'10.%d.0.0/16'", octet))
			if err != nil {
				return err
			}
			s.add("PATCH", fmt.Sprintf("blocks/%d", block), map[string]any{"location": location})
		}
	}
	return nil
}

// findOne returns the resource of the configuration that matches a filter.
func (s *story) findOne(ctx context.Context, api *client.Client, collection, filter string) (int64, error) {
	ids, err := api.IDs(ctx, collection, fmt.Sprintf("%s and configuration.id:%d", filter, s.configuration), 1)
	if err == nil && len(ids) == 0 {
		err = fmt.Errorf("demo: no %s with %s", collection, filter)
	}
	if err != nil {
		return 0, err
	}
	return ids[0], nil
}

// fullNetworks adds networks that are full, nearly full and filling, with utilization thresholds.
func (s *story) fullNetworks(ctx context.Context, api *client.Client) error {
	block, err := s.findOne(ctx, api, "blocks", "range:'10.0.0.0/16'")
	if err != nil {
		return err
	}
	for _, n := range []struct {
		prefix, name string
		used         int
	}{
		{"10.0.64.0/27", "Guest Wi-Fi", 28}, // 29 of 30 with the gateway
		{"10.0.64.32/28", "Pilot boats", 13},
		{"10.0.64.64/26", "Weather buoys", 50},
	} {
		network := s.add("POST", fmt.Sprintf("blocks/%d/networks", block), map[string]any{"type": "IPv4Network", "range": n.prefix,
			"name": n.name, "highWaterMark": 80, "lowWaterMark": 5})
		for i := range n.used {
			s.add("POST", "networks/"+pathBelow(network, "addresses"), map[string]any{"type": "IPv4Address", "state": "STATIC",
				"name": fmt.Sprintf("client-%02d", i+1)})
		}
	}
	return nil
}

// signedZone signs the zone pilots.example with a policy of the demo.
func (s *story) signedZone(ctx context.Context, api *client.Client) error {
	zone, err := s.findOne(ctx, api, "zones", "absoluteName:'pilots.example'")
	if err != nil {
		return err
	}
	const algorithm = "ECDSAP256SHA256"
	policy := s.add("POST", "signingPolicies", map[string]any{"type": "DNSSECSigningPolicy", "name": "harbour",
		"keyProvider": "ADDRESS_MANAGER", "signatureDigestAlgorithm": "SHA256", "signatureValidityPeriod": "P10D",
		"signatureResigningPeriod": "P2D", "zoneSigningKeyAlgorithm": algorithm, "zoneSigningKeyLength": 256,
		"zoneSigningKeyValidityPeriod": "P30D", "zoneSigningKeyOverlapPeriod": "P5D", "zoneSigningKeyRolloverMethod": "PRE_PUBLISH",
		"zoneSigningKeySigningPeriod": "P3D", "keySigningKeyAlgorithm": algorithm, "keySigningKeyLength": 256,
		"keySigningKeyValidityPeriod": "P365D", "keySigningKeyOverlapPeriod": "P30D", "keySigningKeyRolloverMethod": "DOUBLE_SIGNING"})
	s.add("PATCH", fmt.Sprintf("zones/%d", zone), map[string]any{"signed": true, "signingPolicy": policy})
	return nil
}

// users adds a user whose changes need an approval, a group, and a user who sees everything.
func (s *story) users(password string) {
	user := func(name, security string) map[string]any {
		return s.add("POST", "users", map[string]any{"type": "User", "name": name, "email": name + "@harbour.example", "password": password,
			"accessType": "GUI_AND_API", "securityPrivilege": security, "historyPrivilege": "VIEW_HISTORY_LIST"})
	}
	at := map[string]any{"id": s.configuration}
	s.add("POST", "accessRights", map[string]any{"type": "AccessRight", "userScope": user(demoUser, "NO_ACCESS"), "resource": at,
		"defaultAccessLevel": "FULL", "workflowLevel": "RECOMMEND"})
	s.add("POST", "accessRights", map[string]any{"type": "AccessRight", "userScope": user("auditor", "VIEW_OTHERS_ACCESS_RIGHTS"),
		"defaultAccessLevel": "VIEW"})
	operators := s.add("POST", "groups", map[string]any{"type": "UserGroup", "name": "operators"})
	s.add("POST", "accessRights", map[string]any{"type": "AccessRight", "userScope": operators, "resource": at, "defaultAccessLevel": "CHANGE",
		"workflowLevel": "APPROVE"})
}

// requests lets the user ask for changes: a name, a network and a host.
func (s *story) requests(ctx context.Context, api, user *client.Client) error {
	network, err := s.findOne(ctx, api, "networks", "range:'10.1.0.0/24'")
	if err != nil {
		return err
	}
	block, err := s.findOne(ctx, api, "blocks", "range:'10.1.0.0/16'")
	if err != nil {
		return err
	}
	zone, err := s.findOne(ctx, api, "zones", "absoluteName:'harbour.example'")
	if err != nil {
		return err
	}
	for _, ask := range []struct {
		method, path string
		body         map[string]any
	}{
		{"PATCH", fmt.Sprintf("networks/%d", network), map[string]any{"name": "Dock 2 floor 1 (offices)", "highWaterMark": 85,
			"lowWaterMark": 10}},
		{"POST", fmt.Sprintf("blocks/%d/networks", block), map[string]any{"type": "IPv4Network", "range": "10.1.32.0/24",
			"name": "Dock 2 workshop"}},
		{"POST", fmt.Sprintf("zones/%d/resourceRecords", zone), map[string]any{"type": "GenericRecord", "name": "tide", "recordType": "TXT",
			"rdata": "high water 06:12 and 18:34"}},
	} {
		if err := user.Do(ctx, ask.method, client.AddressPath+ask.path, ask.body, nil); err != nil {
			return err
		}
	}
	return nil
}
