package dhcppair

import (
	"hash/fnv"
	"math"
	"net/netip"
)

// Side is the role of a server in a pair.
type Side uint8

// The sides of a pair.
const (
	Primary Side = iota
	Secondary
)

// Opposite returns the other side.
func (s Side) Opposite() Side { return 1 - s }

func (s Side) String() string { return [2]string{"primary", "secondary"}[s&1] }

// BaseOwner returns the owner of an address before any transfer: even IPv4 addresses belong to the primary. Addresses and prefixes of IPv6
// are divided by a hash.
func BaseOwner(a netip.Addr) Side {
	if a.Is4() {
		octets := a.As4()
		return Side(octets[3] & 1)
	}
	h := fnv.New64a()
	octets := a.As16()
	_, _ = h.Write(octets[:]) // never fails
	sum := h.Sum64()
	return Side((sum ^ sum>>32 ^ sum>>16) & 1)
}

// State is the state of an address.
type State uint8

// The states of an address.
const (
	Free State = iota
	Leased
	Abandoned
)

// Infinite is the time of a lease without an end.
const Infinite = int64(1) << 62

// Record is the knowledge of a server about an address of the pair.
type Record struct {
	// Client is the identity of the client that has the address, or had it last; empty if it was never leased. State, Start and Expires
	// describe its lease.
	Client         string
	State          State
	Start, Expires int64
	// Mine is the latest end of the leases that this server has granted. Want is the end that the partner should acknowledge, so that the
	// next renewal is as long as configured.
	Mine, Want int64
	// Promise is the end that the partner has acknowledged. Theirs is the end that this server has acknowledged.
	Promise, Theirs int64
	// Owner is the side that may lease the address to a new client. Epoch counts the transfers.
	Owner Side
	Epoch uint32
	// Agreed is true if both servers have agreed that the address is free.
	Agreed bool
	// Versions count the changes of each side that the record contains.
	Versions [2]uint32
}

// NewRecord returns the record of an address that was never leased.
func NewRecord(a netip.Addr) Record { return Record{Owner: BaseOwner(a)} }

// IsHeld reports whether only the client of the record may get the address, until both servers agree that it is free.
func (r Record) IsHeld() bool { return r.Client != "" && !r.Agreed }

// horizon returns the end that the partner is asked to acknowledge.
func (r Record) horizon() int64 {
	if r.State == Leased {
		return max(r.Mine, r.Want)
	}
	return r.Mine
}

// hasEnded reports whether no lease that this server knows of lasts.
func (r Record) hasEnded(now int64) bool {
	return r.Mine <= now && (r.State == Free || r.Expires <= now)
}

// Limit returns the end of a lease: wanted, unless the partner has acknowledged less and MCLT is shorter.
func (m *Machine) Limit(r Record, client string, wanted, now int64) int64 {
	if m.isAlone() {
		return wanted
	}
	promise := r.Promise
	if r.Client != client {
		promise = 0
	}
	return min(wanted, max(now+m.config.MCLT, promise))
}

// isAlone reports whether the partner is down and not connected. A connected partner recovers: it is about to serve again, so it must learn
// each further lease in time.
func (m *Machine) isAlone() bool { return m.status.Phase == PartnerDown && m.peer == nil }

// May reports whether the server may lease the address to a client.
func (m *Machine) May(r Record, client string, now int64) bool {
	switch {
	case !m.Serving(now) || r.State == Abandoned && r.Expires > now:
		return false
	case r.IsHeld() && r.Client == client && r.State != Abandoned:
		return true
	case m.CanReclaim(r, now):
		return true
	}
	return !r.IsHeld() && r.Owner == m.config.Side
}

// CanReclaim reports whether the partner is down for so long that no lease of the address can last, except those in the record.
func (m *Machine) CanReclaim(r Record, now int64) bool {
	return m.isAlone() && r.hasEnded(now) && r.Theirs <= now && m.status.Since+m.config.MCLT <= now
}

// Reclaim returns the record after the server has taken a free address of a partner that is down.
func (m *Machine) Reclaim(r Record) Record {
	if r.Owner != m.config.Side {
		r.Owner = m.config.Side
		r.Epoch++
	}
	r.State, r.Agreed, r.Promise, r.Want = Free, true, 0, 0
	r.Versions[m.config.Side]++
	return r
}

