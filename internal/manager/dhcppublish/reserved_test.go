package dhcppublish_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"portolan/internal/testkit/apitest"
	"portolan/internal/wire/dhcplease"
)

// TestReservationOfLease checks that a leased address that becomes DHCP_RESERVED without a client is reserved for the client of its
// lease, and that a reservation is refused without one, or by an identifier that the address does not have.
func TestReservationOfLease(t *testing.T) {
	p, _ := prefixPlan(t)
	m := p.manager
	_, source := m.LeaseServer(p.configuration, "dhcp7")
	now := m.Store.Now().Truncate(time.Second)
	six := "/api/v2/networks/" + p.network + "/addresses"
	v4 := m.Want(200, "GET", "/api/v2/networks?"+apitest.Filter("type:'IPv4Network'"), "").Text("data.0.id")
	four := "/api/v2/networks/" + v4 + "/addresses"
	begin := func(network, address string, l dhcplease.Lease) {
		l.Network, l.Address, l.Start, l.Expires = apitest.Number(t, network), netip.MustParseAddr(address), now.Unix(),
			now.Add(time.Hour).Unix()
		source.Event(dhcplease.Begin, now, l)
	}
	begin(v4, "10.0.0.20", dhcplease.Lease{MAC: "00005e005301", ClientID: "0100005e005301"})
	begin(v4, "10.0.0.21", dhcplease.Lease{MAC: "00005e005302"})
	begin(v4, "10.0.0.22", dhcplease.Lease{ClientID: "6c616d70"})
	begin(p.network, "2001:db8:100::177", dhcplease.Lease{DUID: "00030001020000000001", IAID: 7, MAC: "020000000001"})
	static := m.ID(four, `{"type":"IPv4Address","address":"10.0.0.21","state":"STATIC"}`)
	reserve := func(at, typ, address string) apitest.Reply {
		t.Helper()
		return m.Want(201, "POST", at, `{"type":"`+typ+`","address":"`+address+`","state":"DHCP_RESERVED"}`)
	}
	reserve(four, "IPv4Address", "10.0.0.20").Shows(t, map[string]string{"macAddress.address": "00-00-5E-00-53-01", "clientIdentifier": ""})
	m.Want(200, "PATCH", "/api/v2/addresses/"+static, `{"state":"DHCP_RESERVED"}`, apitest.MergePatch).Shows(t,
		map[string]string{"macAddress.address": "00-00-5E-00-53-02"})
	reserve(four, "IPv4Address", "10.0.0.22").Shows(t, map[string]string{"clientIdentifier.uid.clientIdentifier": "0x6C616D70"})
	reserve(six, "IPv6Address", "2001:db8:100::177").Shows(t, map[string]string{"clientIdentifier.duid": "00030001020000000001"})
	for _, text := range []string{"10.0.0.20", "10.0.0.21", "10.0.0.22", "2001:db8:100::177"} {
		if r := m.Want(200, "GET", "/api/v2/leases?"+apitest.Filter("address:'"+text+"'"), ""); r.Text("data.0.state") != "DHCP_LEASED" {
			t.Errorf("the lease of a reserved address is %s", r.Body)
		}
	}
	m.Refused(400, "InvalidResourceFieldValue", "no lease to take the client from", "POST", four,
		`{"type":"IPv4Address","address":"10.0.0.77","state":"DHCP_RESERVED"}`)
	m.Refused(400, "InvalidResourceFieldValue", "no lease to take the client from", "POST", four,
		`{"type":"IPv4Address","state":"DHCP_RESERVED"}`)
	m.Want(200, "PATCH", "/api/v2/addresses/"+static, `{"state":"STATIC","macAddress":null}`, apitest.MergePatch)
	m.Refused(400, "InvalidResourceFieldValue", "macAddress", "PATCH", "/api/v2/addresses/"+static,
		`{"state":"DHCP_RESERVED","macAddress":null}`, apitest.MergePatch)
	m.Refused(400, "InvalidResourceFieldValue", "reservedUsing: MAC_ADDRESS requires", "POST", six, `{"type":"IPv6Address",`+
		`"address":"2001:db8:100::9","state":"DHCP_RESERVED","reservedUsing":"MAC_ADDRESS","clientIdentifier":{"duid":"00030001020000000009"}}`)
	m.Refused(400, "InvalidResourceFieldValue", "reservedUsing: CLIENT_DUID requires", "POST", six, `{"type":"IPv6Address",`+
		`"address":"2001:db8:100::9","state":"DHCP_RESERVED","reservedUsing":"CLIENT_DUID","macAddress":{"address":"02:00:00:00:00:09"}}`)
	m.Verify()
}

// TestReservationsOfManyLeases checks that the leases of more addresses than one query reads change with their reservations, also of
// addresses without a lease, and of one whose reservation begins and ends in one transaction.
func TestReservationsOfManyLeases(t *testing.T) {
	m := start(t)
	configuration, _, _, _, network := m.Basics()
	_, source := m.LeaseServer(configuration, "dhcp1")
	now := m.Store.Now().Truncate(time.Second)
	snapshot := &dhcplease.Snapshot{ID: 7, Last: true}
	var all []string
	for i := range 130 {
		a := netip.AddrFrom4([4]byte{10, 0, 0, byte(20 + i)})
		mac := fmt.Sprintf("00005e0053%02x", i)
		if i%10 > 0 {
			snapshot.Leases = append(snapshot.Leases, dhcplease.Lease{Network: apitest.Number(t, network), Address: a, Start: now.Unix(),
				Expires: now.Add(time.Hour).Unix(), MAC: mac})
		}
		all = append(all, `{"type":"IPv4Address","address":"`+a.String()+`","state":"DHCP_RESERVED","macAddress":{"address":"`+mac+`"}}`)
	}
	source.Send(dhcplease.Record{At: now.UnixMilli(), Snapshot: snapshot})
	states := func(leased, allocated int) {
		t.Helper()
		for state, want := range map[string]int{"DHCP_LEASED": leased, "DHCP_ALLOCATED": allocated} {
			r := m.Want(200, "GET", "/api/v2/leases?limit=1000&"+apitest.Filter("state:'"+state+"'"), "")
			if r.Count() != want {
				t.Errorf("%d leases are %s, want %d", r.Count(), state, want)
			}
		}
		m.Verify()
	}
	states(0, 117)
	m.Want(201, "POST", "/api/v2/networks/"+network+"/addresses", "["+strings.Join(all, ",")+"]")
	states(117, 0)
	one := m.Want(200, "GET", "/api/v2/addresses?"+apitest.Filter("address:'10.0.0.21'"), "").Text("data.0.id")
	m.Want(204, "DELETE", "/api/v2/addresses/"+one, "")
	states(116, 1)
	m.Want(200, "POST", "/api/v2/batch", `{"changes":[{"method":"POST","path":"networks/`+network+`/addresses","body":`+all[1]+
		`},{"method":"DELETE","path":"addresses/$0"}]}`)
	states(116, 1)
}
