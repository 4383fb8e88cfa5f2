package dhcp

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"portolan/internal/wire/dhcpdata"
)

// plan is content for both servers.
type plan struct {
	networks []planNetwork
	classes  []planClass
	options  map[byte][]byte // of the server
	actors   []*actor
	echo     bool
}

type planNetwork struct {
	id            int64
	prefix        netip.Prefix
	shared        int64
	pools         []planPool
	reservations  []planReservation
	options       map[byte][]byte
	lease         [3]uint32 // default, min and max
	authoritative bool
	ignoreUIDs    bool
}

type planPool struct {
	id          int64
	first, last netip.Addr
	options     map[byte][]byte
	class       int  // the index of the class whose members it serves, -1 for all
	known       bool // it serves clients with a reservation only
}

type planReservation struct {
	id       int64
	address  netip.Addr
	mac      []byte
	clientID []byte
	options  map[byte][]byte
}

// planClass is a class with a condition in the words of both servers.
type planClass struct {
	id        int64
	ours, kea string
	options   map[byte][]byte
}

// Options that a plan sets. Those of classes are different: in this server they come before those of the network, in Kea after them.
var (
	plainOptions = []byte{6, 15, 28, 46, 252}
	classOptions = []byte{42, 44, 150}
	// askedOptions are the options that clients ask for.
	askedOptions = slices.Concat([]byte{1, 3}, plainOptions, classOptions, []byte{51, 58, 59})
)

// Texts that clients send and classes match.
var (
	vendors  = []string{"", "phone-7", "phone-8", "PXEClient:Arch:00007"}
	circuits = []string{"", "ge-0/0/1", "ge-0/0/2"}
)

// randomOptions returns options of a list of codes.
func randomOptions(r *rand.Rand, codes []byte) map[byte][]byte {
	all := map[byte][]byte{}
	for _, code := range codes {
		if r.IntN(3) > 0 {
			continue
		}
		value := make([]byte, []int{4, 8, 1, 12}[r.IntN(4)])
		for i := range value {
			value[i] = byte('a' + r.IntN(26))
		}
		switch code {
		case 46:
			value = value[:1]
		case 28:
			value = value[:1]
			value = append(value, 1, 2, 3)
		case 6, 42, 44:
			value = append(value[:1], 9, 8, 7)
		}
		all[code] = value
	}
	return all
}

// newPlan returns a random plan with a reservation for the client of sentinels.
func newPlan(r *rand.Rand) *plan {
	p := &plan{options: randomOptions(r, plainOptions), echo: r.IntN(5) > 0}
	for i, words := range [][2]string{
		{`if substring(option vendor-class-identifier, 0, 5) = "phone"`, "substring(option[60].hex,0,5) == 'phone'"},
		{`if option agent.circuit-id = "ge-0/0/1"`, "relay4[1].hex == 'ge-0/0/1'"},
		{`if not exists dhcp-client-identifier`, "not option[61].exists"},
		{`if exists vendor-class-identifier and option vendor-class-identifier != "phone-8"`,
			"option[60].exists and not (option[60].hex == 'phone-8')"},
	} {
		if r.IntN(2) == 0 {
			p.classes = append(p.classes, planClass{id: int64(900 + i), ours: words[0], kea: words[1], options: randomOptions(r, classOptions)})
		}
	}
	for i := range 1 + r.IntN(4) {
		n := planNetwork{id: int64(10 * (i + 1)), options: randomOptions(r, plainOptions), authoritative: r.IntN(2) == 0,
			prefix:     netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i + 1), 0, 0}), []int{24, 24, 22, 26}[r.IntN(4)]),
			lease:      [][3]uint32{{3600, 3600, 3600}, {3600, 600, 7200}, {86400, 300, 604800}, {608, 8, 1208}}[r.IntN(4)],
			ignoreUIDs: r.IntN(5) == 0}
		if i > 0 && r.IntN(3) == 0 {
			n.shared = 700
		}
		at := func(last byte) netip.Addr { return netip.AddrFrom4([4]byte{10, byte(i + 1), 0, last}) }
		for k := range max(1, r.IntN(5)-1) {
			first := byte(10 + 16*k) // a /26 contains them all
			one := planPool{id: n.id + int64(k) + 1, first: at(first), last: at(first + 13), options: randomOptions(r, plainOptions),
				class: -1, known: r.IntN(8) == 0}
			if len(p.classes) > 0 && r.IntN(4) == 0 && !one.known {
				one.class = r.IntN(len(p.classes))
			}
			n.pools = append(n.pools, one)
		}
		for k := range r.IntN(4) {
			one := planReservation{id: int64(1000 + 10*i + k), address: at(byte(11 + 13*k)), options: randomOptions(r, plainOptions)}
			if r.IntN(3) == 0 {
				one.clientID = []byte{0, byte(k), 'i'}
			} else {
				one.mac = clientMAC(k)
			}
			n.reservations = append(n.reservations, one)
		}
		if i == 0 {
			n.reservations = append(n.reservations, planReservation{id: 1999, address: at(61), mac: clientMAC(99)})
		}
		p.networks = append(p.networks, n)
	}
	if shared := slices.DeleteFunc(slices.Clone(p.networks), func(n planNetwork) bool { return n.shared == 0 }); len(shared) > 1 {
		for i := range p.networks { // one link has one answer about identity and authority
			if p.networks[i].shared != 0 {
				p.networks[i].authoritative, p.networks[i].ignoreUIDs = shared[0].authoritative, shared[0].ignoreUIDs
			}
		}
	}
	return p
}

