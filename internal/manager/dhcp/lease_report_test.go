package dhcp_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"portolan/internal/testkit/apitest"
	"portolan/internal/wire/dhcplease"
)

// TestLeasesAreReported checks that reported leases are listed at every path, that a renewal changes only the end, and that spans name the
// holder of an address over time. Records that arrive twice change nothing.
func TestLeasesAreReported(t *testing.T) {
	m := startManager(t)
	configuration, _, _, block, network := m.Basics()
	server, source := m.LeaseServer(configuration, "dhcp1")
	start := m.Store.Now().Truncate(time.Second).Add(-time.Hour)
	lease := dhcplease.Lease{Network: apitest.Number(t, network), Address: netip.MustParseAddr("10.0.0.20"), Start: start.Unix(),
		Expires: start.Add(24 * time.Hour).Unix(), MAC: "00005e005301", HostName: "lamp", CircuitID: "657468302f31", RemoteID: "00ff",
		VendorClass: "4d534654", Parameters: []int{1, 3, 6}}
	source.Event(dhcplease.Begin, start, lease)
	one := m.Want(200, "GET", "/api/v2/leases?"+apitest.Filter("type:'DHCPv4Lease'"), "")
	for field, want := range map[string]string{"address": "10.0.0.20", "state": "DHCP_ALLOCATED", "macAddress": "00-00-5E-00-53-01",
		"hostName": "lamp", "circuitId": "eth0/1", "remoteId": "0x00FF", "vendorClassIdentifier": "MSFT", "server.id": server,
		"network.id": network, "configuration.id": configuration, "leaseDateTime": start.UTC().Format(time.RFC3339),
		"leaseExpirationDateTime": start.Add(24 * time.Hour).UTC().Format(time.RFC3339), "parameterRequestList.1": "3"} {
		if got := one.Text("data.0." + field); got != want {
			t.Errorf("%s is %q, want %q: %s", field, got, want, one.Body)
		}
	}
	id := one.Text("data.0.id")
	if r := m.Want(200, "GET", "/api/v2/leases/"+id, ""); r.Text("address") != "10.0.0.20" || r.Text("server.name") != "dhcp1" {
		t.Errorf("the lease is %s", r.Body)
	}
	for _, path := range []string{"leases", "blocks/" + block + "/leases", "networks/" + network + "/leases",
		"leases?" + apitest.Filter("macAddress:'00:00:5e:00:53:01'"), "leases?" + apitest.Filter("address:'10.0.0.20'"),
		"leases?" + apitest.Filter("hostName:'lamp'"),
		"leases?" + apitest.Filter("circuitId:'eth0/1'"), "leases?" + apitest.Filter("server.id:"+server),
		"leases?" + apitest.Filter("server.name:'dhcp1'"),
		"leases?" + apitest.Filter("state:'DHCP_ALLOCATED' and network.id:"+network),
		"leases?orderBy=desc(address)", "networks/" + network + "/leaseSpans", "leaseSpans?" + apitest.Filter("endDateTime:null")} {
		if r := m.Want(200, "GET", "/api/v2/"+path, ""); r.Count() != 1 || r.Text("data.0.address") != "10.0.0.20" {
			t.Errorf("%s: %s", path, r.Body)
		}
	}
	for _, path := range []string{"leases?" + apitest.Filter("macAddress:'00:00:5e:00:53:02'"),
		"leases?" + apitest.Filter("state:'DHCP_FREE'")} {
		m.Want(200, "GET", "/api/v2/"+path, "").None(t)
	}
	m.Want(200, "GET", "/api/v2/leases?"+apitest.Filter("server.name:'dhcp2'"), "").None(t)
	for _, path := range []string{"server.id:" + server, "server.name:'dhcp1'"} {
		if r := m.Want(200, "GET", "/api/v2/leaseSpans?"+apitest.Filter(path), ""); r.Count() != 1 {
			t.Errorf("the spans with %s: %s", path, r.Body)
		}
	}
	later := start.Add(48 * time.Hour)
	source.Send(dhcplease.Record{At: start.UnixMilli(), Renewals: &dhcplease.Renewals{Network: lease.Network,
		Packed: dhcplease.Pack([]dhcplease.Renewal{{Address: lease.Address, Expires: later.Unix()}})}})
	if r := m.Want(200, "GET", "/api/v2/leases/"+id, ""); r.Text("leaseExpirationDateTime") != later.UTC().Format(time.RFC3339) {
		t.Errorf("after the renewal: %s", r.Body)
	}
	end := start.Add(30 * time.Minute)
	source.Event(dhcplease.Release, end, lease)
	source.Sequence-- // as after an answer that was lost, from a spool that begins anew
	source.Event(dhcplease.Begin, end, lease)
	if r := m.Want(200, "GET", "/api/v2/leases/"+id, ""); r.Text("state") != "DHCP_FREE" || r.Text("leaseExpirationDateTime") != "" {
		t.Errorf("after the release: %s", r.Body)
	}
	next := lease
	next.MAC, next.Start, next.HostName, next.CircuitID = "00005e005302", end.Add(time.Minute).Unix(), "radio", ""
	source.Event(dhcplease.Begin, end.Add(time.Minute), next)
	spans := m.Want(200, "GET", "/api/v2/leaseSpans?orderBy=asc(startDateTime)&"+apitest.Filter("address:'10.0.0.20'"), "")
	if spans.Count() != 2 || spans.Text("data.0.endReason") != "RELEASED" ||
		spans.Text("data.0.endDateTime") != end.UTC().Format(time.RFC3339) ||
		spans.Text("data.1.macAddress") != "00-00-5E-00-53-02" || spans.Text("data.1.endDateTime") != "" {
		t.Errorf("the spans are %s", spans.Body)
	}
	at := start.Add(10 * time.Minute).UTC().Format(time.RFC3339)
	if r := m.Want(200, "GET",
		"/api/v2/leaseSpans?"+apitest.Filter("address:'10.0.0.20' and startDateTime:le('"+at+"') and (endDateTime:gt('"+at+
			"') or endDateTime:null)"), ""); r.Count() != 1 || r.Text("data.0.hostName") != "lamp" {
		t.Errorf("who had it then: %s", r.Body)
	}
	mac := m.ID("/api/v2/configurations/"+configuration+"/macAddresses", `{"address":"00:00:5e:00:53:01"}`)
	if r := m.Want(200, "GET", "/api/v2/macAddresses/"+mac+"/leaseSpans", ""); r.Count() != 1 || r.Text("data.0.circuitId") != "eth0/1" {
		t.Errorf("the spans of the hardware address: %s", r.Body)
	}
	source.Event(dhcplease.Decline, end.Add(2*time.Minute), next)
	if r := m.Want(200, "GET", "/api/v2/leases?"+apitest.Filter("state:'DHCP_ABANDONED'"), ""); r.Count() != 1 {
		t.Errorf("after the decline: %s", r.Body)
	}
	r := m.Want(200, "GET", "/api/v2/events?"+apitest.Filter("category:'DHCP_ALERT'"), "")
	if !strings.Contains(r.Text("data.0.message"), "10.0.0.20") {
		t.Errorf("the events are %s", r.Body)
	}
	source.Event(dhcplease.Abandon, end.Add(3*time.Minute), dhcplease.Lease{Network: lease.Network,
		Address: netip.MustParseAddr("10.0.0.77"), Start: end.Unix(), Expires: later.Unix()})
	r = m.Want(200, "GET", "/api/v2/events?"+apitest.Filter("category:'DHCP_ALERT' and message:contains('10.0.0.77')"), "")
	if !strings.Contains(r.Text("data.0.message"), "without a lease answers") {
		t.Errorf("the events are %s", r.Body)
	}
	source.Event(dhcplease.Abandon, end.Add(4*time.Minute), dhcplease.Lease{Network: lease.Network,
		Address: netip.MustParseAddr("10.0.0.78"), Start: end.Unix(),
		Expires: later.Unix(), MAC: "00005e0053aa", HardwareType: 1, Stranger: true})
	r = m.Want(200, "GET", "/api/v2/leases?"+apitest.Filter("address:'10.0.0.78'"), "")
	r.Shows(t, map[string]string{"data.0.state": "DHCP_ABANDONED", "data.0.macAddress": "00-00-5E-00-53-AA", "data.0.hostName": ""})
	r = m.Want(200, "GET", "/api/v2/events?orderBy=desc(id)&"+apitest.Filter("category:'DHCP_ALERT'"), "")
	if !strings.Contains(r.Text("data.0.message"), "10.0.0.78 (00-00-5E-00-53-AA)") {
		t.Errorf("the last event is %s", r.Body)
	}
	source.Event(dhcplease.Clear, end.Add(5*time.Minute), dhcplease.Lease{Network: lease.Network,
		Address: netip.MustParseAddr("10.0.0.78"), Start: end.Unix(),
		MAC: "00005e0053aa", HardwareType: 1, Stranger: true})
	r = m.Want(200, "GET", "/api/v2/leases?"+apitest.Filter("address:'10.0.0.78'"), "")
	r.Shows(t, map[string]string{"data.0.state": "DHCP_FREE", "data.0.macAddress": ""})
	m.Verify()
	m.Want(204, "DELETE", "/api/v2/networks/"+network, "")
	m.Want(200, "GET", "/api/v2/leases", "").None(t)
	m.Verify()
}

