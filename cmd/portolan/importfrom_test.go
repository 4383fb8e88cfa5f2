package main

import (
	"encoding/json"
	"slices"
	"testing"

	"portolan/client"
)

// TestAddressesWithoutHost checks the list of addresses that hosts have lost and that no host of the source has.
func TestAddressesWithoutHost(t *testing.T) {
	var done client.Applied
	if err := json.Unmarshal([]byte(`{"resources":[
		{"type":"HostRecord","key":"a.example","changes":[{"field":"addresses","before":["10.0.0.1","10.0.0.2"],
			"after":[{"address":"10.0.0.2"}]}]},
		{"type":"HostRecord","key":"b.example","changes":[{"field":"addresses","before":["10.0.0.3"],"after":[{"address":"10.0.0.4"}]},
			{"field":"ttl","before":"10.0.0.9","after":null}]},
		{"type":"HostRecord","key":"c.example","changes":[{"field":"addresses","before":["2001:db8::1","2001:db8::2"],"after":["2001:db8::1"]}]}]}`),
		&done); err != nil {
		t.Fatal(err)
	}
	source := []json.RawMessage{json.RawMessage(`{"absoluteName":"a.example","addresses":["10.0.0.2"]}`),
		json.RawMessage(`{"absoluteName":"b.example","addresses":["10.0.0.4"]}`), json.RawMessage(`{"absoluteName":"d.example","addresses":["10.0.0.3"]}`),
		json.RawMessage(`{"absoluteName":"c.example","addresses":["2001:db8::1"]}`), json.RawMessage(`{"range":"10.0.0.0/24"}`)}
	want := []string{
		"HostRecord a.example no longer has the address 10.0.0.1, which stays assigned: delete it if it is free " +
			"(portolan delete addresses/10.0.0.1)",
		"HostRecord c.example no longer has the address 2001:db8::2, which stays assigned: delete it if it is free " +
			"(portolan delete addresses/2001:db8::2)"}
	if got := listUnnamed(done, source); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}