func clientMAC(n int) []byte { return []byte{2, 0, 0, 0, 0, byte(n)} }

// units returns the plan for this server.
func (p *plan) units(t testing.TB) dhcpdata.Units {
	t.Helper()
	options := func(at int64, level dhcpdata.Level, all map[byte][]byte) (items []dhcpdata.Item) {
		for _, code := range slices.Sorted(maps.Keys(all)) {
			items = append(items, dhcpdata.Option{At: at, Code: uint16(code), Name: fmt.Sprint("option-", code), Value: all[code],
				From: dhcpdata.Source{Level: level, ID: max(at, 1)}})
		}
		return items
	}
	services := func(at int64, level dhcpdata.Level, all map[string]any) (items []dhcpdata.Item) {
		for _, name := range slices.Sorted(maps.Keys(all)) {
			one := option(name, all[name])
			one.At, one.From = at, dhcpdata.Source{Level: level, ID: max(at, 1)}
			items = append(items, one)
		}
		return items
	}
	server := []dhcpdata.Item{dhcpdata.Server{ID: 1, Name: "twin", Configuration: 2,
		Addresses: []netip.Addr{netip.MustParseAddr(twinServer4)}}}
	server = append(server, options(0, dhcpdata.AtServer, p.options)...)
	server = append(server, services(0, dhcpdata.AtServer, map[string]any{"ping-check": false, "dhcp-cache-threshold": 0,
		"echo-client-id": p.echo})...)
	u := dhcpdata.Units{dhcpdata.ServerUnit: unit(t, dhcpdata.ServerUnit, server...)}
	for _, c := range p.classes {
		condition, _, err := dhcpdata.ParseMatch(c.ours, nil)
		if err != nil {
			t.Fatal(err)
		}
		items := append([]dhcpdata.Item{dhcpdata.Class{ID: c.id, Name: fmt.Sprint("class-", c.id), If: condition}},
			options(0, dhcpdata.AtClass, c.options)...)
		u[dhcpdata.ClassUnit(c.id)] = unit(t, dhcpdata.ClassUnit(c.id), items...)
	}
	for _, n := range p.networks {
		items := append([]dhcpdata.Item{dhcpdata.Network{ID: n.id, Prefix: n.prefix, Shared: n.shared}},
			options(0, dhcpdata.AtNetwork, n.options)...)
		items = append(items, services(0, dhcpdata.AtNetwork, map[string]any{"authoritative": n.authoritative, "default-lease-time": n.lease[0],
			"min-lease-time": n.lease[1], "max-lease-time": n.lease[2], "ignore-client-uids": n.ignoreUIDs})...)
		for _, one := range n.pools {
			items = append(items, dhcpdata.Pool{ID: one.id, Ranges: []dhcpdata.Interval{{First: one.first, Last: one.last}}})
			items = append(items, options(one.id, dhcpdata.AtRange, one.options)...)
			more := map[string]any{}
			if one.class >= 0 {
				more["allow-dhcp-class-members"] = []int64{p.classes[one.class].id}
			}
			if one.known {
				more["boot-unknown-clients"] = false
			}
			items = append(items, services(one.id, dhcpdata.AtRange, more)...)
		}
		for _, one := range n.reservations {
			items = append(items, dhcpdata.Reservation{ID: one.id, Address: one.address, MAC: one.mac, ClientID: one.clientID})
			items = append(items, options(one.id, dhcpdata.AtAddress, one.options)...)
		}
		u[dhcpdata.NetworkUnit(n.id)] = unit(t, dhcpdata.NetworkUnit(n.id), items...)
	}
	return u
}

