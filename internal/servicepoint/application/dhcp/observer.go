package dhcp

import (
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"portolan/internal/base/dhcpmsg"
	"portolan/internal/servicepoint/application"
	"portolan/internal/wire/dhcpdata"
	"portolan/internal/wire/dhcplease"
)

// observer collects the clients that were refused and the other DHCP servers, for the manager. Its memory is bounded: a flood replaces the
// oldest clients, and only numbers remain.
type observer struct {
	log *slog.Logger

	mu sync.Mutex
	// The following fields are guarded by mu: the clients of each network, the numbers of messages by network and reason, the servers that
	// were not reported yet, the time when each server was reported last, and the time of the last observation.
	clients  map[int64]map[string]*dhcplease.Refused
	total    int
	counts   map[dhcplease.RefusedCount]int64
	others   []dhcplease.OtherServer
	reported map[otherKey]int64
	taken    time.Time
	// names are the notices about names of clients, and noticed the numbers of those about a name or a zone since the hour began.
	names   []dhcplease.NameNotice
	noticed map[string]int
	hour    int64
	// moves are the last changes of hardware addresses by client, which were searched for old ones at swept. clones are those that were not
	// reported yet, and steps those of the clock.
	moves  map[string]move
	swept  int64
	clones []dhcplease.Clone
	steps  []dhcplease.ClockStep
}

// otherKey identifies another server in a network.
type otherKey struct {
	network int64
	address netip.Addr
	duid    string
}

// Limits of the observer.
const (
	// maxNetworkClients is the maximum number of refused clients of a network, and maxClients that of all networks.
	maxNetworkClients = dhcplease.MaxRefused
	maxClients        = 5000
	maxOtherServers   = 50
	// maxReportedServers is the maximum number of servers that are remembered.
	maxReportedServers = 1000
	// maxNotices is the maximum number of notices about names that wait. maxNoticed is that of the names and zones in an hour, and
	// maxZoneNotices that of the notices about a zone.
	maxNotices     = 50
	maxNoticed     = 50
	maxZoneNotices = 10
	// observeInterval is the time between two observations for the manager.
	observeInterval = 5 * time.Second
	// repeatOther is the time in seconds after which a server is reported again.
	repeatOther = 86400
)

func newObserver(log *slog.Logger) *observer {
	return &observer{log: log, clients: map[int64]map[string]*dhcplease.Refused{}, counts: map[dhcplease.RefusedCount]int64{},
		reported: map[otherKey]int64{}, noticed: map[string]int{}, moves: map[string]move{}}
}

// refuse records a refused client.
func (o *observer) refuse(r dhcplease.Refused) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.counts[dhcplease.RefusedCount{Network: r.Network, Reason: r.Reason}]++
	all := o.clients[r.Network]
	if all == nil {
		all = map[string]*dhcplease.Refused{}
		o.clients[r.Network] = all
	}
	key := r.MAC + " " + r.ClientID + " " + r.Reason
	if had := all[key]; had != nil {
		r.Count, r.First = had.Count+1, had.First
		*had = r
		return
	}
	if len(all) >= maxNetworkClients {
		oldest, at := "", r.Last
		for key, one := range all {
			if oldest == "" || one.Last < at {
				oldest, at = key, one.Last
			}
		}
		delete(all, oldest)
		o.total--
	}
	if o.total >= maxClients {
		return
	}
	r.Count, r.First = 1, r.Last
	all[key] = &r
	o.total++
}

// record counts another server. It is reported once a day.
func (o *observer) record(s dhcplease.OtherServer) {
	key := otherKey{s.Network, s.Address, s.DUID}
	o.mu.Lock()
	defer o.mu.Unlock()
	if last, known := o.reported[key]; known && s.Last-last < repeatOther || len(o.others) >= maxOtherServers {
		return
	}
	if len(o.reported) >= maxReportedServers {
		for key, last := range o.reported {
			if s.Last-last >= repeatOther {
				delete(o.reported, key)
			}
		}
		if len(o.reported) >= maxReportedServers {
			return
		}
	}
	o.reported[key] = s.Last
	o.others = append(o.others, s)
	o.log.Info("other DHCP server seen", "address", s.Address, "duid", s.DUID, "mac", s.MAC, "network", s.Network, "message", s.Message)
}

