package dhcp

import (
	"bytes"
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"portolan/internal/base/dhcpmsg"
	"portolan/internal/wire/dhcpdata"
)

// gatedFile is a file whose syncs wait for the gate, if there is one, and fail while fail is true. syncs counts the syncs that have begun.
type gatedFile struct {
	journalFile
	gate  chan struct{}
	fail  *atomic.Bool
	syncs *atomic.Int64
}

func (f gatedFile) Sync() error {
	f.syncs.Add(1)
	if f.gate != nil {
		<-f.gate
	}
	if f.fail.Load() {
		return syscall.EIO
	}
	return f.journalFile.Sync()
}

// disk is the disk of an engine in tests.
type disk struct {
	dir   string
	gate  chan struct{}
	fail  atomic.Bool
	syncs atomic.Int64
}

// engineOn starts an engine with content on a disk. The caller closes it.
func engineOn(t testing.TB, d *disk, u dhcpdata.Units, probe probeFunc) *engine {
	t.Helper()
	if d.dir == "" {
		d.dir = t.TempDir()
	}
	started := make(chan struct{})
	if d.gate != nil {
		go func() {
			select {
			case d.gate <- struct{}{}:
			case <-started:
			}
		}()
	}
	e, damaged, err := newEngine(d.dir, slog.New(slog.DiscardHandler), journalOptions{open: func(path string) (journalFile, error) {
		f, err := openAppend(path)
		return gatedFile{f, d.gate, &d.fail, &d.syncs}, err
	}}, probe)
	close(started)
	d.syncs.Store(0) // without that of the clock at the start
	if err != nil || damaged != nil {
		t.Fatal(err, damaged)
	}
	take(t, e, u)
	return e
}

func take(t testing.TB, e *engine, u dhcpdata.Units) {
	t.Helper()
	deliver(t, func(text []byte) error { return e.takeContent(bytes.NewReader(text)) }, u)
}

// engineReply is a reply of an engine.
type engineReply struct {
	kind    uint8
	address string
	reason  dhcpdata.Reason
	options []dhcpdata.Sent
}

// asker passes messages to an engine, and collects the replies.
type asker struct {
	t       testing.TB
	e       *engine
	replies chan engineReply
}

func newAsker(t testing.TB, e *engine) *asker { return &asker{t, e, make(chan engineReply, 100)} }

// ask passes a message of the hardware n behind the relay 10.0.0.1 to the engine.
func (a *asker) ask(kind, n byte, set ...func(*dhcpdata.Facts)) {
	f := dhcpdata.Facts{Type: kind, HardwareType: 1, Hardware: []byte{2, 0, 0, 0, 0, n}, Relay: netip.MustParseAddr("10.0.0.1"),
		Options: map[uint8][]byte{53: {kind}}}
	for _, one := range set {
		one(&f)
	}
	m := &dhcpmsg.Message{HardwareType: 1, HardwareLength: 6, Hardware: f.Hardware, Relay: f.Relay, Options: f.Options, Type: kind,
		Client: netip.IPv4Unspecified()}
	a.e.handle(&request{message: m, facts: f, reply: func(d *dhcpdata.Decision, _ []byte) {
		a.replies <- engineReply{d.Reply, d.Address.String(), d.Reason, d.Options}
	}})
}

// want waits for a reply of a type about an address.
func (a *asker) want(kind uint8, address string) engineReply {
	a.t.Helper()
	select {
	case got := <-a.replies:
		if got.kind != kind || got.address != address {
			a.t.Errorf("the reply is %s %s %s, want %s %s", messageName(got.kind), got.address, got.reason, messageName(kind), address)
		}
		return got
	case <-time.After(20 * time.Second):
		a.t.Fatalf("no reply, want %s %s", messageName(kind), address)
	}
	return engineReply{}
}

// none checks that no reply has arrived. The caller ensures that one would have arrived.
func (a *asker) none() {
	a.t.Helper()
	select {
	case got := <-a.replies:
		a.t.Errorf("the reply is %s %s, want none", messageName(got.kind), got.address)
	default:
	}
}

// selects makes a REQUEST one that selects the offer of an address.
func selects(address string) func(*dhcpdata.Facts) {
	return func(f *dhcpdata.Facts) {
		f.Options[50], f.Options[54] = netip.MustParseAddr(address).AsSlice(), []byte{127, 0, 0, 1}
	}
}

