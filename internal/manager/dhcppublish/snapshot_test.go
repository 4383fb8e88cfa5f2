package dhcppublish_test

import (
	"encoding/json"
	"net/netip"
	"strings"
	"testing"
	"time"

	"portolan/internal/engine/store"
	"portolan/internal/testkit/apitest"
	"portolan/internal/wire/content"
	"portolan/internal/wire/dhcpdata"
	"portolan/internal/wire/dhcplease"
)

// requests fetches the content, and returns the number of the last request for all leases.
func (p *dhcpPlan) requests() int64 {
	p.T.Helper()
	p.fetch()
	for _, text := range p.items(dhcpdata.ServerUnit) {
		var s dhcpdata.Server
		if strings.HasPrefix(text, "S") {
			if err := json.Unmarshal([]byte(text[1:]), &s); err != nil {
				p.T.Fatal(err)
			}
			return s.Snapshot
		}
	}
	p.T.Fatal("the content has no server")
	return 0
}

// TestLeasesAreRequested checks that the list of all leases of a server is requested if records are missing, if its journal or its service
// point changes, and after the restore of an older backup. A deployment keeps the number of the last request.
func TestLeasesAreRequested(t *testing.T) {
	m := startAlone(t)
	p := m.dhcpServer()
	queued := func() (n int) {
		t.Helper()
		if err := m.Store.View(t.Context(), func(tx *store.Tx) error {
			return tx.QueryRow("SELECT count(*) FROM dhcp_due").Scan(&n)
		}); err != nil {
			t.Fatal(err)
		}
		return n
	}
	p.deploys()
	apitest.Eventually(t, "the request for the new server is deployed", func() bool { return queued() == 0 })
	last := p.requests()
	if last == 0 {
		t.Error("the first deployment requests no leases")
	}
	source := m.SourceOf(p.point)
	start := m.Store.Now().Truncate(time.Second)
	lease := dhcplease.Lease{Network: apitest.Number(t, p.network), Address: netip.MustParseAddr("10.0.0.20"), Start: start.Unix(),
		Expires: start.Add(time.Hour).Unix(), MAC: "00005e005301"}
	record := func(journal string, sequence, previous uint64) {
		t.Helper()
		source.Sequence = sequence - 1
		source.Send(dhcplease.Record{Journal: journal, Previous: previous, At: start.UnixMilli(),
			Event: &dhcplease.Event{Kind: dhcplease.Change, Lease: lease}})
	}
	same := func(what string) {
		t.Helper()
		if n := queued(); n > 0 {
			t.Errorf("%s: %d requests or changes are queued", what, n)
		}
		if now := p.requests(); now != last {
			t.Errorf("%s: the leases are requested", what)
		}
	}
	grows := func(what string) {
		t.Helper()
		apitest.Eventually(t, what, func() bool { now := p.requests(); grown := now > last; last = max(last, now); return grown })
	}
	record("a", 1, 0)
	record("a", 5, 1)
	record("a", 5, 1)
	record("a", 6, 5)
	same("records in order")
	record("a", 9, 8)
	grows("a gap")
	record("a", 10, 9)
	same("after the gap")
	record("b", 1, 0)
	grows("another journal")
	p.confirms(p.revision)
	m.ID("/api/v2/networks/"+p.network+"/addresses", `{"type":"IPv4Address","address":"10.0.0.30","state":"DHCP_RESERVED","macAddress":{"address":"00:00:5e:00:53:30"}}`)
	p.deploys()
	p.has(dhcpdata.NetworkUnit(apitest.Number(t, p.network)), "10.0.0.30")
	same("a deployment")
	p.confirms(p.revision)
	at, err := content.ParseRevision(p.revision)
	if err != nil {
		t.Fatal(err)
	}
	at.Number += 60_000
	at.Hash = dhcpdata.HashOf(nil).String()
	p.confirms(at.String())
	p.deploys()
	grows("a restored database")
	p.confirms(p.revision)
	p.point = "other"
	m.Want(200, "PATCH", "/api/v2/servers/"+p.server, `{"servicePoint":"`+p.point+`"}`, apitest.MergePatch)
	grows("another service point")
	m.Verify()
}
