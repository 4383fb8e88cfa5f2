package dhcp

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"portolan/internal/base/dhcpmsg"
	"portolan/internal/wire/dhcpdata"
)

// plan6 is content of DHCPv6 for both servers.
type plan6 struct {
	networks []planNetwork6
	options  map[uint16][]byte // of the server
	actors   []*actor6
}

type planNetwork6 struct {
	id           int64
	prefix       netip.Prefix
	shared       int64
	options      map[uint16][]byte
	addresses    bool // it has a range of addresses
	delegated    int  // the length of the prefixes of its range, 0 without one
	rapid        bool
	lease        [2]uint32 // preferred and valid
	reservations []planReservation6
}

type planReservation6 struct {
	id              int64
	address, prefix netip.Addr // one or both are valid
	duid, mac       []byte
	options         map[uint16][]byte
}

// twinDUID6 identifies both servers.
var twinDUID6 = []byte{0, 2, 0, 0, 9, 0xbf, 1, 2, 3, 4, 5}

var askedOptions6 = []uint16{23, 31, 250, 251}

func randomOptions6(r *rand.Rand) map[uint16][]byte {
	all := map[uint16][]byte{}
	for _, code := range askedOptions6 {
		if r.IntN(3) == 0 {
			all[code] = slices.Concat(netip.MustParseAddr("2001:db8::").AsSlice()[:15], []byte{byte(r.Uint32())})
		}
	}
	return all
}

func duid6(n int) []byte { return append([]byte{0, 3, 0, 1}, clientMAC(n)...) }

func newPlan6(r *rand.Rand) *plan6 {
	p := &plan6{options: randomOptions6(r)}
	for i := range 1 + r.IntN(4) {
		n := planNetwork6{id: int64(10 * (i + 1)), options: randomOptions6(r), addresses: r.IntN(5) > 0,
			prefix:    netip.PrefixFrom(netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 0, byte(i + 1)}), 48),
			delegated: []int{0, 56, 60, 64}[r.IntN(4)], rapid: r.IntN(3) == 0,
			lease: [][2]uint32{{3000, 4000}, {600, 600}, {1000, 86400}}[r.IntN(3)]}
		if i > 0 && r.IntN(3) == 0 {
			n.shared = 700
		}
		for k := range r.IntN(4) {
			one := planReservation6{id: int64(1000 + 10*i + k), options: randomOptions6(r)}
			if x := r.IntN(4); x > 0 {
				one.address = n.at(byte(0x20 + k))
			}
			if !one.address.IsValid() || r.IntN(2) == 0 {
				one.prefix = n.prefixAt(byte(0xc0 + k))
			}
			if r.IntN(3) == 0 {
				one.mac = clientMAC(k)
			} else {
				one.duid = duid6(k)
			}
			n.reservations = append(n.reservations, one)
		}
		if i == 0 {
			n.reservations = append(n.reservations, planReservation6{id: 1999, address: n.at(0x63), duid: duid6(99)})
		}
		p.networks = append(p.networks, n)
	}
	for i := range p.networks { // each server chooses among the ranges of a link, which are therefore alike
		for _, other := range p.networks[:i] {
			if other.shared != 0 && other.shared == p.networks[i].shared {
				n := &p.networks[i]
				n.rapid, n.lease, n.options, n.delegated = other.rapid, other.lease, other.options, other.delegated
			}
		}
	}
	return p
}

// at returns an address of the network that is not in its range.
func (n *planNetwork6) at(last byte) netip.Addr {
	a := n.prefix.Addr().As16()
	a[15] = last
	return netip.AddrFrom16(a)
}

// prefixAt returns a prefix of length 64 that is not in the range of prefixes.
func (n *planNetwork6) prefixAt(number byte) netip.Addr {
	a := n.prefix.Addr().As16()
	a[6], a[7] = 0x40, number
	return netip.AddrFrom16(a)
}