// TestLeasesOfAddresses checks that a reserved address shows its lease, that a range counts its leases, and that leases that cross a water
// mark raise an event.
func TestLeasesOfAddresses(t *testing.T) {
	m := startManager(t)
	configuration, _, _, _, network := m.Basics()
	_, source := m.LeaseServer(configuration, "dhcp1")
	at := "/api/v2/networks/" + network
	r := m.ID(at+"/ranges", `{"type":"IPv4DHCPRange","range":"10.0.0.20-10.0.0.29","highWaterMark":15}`)
	reserved := m.ID(at+"/addresses", `{"type":"IPv4Address","address":"10.0.0.40","state":"DHCP_RESERVED","macAddress":{"address":"00:00:5e:00:53:40"}}`)
	m.Want(200, "GET", "/api/v2/addresses/"+reserved, "")
	m.Want(200, "GET", at+"/addresses", "")
	start := m.Store.Now().Truncate(time.Second)
	end := start.Add(time.Hour)
	for _, n := range []string{"20", "21", "22", "40"} {
		l := dhcplease.Lease{Network: apitest.Number(t, network), Address: netip.MustParseAddr("10.0.0." + n), Start: start.Unix(),
			Expires: end.Unix(), MAC: "00005e0053" + n, CircuitID: "0102"}
		if n == "40" {
			l.Reservation = apitest.Number(t, reserved)
		}
		source.Event(dhcplease.Begin, start, l)
	}
	source.Event(dhcplease.Decline, start, dhcplease.Lease{Network: apitest.Number(t, network), Address: netip.MustParseAddr("10.0.0.22"),
		Expires: end.Unix()})
	for _, path := range []string{"/api/v2/addresses/" + reserved, at + "/addresses?" + apitest.Filter("address:'10.0.0.40'")} {
		got := m.Want(200, "GET", path, "")
		prefix := ""
		if strings.Contains(path, "filter") {
			prefix = "data.0."
		}
		if got.Text(prefix+"leaseDateTime") != start.UTC().Format(time.RFC3339) || got.Text(prefix+"circuitId") != "0x0102" ||
			got.Text(prefix+"leaseExpirationDateTime") != end.UTC().Format(time.RFC3339) || got.Text(prefix+"state") != "DHCP_RESERVED" {
			t.Errorf("%s: %s", path, got.Body)
		}
	}
	if got := m.Want(200, "GET", "/api/v2/ranges/"+r, ""); got.Text("usage.DHCP_ALLOCATED") != "2" ||
		got.Text("usage.DHCP_ABANDONED") != "1" ||
		got.Text("usage.UNASSIGNED") != "7" {
		t.Errorf("the range is %s", got.Body)
	}
	if got := m.Want(200, "GET", "/api/v2/events?"+apitest.Filter("message:contains('10.0.0.20')"), ""); got.Count() == 0 {
		t.Errorf("the events are %s", m.Want(200, "GET", "/api/v2/events?orderBy=desc(id)&limit=5", "").Body)
	}
	m.Verify()
}

