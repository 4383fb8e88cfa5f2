package dhcppair

import (
	"net/netip"
	"testing"
)

// TestMixingTable checks that the table of RFC 3074 is a permutation, and that the halves of the buckets are about equal.
func TestMixingTable(t *testing.T) {
	seen := map[uint8]bool{}
	for _, n := range mixing {
		seen[n] = true
	}
	if len(seen) != 256 || mixing[0] != 251 || mixing[255] != 151 {
		t.Errorf("the table has %d different values", len(seen))
	}
	low := 0
	for i := range 4096 {
		if Bucket([]byte{0, 0x5e, 0, 0x53, byte(i >> 8), byte(i)}) < 128 {
			low++
		}
	}
	if low < 1900 || low > 2200 {
		t.Errorf("%d of 4096 clients belong to the primary at the split 128", low)
	}
}

// TestSharesAreHalves checks that each side owns about half of the addresses at first.
func TestSharesAreHalves(t *testing.T) {
	own := 0
	for a := netip.MustParseAddr("10.0.0.0"); a != netip.MustParseAddr("10.0.1.0"); a = a.Next() {
		if BaseOwner(a) == Primary {
			own++
		}
	}
	if own != 128 {
		t.Errorf("the primary owns %d of 256 addresses", own)
	}
	own = 0
	for a, i := netip.MustParseAddr("2001:db8::"), 0; i < 4096; a, i = a.Next(), i+1 {
		if BaseOwner(a) == Primary {
			own++
		}
	}
	if own < 1900 || own > 2200 {
		t.Errorf("the primary owns %d of 4096 addresses", own)
	}
}

// machines returns two connected servers, and a function that exchanges their messages.
func machines(t *testing.T, one, two Status, now int64) (a, b *modelServer, play func(now int64)) {
	t.Helper()
	m := newModel(7)
	for i, s := range []Status{one, two} {
		server := m.servers[i]
		server.skew, server.status = 0, s
		m.t = now - 1_000_000
		server.start()
	}
	a, b = m.servers[0], m.servers[1]
	return a, b, func(now int64) {
		m.t = now - 1_000_000
		for range 2000 {
			m.work(m.any())
		}
	}
}

// TestLostDiskWaits checks that a server without its leases leases nothing for the time of MCLT after its start, and that the
// partner\ncontinues.
func TestLostDiskWaits(t *testing.T) {
	const start = 2_000_000
	a, b, play := machines(t, Status{}, Status{Known: true}, start)
	play(start)
	if a.machine.Serving(start) || !b.machine.Serving(start+startupSeconds) || a.machine.State(start) != StateRecoverWait {
		t.Fatalf("the states are %s and %s", a.machine.State(start), b.machine.State(start))
	}
	play(start + modelMCLT - 1)
	if a.machine.Serving(start + modelMCLT - 1) {
		t.Error("the server without its leases serves too early")
	}
	play(start + modelMCLT)
	if !a.machine.Serving(start+modelMCLT) || !a.machine.IsNormal() || !b.machine.IsNormal() {
		t.Errorf("the states are %s and %s", a.machine.State(start), b.machine.State(start))
	}
}

// TestNewPairServes checks that a new pair serves as soon as its servers have met, and not before.
func TestNewPairServes(t *testing.T) {
	const start = 2_000_000
	a, b, play := machines(t, Status{}, Status{}, start)
	if a.machine.Serving(start+100) || a.machine.State(start+100) != StateWaiting {
		t.Error("a server serves before it has met its partner")
	}
	play(start)
	if !a.machine.Serving(start) || !b.machine.Serving(start) {
		t.Errorf("the states are %s and %s", a.machine.State(start), b.machine.State(start))
	}
}

// TestAnswers checks the load balancing: in the state NORMAL one server answers, after the override both, and without the partner at once.
func TestAnswers(t *testing.T) {
	const start = 2_000_000
	a, b, play := machines(t, Status{Known: true}, Status{Known: true}, start)
	play(start + startupSeconds)
	for i := range 64 {
		id := []byte{byte(i)}
		if a.machine.Answers(id, 0, start+5) == b.machine.Answers(id, 0, start+5) {
			t.Errorf("both servers answer client %d, or none", i)
		}
		if !a.machine.Answers(id, 3, start+5) || !b.machine.Answers(id, 3, start+5) {
			t.Errorf("client %d gets no answer after the override", i)
		}
	}
	a.machine.Disconnected()
	if !a.machine.Answers([]byte{1}, 0, start+5) || !a.machine.Answers([]byte{2}, 0, start+5) {
		t.Error("the server does not answer without its partner")
	}
}

// TestLimit checks the length of leases: MCLT at first, then what the partner has acknowledged.
func TestLimit(t *testing.T) {
	const start = 2_000_000
	a, _, play := machines(t, Status{Known: true}, Status{Known: true}, start)
	play(start + startupSeconds)
	address := netip.MustParseAddr("10.0.0.0")
	r := a.Record(address)
	if got := a.machine.Limit(r, "client", start+modelLease, start); got != start+modelMCLT {
		t.Errorf("the first lease has %d s", got-start)
	}
	a.mem[address] = a.machine.Grant(r, "client", start, start+modelMCLT, start+modelLease)
	a.machine.Mark(address)
	play(start + startupSeconds)
	later := int64(start + modelMCLT/2)
	if got := a.machine.Limit(a.Record(address), "client", later+modelLease, later); got != later+modelLease {
		t.Errorf("the renewal has %d of %d s", got-later, modelLease)
	}
	if got := a.machine.Limit(a.Record(address), "other", later+modelLease, later); got != later+modelMCLT {
		t.Errorf("the lease of another client has %d s", got-later)
	}
}

// TestInvalidBinding checks that an invalid record ends the connection and changes nothing.
func TestInvalidBinding(t *testing.T) {
	const start = 2_000_000
	a, _, play := machines(t, Status{Known: true}, Status{Known: true}, start)
	play(start)
	for _, b := range []Binding{{}, {Address: netip.MustParseAddr("10.0.0.1"), Expires: -1},
		{Address: netip.MustParseAddr("10.0.0.1"), State: 9}, {Address: netip.MustParseAddr("::ffff:10.0.0.1")},
		{Address: netip.MustParseAddr("10.0.0.1"), Versions: [2]uint32{1 << 31}}} {
		if e, err := a.machine.Receive(Message{Sequence: 1, Bindings: []Binding{b}}, a, start); err == nil || len(e.Changes) > 0 {
			t.Errorf("%+v is accepted", b)
		}
	}
	if _, err := a.machine.Receive(Message{Hello: &Hello{Version: 1, Side: Secondary}}, a, start); err == nil {
		t.Error("a second hello is accepted")
	}
}
