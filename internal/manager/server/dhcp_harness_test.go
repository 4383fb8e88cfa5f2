package server

import (
	"cmp"
	"crypto/tls"
	"encoding/json"
	"errors"
	"net/netip"
	"time"

	"portolan/internal/engine/store"
	"portolan/internal/manager/ipam"
	"portolan/internal/testkit/apitest"
	"portolan/internal/wire/dhcplease"
	"portolan/internal/wire/stream"
)

// leaseSource is a DHCP server that reports leases to a manager.
type leaseSource struct {
	m        *manager
	post     func(dhcplease.Record)
	sequence uint64
}

// leaseServer creates a server that is linked to a new service point.
func (m *manager) leaseServer(configuration, name string) (server string, source *leaseSource) {
	m.T.Helper()
	point, certificate := m.provisioned(name)
	server = m.ID("/api/v2/configurations/"+configuration+"/servers", `{"type":"Server","name":"`+name+`","profile":"DNS_DHCP_SERVER_20",`+
		`"servicePoint":"`+point+`","interfaces":[{"managementAddress":"10.0.0.5"}]}`)
	return server, m.leaseSource(certificate)
}

// leaseSource returns the DHCP server of a service point.
func (m *manager) leaseSource(certificate *tls.Certificate) *leaseSource {
	m.T.Helper()
	first := int64(1)
	source := &leaseSource{m: m}
	source.post = func(r dhcplease.Record) {
		m.T.Helper()
		text, err := json.Marshal(r)
		if err != nil {
			m.T.Fatal(err)
		}
		b := stream.Batch{Kind: dhcplease.Stream, Spool: "A", First: first, Records: []json.RawMessage{text}}
		if status, a := m.doorPost(stream.Path, b, certificate); status != 200 || a["next"] != float64(first+1) {
			m.T.Fatalf("the answer is %d %v", status, a)
		}
		first++
	}
	return source
}

// send sends a record with the next sequence.
func (s *leaseSource) send(r dhcplease.Record) {
	s.m.T.Helper()
	s.sequence++
	r.Journal, r.Sequence = cmp.Or(r.Journal, "j"), s.sequence
	s.post(r)
}

// event sends an event about a lease.
func (s *leaseSource) event(kind dhcplease.Kind, at time.Time, l dhcplease.Lease) {
	s.m.T.Helper()
	s.send(dhcplease.Record{At: at.UnixMilli(), Event: &dhcplease.Event{Kind: kind, Lease: l}})
}

// storeLease stores a lease that no server has reported.
func (m *manager) storeLease(address, network string) {
	m.T.Helper()
	key := store.AddrKey(netip.MustParseAddr(address))
	id := apitest.Number(m.T, network)
	if err := m.Store.Update(m.T.Context(), store.Author{}, func(tx *store.Tx) error {
		ipam.CountLeases(tx, id, "DHCP_ALLOCATED", 1)
		const more = " ON CONFLICT (container, state) DO UPDATE SET n = dhcp_lease_count.n + 1"
		return errors.Join(tx.Write("INSERT INTO dhcp_lease_count (container, state, n) VALUES (1, 'DHCP_ALLOCATED', 1)"+more),
			tx.Write("INSERT INTO dhcp_lease_count (container, state, n) SELECT id, 'DHCP_ALLOCATED', 1 FROM resource WHERE "+
				"collection = 'ranges' AND parent = ? AND low <= ? AND high >= ?"+more, id, key, key),
			tx.Write("INSERT INTO dhcp_lease (id, type, parent, configuration, low, high, "+
				"version, body, state, server) SELECT (SELECT coalesce(max(id), 900000) + 1 FROM dhcp_lease), "+
				"'DHCPv4Lease', id, configuration, ?, ?, 1, '{\"userDefinedFields\":null,\"address\":\"' || ? || '\",\"state\":\"DHCP_ALLOCATED\"}', "+
				"'DHCP_ALLOCATED', 1 FROM resource WHERE id = ?", key, key, address, id))
	}); err != nil {
		m.T.Fatal(err)
	}
}
