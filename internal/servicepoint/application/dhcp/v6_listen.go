package dhcp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"portolan/internal/base/dhcpmsg"
	"portolan/internal/wire/dhcpdata"

	"golang.org/x/net/ipv6"
)

// clientPort6 is the port of DHCPv6 clients.
const clientPort6 = 546

// The multicast addresses of servers (RFC 9915 section 7.1): the first one is for clients and relays of a link, the second one for relays
// of a site.
var (
	allAgents6  = netip.MustParseAddr("ff02::1:2")
	allServers6 = netip.MustParseAddr("ff05::1:3")
)

// listener6 is a UDP socket for DHCPv6.
type listener6 struct {
	s       *service
	address netip.AddrPort
	conn    *net.UDPConn
	packets *ipv6.PacketConn
	reading sync.WaitGroup
	inbox   *inbox[incoming6]
	// joined are the indexes of the interfaces whose clients it receives. The lock of the service guards it.
	joined map[int]bool
}

func listen6(address string, s *service) (*listener6, error) {
	conn, err := new(net.ListenConfig).ListenPacket(context.Background(), "udp6", address)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	l := &listener6{s: s, address: netip.MustParseAddrPort(address), conn: conn.(*net.UDPConn), packets: ipv6.NewPacketConn(conn),
		joined: map[int]bool{}}
	setReceiveBuffer(l.conn)
	if err := l.packets.SetControlMessage(ipv6.FlagDst|ipv6.FlagInterface, true); err != nil {
		return nil, errors.Join(fmt.Errorf("listen on %s: %w", address, err), conn.Close())
	}
	return l, nil
}

// incoming6 is a received message, or the error of one that is malformed.
type incoming6 struct {
	message *dhcpmsg.Message6
	err     error
	// from and to are the source and the destination, and index is the index of the interface.
	from  *net.UDPAddr
	to    netip.Addr
	index int
}

func (l *listener6) start() {
	l.inbox = newInbox(l.receive, l.s.overloaded, &l.s.engine.outbox)
	l.reading.Go(l.read)
}

func (l *listener6) close() {
	_ = l.conn.Close() // nothing is buffered
	l.reading.Wait()
	if l.inbox != nil { // it was started
		l.inbox.close()
	}
}

func (l *listener6) read() {
	messages := newMessages(len(ipv6.NewControlMessage(ipv6.FlagDst|ipv6.FlagInterface)), maxMessage6)
	var control ipv6.ControlMessage
	receiver := l.s.newReceiver(l.address.String())
	for {
		n, err := l.packets.ReadBatch(messages, 0)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // such as an ICMP error for an earlier reply
			receiver.Failed(err)
			continue
		}
		receiver.Received()
		for i := range messages[:n] {
			in, reason := incomingOf6(&messages[i], &control)
			if reason != "" {
				l.s.engine.counters.refuse(0, reason)
				continue
			}
			l.inbox.put(in, in.err != nil || in.message.Type == dhcpmsg.Solicit6)
		}
	}
}

// incomingOf6 returns a received packet, or the reason why it is not read. It uses control for the control message.
func incomingOf6(m *ipv6.Message, control *ipv6.ControlMessage) (in incoming6, reason string) {
	if m.Flags&flagTruncated != 0 {
		return in, tooLong
	}
	*control = ipv6.ControlMessage{} // Parse keeps fields that a message does not have
	from, ok := m.Addr.(*net.UDPAddr)
	if !ok || control.Parse(m.OOB[:m.NN]) != nil {
		return in, noDestination
	}
	to, ok := netip.AddrFromSlice(control.Dst)
	if !ok {
		return in, noDestination
	}
	parsed, err := dhcpmsg.Parse6(slices.Clone(m.Buffers[0][:m.N]))
	return incoming6{parsed, err, from, to, control.IfIndex}, ""
}

// maxMessage6 is the maximum size of a message in octets. Longer ones are not read.
const maxMessage6 = 64 << 10

