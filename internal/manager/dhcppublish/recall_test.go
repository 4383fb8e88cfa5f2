package dhcppublish_test

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"portolan/internal/testkit/apitest"
	"portolan/internal/wire/dhcpdata"
	"portolan/internal/wire/dhcplease"
)

// orders returns the orders in the content of the network, and the ID of the last list of a server that had lost leases.
func (p *dhcpPlan) orders() (all []dhcpdata.Order, restored int64) {
	p.T.Helper()
	p.fetch()
	for _, text := range append(p.items(dhcpdata.ServerUnit), p.items(dhcpdata.NetworkUnit(apitest.Number(p.T, p.network)))...) {
		item, err := dhcpdata.Decode(dhcpdata.Record(text))
		if err != nil {
			p.T.Fatal(err)
		}
		switch x := item.(type) {
		case dhcpdata.Server:
			restored = x.Restored
		case dhcpdata.Order:
			all = append(all, x)
		}
	}
	return all, restored
}

// TestLostLeasesAreRestored checks that the leases of a server that has lost its disk do not end at the manager: they are orders in the
// content, in the same revision as the ID of the list that lacked them, until the server confirms them. A lease that has ended is not
// restored.
func TestLostLeasesAreRestored(t *testing.T) {
	m := startAlone(t)
	p := m.dhcpServer()
	m.ID("/api/v2/networks/"+p.network+"/ranges", `{"type":"IPv4DHCPRange","range":"10.0.0.10-10.0.0.90"}`)
	p.deploys()
	p.confirms(p.revision)
	source := m.SourceOf(p.point)
	now := m.Store.Now().Truncate(time.Second)
	sequence := map[string]uint64{}
	send := func(journal string, r dhcplease.Record) {
		t.Helper()
		r.Journal, r.Previous, r.At = journal, sequence[journal], now.UnixMilli()
		source.Sequence = sequence[journal]
		sequence[journal]++
		source.Send(r)
	}
	lease := func(n int, expires time.Duration) dhcplease.Lease {
		return dhcplease.Lease{Network: apitest.Number(t, p.network), Address: netip.AddrFrom4([4]byte{10, 0, 0, byte(20 + n)}),
			Start:   now.Unix() - 7200,
			Expires: now.Add(expires).Unix(), MAC: fmt.Sprintf("00005e0053%02x", n), HostName: fmt.Sprintf("host-%d", n), CircuitID: "657468302f31"}
	}
	for i := range 4 {
		l := lease(i, time.Hour)
		if i == 3 {
			l = lease(i, -time.Hour)
		}
		send("a", dhcplease.Record{Event: &dhcplease.Event{Kind: dhcplease.Begin, Lease: l}})
	}
	list := now.Unix()<<30 | 7
	send("b", dhcplease.Record{Snapshot: &dhcplease.Snapshot{ID: uint64(list), Last: true, Lost: true, //nolint:gosec // not negative
		Leases: []dhcplease.Lease{lease(0, time.Hour)}}})
	var orders []dhcpdata.Order
	apitest.Eventually(t, "the content restores the leases", func() bool {
		var restored int64
		orders, restored = p.orders()
		if len(orders) < 2 && restored != 0 {
			t.Fatalf("the content names the list, and restores %+v", orders)
		}
		return restored == list
	})
	if len(orders) != 2 {
		t.Fatalf("the orders are %+v", orders)
	}
	active := "/api/v2/leases?" + apitest.Filter("state:'DHCP_ALLOCATED'")
	if r := m.Want(200, "GET", active, ""); r.Count() != 3 {
		t.Errorf("the leases are %s", r.Body)
	}
	m.Verify()
	for _, o := range orders {
		n := int(o.Address.As4()[3]) - 20
		x := o.Lease
		if x == nil || fmt.Sprintf("%x", []byte(x.Hardware)) != lease(n, 0).MAC || x.HostName != fmt.Sprintf("host-%d", n) ||
			string(x.CircuitID) != "eth0/1" || x.Expires < now.Add(time.Hour).Unix() {
			text, _ := json.Marshal(o) //nolint:errchkjson // for a message
			t.Errorf("the order is %s", text)
		}
		send("b", dhcplease.Record{Event: &dhcplease.Event{Kind: dhcplease.Begin, Lease: lease(n, time.Hour), Order: o.ID}})
	}
	apitest.Eventually(t, "the orders leave the content", func() bool {
		orders, _ := p.orders()
		return len(orders) == 0
	})
	if r := m.Want(200, "GET", "/api/v2/leases?"+apitest.Filter("state:'DHCP_ALLOCATED' and server.id:"+p.server), ""); r.Count() != 3 {
		t.Errorf("after the server has confirmed them, the leases are %s", r.Body)
	}
	if r := m.Want(200, "GET", "/api/v2/leaseSpans?"+apitest.Filter("endDateTime:null"), ""); r.Count() != 3 {
		t.Errorf("the spans are %s", r.Body)
	}
	m.Verify()
}