// forKea returns the plan for Kea.
func (p *plan) forKea() map[string]any {
	type object = map[string]any
	options := func(all map[byte][]byte) []object {
		out := []object{}
		for _, code := range slices.Sorted(maps.Keys(all)) {
			out = append(out, object{"code": code, "csv-format": false, "data": hex.EncodeToString(all[code])})
		}
		return out
	}
	colons := func(b []byte) string {
		return strings.ReplaceAll(fmt.Sprintf("% x", b), " ", ":")
	}
	classes := []object{}
	for _, c := range p.classes {
		classes = append(classes, object{"name": fmt.Sprint("class-", c.id), "test": c.kea, "option-data": options(c.options)})
	}
	subnets, shared := []object{}, []object{}
	for _, n := range p.networks {
		one := object{"id": n.id, "subnet": n.prefix.String(), "option-data": options(n.options), "valid-lifetime": n.lease[0],
			"min-valid-lifetime": n.lease[1], "max-valid-lifetime": n.lease[2], "authoritative": n.authoritative,
			"match-client-id": !n.ignoreUIDs}
		pools, reservations := []object{}, []object{}
		for _, x := range n.pools {
			y := object{"pool": x.first.String() + " - " + x.last.String(), "option-data": options(x.options)}
			if x.class >= 0 {
				y["client-class"] = fmt.Sprint("class-", p.classes[x.class].id)
			}
			if x.known {
				y["client-class"] = "KNOWN"
			}
			pools = append(pools, y)
		}
		for _, x := range n.reservations {
			y := object{"ip-address": x.address.String(), "option-data": options(x.options)}
			if x.mac != nil {
				y["hw-address"] = colons(x.mac)
			} else {
				y["client-id"] = colons(x.clientID)
			}
			reservations = append(reservations, y)
		}
		one["pools"], one["reservations"] = pools, reservations
		if n.shared != 0 {
			shared = append(shared, one)
		} else {
			subnets = append(subnets, one)
		}
	}
	out := object{"option-data": options(p.options), "client-classes": classes, "subnet4": subnets, "calculate-tee-times": true,
		"echo-client-id": p.echo, "host-reservation-identifiers": []string{"client-id", "hw-address"}, "decline-probation-period": 86400}
	if len(shared) > 0 {
		out["shared-networks"] = []object{{"name": "link", "subnet4": shared, "authoritative": shared[0]["authoritative"],
			"match-client-id": shared[0]["match-client-id"]}}
	}
	return out
}

// where returns the class of an address: a reservation or a pool.
func (p *plan) where(a netip.Addr) string {
	for _, n := range p.networks {
		for _, one := range n.reservations {
			if one.address == a {
				return "reserved " + a.String()
			}
		}
		for _, one := range n.pools {
			if one.first.Compare(a) <= 0 && a.Compare(one.last) <= 0 {
				return fmt.Sprint("pool ", one.id)
			}
		}
	}
	if a.IsUnspecified() {
		return "no address"
	}
	return a.String()
}

// actor is a client of a plan, at both servers.
type actor struct {
	n        int
	mac      []byte
	clientID []byte
	vendor   string
	circuit  string
	network  int
	link     int // the link that the relay selects; -1 for none
	asked    []byte
	wish     uint32
	// offered, server and held are the last offered address, the server identifier, and the address that the client holds, at each side.
	offered, server, held [2]netip.Addr
	// had are the addresses that the client held at each side, and offers those that it was offered by this server.
	had      [2][]netip.Addr
	offers   []netip.Addr
	declined bool
	// leased is the address that each server leases to the client, also after a NAK; abandoned are those that the client declined there.
	leased    [2]netip.Addr
	abandoned [2][]netip.Addr
	// retired is true for a client that one server has given a lease and the other has not.
	retired bool
	log     []string
}