// Grant returns the record after a lease until expires. wanted is the end that the configuration allows. May has returned true.
func (m *Machine) Grant(r Record, client string, now, expires, wanted int64) Record {
	if m.CanReclaim(r, now) && (r.Owner != m.config.Side || r.IsHeld() && r.Client != client) {
		r = m.Reclaim(r)
	}
	if r.Client != client || r.Agreed || r.State != Leased {
		r.Start = now
	}
	if r.Client != client {
		r.Promise = 0
	}
	r.Client, r.State, r.Expires, r.Agreed = client, Leased, expires, false
	r.Mine = max(r.Mine, expires)
	if r.Want = Infinite; wanted < Infinite {
		r.Want = wanted + (wanted-now)/2
	}
	r.Promise = min(r.Promise, r.horizon())
	r.Versions[m.config.Side]++
	return r
}

// End returns the record after the client has given the address up. With abandoned the address is not used until then.
func (m *Machine) End(r Record, now int64, abandoned bool, until int64) Record {
	r.State, r.Expires = Free, min(r.Expires, now)
	if r.Mine, r.Want = min(r.Mine, now), 0; abandoned {
		r.State, r.Expires = Abandoned, until
	}
	r.Agreed = false
	r.Promise = min(r.Promise, r.horizon())
	r.Versions[m.config.Side]++
	return r
}

// Touch returns the record after a change of its description.
func (m *Machine) Touch(r Record) Record {
	r.Versions[m.config.Side]++
	return r
}

// CanGive reports whether the server may give the address to its partner.
func (m *Machine) CanGive(r Record, now int64) bool {
	return !r.IsHeld() && r.Owner == m.config.Side && r.hasEnded(now)
}

// GiveToPartner returns the record after the ownership has been given to the partner.
func (m *Machine) GiveToPartner(r Record) Record {
	r.Owner = m.config.Side.Opposite()
	r.Epoch++
	r.Versions[m.config.Side]++
	return r
}

// remaining returns the rest of a time in seconds, at least 0.
func remaining(t, now int64) int64 {
	if t >= Infinite {
		return Infinite
	}
	return max(t-now, 0)
}

// slack is added to the rest of a time that arrives, because seconds are rounded.
const slack = 2

// resumeTime returns the time after a rest that has arrived.
func resumeTime(rest, now int64) int64 {
	switch {
	case rest <= 0:
		return now
	case rest >= Infinite-now-slack:
		return Infinite
	}
	return now + rest + slack
}

// Binding is a record on its way to the partner. Durations are in seconds. Data describes the client in the form of the caller.
type Binding struct {
	Address netip.Addr `json:"address"`
	Client  []byte     `json:"client,omitempty"`
	State   State      `json:"state,omitempty"`
	// Age is the time since the start of the lease, Expires the rest of it, and Horizon the rest of the time to acknowledge.
	Age     int64 `json:"age,omitempty"`
	Expires int64 `json:"expires,omitempty"`
	Horizon int64 `json:"horizon,omitempty"`
	// Active is the rest of the leases that the sender has granted. Yours is the rest of those that it has acknowledged.
	Active   int64     `json:"active,omitempty"`
	Yours    int64     `json:"yours,omitempty"`
	Owner    Side      `json:"owner,omitempty"`
	Epoch    uint32    `json:"epoch,omitempty"`
	Agreed   bool      `json:"agreed,omitempty"`
	Versions [2]uint32 `json:"versions"`
	Data     []byte    `json:"data,omitempty"`
}

// binding returns the binding of a record.
func binding(a netip.Addr, r Record, data []byte, now int64) Binding {
	return Binding{Address: a, Client: []byte(r.Client), State: r.State, Age: max(now-r.Start, 0), Expires: remaining(r.Expires, now),
		Horizon: remaining(r.horizon(), now), Active: remaining(r.Mine, now), Yours: remaining(r.Theirs, now), Owner: r.Owner, Epoch: r.Epoch,
		Agreed: r.Agreed, Versions: r.Versions, Data: data}
}

// IsValid reports whether a binding that has arrived can be applied.
func (b Binding) IsValid() bool {
	for _, n := range []int64{b.Age, b.Expires, b.Horizon, b.Active, b.Yours} {
		if n < 0 || n > Infinite {
			return false
		}
	}
	return b.Address.IsValid() && b.Address.Zone() == "" && !b.Address.Is4In6() && b.State <= Abandoned && b.Owner <= Secondary &&
		b.Versions[0] < math.MaxUint32/2 && b.Versions[1] < math.MaxUint32/2 && b.Epoch < math.MaxUint32/2
}