func (n *planNetwork6) ranges() (first, last, prefixes netip.Addr) {
	a := n.prefix.Addr().As16()
	a[13] = 1
	b := a
	b[14], b[15] = 0xff, 0xff
	c := n.prefix.Addr().As16()
	c[6] = 0x80
	return netip.AddrFrom16(a), netip.AddrFrom16(b), netip.AddrFrom16(c)
}

// units returns the plan for this server.
func (p *plan6) units(t testing.TB) dhcpdata.Units {
	t.Helper()
	options := func(at int64, level dhcpdata.Level, all map[uint16][]byte) (items []dhcpdata.Item) {
		for _, code := range slices.Sorted(maps.Keys(all)) {
			items = append(items, dhcpdata.Option{V6: true, At: at, Code: code, Name: fmt.Sprint("option-", code), Value: all[code],
				From: dhcpdata.Source{Level: level, ID: max(at, 1)}})
		}
		return items
	}
	service := func(name string, value any) dhcpdata.Item {
		one := option(name, value)
		one.V6 = true
		return one
	}
	server := append([]dhcpdata.Item{dhcpdata.Server{ID: 1, Name: "twin", Configuration: 2, DUID: twinDUID6,
		Addresses: []netip.Addr{netip.MustParseAddr(twinServer6)}}}, options(0, dhcpdata.AtServer, p.options)...)
	u := dhcpdata.Units{dhcpdata.ServerUnit: unit(t, dhcpdata.ServerUnit, append(server, service("dhcp-cache-threshold", 0))...)}
	for _, n := range p.networks {
		items := append([]dhcpdata.Item{dhcpdata.Network{ID: n.id, Prefix: n.prefix, Shared: n.shared}, service("rapid-commit", n.rapid),
			service("default-lease-time", n.lease[1]), service("min-lease-time", n.lease[1]), service("max-lease-time", n.lease[1]),
			service("preferred-lifetime", n.lease[0])}, options(0, dhcpdata.AtNetwork, n.options)...)
		first, last, prefixes := n.ranges()
		if n.addresses {
			items = append(items, dhcpdata.Pool{ID: n.id + 1, Ranges: []dhcpdata.Interval{{First: first, Last: last}}})
		}
		if n.delegated > 0 {
			b := prefixes.As16()
			for i := 6; i < 16; i++ {
				b[i] = 0xff
			}
			items = append(items, dhcpdata.Pool{ID: n.id + 2, DelegatedLength: n.delegated, Ranges: []dhcpdata.Interval{
				{First: prefixes, Last: netip.AddrFrom16(b)}}})
		}
		for _, one := range n.reservations {
			if one.address.IsValid() {
				items = append(items, dhcpdata.Reservation{ID: one.id, Address: one.address, DUID: one.duid, MAC: one.mac})
				items = append(items, options(one.id, dhcpdata.AtAddress, one.options)...)
			}
			if one.prefix.IsValid() {
				items = append(items, dhcpdata.Reservation{ID: one.id + 5, Address: one.prefix, PrefixLength: 64, DUID: one.duid, MAC: one.mac})
			}
		}
		u[dhcpdata.NetworkUnit(n.id)] = unit(t, dhcpdata.NetworkUnit(n.id), items...)
	}
	return u
}

