package dhcp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"

	"portolan/internal/base/dhcpmsg"
	"portolan/internal/servicepoint/application"
	"portolan/internal/wire/dhcpdata"

	"golang.org/x/net/ipv4"
)

// listener is a UDP socket for relays and renewals.
type listener struct {
	s       *service
	address netip.AddrPort
	conn    *net.UDPConn
	packets *ipv4.PacketConn
	reading sync.WaitGroup
	inbox   *inbox[incoming]
}

// maxMessage is the maximum size of a message in octets. Longer ones are not read.
const maxMessage = 4 << 10

// receiveBuffer is the size of the receive buffer of a socket in bytes, for bursts of clients after a power cut.
const receiveBuffer = 4 << 20

func listen(address string, s *service) (*listener, error) {
	config := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error { return allowBroadcast(c) }}
	conn, err := config.ListenPacket(context.Background(), "udp4", address)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	l := &listener{s: s, address: netip.MustParseAddrPort(address), conn: conn.(*net.UDPConn), packets: ipv4.NewPacketConn(conn)}
	setReceiveBuffer(l.conn)
	if err := l.packets.SetControlMessage(ipv4.FlagDst|ipv4.FlagInterface, true); err != nil {
		return nil, errors.Join(fmt.Errorf("listen on %s: %w", address, err), conn.Close())
	}
	return l, nil
}

func (l *listener) start() {
	l.inbox = newInbox(l.s.receive, l.s.overloaded, &l.s.engine.outbox)
	l.reading.Go(l.read)
}

// overloaded counts a message that was dropped.
func (s *service) overloaded() { s.engine.counters.refuse(0, busy) }

func (l *listener) close() {
	_ = l.conn.Close() // nothing is buffered
	l.reading.Wait()
	if l.inbox != nil { // it was started
		l.inbox.close()
	}
}

func (l *listener) read() {
	messages := newMessages(len(ipv4.NewControlMessage(ipv4.FlagDst|ipv4.FlagInterface)), maxMessage)
	var control ipv4.ControlMessage
	receiver := l.s.newReceiver(l.address.String())
	for {
		n, err := l.packets.ReadBatch(messages, 0)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			receiver.Failed(err)
			continue
		}
		receiver.Received()
		for i := range messages[:n] {
			in, reason := l.incomingOf(&messages[i], &control)
			switch {
			case reason != "":
				l.s.engine.counters.refuse(0, reason)
			case in.to == broadcast && l.s.hasLink(in.index): // the link receives it as well
			default:
				l.inbox.put(in, isNewClient(in.packet))
			}
		}
	}
}

// Reasons of packets that are not read: a failed read, a packet that is longer than the buffer, and one without its destination.
const (
	receiveFailed = "receive-failed"
	tooLong       = "too-long"
	noDestination = "no-destination"
)

// newReceiver returns an observer of a socket at an address, or of a packet socket with the name of its interface.
func (s *service) newReceiver(address string) *application.Receiver {
	return application.NewReceiver(s.log, address, func() { s.engine.counters.refuse(0, receiveFailed) })
}

// incomingOf returns a received packet, or the reason why it is not read. It uses control for the control message.
func (l *listener) incomingOf(m *ipv4.Message, control *ipv4.ControlMessage) (in incoming, reason string) {
	if m.Flags&flagTruncated != 0 {
		return in, tooLong
	}
	*control = ipv4.ControlMessage{} // Parse keeps fields that a message does not have
	a, ok := m.Addr.(*net.UDPAddr)
	if !ok || control.Parse(m.OOB[:m.NN]) != nil {
		return in, noDestination
	}
	in = incoming{packet: slices.Clone(m.Buffers[0][:m.N]), listener: l, index: control.IfIndex,
		from: netip.AddrPortFrom(a.AddrPort().Addr().Unmap(), a.AddrPort().Port())}
	if in.to, ok = netip.AddrFromSlice(control.Dst.To4()); !ok {
		return in, noDestination
	}
	return in, ""
}

// newMessages returns the messages to receive a batch into, with control messages of a size.
func newMessages(control, size int) []ipv4.Message {
	all := make([]ipv4.Message, batchSize)
	for i := range all {
		all[i] = ipv4.Message{Buffers: [][]byte{make([]byte, size)}, OOB: make([]byte, control)}
	}
	return all
}

