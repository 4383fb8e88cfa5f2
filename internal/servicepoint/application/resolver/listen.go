package resolver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"

	"portolan/internal/base/fairlisten"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin/pkg/reuseport"
)

// CoreDNS would open the sockets itself, and take any number of connections. The resolver opens them, once for all configurations, and
// has servers of CoreDNS serve them. CoreDNS tells plugins in their order when a configuration begins and ends: serving ends before the
// other plugins end, and begins when they have begun.

// The plugins that end and begin to serve: the first and the last one.
const (
	endsServing   = "ends-serving"
	beginsServing = "begins-serving"
)

// socket is where the resolver listens: over TCP, and over UDP but for TLS.
type socket struct {
	of      Listener
	stream  *net.TCPListener
	packets *net.UDPConn
}

// open opens the sockets of an address.
func open(of Listener) (*socket, error) {
	l, err := reuseport.Listen("tcp", of.at())
	if err != nil {
		return nil, err
	}
	s := &socket{of: of, stream: l.(*net.TCPListener)} //nolint:forcetypeassert // of the network tcp
	if of.TLS {
		return s, nil
	}
	p, err := reuseport.ListenPacket("udp", of.at())
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	s.packets = p.(*net.UDPConn) //nolint:forcetypeassert // of the network udp
	return s, nil
}

func (s *socket) close() error {
	err := s.stream.Close()
	if s.packets != nil {
		err = errors.Join(err, s.packets.Close())
	}
	return err
}

// openFor gives the sockets for the listeners of a configuration: those that are open, and new ones. Where one cannot be opened the new
// ones are closed again.
func (r *resolver) openFor(listeners []Listener) (all []*socket, err error) {
	for _, of := range listeners {
		at := slices.IndexFunc(r.sockets, func(s *socket) bool { return s.of == of })
		if at >= 0 {
			all = append(all, r.sockets[at])
			continue
		}
		s, err := open(of)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("listening on %s: %w", of.at(), err), closeBut(all, r.sockets))
		}
		all = append(all, s)
	}
	return all, nil
}

// closeBut closes the sockets of a list that are not in another one.
func closeBut(list, but []*socket) (err error) {
	for _, s := range list {
		if !slices.Contains(but, s) {
			err = errors.Join(err, s.close())
		}
	}
	return err
}

// server is one of CoreDNS, for one socket.
type server interface {
	Serve(l net.Listener) error
	ServePacket(p net.PacketConn) error
	Stop() error
}

// generation serves one configuration. Its servers listen on copies of the sockets, so that none is closed with them.
type generation struct {
	config  *dnsserver.Config
	sockets []*socket
	servers []server
	copies  []io.Closer
	log     *slog.Logger
	// most is how many connections the sockets take together where descriptors do not bound it sooner.
	most  int
	ended atomic.Bool
}

// begin serves the sockets. All servers are made before the first one serves: making one sets the plugins up, which all of them share.
func (g *generation) begin() error {
	for _, s := range g.sockets {
		one, err := g.serverOf(s.of)
		if err != nil {
			return err
		}
		g.servers = append(g.servers, one)
	}
	most := fairlisten.Each(len(g.sockets), g.most)
	for i, s := range g.sockets {
		if err := g.serve(g.servers[i], s, most); err != nil {
			return errors.Join(err, g.end())
		}
	}
	return nil
}

// serve has a server serve copies of a socket, with at most so many connections.
func (g *generation) serve(one server, s *socket, most int) error {
	stream, err := copyOf(s.stream)
	if err != nil {
		return err
	}
	fair := fairlisten.New(stream, fairlisten.Limits{Max: most, PerNetwork: max(most/4, 1)})
	g.copies = append(g.copies, fair)
	go func() { g.stopped(s.of, one.Serve(fair)) }()
	if s.packets == nil {
		return nil
	}
	packets, err := copyOfPackets(s.packets)
	if err != nil {
		return err
	}
	g.copies = append(g.copies, packets)
	go func() { g.stopped(s.of, one.ServePacket(packets)) }()
	return nil
}

// stopped logs a listener that has stopped by itself. The look at the resolver's own addresses makes it unhealthy.
func (g *generation) stopped(of Listener, err error) {
	if err != nil && !g.ended.Load() {
		g.log.Error("listener stopped", "address", of.at(), "error", err)
	}
}

// serverOf makes the server for a listener.
func (g *generation) serverOf(of Listener) (server, error) {
	group := []*dnsserver.Config{g.config}
	if of.TLS {
		return dnsserver.NewServerTLS("tls://"+of.at(), group)
	}
	return dnsserver.NewServer("dns://"+of.at(), group)
}

// end lets the questions that have come be answered, for some seconds, and ends: a server that has not begun yet finds its socket closed.
func (g *generation) end() error {
	g.ended.Store(true)
	errs := make([]error, len(g.servers))
	var group sync.WaitGroup
	for i, one := range g.servers {
		group.Go(func() {
			if err := one.Stop(); err != nil && !errors.Is(err, context.DeadlineExceeded) {
				errs[i] = err
			}
		})
	}
	group.Wait()
	for _, c := range g.copies {
		_ = c.Close() // mostly closed by its server
	}
	return errors.Join(errs...)
}

// copyOf gives a listener of its own on the same socket.
func copyOf(l *net.TCPListener) (net.Listener, error) {
	file, err := l.File()
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // it is a copy that nothing was written to
	return net.FileListener(file)
}

// copyOfPackets gives a connection of its own on the same socket.
func copyOfPackets(c *net.UDPConn) (net.PacketConn, error) {
	file, err := c.File()
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // it is a copy that nothing was written to
	return net.FilePacketConn(file)
}

// mostConnections is how many connections a listener takes where descriptors do not bound it sooner.
const mostConnections = 4096
