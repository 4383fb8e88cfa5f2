package dhcp_test

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"portolan/internal/testkit/apitest"
	"portolan/internal/wire/dhcpdata"
	"portolan/internal/wire/dhcplease"
)

// TestRefusedClients checks that refused clients are listed at their network, or at the server if no served network contains them, with
// numbers by reason and day.
func TestRefusedClients(t *testing.T) {
	m := startAlone(t)
	configuration, _, _, _, network := m.Basics()
	server, send := m.Observe(configuration, "dhcp1")
	now := m.Store.Now().Truncate(time.Second)
	client := dhcplease.Refused{Network: apitest.Number(t, network), Reason: "no-free-address", Message: "DISCOVER", Count: 3,
		First: now.Add(-time.Minute).Unix(), Last: now.Unix(), MAC: "00005e005301", HostName: "lamp", CircuitID: "657468302f31",
		Requested: netip.MustParseAddr("10.0.0.30")}
	count := dhcplease.RefusedCount{Network: client.Network, Reason: client.Reason, Count: 3}
	send(dhcplease.Observation{Refused: []dhcplease.Refused{client}, Counts: []dhcplease.RefusedCount{count}})
	client.First, client.Last = now.Unix(), now.Add(time.Hour).Unix() // the clock of the server is ahead
	lost := client
	lost.Network, lost.Reason, lost.MAC = 0, "no-network", "00005e005302"
	send(dhcplease.Observation{Refused: []dhcplease.Refused{client, lost}, Counts: []dhcplease.RefusedCount{count,
		{Reason: "no-network", Count: 7}}})
	at := "/api/v2/networks/" + network
	r := m.Want(200, "GET", at+"/refusedClients", "")
	for field, want := range map[string]string{"totalCount": "", "data.0.reason": "no-free-address", "data.0.count": "6",
		"data.0.macAddress": "00-00-5E-00-53-01", "data.0.circuitId": "eth0/1", "data.0.requestedAddress": "10.0.0.30",
		"data.0.messageType": "DISCOVER", "data.0.server.name": "dhcp1", "data.0.network.id": network,
		"data.0.firstDateTime": now.Add(-time.Minute).UTC().Format(time.RFC3339), "data.0.explanation": "No address of the ranges is free."} {
		if got := r.Text(field); got != want && want != "" {
			t.Errorf("%s is %q, want %q: %s", field, got, want, r.Body)
		}
	}
	if last, err := time.Parse(time.RFC3339, r.Text("data.0.lastDateTime")); err != nil || last.After(m.Store.Now()) || r.Count() != 1 {
		t.Errorf("the last message is at %v, %v: %s", last, err, r.Body)
	}
	if r := m.Want(200, "GET", at+"/refusedCounts", ""); r.Count() != 1 || r.Text("data.0.count") != "6" {
		t.Errorf("the numbers are %s", r.Body)
	}
	if r := m.Want(200, "GET", "/api/v2/servers/"+server+"/refusedClients", ""); r.Count() != 1 || r.Text("data.0.reason") != "no-network" ||
		r.Text("data.0.network.id") != "" {
		t.Errorf("at the server: %s", r.Body)
	}
	if r := m.Want(200, "GET", "/api/v2/refusedClients?"+apitest.Filter("macAddress:'00:00:5e:00:53:02'"), ""); r.Count() != 1 {
		t.Errorf("by hardware address: %s", r.Body)
	}
	var many []dhcplease.Refused
	for n := range 100 {
		one := client
		one.MAC, one.Last = fmt.Sprintf("00005e0054%02x", n), now.Add(-time.Second).Unix()
		one.First = one.Last
		many = append(many, one)
	}
	send(dhcplease.Observation{Refused: many})
	if r := m.Want(200, "GET", at+"/refusedClients?limit=1000", ""); r.Count() != 100 ||
		!strings.Contains(string(r.Body), "00-00-5E-00-53-01") {
		t.Errorf("%d clients are kept: %.300s", r.Count(), r.Body)
	}
	m.Verify()
	m.Refused(405, "MethodNotAllowed", "POST", "POST", at+"/refusedClients", "{}")
	m.Want(204, "DELETE", "/api/v2/networks/"+network, "")
	m.Want(204, "DELETE", "/api/v2/servers/"+server, "")
	m.Want(200, "GET", "/api/v2/refusedClients", "").None(t)
	m.Verify()
}