var broadcast = netip.AddrFrom4([4]byte{255, 255, 255, 255})

// incoming is a received message.
type incoming struct {
	// packet is not used again by its receiver, because probes and the disk take their time.
	packet []byte
	// from and to are the source and the destination, and index is the index of the interface.
	from  netip.AddrPort
	to    netip.Addr
	index int
	// listener received the message; nil if link did.
	listener *listener
	link     *link
}

// receive reads a message and passes it to the engine.
func (s *service) receive(in incoming) {
	packet := in.packet
	m, err := dhcpmsg.Parse(packet)
	if err != nil {
		s.engine.counters.receive("MALFORMED")
		s.engine.counters.refuse(0, err.Error())
		return
	}
	s.engine.counters.receive(messageName(m.Type))
	prefixes := s.interfaces.prefixes(in.index)
	f := dhcpdata.Facts{Type: m.Type, HardwareType: m.HardwareType, Hardware: m.Hardware, Secs: m.Secs,
		Broadcast: m.Flags&dhcpmsg.BroadcastFlag != 0, Options: m.Options, Packet: packet,
		Unicast: in.to != broadcast && !isBroadcastOf(prefixes, in.to)}
	if !m.Client.IsUnspecified() {
		f.Client = m.Client
	}
	if m.Relay.IsUnspecified() {
		f.Interface = prefixes
	} else {
		f.Relay = m.Relay
	}
	for _, p := range prefixes {
		f.Local = append(f.Local, p.Addr())
	}
	if f.Unicast {
		f.Local = append(f.Local, in.to)
	}
	if s.badAddresses(in, &f, prefixes) {
		s.engine.counters.refuse(0, string(dhcpdata.BadMessage))
		return
	}
	if isStranger(in, &f, prefixes) {
		s.engine.counters.refuse(0, foreignSource)
		return
	}
	if reason := s.limiter.refuses(append(m.Hardware[:len(m.Hardware):len(m.Hardware)], clientIDOf(m)...), f.Relay, in.index,
		m.Type == dhcpdata.Discover || m.Type == 0, time.Now()); reason != "" {
		s.engine.counters.refuse(0, reason)
		return
	}
	s.engine.handle(&request{message: m, packet: packet, facts: f, reply: func(d *dhcpdata.Decision, reply []byte) {
		failed := func(err error) { s.sendFailed(d.Network, err) }
		if err := s.reply(in, m, d, reply, failed); err != nil {
			failed(err)
		}
	}})
}

// sendFailed counts a reply that could not be sent.
func (s *service) sendFailed(network int64, err error) {
	s.engine.counters.refuse(network, "send-failed")
	s.log.Debug("send reply failed", "error", err)
}

// badAddresses reports whether giaddr or ciaddr cannot be the address of a relay or client, so that a reply would reach the server itself
// or more than one machine.
func (s *service) badAddresses(in incoming, f *dhcpdata.Facts, prefixes []netip.Prefix) bool {
	local := in.from.Addr().IsLoopback()
	for _, a := range []netip.Addr{f.Relay, f.Client} {
		if a.IsMulticast() || a == broadcast || a.IsLoopback() && !local || a.IsValid() && isBroadcastOf(prefixes, a) {
			return true
		}
	}
	// Replies go to port 67 of the relay. If this server listens there, it is not a relay.
	own := slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Addr() == f.Relay })
	s.linkLock.RLock()
	defer s.linkLock.RUnlock()
	return own && s.primary != nil && !local
}

// clientIDOf returns the client identifier of a message without a hardware address.
func clientIDOf(m *dhcpmsg.Message) []byte {
	if len(m.Hardware) > 0 {
		return nil
	}
	return m.Options[61]
}

// isBroadcastOf reports whether an address is the last one of a prefix.
func isBroadcastOf(prefixes []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(prefixes, func(p netip.Prefix) bool {
		return p.Bits() < 31 && p.Contains(a) && !p.Contains(a.Next())
	})
}

// relaySourcePort is the sub-option of relays that receive replies at their source port (RFC 8357).
const relaySourcePort = 19