// renews makes a REQUEST one that renews an address.
func renews(address string) func(*dhcpdata.Facts) {
	return func(f *dhcpdata.Facts) {
		f.Client, f.Relay, f.Unicast = netip.MustParseAddr(address), netip.Addr{}, true
	}
}

// identifies adds a client identifier.
func identifies(id string) func(*dhcpdata.Facts) {
	return func(f *dhcpdata.Facts) { f.Options[61] = []byte(id) }
}

func (e *engine) stateOf(address string) (l dhcpdata.LeaseState, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.table.Lease(netip.MustParseAddr(address))
}

// TestACKBeforeSync checks that a repeated REQUEST gets no ACK before its lease is on the disk, none if the write fails, and that the
// address has one holder afterwards.
func TestACKBeforeSync(t *testing.T) {
	d := &disk{gate: make(chan struct{})}
	e := engineOn(t, d, units(t, noPing), nil)
	a := newAsker(t, e)
	a.ask(dhcpdata.Request, 1, selects("10.0.1.0"))
	waitFor(t, func() bool { return d.syncs.Load() == 1 })
	for range 3 {
		a.ask(dhcpdata.Request, 1, selects("10.0.1.0"))
	}
	if n := e.journal.last.Load(); n != 1 { // that of the clock at the start
		t.Errorf("%d records are on the disk", n)
	}
	a.none()
	d.fail.Store(true)
	d.gate <- struct{}{}
	waitFor(t, func() bool { return e.full.Load() })
	a.none()
	if l, ok := e.stateOf("10.0.1.0"); ok {
		t.Errorf("the failed lease is in the table: %+v", l)
	}
	d.fail.Store(false)
	close(d.gate)
	waitFor(t, func() bool { return !e.full.Load() })
	a.ask(dhcpdata.Discover, 2)
	a.want(dhcpdata.Offer, "10.0.1.0")
	a.ask(dhcpdata.Request, 2, selects("10.0.1.0"))
	a.want(dhcpdata.Ack, "10.0.1.0")
	a.ask(dhcpdata.Request, 1, selects("10.0.1.0"))
	a.want(dhcpdata.Nak, "invalid IP")
	a.ask(dhcpdata.Request, 2, selects("10.0.1.0")) // now the rest of the lease is sent at once
	a.want(dhcpdata.Ack, "10.0.1.0")
	a.none()
	if err := e.close(); err != nil {
		t.Error(err)
	}
}

// TestACKBeforeSync6 checks the same for DHCPv6.
func TestACKBeforeSync6(t *testing.T) {
	d := &disk{gate: make(chan struct{})}
	e := engineOn(t, d, units6(t), nil)
	replies := make(chan struct{}, 10)
	duid := []byte{0, 3, 0, 1, 2, 0, 0, 0, 0, 1}
	ask := func() {
		m := &dhcpmsg.Message6{Type: dhcpmsg.Request6, Relays: []dhcpmsg.Relay6{{Link: netip.MustParseAddr("2001:db8:1::1"),
			Peer: netip.MustParseAddr("fe80::1")}}, Options: dhcpmsg.Options6{{Code: dhcpmsg.OptClientID6, Data: duid},
			{Code: dhcpmsg.OptServerID6, Data: e.content.Load().compiled.ServerDUID()}, {Code: dhcpmsg.OptIANA6, Data: make([]byte, 12)}}}
		e.handle6(&request6{facts: dhcpdata.Facts6{Message: m}, reply: func([]byte) { replies <- struct{}{} }})
	}
	ask()
	waitFor(t, func() bool { return d.syncs.Load() == 1 })
	ask()
	ask()
	if len(replies) > 0 {
		t.Error("a REPLY before the lease is on the disk")
	}
	close(d.gate)
	waitFor(t, func() bool { return len(replies) == 3 })
	if err := e.close(); err != nil {
		t.Error(err)
	}
}