// forKea returns the plan for Kea.
func (p *plan6) forKea() map[string]any {
	type object = map[string]any
	options := func(all map[uint16][]byte) []object {
		out := []object{}
		for _, code := range slices.Sorted(maps.Keys(all)) {
			out = append(out, object{"code": code, "csv-format": false, "data": hex.EncodeToString(all[code])})
		}
		return out
	}
	colons := func(b []byte) string { return strings.ReplaceAll(fmt.Sprintf("% x", b), " ", ":") }
	subnets, shared := []object{}, []object{}
	for _, n := range p.networks {
		first, last, prefixes := n.ranges()
		one := object{"id": n.id, "subnet": n.prefix.String(), "option-data": options(n.options), "rapid-commit": n.rapid,
			"preferred-lifetime": n.lease[0], "valid-lifetime": n.lease[1]}
		if n.addresses {
			one["pools"] = []object{{"pool": first.String() + " - " + last.String()}}
		}
		if n.delegated > 0 {
			one["pd-pools"] = []object{{"prefix": prefixes.String(), "prefix-len": 49, "delegated-len": n.delegated}}
		}
		reservations := []object{}
		for _, x := range n.reservations {
			y := object{}
			if x.address.IsValid() {
				y["ip-addresses"], y["option-data"] = []string{x.address.String()}, options(x.options)
			}
			if x.prefix.IsValid() {
				y["prefixes"] = []string{x.prefix.String() + "/64"}
			}
			if x.duid != nil {
				y["duid"] = colons(x.duid)
			} else {
				y["hw-address"] = colons(x.mac)
			}
			reservations = append(reservations, y)
		}
		one["reservations"] = reservations
		if n.shared != 0 {
			shared = append(shared, one)
		} else {
			subnets = append(subnets, one)
		}
	}
	out := object{"option-data": options(p.options), "subnet6": subnets, "calculate-tee-times": true, "mac-sources": []string{"any"},
		"host-reservation-identifiers": []string{"duid", "hw-address"}, "decline-probation-period": 86400}
	if len(shared) > 0 {
		out["shared-networks"] = []object{{"name": "link", "subnet6": shared, "rapid-commit": shared[0]["rapid-commit"]}}
	}
	return out
}

// where returns the class of an address or prefix.
func (p *plan6) where(a netip.Addr, length int) string {
	for _, n := range p.networks {
		for _, one := range n.reservations {
			if one.address == a || one.prefix == a {
				return fmt.Sprintf("reserved %s/%d", a, length)
			}
		}
		first, last, prefixes := n.ranges()
		if first.Compare(a) <= 0 && a.Compare(last) <= 0 {
			return "range"
		}
		if whole, err := prefixes.Prefix(49); err == nil && whole.Contains(a) && length == n.delegated {
			return "prefix range"
		}
	}
	return fmt.Sprintf("%s/%d", a, length)
}

// actor6 is a client of a plan, at both servers.
type actor6 struct {
	n       int
	duid    []byte
	na, pd  bool
	network int
	asked   []uint16
	rapid   bool
	// offered is the lease that each server has offered, held the lease that the client has from it.
	offered, held [2]lease6
	declined      bool
	retired       bool
	log           []string
}

type lease6 struct {
	address, prefix netip.Addr
	length          int
}

func (l lease6) String() string { return fmt.Sprintf("%s %s/%d", l.address, l.prefix, l.length) }

func (l lease6) none() bool { return !l.address.IsValid() && !l.prefix.IsValid() }

func newActor6(r *rand.Rand, p *plan6, n int) *actor6 {
	a := &actor6{n: n, duid: duid6(n), network: r.IntN(len(p.networks)), na: r.IntN(5) > 0, rapid: r.IntN(3) == 0}
	a.pd = !a.na || r.IntN(2) == 0
	for _, code := range askedOptions6 {
		if r.IntN(3) > 0 {
			a.asked = append(a.asked, code)
		}
	}
	return a
}

// step6 is a message of a client.
type step6 struct {
	kind  uint8
	name  string
	named [2]lease6 // the address and the prefix that it names at each side
	rapid bool
}