// notice records a notice about names of clients. In an hour there is one for a name, and a limited number of others.
func (o *observer) notice(n dhcplease.NameNotice) {
	n.Reason = cut(n.Reason)
	o.mu.Lock()
	defer o.mu.Unlock()
	if hour := time.Now().Unix() / 3600; hour != o.hour {
		o.hour = hour
		clear(o.noticed)
	}
	key, limit := "zone "+n.Zone, maxZoneNotices
	if n.Name != "" {
		key, limit = "name "+n.Name, 1
	}
	if o.noticed[key] >= limit || o.noticed[key] == 0 && len(o.noticed) >= maxNoticed || len(o.names) >= maxNotices {
		return
	}
	o.noticed[key]++
	o.names = append(o.names, n)
}

// cut returns a text with at most 200 octets, in valid UTF-8 and without NUL.
func cut(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text[:min(len(text), 200)], ""), "\x00", "")
}

// takeObservations returns the observations since the last call, and forgets them; none within observeInterval.
func (o *observer) takeObservations(now time.Time) (all []dhcplease.Observation) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if now.Sub(o.taken) < observeInterval && !now.Before(o.taken) || len(o.counts)+len(o.others)+len(o.names)+
		len(o.clones)+len(o.steps) == 0 {
		return nil
	}
	o.taken = now
	first := dhcplease.Observation{Others: o.others}
	for key, n := range o.counts {
		key.Count = n
		first.Counts = append(first.Counts, key)
	}
	const maxCounts = 500
	for part := range slices.Chunk(first.Counts, maxCounts) {
		all = append(all, dhcplease.Observation{Counts: part})
	}
	if len(all) == 0 {
		all = append(all, dhcplease.Observation{})
	}
	all[0].Others, all[0].Names, all[0].Clones, all[0].ClockSteps = first.Others, o.names, o.clones, o.steps
	for _, network := range o.clients {
		one := dhcplease.Observation{}
		for _, r := range network {
			one.Refused = append(one.Refused, *r)
		}
		if len(one.Refused) > 0 {
			all = append(all, one)
		}
	}
	clear(o.clients)
	clear(o.counts)
	o.total, o.others, o.names, o.clones, o.steps = 0, nil, nil, nil, nil
	return all
}

// observed reports whether a refusal concerns a client. A client that has chosen another server, or that has to wait, is not refused.
func observed(reason string) bool {
	return reason != string(dhcpdata.OtherServer) && reason != string(dhcpdata.MinSecs)
}

// observe records the refusal of a message for the manager.
func (e *engine) observe(r *request, network int64, reason string) {
	f, now := &r.facts, e.clock.now()
	if reason == string(dhcpdata.OtherServer) && f.Type == dhcpdata.Request {
		if a, ok := netip.AddrFromSlice(f.Options[54]); ok && a.Is4() && !a.IsUnspecified() && !e.knowsServer(a, nil) {
			e.observer.record(dhcplease.OtherServer{Network: network, Address: a, Message: messageName(f.Type), Last: now})
		}
	}
	if !observed(reason) {
		return
	}
	one := dhcplease.Refused{Network: network, Reason: reason, Message: messageName(f.Type), Last: now, MAC: octets(f.Hardware),
		ClientID: octets(f.Options[61]), HostName: dhcpdata.CleanHostName(f.Options[12]), VendorClass: octets(f.Options[60]), Relay: f.Relay}
	if f.Type == 0 {
		one.Message = "BOOTP"
	}
	if data, ok := dhcpdata.SubOption(f.Options[82], 1); ok {
		one.CircuitID = octets(data)
	}
	if data, ok := dhcpdata.SubOption(f.Options[82], 2); ok {
		one.RemoteID = octets(data)
	}
	if a, ok := netip.AddrFromSlice(f.Options[50]); ok && a.Is4() {
		one.Requested = a
	} else if f.Client.IsValid() {
		one.Requested = f.Client
	}
	e.observer.refuse(one)
}