func newActor(r *rand.Rand, p *plan, n int) *actor {
	a := &actor{n: n, mac: clientMAC(n), link: -1, network: r.IntN(len(p.networks)), vendor: vendors[r.IntN(len(vendors))],
		circuit: circuits[r.IntN(len(circuits))]}
	if r.IntN(3) > 0 {
		a.clientID = []byte{0, byte(n), 'i'}
		if r.IntN(2) == 0 {
			a.clientID = append([]byte{1}, a.mac...)
		}
	}
	for _, code := range askedOptions {
		if r.IntN(3) > 0 {
			a.asked = append(a.asked, code)
		}
	}
	r.Shuffle(len(a.asked), func(i, j int) { a.asked[i], a.asked[j] = a.asked[j], a.asked[i] })
	if r.IntN(3) == 0 {
		a.wish = []uint32{0, 8, 904, 3600, 100_000, 0xffffffff}[r.IntN(6)]
	}
	return a
}

// step is a message of a client. It has one form for each side.
type step struct {
	kind    byte
	name    string
	network int // of the relay; -1 for a message from the client's address to the server
	link    int // the link that the relay selects; -1 for none
	// requested, client and server are option 50, ciaddr and option 54 at each side.
	requested, client, server [2]netip.Addr
}

// packet returns the message for a side.
func (a *actor) packet(p *plan, s step, side int, transaction uint32) []byte {
	m := newRaw(s.kind, 0)
	binary.BigEndian.PutUint32(m.header[4:], transaction)
	m.at(28, a.mac...).at(24, 0, 0, 0, 0)
	if s.network >= 0 {
		m.at(24, p.relay(s.network)...).at(3, 1)
	}
	if one := s.client[side]; one.IsValid() {
		m.at(12, one.AsSlice()...)
	}
	for code, one := range map[byte]netip.Addr{50: s.requested[side], 54: s.server[side]} {
		if one.IsValid() {
			m.option(code, one.AsSlice()...)
		}
	}
	if len(a.clientID) > 0 {
		m.option(61, a.clientID...)
	}
	if a.vendor != "" {
		m.option(60, []byte(a.vendor)...)
	}
	if a.wish != 0 {
		m.option(51, binary.BigEndian.AppendUint32(nil, a.wish)...)
	}
	if len(a.asked) > 0 {
		m.option(55, a.asked...)
	}
	var agent []byte
	if a.circuit != "" {
		agent = append(append(agent, 1, byte(len(a.circuit))), a.circuit...)
	}
	if s.link >= 0 {
		agent = append(append(agent, 5, 4), p.networks[s.link].prefix.Addr().AsSlice()...)
	}
	if len(agent) > 0 && s.network >= 0 {
		m.option(82, agent...)
	}
	return m.end()
}

// relay returns the address of the relay of a network.
func (p *plan) relay(network int) []byte { return p.networks[network].prefix.Addr().Next().AsSlice() }

// twinAnswer is the answer of a server.
type twinAnswer struct {
	kind    string
	address netip.Addr
	where   string
	fields  string // siaddr, sname and file
	options map[byte][]byte
}

// read returns the reply of a server; nil means that it did not reply.
func (p *plan) read(packet []byte) (out twinAnswer) {
	if packet == nil {
		return twinAnswer{kind: "silence"}
	}
	out.options = map[byte][]byte{}
	for rest := packet[240:]; len(rest) > 1 && rest[0] != 255; {
		if rest[0] == 0 {
			rest = rest[1:]
			continue
		}
		out.options[rest[0]] = append(out.options[rest[0]], rest[2:2+int(rest[1])]...)
		rest = rest[2+int(rest[1]):]
	}
	if kind := out.options[53]; len(kind) == 1 {
		out.kind = messageName(kind[0])
	}
	out.address = netip.AddrFrom4([4]byte(packet[16:20]))
	out.where = p.where(out.address)
	out.fields = fmt.Sprintf("siaddr %v, sname %q, file %q", packet[20:24], bytes.TrimRight(packet[44:108], "\x00"),
		bytes.TrimRight(packet[108:236], "\x00"))
	return out
}