// TestLeaseSnapshot checks that a snapshot replaces the leases of its server: missing leases end.
func TestLeaseSnapshot(t *testing.T) {
	m := startManager(t)
	configuration, _, _, _, network := m.Basics()
	_, source := m.LeaseServer(configuration, "dhcp1")
	start := m.Store.Now().Truncate(time.Second)
	var leases []dhcplease.Lease
	for _, a := range []string{"10.0.0.20", "10.0.0.21", "10.0.0.22"} {
		l := dhcplease.Lease{Network: apitest.Number(t, network), Address: netip.MustParseAddr(a), Start: start.Unix(),
			Expires: start.Add(time.Hour).Unix(), MAC: "00005e0053" + a[len(a)-2:]}
		source.Event(dhcplease.Begin, start, l)
		leases = append(leases, l)
	}
	snapshot := func(part int, last bool, some ...dhcplease.Lease) {
		source.Send(dhcplease.Record{At: start.UnixMilli(), Snapshot: &dhcplease.Snapshot{ID: 1 << 63, Part: part, Last: last, Leases: some}})
	}
	snapshot(0, false, leases[0])
	during := leases[0]
	during.Address, during.MAC = netip.MustParseAddr("10.0.0.30"), "00005e005330"
	source.Event(dhcplease.Begin, start, during)
	snapshot(1, true, leases[2])
	all := m.Want(200, "GET", "/api/v2/leases?orderBy=asc(address)&fields=address,state", "")
	if got := string(all.Body); !strings.Contains(got, `{"address":"10.0.0.20","state":"DHCP_ALLOCATED"},{"address":"10.0.0.21","state":"DHCP_FREE"},`+
		`{"address":"10.0.0.22","state":"DHCP_ALLOCATED"},{"address":"10.0.0.30","state":"DHCP_ALLOCATED"}`) {
		t.Errorf("the leases are %s", got)
	}
	m.Verify()
}

