package server

import (
	"net/netip"
	"testing"
	"time"

	"portolan/internal/testkit/apitest"
	"portolan/internal/wire/dhcplease"
)

// TestReservationOfLease checks that a leased address that becomes DHCP_RESERVED without a client is reserved for the client of its lease, and
// that a reservation is refused without one, or by an identifier that the address does not have.
func TestReservationOfLease(t *testing.T) {
	p, _ := prefixPlan(t)
	m := p.manager
	_, source := m.leaseServer(p.configuration, "dhcp7")
	now := m.Store.Now().Truncate(time.Second)
	six := "/api/v2/networks/" + p.network + "/addresses"
	v4 := m.Want(200, "GET", "/api/v2/networks?"+filter("type:'IPv4Network'"), "").Text("data.0.id")
	four := "/api/v2/networks/" + v4 + "/addresses"
	begin := func(network, address string, l dhcplease.Lease) {
		l.Network, l.Address, l.Start, l.Expires = int64Of(t, network), netip.MustParseAddr(address), now.Unix(), now.Add(time.Hour).Unix()
		source.event(dhcplease.Begin, now, l)
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
	shows(t, reserve(four, "IPv4Address", "10.0.0.20"), map[string]string{"macAddress.address": "00-00-5E-00-53-01", "clientIdentifier": ""})
	shows(t, m.Want(200, "PATCH", "/api/v2/addresses/"+static, `{"state":"DHCP_RESERVED"}`, apitest.MergePatch),
		map[string]string{"macAddress.address": "00-00-5E-00-53-02"})
	shows(t, reserve(four, "IPv4Address", "10.0.0.22"), map[string]string{"clientIdentifier.uid.clientIdentifier": "0x6C616D70"})
	shows(t, reserve(six, "IPv6Address", "2001:db8:100::177"), map[string]string{"clientIdentifier.duid": "00030001020000000001"})
	for _, text := range []string{"10.0.0.20", "10.0.0.21", "10.0.0.22", "2001:db8:100::177"} {
		if r := m.Want(200, "GET", "/api/v2/leases?"+filter("address:'"+text+"'"), ""); r.Text("data.0.state") != "DHCP_LEASED" {
			t.Errorf("the lease of a reserved address is %s", r.Body)
		}
	}
	m.Refused(400, "InvalidResourceFieldValue", "no lease to take the client from", "POST", four,
		`{"type":"IPv4Address","address":"10.0.0.77","state":"DHCP_RESERVED"}`)
	m.Refused(400, "InvalidResourceFieldValue", "no lease to take the client from", "POST", four, `{"type":"IPv4Address","state":"DHCP_RESERVED"}`)
	m.Want(200, "PATCH", "/api/v2/addresses/"+static, `{"state":"STATIC","macAddress":null}`, apitest.MergePatch)
	m.Refused(400, "InvalidResourceFieldValue", "macAddress", "PATCH", "/api/v2/addresses/"+static,
		`{"state":"DHCP_RESERVED","macAddress":null}`, apitest.MergePatch)
	m.Refused(400, "InvalidResourceFieldValue", "reservedUsing: MAC_ADDRESS requires", "POST", six, `{"type":"IPv6Address",`+
		`"address":"2001:db8:100::9","state":"DHCP_RESERVED","reservedUsing":"MAC_ADDRESS","clientIdentifier":{"duid":"00030001020000000009"}}`)
	m.Refused(400, "InvalidResourceFieldValue", "reservedUsing: CLIENT_DUID requires", "POST", six, `{"type":"IPv6Address",`+
		`"address":"2001:db8:100::9","state":"DHCP_RESERVED","reservedUsing":"CLIENT_DUID","macAddress":{"address":"02:00:00:00:00:09"}}`)
	m.Verify()
}
