package serverconfig_test

import (
	"strconv"
	"testing"

	"portolan/internal/engine/store"
	"portolan/internal/testkit/apitest"
)

// TestServicesFollowTheProfile checks the services of servers: a service point has only the one that acts, also if an earlier release has
// created it; a foreign server has none; and a server that is only planned refuses settings.
func TestServicesFollowTheProfile(t *testing.T) {
	m := start(t)
	configuration, _, _, _, _ := m.Basics()
	create := func(name, profile, more string) (server string, services apitest.Reply) {
		server = m.ID("/api/v2/configurations/"+configuration+"/servers", `{"type":"Server","name":"`+name+`","profile":"`+profile+`"`+more+`,`+
			`"interfaces":[{"managementAddress":"10.0.0.5"}]}`)
		return server, m.Want(200, "GET", "/api/v2/servers/"+server+"/services", "")
	}
	foreign, r := create("foreign", "OTHER_DNS_SERVER", "")
	if r.Count() != 0 {
		t.Errorf("a foreign server has services: %s", r.Body)
	}
	planned, r := create("planned", "PORTOLAN_SERVICE_POINT", "")
	if r.Count() != 1 || r.Text("data.0.type") != "DHCPActivityService" {
		t.Fatalf("the services of a planned service point are %s", r.Body)
	}
	const settings = `{"type":"DHCPActivityService","enabled":true,"dhcpv4Enabled":true,"dhcpv6Enabled":true,"maximumBufferedEvents":100,` +
		`"destination":{"sinkType":"HTTP","url":"https://siem.example/a"}}`
	m.Refused(400, "ServerNotConnected", "servicePoint", "PUT", "/api/v2/servers/"+planned+"/services/"+r.Text("data.0.id"), settings)
	server, r := create("linked", "PORTOLAN_SERVICE_POINT", `,"servicePoint":"aaaa"`)
	service := r.Text("data.0.id")
	m.Want(200, "PUT", "/api/v2/servers/"+server+"/services/"+service, settings)

	// An earlier release has created servers without the service. The first start creates it, the second changes nothing.
	old, err := strconv.ParseInt(service, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Store.Update(t.Context(), store.Author{}, func(tx *store.Tx) error {
		row, err := tx.Get(old)
		if err != nil {
			return err
		}
		return tx.Remove(row)
	}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := m.Store.Update(t.Context(), store.Author{}, m.Address.Seed); err != nil {
			t.Fatal(err)
		}
		for at, want := range map[string]int{server: 1, planned: 1, foreign: 0} {
			if r := m.Want(200, "GET", "/api/v2/servers/"+at+"/services", ""); r.Count() != want {
				t.Errorf("after a start, server %s has %s", at, r.Body)
			}
		}
	}
	service = m.Want(200, "GET", "/api/v2/servers/"+server+"/services", "").Text("data.0.id")
	m.Want(200, "PUT", "/api/v2/servers/"+server+"/services/"+service, settings)
}