// exchange sends a message to both servers and returns their answers. The answer to a following message shows that there was none.
func (w *twins) exchange(p *plan, a *actor, s step) [2]twinAnswer {
	w.t.Helper()
	w.transaction += 2
	for i, one := range []*side{w.ours, w.kea} {
		w.send(one, p, a, s, i, w.transaction)
	}
	sentinel := &actor{mac: clientMAC(99), asked: []byte{1}}
	reserved := p.networks[0].reservations[len(p.networks[0].reservations)-1].address
	id := netip.MustParseAddr(twinServer4)
	last := step{kind: dhcpdata.Request, requested: [2]netip.Addr{reserved, reserved}, server: [2]netip.Addr{id, id}, link: -1}
	if s.network < 0 { // the reply takes the same way as that to the message
		last = step{kind: dhcpdata.Request, client: [2]netip.Addr{reserved, reserved}, network: -1, link: -1}
	}
	var got [2][]byte
	for i, one := range []*side{w.ours, w.kea} {
		until := time.After(10 * time.Second)
		again := time.NewTicker(2 * time.Second)
		w.send(one, p, sentinel, last, i, w.transaction+1)
		for ended := false; !ended; {
			select {
			case packet := <-one.packets:
				switch binary.BigEndian.Uint32(packet[4:]) {
				case w.transaction:
					got[i] = packet
				case w.transaction + 1:
					ended = true
				}
			case <-again.C: // a lost datagram
				w.send(one, p, sentinel, last, i, w.transaction+1)
			case <-until:
				w.t.Fatalf("%s does not answer", one.name)
			}
		}
		again.Stop()
	}
	read := func() [2]twinAnswer { return [2]twinAnswer{p.read(got[0]), p.read(got[1])} }
	if s.kind == dhcpdata.Release || s.kind == dhcpdata.Decline {
		return read()
	}
	w.awaitLate(&got, func(packet []byte) uint32 { return binary.BigEndian.Uint32(packet[4:]) }, func() bool {
		all := read()
		return len(a.differences(s, all)) == 0 || a.expected(p, s, all) != ""
	})
	return read()
}