// packet returns the message in that of a relay.
func (a *actor6) packet(p *plan6, s step6, side int, transaction uint32) []byte {
	m := []byte{s.kind, byte(transaction >> 16), byte(transaction >> 8), byte(transaction)}
	m = dhcpmsg.AppendOption6(m, dhcpmsg.OptClientID6, a.duid)
	switch s.kind {
	case dhcpmsg.Request6, dhcpmsg.Renew6, dhcpmsg.Release6, dhcpmsg.Decline6:
		m = dhcpmsg.AppendOption6(m, dhcpmsg.OptServerID6, twinDUID6)
	}
	named := s.named[side]
	if a.na && s.kind != dhcpmsg.InformationRequest6 && (s.kind != dhcpmsg.Decline6 || named.address.IsValid()) {
		ia := make([]byte, 12)
		ia[3] = 1
		if named.address.IsValid() {
			ia = dhcpmsg.AppendOption6(ia, dhcpmsg.OptIAAddress6, append(named.address.AsSlice(), make([]byte, 8)...))
		}
		m = dhcpmsg.AppendOption6(m, dhcpmsg.OptIANA6, ia)
	}
	if a.pd && s.kind != dhcpmsg.InformationRequest6 && s.kind != dhcpmsg.Confirm6 && s.kind != dhcpmsg.Decline6 {
		ia := make([]byte, 12)
		ia[3] = 2
		if named.prefix.IsValid() {
			data := append(append(make([]byte, 8), byte(named.length)), named.prefix.AsSlice()...)
			ia = dhcpmsg.AppendOption6(ia, dhcpmsg.OptIAPrefix6, data)
		}
		m = dhcpmsg.AppendOption6(m, dhcpmsg.OptIAPD6, ia)
	}
	var codes []byte
	for _, code := range a.asked {
		codes = binary.BigEndian.AppendUint16(codes, code)
	}
	if len(codes) > 0 {
		m = dhcpmsg.AppendOption6(m, dhcpmsg.OptRequest6, codes)
	}
	m = dhcpmsg.AppendOption6(m, dhcpmsg.OptElapsed6, []byte{0, 0})
	if s.rapid {
		m = dhcpmsg.AppendOption6(m, dhcpmsg.OptRapidCommit6, nil)
	}
	head := append([]byte{dhcpmsg.RelayForward6, 0}, p.networks[a.network].prefix.Addr().Next().AsSlice()...)
	head = append(head, netip.MustParseAddr("fe80::1").AsSlice()...)
	head = dhcpmsg.AppendOption6(head, dhcpmsg.OptInterfaceID6, []byte("port"))
	return dhcpmsg.AppendOption6(head, dhcpmsg.OptRelayMessage6, m)
}

// answer6 is the answer of a server.
type answer6 struct {
	kind    string
	lines   []string // what is compared: each association with its addresses, lifetimes and status, and the status of the message
	named   lease6
	options dhcpmsg.Options6
}

// read returns the reply of a server; nil means that it did not reply.
func (p *plan6) read(t testing.TB, packet []byte) (out answer6) {
	if packet == nil {
		return answer6{kind: "silence"}
	}
	outer, err := dhcpmsg.ParseOptions6(packet[34:])
	inner, ok := outer.Find(dhcpmsg.OptRelayMessage6)
	if id, _ := outer.Find(dhcpmsg.OptInterfaceID6); err != nil || !ok || string(id) != "port" {
		t.Fatalf("%x: %v", packet, err)
	}
	if out.options, err = dhcpmsg.ParseOptions6(inner[4:]); err != nil {
		t.Fatalf("%x: %v", packet, err)
	}
	out.kind = messageName6(inner[0])
	status := func(data []byte) string { return fmt.Sprint("status ", binary.BigEndian.Uint16(data)) }
	for _, o := range out.options {
		switch o.Code {
		case dhcpmsg.OptStatus6:
			if binary.BigEndian.Uint16(o.Data) != 0 { // success is the default
				out.lines = append(out.lines, status(o.Data))
			}
		case dhcpmsg.OptRapidCommit6:
			out.lines = append(out.lines, "rapid commit")
		case dhcpmsg.OptIANA6, dhcpmsg.OptIAPD6:
			line := fmt.Sprintf("%s %d t %d %d", map[uint16]string{3: "na", 25: "pd"}[o.Code], binary.BigEndian.Uint32(o.Data),
				binary.BigEndian.Uint32(o.Data[4:]), binary.BigEndian.Uint32(o.Data[8:]))
			all, err := dhcpmsg.ParseOptions6(o.Data[12:])
			if err != nil {
				t.Fatalf("%x: %v", packet, err)
			}
			for _, x := range all {
				switch x.Code {
				case dhcpmsg.OptIAAddress6:
					a, valid := netip.AddrFrom16([16]byte(x.Data)), binary.BigEndian.Uint32(x.Data[20:])
					line += fmt.Sprintf(", %s %d %d", p.where(a, 128), binary.BigEndian.Uint32(x.Data[16:]), valid)
					if valid > 0 {
						out.named.address = a
					}
				case dhcpmsg.OptIAPrefix6:
					a, valid := netip.AddrFrom16([16]byte(x.Data[9:])), binary.BigEndian.Uint32(x.Data[4:])
					line += fmt.Sprintf(", %s %d %d", p.where(a, int(x.Data[8])), binary.BigEndian.Uint32(x.Data), valid)
					if valid > 0 {
						out.named.prefix, out.named.length = a, int(x.Data[8])
					}
				case dhcpmsg.OptStatus6:
					if binary.BigEndian.Uint16(x.Data) != 0 {
						line += ", " + status(x.Data)
					}
				}
			}
			out.lines = append(out.lines, line)
		}
	}
	slices.Sort(out.lines)
	return out
}

