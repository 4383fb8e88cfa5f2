package ipam_test

import (
	"testing"

	"portolan/internal/testkit/apitest"
)

// TestContentTransactions checks that the history of a network with its content has the changes of its addresses and ranges, also of
// deleted ones and of those below them, and none of other networks.
func TestContentTransactions(t *testing.T) {
	m := start(t)
	_, _, _, block, network := m.Basics()
	other := m.ID("/api/v2/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"10.9.0.0/24"}`)
	at := func(network string) int {
		return m.Want(200, "GET", "/api/v2/networks/"+network+"/contentTransactions", "").Count()
	}
	own := m.Want(200, "GET", "/api/v2/networks/"+network+"/transactions", "").Count()
	begin, others := at(network), at(other)
	address := m.ID("/api/v2/networks/"+network+"/addresses", `{"type":"IPv4Address","address":"10.0.0.40","state":"STATIC"}`)
	m.Want(200, "PATCH", "/api/v2/addresses/"+address, `{"name":"crane"}`, apitest.MergePatch)
	m.Want(204, "DELETE", "/api/v2/addresses/"+address, "")
	dhcp := m.ID("/api/v2/networks/"+network+"/ranges", `{"type":"IPv4DHCPRange","range":"10.0.0.100-10.0.0.110"}`)
	option := m.ID("/api/v2/ranges/"+dhcp+"/deploymentOptions", `{"type":"DHCPv4ClientOption","name":"router","value":["10.0.0.1"],"serverScope":null}`)
	m.Want(204, "DELETE", "/api/v2/ranges/"+dhcp, "")
	if n := at(network); n != begin+6 {
		t.Errorf("%d transactions, and %d more would be those of the content: %s", n-begin, 6,
			m.Want(200, "GET", "/api/v2/networks/"+network+"/contentTransactions?orderBy=desc(id)", "").Body)
	}
	if n := m.Want(200, "GET", "/api/v2/networks/"+network+"/transactions", "").Count(); n != own {
		t.Errorf("%d transactions of the network itself, not %d", n, own)
	}
	if n := at(other); n != others {
		t.Errorf("%d transactions of another network, not %d", n, others)
	}
	if n := m.Want(200, "GET", "/api/v2/blocks/"+block+"/contentTransactions", "").Count(); n < begin+6+others {
		t.Errorf("%d transactions of the block with its content", n)
	}
	r := m.Want(200, "GET", "/api/v2/networks/"+network+"/contentTransactions?"+apitest.Filter("operation:startsWith('DELETE')"), "")
	if r.Count() != 2 {
		t.Errorf("deletions: %s", r.Body)
	}
	m.Refused(404, "ResourceNotFound", option, "GET", "/api/v2/deploymentOptions/"+option, "")
}