// observe6 records the refusal of a DHCPv6 message for the manager.
func (e *engine) observe6(r *request6, d *dhcpdata.Decision6, reason string) {
	m, now := r.facts.Message, e.clock.now()
	if reason == string(dhcpdata.OtherServer) {
		if duid, ok := m.Options.Find(dhcpmsg.OptServerID6); ok && len(duid) > 0 && !e.knowsServer(netip.Addr{}, duid) {
			e.observer.record(dhcplease.OtherServer{Network: d.Network, DUID: octets(duid), Message: messageName6(m.Type), Last: now})
		}
	}
	if !observed(reason) {
		return
	}
	h := holderOf6(r, d, dhcpdata.Change6{})
	one := dhcplease.Refused{Network: d.Network, Reason: reason, Message: messageName6(m.Type), Last: now, MAC: octets(d.Hardware),
		ClientID: octets(d.DUID), HostName: d.HostName, VendorClass: octets([]byte(h.vendor)), Relay: h.relayAddress}
	if data, ok := dhcpdata.SubOption([]byte(h.relay), stored6InterfaceID); ok {
		one.CircuitID = octets(data)
	}
	if data, ok := dhcpdata.SubOption([]byte(h.relay), stored6RemoteID); ok {
		one.RemoteID = octets(data)
	}
	e.observer.refuse(one)
}

// The first octets of messages of clients and of servers.
const (
	bootRequest = 1
	bootReply   = 2
)

// observeReply records the OFFER or ACK of another server, which an interface has received as a broadcast.
func (s *service) observeReply(source netip.Addr, mac []byte, packet []byte, index int) {
	if len(packet) == 0 || packet[0] != bootReply {
		return
	}
	packet = slices.Clone(packet) // the buffer is used again
	packet[0] = bootRequest       // the rest of a reply is like that of a request
	m, err := dhcpmsg.Parse(packet)
	if err != nil || m.Type != dhcpdata.Offer && m.Type != dhcpdata.Ack {
		return
	}
	address := source
	if a, ok := netip.AddrFromSlice(m.Options[54]); ok && a.Is4() && !a.IsUnspecified() {
		address = a
	}
	content := s.engine.content.Load().compiled
	other := dhcplease.OtherServer{Address: address, MAC: octets(mac), Message: messageName(m.Type), Last: s.engine.clock.now()}
	for _, p := range s.interfaces.prefixes(index) {
		if p.Addr() == address || p.Addr() == source {
			return
		}
		if other.Network == 0 {
			other.Network = content.NetworkOf(p.Addr())
		}
	}
	if !content.KnowsServer(address, nil) && !content.KnowsServer(source, nil) {
		s.engine.observer.record(other)
	}
}

// knowsServer reports whether another server is one of the configuration.
func (e *engine) knowsServer(a netip.Addr, duid []byte) bool {
	return e.content.Load().compiled.KnowsServer(a, duid)
}

// octets returns octets in hexadecimal digits, at most 255.
func octets(data []byte) string { return hex.EncodeToString(data[:min(len(data), 255)]) }

// addObservations appends the observations since the last answer to the pending records. The caller holds mu.
func (r *reports) addObservations() {
	for _, one := range r.pending {
		if one.Kind == dhcplease.Observations { // the service point has not stored the last ones
			return
		}
	}
	for _, o := range r.engine.observer.takeObservations(time.Now()) {
		data, err := json.Marshal(o)
		if err != nil {
			r.engine.log.Error("encode observation failed", "error", err)
			continue
		}
		r.last++
		r.pending = append(r.pending, pendingRecord{Record: application.Record{Number: r.last, Kind: dhcplease.Observations, Data: data}})
	}
}