// exchange6 sends a message to both servers and returns their answers. The answer to a following message shows that there was none.
func (w *twins) exchange6(p *plan6, a *actor6, s step6) [2]answer6 {
	w.t.Helper()
	w.transaction += 2
	sentinel := &actor6{duid: duid6(99), na: true}
	named := lease6{address: p.networks[0].at(0x63)}
	last := step6{kind: dhcpmsg.Request6, named: [2]lease6{named, named}}
	sides := []*side{w.ours, w.kea}
	send := func(i int, from *actor6, what step6, transaction uint32) {
		if err := sides[i].toRelays(from.packet(p, what, i, transaction), twinServer6, 547); err != nil {
			w.t.Fatal(err)
		}
	}
	for i := range sides {
		send(i, a, s, w.transaction)
		send(i, sentinel, last, w.transaction+1)
	}
	var got [2][]byte
	innerID := func(packet []byte) uint32 {
		outer, err := dhcpmsg.ParseOptions6(packet[34:])
		inner, _ := outer.Find(dhcpmsg.OptRelayMessage6)
		if err != nil || len(inner) < 4 {
			w.t.Fatalf("%x: %v", packet, err)
		}
		return uint32(inner[1])<<16 | uint32(inner[2])<<8 | uint32(inner[3])
	}
	for i, one := range sides {
		until, again := time.After(10*time.Second), time.NewTicker(2*time.Second)
		for ended := false; !ended; {
			select {
			case packet := <-one.packets:
				switch innerID(packet) {
				case w.transaction:
					got[i] = packet
				case w.transaction + 1:
					ended = true
				}
			case <-again.C: // a lost datagram
				send(i, sentinel, last, w.transaction+1)
			case <-until:
				w.t.Fatalf("%s does not answer", one.name)
			}
		}
		again.Stop()
	}
	read := func() [2]answer6 { return [2]answer6{p.read(w.t, got[0]), p.read(w.t, got[1])} }
	w.awaitLate(&got, innerID, func() bool {
		all := read()
		return len(a.differences(s, all)) == 0 || a.expected(p, s, all) != ""
	})
	return read()
}