// outcome is the result of a binding that has arrived.
type outcome struct {
	record Record
	// accepted is false if the partner may not rely on the binding. adopted is true if the client of the binding replaces that of the record.
	// conflict is true if both servers had leased the address to different clients. answers is true if the partner has to learn the record.
	accepted, adopted, conflict, answers bool
}

// apply returns the result of a binding from the partner.
func (m *Machine) apply(r Record, b Binding, now int64) outcome {
	me, them := m.config.Side, m.config.Side.Opposite()
	if m.status.Phase == Recover && m.status.Lost {
		return outcome{record: m.restore(r, b, now), accepted: true, adopted: len(b.Client) > 0}
	}
	if b.Versions[them] < r.Versions[them] {
		return outcome{record: r} // the record is newer
	}
	out := outcome{record: r, accepted: true}
	n := &out.record
	switch {
	case b.Epoch > r.Epoch:
		n.Owner, n.Epoch = b.Owner, b.Epoch
	case b.Epoch == r.Epoch && b.Owner != r.Owner: // both took the address while they did not hear of each other
		n.Owner = Primary
	}
	repeated := b.Versions[them] == r.Versions[them]
	seen := b.Versions[me] >= r.Versions[me]
	switch {
	case repeated || len(b.Client) == 0:
	case seen || !r.IsHeld():
		m.adopt(n, b, now)
		if out.adopted = true; !seen && me == Primary { // the partner may have rejected the record of this server
			n.Versions[me]++
			out.answers = true
		}
	case me == Secondary: // the primary decides, after the record of this server has arrived
		return outcome{record: r}
	default:
		out.conflict = m.differs(r, b, now)
		if out.adopted = m.loses(r, b, now); out.adopted {
			mine := n.Mine
			m.adopt(n, b, now)
			n.Mine = mine
		} else if string(b.Client) == r.Client {
			n.Expires = max(n.Expires, resumeTime(b.Expires, now))
		}
		n.Versions[me]++
		out.answers = true
	}
	n.Theirs = resumeTime(b.Horizon, now)
	n.Versions[them] = b.Versions[them]
	return out
}

// differs reports whether both servers have leased the address to different clients.
func (m *Machine) differs(r Record, b Binding, now int64) bool {
	return r.Client != string(b.Client) && r.Mine > now && b.Active > 0
}

// loses reports whether a record gives way to a binding that does not contain it: a lease that lasts wins, then the later start, then the
// record of the primary.
func (m *Machine) loses(r Record, b Binding, now int64) bool {
	mine, theirs := r.State == Leased && r.Mine > now, b.State == Leased && b.Active > 0
	switch {
	case mine != theirs:
		return theirs
	case string(b.Client) == r.Client:
		return false
	}
	const tie = 2
	return now-b.Age > r.Start+tie
}

// adopt replaces the lease of a record by that of a binding.
func (m *Machine) adopt(n *Record, b Binding, now int64) {
	if string(b.Client) == n.Client {
		if b.State != Leased {
			n.Mine = min(n.Mine, now)
		}
	} else {
		n.Want = 0
	}
	n.Client, n.State, n.Start, n.Expires = string(b.Client), b.State, now-b.Age, resumeTime(b.Expires, now)
	n.Agreed = b.Agreed && n.Mine <= now
	n.Versions[m.config.Side] = max(n.Versions[m.config.Side], b.Versions[m.config.Side])
	if n.Agreed {
		n.Want = 0
	}
	n.Promise = min(n.Promise, n.horizon())
}

// restore returns the record of a server that has lost its disk: the partner tells what it has acknowledged.
func (m *Machine) restore(r Record, b Binding, now int64) Record {
	me := m.config.Side
	n := Record{Client: string(b.Client), State: b.State, Start: now - b.Age, Expires: resumeTime(b.Expires, now),
		Mine: max(r.Mine, resumeTime(b.Yours, now)), Theirs: resumeTime(b.Horizon, now), Owner: b.Owner, Epoch: b.Epoch, Agreed: b.Agreed,
		Versions: b.Versions}
	if n.Versions[me] = max(n.Versions[me], r.Versions[me]); r.Epoch > b.Epoch {
		n.Owner, n.Epoch = r.Owner, r.Epoch
	}
	return n
}