// receive passes a message to the engine.
func (l *listener6) receive(in incoming6) {
	s, m, from, to, index := l.s, in.message, in.from, in.to, in.index
	if in.err != nil {
		s.engine.counters.receive("MALFORMED6")
		s.engine.counters.refuse(0, in.err.Error())
		return
	}
	s.engine.counters.receive(messageName6(m.Type))
	source, _ := netip.AddrFromSlice(from.IP)
	f := dhcpdata.Facts6{Message: m, Interface: s.interfaces6.prefixes(index)}
	for _, p := range f.Interface {
		f.Local = append(f.Local, p.Addr())
	}
	if isStranger6(m, source, to, f.Interface) {
		s.engine.counters.refuse(0, foreignSource)
		return
	}
	client, ok := m.Options.Find(dhcpmsg.OptClientID6)
	if !ok {
		client = source.AsSlice()
	}
	request := &request6{facts: f}
	if reason := s.limiter.refuses(client, relayOf6(request), index, m.Type == dhcpmsg.Solicit6, time.Now()); reason != "" {
		s.engine.counters.refuse(0, reason)
		return
	}
	reply := &net.UDPAddr{IP: from.IP, Port: clientPort6, Zone: from.Zone}
	control := &ipv6.ControlMessage{IfIndex: index}
	if !to.IsMulticast() {
		control.Src = to.AsSlice() // a relay expects the reply from the address that it asked
	}
	if len(m.Relays) > 0 {
		reply.Port = int(m.RelayPort6(uint16(from.Port))) //nolint:gosec // a port
	}
	if source.IsLoopback() { // a client or relay of a test or of "portolan dhcp ask"
		reply.Port = from.Port
	}
	request.reply = func(packet []byte) {
		s.engine.outbox.send(l.packets, packet, control.Marshal(), reply, func(err error) { s.sendFailed(0, err) })
	}
	s.engine.handle6(request)
}

// joinGroups joins the groups of servers on each interface whose clients are served. The caller holds mu.
func (s *service) joinGroups(six *protocol) {
	for _, l := range s.listeners6 {
		present := map[int]bool{}
		for name, i := range six.wanted {
			if present[i.Index] = true; l.joined[i.Index] {
				continue
			}
			if err := l.join(i); err != nil {
				six.problems[name] = fmt.Sprintf("join the groups of DHCPv6: %v", err)
				continue
			}
			l.joined[i.Index] = true
			s.log.Info("interface served", "interface", name)
		}
		for index := range l.joined {
			if !present[index] {
				l.leaveGroup(index)
				delete(l.joined, index)
			}
		}
	}
}

// join joins the groups of servers on an interface, both or none.
func (l *listener6) join(i *net.Interface) error {
	for _, group := range []netip.Addr{allAgents6, allServers6} {
		if err := l.packets.JoinGroup(i, &net.UDPAddr{IP: group.AsSlice()}); err != nil {
			l.leaveGroup(i.Index)
			return err
		}
	}
	return nil
}

// leaveGroup leaves the groups of servers on an interface. The socket keeps them while the interface is down, and even after it lost IPv6,
// and could not join them again.
func (l *listener6) leaveGroup(index int) {
	for _, group := range []netip.Addr{allAgents6, allServers6} {
		_ = l.packets.LeaveGroup(&net.Interface{Index: index}, &net.UDPAddr{IP: group.AsSlice()}) // the interface may have vanished
	}
}

// standard6 is the address of listeners without a configuration. A machine without IPv6 cannot have it.
const standard6 = "[::]:547"

// open6 opens the listeners of a configuration that are not open yet. A machine without IPv6 does not listen at the standard address. The
// caller holds mu.
func (s *service) open6(c Configuration) (opened map[string]*listener6, err error) {
	opened = map[string]*listener6{}
	for _, address := range c.Listen6 {
		if s.listeners6[address] != nil {
			continue
		}
		l, err := listen6(address, s)
		if err != nil && address == standard6 && !hasIPv6() {
			s.log.Info("DHCPv6 not served, the machine has no IPv6", "error", err)
			continue
		}
		if err != nil {
			closeAll6(opened)
			return nil, err
		}
		opened[address] = l
	}
	return opened, nil
}

// hasIPv6 reports whether the machine has an IPv6 address.
func hasIPv6() bool {
	addresses, err := net.InterfaceAddrs()
	return err == nil && slices.ContainsFunc(addresses, func(a net.Addr) bool {
		p, err := netip.ParsePrefix(a.String())
		return err == nil && !p.Addr().Is4()
	})
}

// replace6 starts opened listeners and closes those that the configuration does not contain. The caller holds mu.
func (s *service) replace6(c Configuration, opened map[string]*listener6) {
	for address, l := range opened {
		s.listeners6[address] = l
		l.start()
	}
	for address, l := range s.listeners6 {
		if !slices.Contains(c.Listen6, address) {
			l.close()
			delete(s.listeners6, address)
		}
	}
}

func closeAll6(all map[string]*listener6) {
	for _, l := range all {
		l.close()
	}
}