// TestLeaseActions checks that a lease becomes a reservation in one call, and that orders wait for the server.
func TestLeaseActions(t *testing.T) {
	m := startManager(t)
	configuration, _, _, _, network := m.Basics()
	_, source := m.LeaseServer(configuration, "dhcp1")
	start := m.Store.Now().Truncate(time.Second)
	lease := dhcplease.Lease{Network: apitest.Number(t, network), Address: netip.MustParseAddr("10.0.0.20"), Start: start.Unix(),
		Expires: start.Add(time.Hour).Unix(), MAC: "00005e005301", HostName: "lamp"}
	source.Event(dhcplease.Begin, start, lease)
	actions := "/api/v2/networks/" + network + "/leaseActions"
	m.Refused(404, "ResourceNotFound", "10.0.0.21", "POST", actions, `{"address":"10.0.0.21","action":"END_LEASE"}`)
	m.Refused(409, "ResourceConflictsWithOther", "not abandoned", "POST", actions, `{"address":"10.0.0.20","action":"CLEAR_ADDRESS"}`)
	end := m.Want(201, "POST", actions, `{"address":"10.0.0.20","action":"END_LEASE"}`)
	if end.Text("state") != "PENDING" {
		t.Errorf("the order is %s", end.Body)
	}
	reserved := m.Want(201, "POST", actions, `{"address":"10.0.0.20","action":"RESERVE"}`)
	if reserved.Text("state") != "DONE" {
		t.Errorf("the reservation is %s", reserved.Body)
	}
	if r := m.Want(200, "GET", "/api/v2/addresses/"+reserved.Text("reservation.id"), ""); r.Text("state") != "DHCP_RESERVED" ||
		r.Text("macAddress.address") != "00-00-5E-00-53-01" || r.Text("address") != "10.0.0.20" {
		t.Errorf("the reserved address is %s", r.Body)
	}
	source.Send(dhcplease.Record{At: start.UnixMilli(), Event: &dhcplease.Event{Kind: dhcplease.End, Lease: lease,
		Order: apitest.Number(t, end.Text("id"))}})
	if r := m.Want(200, "GET", "/api/v2/leaseActions/"+end.Text("id"), ""); r.Text("state") != "DONE" {
		t.Errorf("the order is %s", r.Body)
	}
	m.Refused(409, "ResourceConflictsWithOther", "no lease", "POST", actions, `{"address":"10.0.0.20","action":"END_LEASE"}`)
	m.Verify()
}

// TestLeasesByRights checks that a user sees only the leases of visible networks.
func TestLeasesByRights(t *testing.T) {
	m := startManager(t)
	configuration, _, _, block, network := m.Basics()
	hidden := m.ID("/api/v2/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"10.0.1.0/24"}`)
	_, source := m.LeaseServer(configuration, "dhcp1")
	start := m.Store.Now().Truncate(time.Second)
	for n, of := range map[string]string{"10.0.0.20": network, "10.0.1.20": hidden} {
		source.Event(dhcplease.Begin, start, dhcplease.Lease{Network: apitest.Number(t, of), Address: netip.MustParseAddr(n),
			Start:   start.Unix(),
			Expires: start.Add(time.Hour).Unix(), MAC: "00005e005301"})
	}
	bob := m.ID("/api/v2/users", `{"name":"bob","email":"b@example.net","accessType":"API","securityPrivilege":"NO_ACCESS","password":"a-long-password"}`)
	m.ID("/api/v2/accessRights", `{"userScope":{"id":`+bob+`},"resource":{"id":`+network+`},"defaultAccessLevel":"VIEW"}`)
	as := apitest.BasicAuth("bob", "a-long-password")
	if r := m.Want(200, "GET", "/api/v2/leases", "", as); r.Count() != 1 || r.Text("data.0.address") != "10.0.0.20" ||
		r.Text("data.0.server.id")+r.Text("data.0.serverConnectionStatus") != "" {
		t.Errorf("the user sees %s", r.Body)
	}
	if r := m.Want(200, "GET", "/api/v2/leaseSpans", "", as); r.Count() != 1 {
		t.Errorf("the user sees %s", r.Body)
	}
	m.Want(404, "GET", "/api/v2/networks/"+hidden+"/leases", "", as)
}