// reply sends a reply to the relay, to the address of the client, or to the link (RFC 2131 section 4.1). A client on the loopback interface
// receives it at its source port. failed is called if the reply is in a batch and cannot be sent.
func (s *service) reply(in incoming, m *dhcpmsg.Message, d *dhcpdata.Decision, packet []byte, failed func(error)) error {
	switch {
	case in.from.Addr().IsLoopback():
		return s.send(in, in.from, packet, failed)
	case !m.Relay.IsUnspecified():
		port := uint16(serverPort)
		if _, ok := dhcpdata.SubOption(m.Options[optRelay], relaySourcePort); ok {
			port = in.from.Port()
		}
		return s.send(in, netip.AddrPortFrom(m.Relay, port), packet, failed)
	case d.Reply == dhcpdata.Nak:
		return s.sendLink(in, broadcast, nil, d, packet)
	case !m.Client.IsUnspecified():
		return s.send(in, netip.AddrPortFrom(m.Client, clientPort), packet, failed)
	case d.Broadcast || len(m.Hardware) != 6 || !d.Address.IsValid():
		return s.sendLink(in, broadcast, nil, d, packet)
	}
	return s.sendLink(in, d.Address, m.Hardware, d, packet)
}

// send sends a packet by UDP.
func (s *service) send(in incoming, to netip.AddrPort, packet []byte, failed func(error)) error {
	l := in.listener
	if l == nil {
		s.linkLock.RLock()
		l = s.primary
		s.linkLock.RUnlock()
	}
	if l == nil {
		return net.ErrClosed
	}
	s.engine.outbox.send(l.packets, packet, nil, net.UDPAddrFromAddrPort(to), failed)
	return nil
}

// sendLink sends a packet to a client on the link. Without a link the packet is broadcast by UDP.
func (s *service) sendLink(in incoming, to netip.Addr, hardware []byte, d *dhcpdata.Decision, packet []byte) error {
	k := in.link
	if k == nil {
		k = s.linkAt(in.index)
	}
	if k != nil {
		return k.send(to, hardware, d.ServerID, packet)
	}
	if in.listener == nil {
		return net.ErrClosed
	}
	_, err := in.listener.packets.WriteTo(packet, &ipv4.ControlMessage{IfIndex: in.index}, net.UDPAddrFromAddrPort(
		netip.AddrPortFrom(broadcast, clientPort)))
	return err
}

func (s *service) hasLink(index int) bool { return s.linkAt(index) != nil }

// linkAt returns the link of an interface; nil if there is none.
func (s *service) linkAt(index int) *link {
	s.linkLock.RLock()
	defer s.linkLock.RUnlock()
	return s.linksByIndex[index]
}

// interfaces remembers the addresses of interfaces for a short time, because asking the system for them costs more than a reply.
type interfaces struct {
	// of returns the addresses of an interface, of one family: see prefixesOf.
	of    func(index int) []netip.Prefix
	mu    sync.Mutex
	known map[int]knownInterface
}

type knownInterface struct {
	prefixes []netip.Prefix
	until    time.Time
}

// interfaceTime is the time that the addresses of an interface are remembered.
const interfaceTime = time.Second

// prefixes returns the addresses of an interface with their prefixes.
func (i *interfaces) prefixes(index int) []netip.Prefix {
	now := time.Now()
	i.mu.Lock()
	defer i.mu.Unlock()
	one, ok := i.known[index]
	if ok && now.Before(one.until) {
		return one.prefixes
	}
	if i.known == nil || len(i.known) > 1000 { // interfaces that vanished
		i.known = map[int]knownInterface{}
	}
	one = knownInterface{prefixes: i.of(index), until: now.Add(interfaceTime)}
	i.known[index] = one
	return one.prefixes
}

// prefixesOf returns the IPv4 or IPv6 addresses of an interface with their prefixes.
func prefixesOf(index int, v4 bool) (all []netip.Prefix) {
	i, err := net.InterfaceByIndex(index)
	if err != nil {
		return nil
	}
	addresses, err := i.Addrs()
	if err != nil {
		return nil
	}
	for _, a := range addresses {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Is4() == v4 {
			all = append(all, p)
		}
	}
	return all
}