// TestOrphanRenewal checks that a renewal is not acknowledged if the beginning of its lease could not be written: after a kill the lease
// would be unknown.
func TestOrphanRenewal(t *testing.T) {
	d := &disk{gate: make(chan struct{})}
	u := units(t, noPing, option("dhcp-cache-threshold", 0))
	e := engineOn(t, d, u, nil)
	a := newAsker(t, e)
	a.ask(dhcpdata.Request, 1, selects("10.0.1.0"))
	waitFor(t, func() bool { return d.syncs.Load() == 1 })
	a.ask(dhcpdata.Request, 1, selects("10.0.1.0")) // a renewal in the next group
	d.fail.Store(true)
	d.gate <- struct{}{}
	waitFor(t, func() bool { return e.full.Load() })
	d.fail.Store(false)
	close(d.gate)
	waitFor(t, func() bool { return !e.full.Load() })
	a.none()
	a.ask(dhcpdata.Request, 1, selects("10.0.1.0"))
	a.want(dhcpdata.Ack, "10.0.1.0")
	a.none()
	_ = e.journal.close() // kill -9
	killed := &disk{dir: d.dir}
	e2 := engineOn(t, killed, u, nil)
	if l, ok := e2.stateOf("10.0.1.0"); !ok || l.State != dhcpdata.Leased {
		t.Errorf("the acknowledged lease is unknown after a restart: %+v", l)
	}
	if err := e2.close(); err != nil {
		t.Error(err)
	}
	close(e.stop)
	e.tasks.Wait()
}

// TestUndoRestoresRenewals checks that a failed renewal is not reported in a digest, and that a failed digest is written again.
func TestUndoRestoresRenewals(t *testing.T) {
	d := &disk{}
	e := engineOn(t, d, units(t, noPing, option("dhcp-cache-threshold", 0)), nil)
	a := newAsker(t, e)
	a.ask(dhcpdata.Request, 1, selects("10.0.1.0"))
	a.want(dhcpdata.Ack, "10.0.1.0")
	pending := func() int {
		e.mu.Lock()
		defer e.mu.Unlock()
		return len(e.renewals[7])
	}
	a.ask(dhcpdata.Request, 1, selects("10.0.1.0"))
	a.want(dhcpdata.Ack, "10.0.1.0")
	if n := pending(); n != 1 {
		t.Fatalf("%d renewals", n)
	}
	d.fail.Store(true)
	e.writeDigests()
	waitFor(t, func() bool { return e.full.Load() })
	if n := pending(); n != 1 {
		t.Errorf("%d renewals after a failed digest", n)
	}
	d.fail.Store(false)
	waitFor(t, func() bool { return !e.full.Load() })
	e.writeDigests()
	if err := e.flush(); err != nil || pending() != 0 {
		t.Errorf("%v, %d renewals after a digest", err, pending())
	}
	d.fail.Store(true)
	a.ask(dhcpdata.Request, 1, selects("10.0.1.0"))
	waitFor(t, func() bool { return e.full.Load() })
	if n := pending(); n != 0 {
		t.Errorf("%d renewals after a failed renewal", n)
	}
	a.none()
	d.fail.Store(false)
	if err := e.close(); err != nil {
		t.Error(err)
	}
}

// TestCheckpointOfFailedWrite checks that a checkpoint is not written if a change that it could contain fails meanwhile.
func TestCheckpointOfFailedWrite(t *testing.T) {
	d := &disk{gate: make(chan struct{})}
	e := engineOn(t, d, units(t, noPing), nil)
	a := newAsker(t, e)
	a.ask(dhcpdata.Request, 1, selects("10.0.1.0"))
	waitFor(t, func() bool { return d.syncs.Load() == 1 })
	result := make(chan error)
	go func() { result <- e.writeCheckpoint() }()
	waitFor(t, func() bool { return len(e.commits) == 1 })
	d.fail.Store(true)
	d.gate <- struct{}{}
	if err := <-result; !errors.Is(err, errNotWritten) {
		t.Errorf("the checkpoint: %v", err)
	}
	d.fail.Store(false)
	close(d.gate)
	a.none()
	if err := e.writeCheckpoint(); err != nil {
		t.Error(err)
	}
	if err := e.close(); err != nil {
		t.Error(err)
	}
}

// journalKinds returns the kinds of the records in the journal.
func journalKinds(t *testing.T, e *engine) (kinds []byte) {
	t.Helper()
	for c := e.journal.cursor(); ; {
		_, entry, ok, err := c.read()
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			return kinds
		}
		kinds = append(kinds, entry[0])
	}
}