// TestNoticesAboutNamesAreEvents checks that notices about the names of clients in DNS are events of the server.
func TestNoticesAboutNamesAreEvents(t *testing.T) {
	m := startManager(t)
	configuration, _, _, _, _ := m.Basics()
	server, send := m.Observe(configuration, "dhcp1")
	a := netip.MustParseAddr("10.0.0.20")
	send(dhcplease.Observation{Names: []dhcplease.NameNotice{{Kind: dhcplease.ZoneDelayed, Zone: "lab.example.", Reason: "i/o timeout"},
		{Kind: dhcplease.ZoneResumed, Zone: "lab.example."},
		{Kind: dhcplease.NameConflict, Zone: "lab.example.", Name: "desk.lab.example.", Address: a},
		{Kind: dhcplease.NameRefused, Zone: "lab.example.", Name: "lamp.lab.example.", Address: a, Reason: "REFUSED"}}})
	r := m.Want(200, "GET", "/api/v2/events?orderBy=asc(id)&"+apitest.Filter("category:'DDNS_NOTIFICATION'"), "")
	for i, want := range []string{"DHCP server dhcp1 cannot update names of clients in zone lab.example: i/o timeout.",
		"updates names of clients in zone lab.example again", "10.0.0.20 did not get the name desk.lab.example: another client has it",
		"refused to update the name lamp.lab.example of the address 10.0.0.20 in zone lab.example: REFUSED"} {
		at := fmt.Sprintf("data.%d.", i)
		if !strings.Contains(r.Text(at+"message"), want) || r.Text(at+"source.id") != server {
			t.Errorf("the event %d is not %q: %s", i, want, r.Body)
		}
	}
	if r.Count() != 4 || r.Text("data.1.eventType") != "INFO" || r.Text("data.2.subcategory") != "DHCPv4" {
		t.Errorf("the events are %s", r.Body)
	}
	m.Verify()
}

// TestUnknownServersRaiseEvents checks that another DHCP server raises an event, unless it is a server of the configuration.
func TestUnknownServersRaiseEvents(t *testing.T) {
	m := startAlone(t)
	configuration, _, _, _, network := m.Basics()
	server, send := m.Observe(configuration, "dhcp1")
	other := dhcplease.OtherServer{Network: apitest.Number(t, network), Address: netip.MustParseAddr("10.0.0.66"), MAC: "00005e005366",
		Message: "OFFER", Last: m.Store.Now().Unix()}
	own := other
	own.Address = netip.MustParseAddr("10.0.0.5")
	named := other
	named.Address = netip.MustParseAddr("10.0.0.77")
	m.Want(201, "POST", "/api/v2/networks/"+network+"/deploymentOptions", `{"type":"DHCPv4ServiceOption","name":"server-identifier","value":"10.0.0.77"}`)
	duid := dhcpdata.DUIDOf(apitest.Number(t, configuration), apitest.Number(t, server)).String()
	send(dhcplease.Observation{Others: []dhcplease.OtherServer{own, named, {DUID: duid, Message: "REQUEST6"}, other,
		{DUID: "00030001", Message: "REQUEST6"}}})
	r := m.Want(200, "GET", "/api/v2/events?orderBy=asc(id)&"+apitest.Filter("category:'DHCP_ALERT'"), "")
	if r.Count() != 2 || !strings.Contains(r.Text("data.0.message"), "10.0.0.66 (00-00-5E-00-53-66)") ||
		!strings.Contains(r.Text("data.0.message"), "10.0.0.0/24") || !strings.Contains(r.Text("data.1.message"), "00030001") {
		t.Errorf("the events are %s", r.Body)
	}
}

// TestClonesAndClockStepsRaiseEvents checks the events about machines with one identifier, and about steps of a clock.
func TestClonesAndClockStepsRaiseEvents(t *testing.T) {
	m := startAlone(t)
	configuration, _, _, _, network := m.Basics()
	_, send := m.Observe(configuration, "dhcp1")
	macs := [2]string{"00005e005301", "00005e005302"}
	send(dhcplease.Observation{Clones: []dhcplease.Clone{
		{Network: apitest.Number(t, network), Address: netip.MustParseAddr("10.0.0.21"), ClientID: "01ab", MACs: macs},
		{Address: netip.MustParseAddr("2001:db8::21"), DUID: "00030001ab", MACs: macs}},
		ClockSteps: []dhcplease.ClockStep{{Seconds: -7200}, {Seconds: 1 << 62}}})
	r := m.Want(200, "GET", "/api/v2/events?orderBy=asc(id)&"+apitest.Filter("category:'DHCP_ALERT'"), "")
	for i, want := range []string{
		"The machines 00-00-5E-00-53-01 and 00-00-5E-00-53-02 have the same client identifier 01AB, and get the same address 10.0.0.21.",
		"DUID 00030001AB", "was set back by 2h0m0s", "was set forward by 876000h0m0s"} {
		if got := r.Text("data." + strconv.Itoa(i) + ".message"); !strings.Contains(got, want) {
			t.Errorf("the event is %q, want %q", got, want)
		}
	}
	if r.Count() != 4 || r.Text("data.0.subcategory") != "DHCPv4" || r.Text("data.1.subcategory") != "DHCPv6" {
		t.Errorf("the events are %s", r.Body)
	}
}
