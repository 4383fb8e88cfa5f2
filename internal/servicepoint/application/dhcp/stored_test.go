package dhcp

import (
	"errors"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"portolan/internal/base/dhcpmsg"
	"portolan/internal/wire/dhcpdata"

	"github.com/insomniacslk/dhcp/dhcpv4"
)

// slowFile is a file whose syncs wait for an error or nil from a channel.
type slowFile struct {
	*os.File
	syncs chan error
}

func (f slowFile) Sync() error { return <-f.syncs }

// newSlowEngine returns an engine whose syncs wait for the channel.
func newSlowEngine(t *testing.T) (e *engine, syncs chan error) {
	t.Helper()
	syncs = make(chan error)
	open := func(path string) (journalFile, error) {
		f, err := os.OpenFile(filepath.Clean(path), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		return slowFile{f, syncs}, err
	}
	go func() { syncs <- nil }() // the start of the clock
	e, damaged, err := newEngine(t.TempDir(), slog.New(slog.DiscardHandler), journalOptions{open: open}, nil)
	if err != nil || damaged != nil {
		t.Fatal(err, damaged)
	}
	t.Cleanup(func() {
		close(syncs)
		if err := e.close(); err != nil {
			t.Error(err)
		}
	})
	return e, syncs
}

// endSyncs ends the pending syncs: one for each group of commits.
func endSyncs(syncs chan error, err error) {
	for {
		select {
		case syncs <- err:
		case <-time.After(100 * time.Millisecond): // nothing tells that no sync will follow
			return
		}
	}
}

// askEngine passes a REQUEST of the hardware n for an address to the engine. Replies arrive in the channel.
func askEngine(t *testing.T, e *engine, n byte, address string, replies chan *dhcpdata.Decision) {
	t.Helper()
	m, err := dhcpv4.New(dhcpv4.WithMessageType(dhcpv4.MessageTypeRequest), dhcpv4.WithHwAddr([]byte{2, 0, 0, 0, 0, n}),
		dhcpv4.WithGatewayIP([]byte{10, 0, 0, 1}))
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := dhcpmsg.Parse(m.ToBytes())
	if err != nil {
		t.Fatal(err)
	}
	a := netip.MustParseAddr(address)
	parsed.Options[50], parsed.Options[54] = a.AsSlice(), []byte{127, 0, 0, 1}
	e.handle(&request{message: parsed, facts: dhcpdata.Facts{Type: parsed.Type, HardwareType: 1, Hardware: parsed.Hardware,
		Options: parsed.Options, Relay: parsed.Relay}, reply: func(d *dhcpdata.Decision, _ []byte) { replies <- d }})
}

// TestRepeatedRequest checks that a client that asks twice, for example through two relays, gets no ACK before its lease is on the disk,
// and none if the disk fails.
func TestRepeatedRequest(t *testing.T) {
	e, syncs := newSlowEngine(t)
	deliver(t, (&service{engine: e}).engineTake, units(t, noPing)) // dhcp-cache-threshold is on
	replies := make(chan *dhcpdata.Decision, 10)
	none := func() {
		t.Helper()
		select {
		case d := <-replies:
			t.Fatalf("%s before the lease is on the disk", messageName(d.Reply))
		case <-time.After(50 * time.Millisecond): // nothing tells that no reply will come
		}
	}
	askEngine(t, e, 1, "10.0.1.5", replies)
	askEngine(t, e, 1, "10.0.1.5", replies)
	none()
	endSyncs(syncs, errors.New("the disk is broken"))
	none()
	if _, ok := e.stateOf("10.0.1.5"); ok {
		t.Error("a lease is left that is not on the disk")
	}
	askEngine(t, e, 1, "10.0.1.5", replies)
	askEngine(t, e, 1, "10.0.1.5", replies)
	none()
	endSyncs(syncs, nil)
	for range 2 {
		if d := <-replies; d.Reply != dhcpdata.Ack {
			t.Errorf("the reply is %s", messageName(d.Reply))
		}
	}
	askEngine(t, e, 1, "10.0.1.5", replies) // the rest of a stored lease needs no disk
	if d := <-replies; d.Reply != dhcpdata.Ack || d.Action != dhcpdata.ActRenew {
		t.Errorf("the reply is %s", messageName(d.Reply))
	}
}

// TestRepeatedRequest6 checks the same for DHCPv6.
func TestRepeatedRequest6(t *testing.T) {
	e, syncs := newSlowEngine(t)
	deliver(t, (&service{engine: e}).engineTake, units6(t))
	replies := make(chan []byte, 10)
	ask := func() {
		duid := e.content.Load().compiled.ServerDUID()
		m := &dhcpmsg.Message6{Type: dhcpmsg.Request6, Relays: []dhcpmsg.Relay6{{Link: netip.MustParseAddr("2001:db8:1::1"),
			Peer: netip.MustParseAddr("fe80::1")}}, Options: dhcpmsg.Options6{
			{Code: dhcpmsg.OptClientID6, Data: []byte{0, 3, 0, 1, 2, 0, 0, 0, 0, 1}},
			{Code: dhcpmsg.OptServerID6, Data: duid}, {Code: dhcpmsg.OptIANA6, Data: make([]byte, 12)}}}
		e.handle6(&request6{facts: dhcpdata.Facts6{Message: m}, reply: func(packet []byte) { replies <- packet }})
	}
	ask()
	ask()
	select {
	case <-replies:
		t.Fatal("a REPLY before the lease is on the disk")
	case <-time.After(50 * time.Millisecond): // nothing tells that no reply will come
	}
	endSyncs(syncs, nil)
	for range 2 {
		if got := innerName(<-replies); got != "REPLY" {
			t.Errorf("the reply is %s", got)
		}
	}
}