// next returns a random step of a client.
func (a *actor6) next(r *rand.Rand, p *plan6) step6 {
	elsewhere := func() (out [2]lease6) {
		n := p.networks[r.IntN(len(p.networks))]
		first, _, _ := n.ranges()
		one := lease6{address: first}
		if len(n.reservations) > 0 && n.reservations[0].address.IsValid() && r.IntN(2) == 0 {
			one.address = n.reservations[0].address
		}
		return [2]lease6{one, one}
	}
	holds, offers := !a.held[0].none() && !a.held[1].none(), !a.offered[0].none() && !a.offered[1].none()
	switch x := r.IntN(20); {
	case offers && x < 14:
		return step6{kind: dhcpmsg.Request6, name: "REQUEST", named: a.offered}
	case holds && x < 4:
		return step6{kind: dhcpmsg.Renew6, name: "RENEW", named: a.held}
	case holds && x < 7:
		return step6{kind: dhcpmsg.Rebind6, name: "REBIND", named: a.held}
	case holds && x < 9:
		return step6{kind: dhcpmsg.Confirm6, name: "CONFIRM", named: a.held}
	case holds && x < 10:
		return step6{kind: dhcpmsg.Release6, name: "RELEASE", named: a.held}
	case holds && x < 11 && r.IntN(4) == 0 && a.held[0].address.IsValid():
		return step6{kind: dhcpmsg.Decline6, name: "DECLINE", named: a.held}
	case x < 12:
		return step6{kind: dhcpmsg.InformationRequest6, name: "INFORMATION-REQUEST"}
	case x == 12:
		return step6{kind: dhcpmsg.Renew6, name: "RENEW of another's", named: elsewhere()}
	case x == 13:
		return step6{kind: dhcpmsg.Release6, name: "RELEASE of another's", named: elsewhere()}
	case x == 14:
		return step6{kind: dhcpmsg.Confirm6, name: "CONFIRM elsewhere", named: elsewhere()}
	case x == 15:
		a.network = r.IntN(len(p.networks))
	}
	return step6{kind: dhcpmsg.Solicit6, name: "SOLICIT", rapid: a.rapid}
}

// learn remembers what a client learned from the answers.
func (a *actor6) learn(s step6, answers [2]answer6) {
	for i, one := range answers {
		switch {
		case s.kind == dhcpmsg.Release6 && s.name == "RELEASE" || s.kind == dhcpmsg.Decline6:
			a.declined = a.declined || s.kind == dhcpmsg.Decline6
			a.held[i], a.offered[i] = lease6{}, lease6{}
		case one.kind == "ADVERTISE":
			a.offered[i] = one.named
		case one.kind == "REPLY" && slices.Contains([]uint8{dhcpmsg.Request6, dhcpmsg.Solicit6, dhcpmsg.Renew6, dhcpmsg.Rebind6}, s.kind):
			a.held[i], a.offered[i] = one.named, lease6{}
		}
	}
}

// differences returns how the answers to a message differ.
func (a *actor6) differences(s step6, answers [2]answer6) (all []string) {
	ours, kea := answers[0], answers[1]
	if ours.kind != kea.kind {
		return []string{fmt.Sprintf("%s, Kea %s", ours.kind, kea.kind)}
	}
	if s.kind == dhcpmsg.Release6 || s.kind == dhcpmsg.Decline6 {
		// RFC 9915 sections 18.3.6 and 18.3.7: the status of the message is success, and only associations without a binding are in it.
		kea.lines = slices.DeleteFunc(kea.lines, func(line string) bool {
			return strings.HasPrefix(line, "status") || !strings.Contains(line, "status")
		})
	}
	if !slices.Equal(ours.lines, kea.lines) {
		all = append(all, fmt.Sprintf("%q, Kea %q", ours.lines, kea.lines))
	}
	if s.kind == dhcpmsg.Confirm6 || s.kind == dhcpmsg.Release6 || s.kind == dhcpmsg.Decline6 { // Kea adds options
		return all
	}
	for _, code := range slices.Concat(a.asked, []uint16{dhcpmsg.OptClientID6, dhcpmsg.OptServerID6}) {
		x, _ := ours.options.Find(code)
		if y, _ := kea.options.Find(code); !bytes.Equal(x, y) {
			all = append(all, fmt.Sprintf("option %d %x, Kea %x", code, x, y))
		}
	}
	return all
}

func (p *plan6) String() string {
	text := fmt.Sprintf("options %v\n", p.options)
	for _, n := range p.networks {
		text += fmt.Sprintf("network %d %s shared %d, addresses %t, prefixes %d, rapid %t, lease %v, %v\n", n.id, n.prefix, n.shared, n.addresses,
			n.delegated, n.rapid, n.lease, n.options)
		for _, x := range n.reservations {
			text += fmt.Sprintf("  %s %s for %x %x %v\n", x.address, x.prefix, x.mac, x.duid, x.options)
		}
	}
	return text
}

