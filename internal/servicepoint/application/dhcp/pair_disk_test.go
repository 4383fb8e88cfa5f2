package dhcp

import (
	"testing"

	"portolan/internal/wire/dhcppair"

	"github.com/insomniacslk/dhcp/dhcpv4"
)

// holdFile is a file whose syncs wait until a channel is closed.
type holdFile struct {
	journalFile
	held, release chan struct{}
}

func (f holdFile) Sync() error {
	select {
	case f.held <- struct{}{}:
	default:
	}
	<-f.release
	return f.journalFile.Sync()
}

// holdDisk makes the syncs of the leases of a server wait until release is closed. held receives a value when one waits.
func holdDisk(m *pairMember, release chan struct{}) (held chan struct{}) {
	j := m.engine.journal
	j.writing.Lock()
	defer j.writing.Unlock()
	held = make(chan struct{}, 1)
	j.file = holdFile{j.file, held, release}
	return held
}

// TestPairSlowDisk checks that a pair stays connected while the disks of both servers are busy for longer than the silence that ends a
// connection, and that the leases arrive after that.
func TestPairSlowDisk(t *testing.T) {
	t.Parallel()
	one, two := newPairMembers(t, 100)
	one.pair.MaxResponseDelay, two.pair.MaxResponseDelay = 2, 2
	one.deliver()
	two.deliver()
	agree(t, one, two)
	n := clientOf(dhcppair.Primary, 1)
	c := pairClient(one, n)
	offer := c.ask(dhcpv4.MessageTypeDiscover)
	if offer == nil {
		t.Fatal("no offer")
	}
	link := func(m *pairMember) *pairLink {
		m.engine.mu.Lock()
		defer m.engine.mu.Unlock()
		return m.engine.pairs[m.pair.ID].link
	}
	before := [2]*pairLink{link(one), link(two)}
	release := make(chan struct{})
	held := [2]chan struct{}{holdDisk(one, release), holdDisk(two, release)}
	if m := c.ask(dhcpv4.MessageTypeRequest, dhcpv4.WithOption(dhcpv4.OptRequestedIPAddress(offer.YourIPAddr)),
		dhcpv4.WithOption(dhcpv4.OptServerIdentifier(offer.ServerIdentifier()))); m != nil {
		t.Errorf("a lease that is not on the disk is acknowledged: %v", m)
	}
	other := pairClient(two, clientOf(dhcppair.Secondary, 1))
	if a := other.ask(dhcpv4.MessageTypeDiscover); a != nil {
		other.ask(dhcpv4.MessageTypeRequest, dhcpv4.WithOption(dhcpv4.OptRequestedIPAddress(a.YourIPAddr)),
			dhcpv4.WithOption(dhcpv4.OptServerIdentifier(a.ServerIdentifier())))
	}
	<-held[0]
	<-held[1]
	began := [2]int64{one.engine.clock.now(), two.engine.clock.now()}
	for i, m := range []*pairMember{one, two} {
		waitFor(t, func() bool { return m.engine.pairStates()[0].Contact >= began[i]+5 || link(m) != before[i] })
		if link(m) != before[i] || m.state() != dhcppair.StateNormal {
			t.Errorf("server %d has lost its partner while its disk was busy: %s", i, m.state())
		}
	}
	close(release)
	waitFor(t, func() bool { return c.renew(offer.YourIPAddr.String()) != nil })
	agree(t, one, two)
}