func (w *twins) send(one *side, p *plan, a *actor, s step, i int, transaction uint32) {
	w.t.Helper()
	packet := a.packet(p, s, i, transaction)
	var err error
	if s.network >= 0 {
		err = one.toRelays(packet, twinServer4, serverPort)
	} else {
		err = one.toServer(packet, s.client[i])
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// next returns a random step of a client.
func (a *actor) next(r *rand.Rand, p *plan) step {
	s := step{network: a.network, link: a.link}
	both := func(x netip.Addr) [2]netip.Addr { return [2]netip.Addr{x, x} }
	somewhere := func() netip.Addr {
		n := p.networks[r.IntN(len(p.networks))]
		if len(n.pools) > 0 && r.IntN(3) > 0 {
			return n.pools[r.IntN(len(n.pools))].first
		}
		if len(n.reservations) > 0 && r.IntN(2) == 0 {
			return n.reservations[r.IntN(len(n.reservations))].address
		}
		return netip.AddrFrom4([4]byte{10, n.prefix.Addr().As4()[1], 0, byte(40 + r.IntN(9))})
	}
	holds, offers := a.held[0].IsValid() && a.held[1].IsValid(), a.offered[0].IsValid() && a.offered[1].IsValid()
	switch x := r.IntN(20); {
	case offers && x < 14:
		s.kind, s.name, s.requested, s.server = dhcpdata.Request, "SELECTING", a.offered, a.server
		if x == 13 {
			s.name, s.server = "SELECTING another server", both(netip.MustParseAddr("192.0.2.77"))
		}
	case holds && x < 3:
		s.kind, s.name, s.client, s.network, s.link = dhcpdata.Request, "RENEWING", a.held, -1, -1
	case holds && x < 6:
		s.kind, s.name, s.client = dhcpdata.Request, "REBINDING", a.held
	case holds && x < 9:
		s.kind, s.name, s.requested = dhcpdata.Request, "INIT-REBOOT", a.held
	case holds && x < 10:
		s.kind, s.name, s.client, s.server, s.network, s.link = dhcpdata.Release, "RELEASE", a.held, a.server, -1, -1
	case holds && x < 11 && r.IntN(4) == 0:
		s.kind, s.name, s.requested, s.server = dhcpdata.Decline, "DECLINE", a.held, a.server
	case holds && x < 12:
		s.kind, s.name, s.client, s.network, s.link = dhcpdata.Inform, "INFORM", a.held, -1, -1
	case x == 12:
		s.kind, s.name, s.requested = dhcpdata.Request, "INIT-REBOOT elsewhere", both(somewhere())
	case x == 13:
		a.network, a.link = r.IntN(len(p.networks)), -1
		if r.IntN(6) == 0 {
			a.link = r.IntN(len(p.networks))
		}
		s.network, s.link = a.network, a.link
		s.kind, s.name = dhcpdata.Discover, "DISCOVER after a move"
	case x == 14:
		s.kind, s.name, s.requested, s.server = dhcpdata.Request, "SELECTING elsewhere", both(somewhere()), both(netip.MustParseAddr(twinServer4))
	default:
		s.kind, s.name = dhcpdata.Discover, "DISCOVER"
		if r.IntN(3) == 0 {
			s.requested, s.name = both(somewhere()), "DISCOVER with a wish"
		}
	}
	return s
}

// learn remembers what a client learned from the answers.
func (a *actor) learn(s step, answers [2]twinAnswer) {
	for i, one := range answers {
		switch {
		case one.kind == "OFFER" && one.where != "no address":
			a.offered[i] = one.address
			if i == 0 {
				a.offers = append(a.offers, one.address)
			}
		case one.kind == "ACK" && s.kind == dhcpdata.Request:
			a.held[i], a.leased[i], a.offered[i] = one.address, one.address, netip.Addr{}
			a.had[i] = append(a.had[i], one.address)
		case one.kind == "NAK":
			a.held[i], a.offered[i] = netip.Addr{}, netip.Addr{}
		case s.kind == dhcpdata.Release || s.kind == dhcpdata.Decline:
			if s.kind == dhcpdata.Decline {
				a.declined = true
				a.abandoned[i] = append(a.abandoned[i], a.held[i])
			}
			a.held[i], a.leased[i] = netip.Addr{}, netip.Addr{}
		case s.kind == dhcpdata.Request && s.name == "SELECTING another server":
			a.offered[i] = netip.Addr{}
		}
		if id := one.options[54]; len(id) == 4 {
			a.server[i] = netip.AddrFrom4([4]byte(id))
		}
	}
}

// differences returns how the answers to a message differ. Options that the client did not ask for are not compared: Kea adds some.
func (a *actor) differences(s step, answers [2]twinAnswer) (all []string) {
	ours, kea := answers[0], answers[1]
	if ours.kind != kea.kind {
		return []string{fmt.Sprintf("%s, Kea %s", ours.kind, kea.kind)}
	}
	pool := func(one twinAnswer) string { first, _, _ := strings.Cut(one.where, " "); return first }
	samePool := ours.where == kea.where
	if !samePool && (pool(ours) != "pool" || pool(kea) != "pool") {
		all = append(all, fmt.Sprintf("%s, Kea %s", ours.where, kea.where))
	}
	if ours.fields != kea.fields {
		all = append(all, fmt.Sprintf("%s, Kea %s", ours.fields, kea.fields))
	}
	for code := range byte(255) {
		fixed := slices.Contains([]byte{51, 54, 61, 82}, code)
		if !samePool && slices.Contains(slices.Concat(plainOptions, []byte{1, 51, 58, 59}), code) {
			// each server chooses among the pools of a link
			continue
		}
		if s.name == "RENEWING" && slices.Contains(classOptions, code) { // see expected
			continue
		}
		if (fixed || slices.Contains(a.asked, code) && ours.kind != "NAK") && !bytes.Equal(ours.options[code], kea.options[code]) {
			all = append(all, fmt.Sprintf("option %d %x, Kea %x", code, ours.options[code], kea.options[code]))
		}
	}
	if len(all) > 0 {
		all = append(all, fmt.Sprintf("sent %v, Kea %v", slices.Sorted(maps.Keys(ours.options)), slices.Sorted(maps.Keys(kea.options))))
	}
	return all
}

// differentialSize returns the seed and the number of contents of a differential test.
func differentialSize(t *testing.T) (seed uint64, contents int) {
	t.Helper()
	seed, contents = 1, 4
	if allTests() {
		contents = 10
	}
	if os.Getenv("PORTOLAN_TEST_LONG") != "" {
		contents = 100
	}
	if text, count, ok := strings.Cut(os.Getenv("PORTOLAN_TEST_DIFFERENTIAL"), ":"); ok {
		var err, err2 error
		seed, err = strconv.ParseUint(text, 10, 64)
		if contents, err2 = strconv.Atoi(count); err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
	}
	return seed, contents
}

// TestDifferential lets this server and Kea answer random sequences of messages of clients behind relays, with random content. They agree,
// or docs/decisions.md says why not. A seed and a number of contents can be set in PORTOLAN_TEST_DIFFERENTIAL, as seed:contents.
func TestDifferential(t *testing.T) {
	t.Parallel()
	const sequences, steps = 20, 14
	seed, contents := differentialSize(t)
	w := newTwins(t, 4)
	kinds := map[string]int{}
	for content := range contents {
		r := rand.New(rand.NewPCG(seed, uint64(content)))
		p := newPlan(r)
		w.configure(p.units(t), p.forKea())
		for n := range 8 {
			p.actors = append(p.actors, newActor(r, p, n))
		}
		for range sequences {
			a := p.actors[r.IntN(len(p.actors))]
			for a.retired {
				a = p.actors[r.IntN(len(p.actors))]
			}
			for range steps {
				s := a.next(r, p)
				answers := w.exchange(p, a, s)
				a.log = append(a.log, fmt.Sprintf("%s at %d: %s %s, %s %s", s, s.network, answers[0].kind, answers[0].where, answers[1].kind,
					answers[1].where))
				kinds[s.name+" "+answers[0].kind]++
				if all := a.differences(s, answers); len(all) > 0 {
					if why := a.expected(p, s, answers); why != "" {
						kinds["- "+why]++
						if answers[0].kind != answers[1].kind && (answers[0].kind == "ACK" || answers[1].kind == "ACK") {
							a.retired = true // its leases differ from now on
							p.actors = append(p.actors, newActor(r, p, len(p.actors)))
						}
					} else {
						t.Errorf("content %d:%d, %s: %s\n%s\n%s", seed, content, a, strings.Join(all, "\n"), strings.Join(a.log, "\n"), p)
					}
				}
				if a.learn(s, answers); a.retired {
					break
				}
			}
		}
	}
	t.Logf("%d sequences:", contents*sequences)
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		t.Logf("%6d %s", kinds[name], name)
	}
}

// expected returns the decision that explains a difference; "" if it is a fault.
func (a *actor) expected(p *plan, s step, answers [2]twinAnswer) string {
	ours, kea := answers[0].kind, answers[1].kind
	switch {
	case s.kind == dhcpdata.Inform && ours == "ACK" && kea == "ACK": // the mask, and options of the range
		return "D407"
	case a.declined && p.reserves(a):
		return "D406, D408"
	case strings.HasPrefix(s.name, "INIT-REBOOT") && ours == "ACK" &&
		(strings.HasPrefix(answers[0].where, "reserved") || slices.Contains(a.had[0], s.requested[0])):
		return "D362" // a reservation or a former lease is a record of the client
	case strings.HasPrefix(s.name, "SELECTING") && ours == "NAK" && kea == "ACK" && (p.reserves(a) || p.isReserved(s.requested[0])):
		return "D405"
	case ours != kea && (ours == "ACK" || kea == "ACK") && (p.others(a, s, 0) || p.others(a, s, 1) || a.differs(s)):
		return "the address has another history at one server"
	case s.kind == dhcpdata.Discover && ours == "silence" && p.isFull(0, answers[1].where),
		s.kind == dhcpdata.Discover && kea == "silence" && p.isFull(1, answers[0].where):
		return "the range is full at one server, because its addresses have another history there"
	case s.name == "RENEWING" && a.circuit != "": // a unicast renewal has no option 82; Kea 2.2 does not remember it
		return "stash-agent-options"
	case s.name == "REBINDING" && ours == "NAK" && kea == "silence":
		return "D362"
	case s.name == "INIT-REBOOT elsewhere" && (ours == "NAK" && kea == "silence" || ours == "silence" && kea == "NAK"),
		s.name == "INIT-REBOOT" && ours == "silence" && kea == "NAK" && !p.isLocal(s):
		return "D362"
	case strings.HasPrefix(s.name, "SELECTING") && ours == "NAK" && kea == "silence":
		return "D405"
	}
	return ""
}

// others reports whether another client holds the address that a message asks for at a side, or was offered it: Kea does not keep offers,
// so the servers lease different addresses after some time.
func (p *plan) others(a *actor, s step, side int) bool {
	wanted := s.requested[side]
	if !wanted.IsValid() {
		wanted = s.client[side]
	}
	return slices.ContainsFunc(p.actors, func(one *actor) bool {
		return one != a && (slices.Contains(one.had[side], wanted) || side == 0 && slices.Contains(one.offers, wanted))
	})
}

// isFull reports whether the clients hold, were offered or have declined all addresses of a pool at a side. where is that of an answer.
func (p *plan) isFull(side int, where string) bool {
	taken := map[netip.Addr]bool{}
	for _, one := range p.actors {
		taken[one.leased[side]], taken[one.offered[side]] = true, true
		for _, a := range one.abandoned[side] {
			taken[a] = true
		}
	}
	for _, n := range p.networks {
		for _, one := range n.pools {
			if where != fmt.Sprintf("pool %d", one.id) {
				continue
			}
			for a := one.first; a.Compare(one.last) <= 0; a = a.Next() {
				if !taken[a] {
					return false
				}
			}
			return true
		}
	}
	return false
}

// differs reports whether the client holds, or held, the address that it asks for at one side only.
func (a *actor) differs(s step) bool {
	return a.declined || (a.held[0] == s.requested[0]) != (a.held[1] == s.requested[1]) ||
		slices.Contains(a.had[0], s.requested[0]) != slices.Contains(a.had[1], s.requested[1])
}

// reserves reports whether an address is reserved for a client.
func (p *plan) reserves(a *actor) bool {
	return slices.ContainsFunc(p.networks, func(n planNetwork) bool {
		return slices.ContainsFunc(n.reservations, func(one planReservation) bool {
			return len(one.mac) > 0 && bytes.Equal(one.mac, a.mac) || len(one.clientID) > 0 && bytes.Equal(one.clientID, a.clientID)
		})
	})
}

// isReserved reports whether an address is reserved for any client.
func (p *plan) isReserved(address netip.Addr) bool {
	return slices.ContainsFunc(p.networks, func(n planNetwork) bool {
		return slices.ContainsFunc(n.reservations, func(one planReservation) bool { return one.address == address })
	})
}

// isLocal reports whether a message asks for an address of its network, or of one that is shared with it.
func (p *plan) isLocal(s step) bool {
	here := p.networks[s.network]
	return slices.ContainsFunc(p.networks, func(n planNetwork) bool {
		return n.prefix.Contains(s.requested[0]) && (n.id == here.id || n.shared != 0 && n.shared == here.shared)
	})
}

func (a *actor) String() string {
	return fmt.Sprintf("client %d (id %x, vendor %q, circuit %q, asks %v, wish %d)", a.n, a.clientID, a.vendor, a.circuit, a.asked, a.wish)
}

func (s step) String() string {
	text := s.name
	if s.link >= 0 {
		text += fmt.Sprintf(" link %d", s.link)
	}
	for name, a := range map[string]netip.Addr{"50": s.requested[0], "ciaddr": s.client[0]} {
		if a.IsValid() {
			text += fmt.Sprintf(" %s=%s", name, a)
		}
	}
	return text
}

func (p *plan) String() string {
	text := fmt.Sprintf("options %v, echo %t\n", p.options, p.echo)
	for _, c := range p.classes {
		text += fmt.Sprintf("class %d %s %v\n", c.id, c.kea, c.options)
	}
	for _, n := range p.networks {
		text += fmt.Sprintf("network %d %s shared %d, lease %v, authoritative %t, ignores ids %t, %v\n", n.id, n.prefix, n.shared, n.lease,
			n.authoritative, n.ignoreUIDs, n.options)
		for _, x := range n.pools {
			text += fmt.Sprintf("  pool %d %s-%s class %d known %t %v\n", x.id, x.first, x.last, x.class, x.known, x.options)
		}
		for _, x := range n.reservations {
			text += fmt.Sprintf("  %s for %x %x %v\n", x.address, x.mac, x.clientID, x.options)
		}
	}
	return text
}