// TestDifferential6 lets this server and Kea answer random sequences of messages of DHCPv6. PORTOLAN_TEST_DIFFERENTIAL is that of
// TestDifferential.
func TestDifferential6(t *testing.T) {
	t.Parallel()
	const sequences, steps = 20, 14
	seed, contents := differentialSize(t)
	w := newTwins(t, 6)
	kinds := map[string]int{}
	for content := range contents {
		r := rand.New(rand.NewPCG(seed, uint64(content)))
		p := newPlan6(r)
		w.configure(p.units(t), p.forKea())
		for n := range 8 {
			p.actors = append(p.actors, newActor6(r, p, n))
		}
		for range sequences {
			a := p.actors[r.IntN(len(p.actors))]
			for a.retired {
				a = p.actors[r.IntN(len(p.actors))]
			}
			for range steps {
				s := a.next(r, p)
				answers := w.exchange6(p, a, s)
				a.log = append(a.log, fmt.Sprintf("%s at %d %v: %s %q, %s %q", s.name, a.network, s.named, answers[0].kind, answers[0].lines,
					answers[1].kind, answers[1].lines))
				kinds[s.name+" "+answers[0].kind]++
				if all := a.differences(s, answers); len(all) > 0 {
					if why := a.expected(p, s, answers); why != "" {
						kinds["- "+why]++
						if answers[0].named.address.IsValid() != answers[1].named.address.IsValid() || strings.HasSuffix(s.name, "another's") {
							a.retired = true // its leases differ from now on
							p.actors = append(p.actors, newActor6(r, p, len(p.actors)))
						}
					} else {
						t.Errorf("content %d:%d, client %d (na %t, pd %t, asks %v, wish 0): %s\n%s\n%s", seed, content, a.n, a.na, a.pd, a.asked,
							strings.Join(all, "\n"), strings.Join(a.log, "\n"), p)
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
func (a *actor6) expected(p *plan6, s step6, answers [2]answer6) string {
	ours, kea := answers[0], answers[1]
	has := func(one answer6, text string) bool {
		return slices.ContainsFunc(one.lines, func(line string) bool { return strings.Contains(line, text) })
	}
	reserved := strings.Contains(strings.Join(ours.lines, " "), "na 1") && has(ours, "/128")
	same := ours.kind == kea.kind && slices.Equal(ours.lines, kea.lines)
	switch {
	case same && p.reserves(a) && !reserved:
		return "D408"
	case strings.HasSuffix(s.name, "another's") && ours.kind == kea.kind:
		return "the address has another history at one server"
	case ours.kind == kea.kind && p.networks[a.network].shared != 0 && p.reserves(a):
		return "D412 reservations in several networks of a link"
	case s.kind == dhcpmsg.Rebind6 && (has(kea, "status 2") || has(kea, "status 6")):
		return "D380"
	case s.rapid && ours.kind == "ADVERTISE" && kea.kind == "REPLY" && ours.named.none():
		return "D412 rapid commit without addresses"
	case s.kind == dhcpmsg.Confirm6 && p.networks[a.network].shared != 0 && !has(ours, "status") && has(kea, "status 4"):
		return "D412 CONFIRM in a shared network"
	case (s.kind == dhcpmsg.Renew6 || s.kind == dhcpmsg.Rebind6) && has(ours, "status 3") && !has(kea, "status 3"):
		return "D380"
	}
	return ""
}

// reserves reports whether an address or prefix is reserved for a client.
func (p *plan6) reserves(a *actor6) bool {
	return slices.ContainsFunc(p.networks, func(n planNetwork6) bool {
		return slices.ContainsFunc(n.reservations, func(one planReservation6) bool {
			return bytes.Equal(one.duid, a.duid) || bytes.Equal(one.mac, clientMAC(a.n))
		})
	})
}