// TestDigestOrder checks that a digest is in the journal after the renewals that it contains.
func TestDigestOrder(t *testing.T) {
	d := &disk{gate: make(chan struct{})}
	e := engineOn(t, d, units(t, noPing, option("dhcp-cache-threshold", 0)), nil)
	a := newAsker(t, e)
	a.ask(dhcpdata.Request, 1, selects("10.0.1.0"))
	waitFor(t, func() bool { return d.syncs.Load() == 1 })
	a.ask(dhcpdata.Request, 1, selects("10.0.1.0"))
	e.writeDigests()
	close(d.gate)
	a.want(dhcpdata.Ack, "10.0.1.0")
	a.want(dhcpdata.Ack, "10.0.1.0")
	if err := e.flush(); err != nil {
		t.Fatal(err)
	}
	kinds := journalKinds(t, e)
	if !slices.Equal(kinds, []byte{entryClock, entryEvent, entryRenewal, entryDigest}) {
		t.Errorf("the journal contains %q", kinds)
	}
	if err := e.close(); err != nil {
		t.Error(err)
	}
}

// TestRetriedOrder checks that an order of an operator that could not be written is performed when the disk accepts writes again.
func TestRetriedOrder(t *testing.T) {
	t.Parallel()
	d := &disk{}
	e := engineOn(t, d, units(t, noPing), nil)
	a := newAsker(t, e)
	a.ask(dhcpdata.Request, 1, selects("10.0.1.0"))
	a.want(dhcpdata.Ack, "10.0.1.0")
	d.fail.Store(true)
	take(t, e, units(t, noPing, dhcpdata.Order{ID: 77, Address: netip.MustParseAddr("10.0.1.0"), Action: dhcpdata.EndLease}))
	waitFor(t, func() bool { return e.full.Load() })
	if l, _ := e.stateOf("10.0.1.0"); l.Ended {
		t.Error("the order is performed and not stored")
	}
	d.fail.Store(false)
	waitFor(t, func() bool { l, _ := e.stateOf("10.0.1.0"); return l.Ended })
	if err := e.flush(); err != nil {
		t.Error(err)
	}
	if err := e.close(); err != nil {
		t.Error(err)
	}
}

// TestLateOrder checks that an order ends the lease that the operator saw, and no later lease of the address.
func TestLateOrder(t *testing.T) {
	e := engineOn(t, &disk{}, units(t, noPing), nil)
	a := newAsker(t, e)
	a.ask(dhcpdata.Request, 1, selects("10.0.1.0"))
	a.want(dhcpdata.Ack, "10.0.1.0")
	order := func(id, start int64) dhcpdata.Order {
		return dhcpdata.Order{ID: id, Address: netip.MustParseAddr("10.0.1.0"), Action: dhcpdata.EndLease, Start: start}
	}
	e.mu.Lock()
	start := e.table.lease(netip.MustParseAddr("10.0.1.0")).start
	e.mu.Unlock()
	take(t, e, units(t, noPing, order(77, start-100)))
	if l, _ := e.stateOf("10.0.1.0"); l.Ended {
		t.Error("the order for an earlier lease has ended the lease")
	}
	take(t, e, units(t, noPing, order(78, start)))
	if l, _ := e.stateOf("10.0.1.0"); !l.Ended {
		t.Error("the order has not ended the lease")
	}
	if err := e.close(); err != nil {
		t.Error(err)
	}
}

// TestEndOfInfiniteLease checks that the address of an infinite lease that an operator ended becomes free again.
func TestEndOfInfiniteLease(t *testing.T) {
	infinite := []dhcpdata.Item{noPing, option("default-lease-time", dhcpdata.Infinite), option("max-lease-time", dhcpdata.Infinite)}
	e := engineOn(t, &disk{}, units(t, infinite...), nil)
	a := newAsker(t, e)
	a.ask(dhcpdata.Request, 1, selects("10.0.1.0"))
	a.want(dhcpdata.Ack, "10.0.1.0")
	if l, _ := e.stateOf("10.0.1.0"); l.Expires != dhcpdata.InfiniteTime {
		t.Fatalf("the lease expires at %d", l.Expires)
	}
	take(t, e, units(t, append(infinite, dhcpdata.Order{ID: 77, Address: netip.MustParseAddr("10.0.1.0"), Action: dhcpdata.EndLease})...))
	a.ask(dhcpdata.Request, 1, selects("10.0.1.0"))
	a.want(dhcpdata.Nak, "invalid IP")
	l, _ := e.stateOf("10.0.1.0")
	if rest := l.Expires - e.clock.now(); !l.Ended || rest < endedSeconds-60 || rest > endedSeconds {
		t.Errorf("the ended lease blocks its address for %d s", rest)
	}
	e.mu.Lock()
	if e.table.slots.slot(e.table.slots.find(l.Address)).place == 0 {
		t.Error("the ended lease does not expire")
	}
	e.mu.Unlock()
	if err := e.close(); err != nil {
		t.Error(err)
	}
}
