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

// CoreDNS would open sockets itself and accept any number of connections. Instead the resolver opens the sockets once for all
// configurations, and CoreDNS servers serve them. CoreDNS notifies plugins in their order when a configuration starts or stops. Serving
// stops before the other plugins stop, and starts after they have started.

// The names of the plugins that stop and start serving: the first and the last plugin of the chain.
const (
	stopServing  = "ends-serving"
	startServing = "begins-serving"
)

// socket contains the sockets of a listener: TCP, and UDP unless it uses TLS.
type socket struct {
	of      Listener
	stream  *net.TCPListener
	packets *net.UDPConn
}

// open opens the sockets of an address.
func open(of Listener) (*socket, error) {
	l, err := reuseport.Listen("tcp", of.address())
	if err != nil {
		return nil, err
	}
	s := &socket{of: of, stream: l.(*net.TCPListener)} //nolint:forcetypeassert // the network is tcp
	if of.TLS {
		return s, nil
	}
	p, err := reuseport.ListenPacket("udp", of.address())
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	s.packets = p.(*net.UDPConn) //nolint:forcetypeassert // the network is udp
	return s, nil
}

func (s *socket) close() error {
	err := s.stream.Close()
	if s.packets != nil {
		err = errors.Join(err, s.packets.Close())
	}
	return err
}

// openFor returns the sockets for listeners: existing ones and new ones. If one cannot be opened, the new ones are closed.
func (r *resolver) openFor(listeners []Listener) (all []*socket, err error) {
	for _, of := range listeners {
		at := slices.IndexFunc(r.sockets, func(s *socket) bool { return s.of == of })
		if at >= 0 {
			all = append(all, r.sockets[at])
			continue
		}
		s, err := open(of)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("listening on %s: %w", of.address(), err), closeExcept(all, r.sockets))
		}
		all = append(all, s)
	}
	return all, nil
}

// closeExcept closes the sockets in list that are not in but.
func closeExcept(list, but []*socket) (err error) {
	for _, s := range list {
		if !slices.Contains(but, s) {
			err = errors.Join(err, s.close())
		}
	}
	return err
}

// server is a CoreDNS server for one socket.
type server interface {
	Serve(l net.Listener) error
	ServePacket(p net.PacketConn) error
	Stop() error
}

// generation serves one configuration. Its servers use copies of the sockets, so that the end of a server does not close the socket.
type generation struct {
	config  *dnsserver.Config
	sockets []*socket
	servers []server
	copies  []io.Closer
	log     *slog.Logger
	// maxConnections is the maximum number of connections in total, unless the limit of file descriptors is lower.
	maxConnections int
	ended          atomic.Bool
}

// start starts serving. It creates all servers before the first one serves, because creating one sets up the shared plugins.
func (g *generation) start() error {
	for _, s := range g.sockets {
		one, err := g.serverOf(s.of)
		if err != nil {
			return err
		}
		g.servers = append(g.servers, one)
	}
	most := fairlisten.Each(len(g.sockets), g.maxConnections)
	for i, s := range g.sockets {
		if err := g.serve(g.servers[i], s, most); err != nil {
			return errors.Join(err, g.stop())
		}
	}
	return nil
}

// serve starts a server on copies of a socket with at most limit connections.
func (g *generation) serve(one server, s *socket, limit int) error {
	stream, err := copyOf(s.stream)
	if err != nil {
		return err
	}
	fair := fairlisten.New(stream, fairlisten.Limits{Max: limit, PerNetwork: max(limit/4, 1)})
	g.copies = append(g.copies, fair)
	go func() { g.logStopped(s.of, one.Serve(fair)) }()
	if s.packets == nil {
		return nil
	}
	packets, err := copyOfPackets(s.packets)
	if err != nil {
		return err
	}
	g.copies = append(g.copies, packets)
	go func() { g.logStopped(s.of, one.ServePacket(packets)) }()
	return nil
}

// logStopped logs a listener that has stopped by itself. The check of the listeners then makes the resolver unhealthy.
func (g *generation) logStopped(of Listener, err error) {
	if err != nil && !g.ended.Load() {
		g.log.Error("listener stopped", "address", of.address(), "error", err)
	}
}

// serverOf creates the server for a listener.
func (g *generation) serverOf(of Listener) (server, error) {
	group := []*dnsserver.Config{g.config}
	if of.TLS {
		return dnsserver.NewServerTLS("tls://"+of.address(), group)
	}
	return dnsserver.NewServer("dns://"+of.address(), group)
}

// stop stops the servers. Pending queries are answered for some seconds. A server that has not started yet finds its socket closed.
func (g *generation) stop() error {
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
		_ = c.Close() // usually closed by its server already
	}
	return errors.Join(errs...)
}

// copyOf returns a new listener on the same socket.
func copyOf(l *net.TCPListener) (net.Listener, error) {
	file, err := l.File()
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // a copy without written data
	return net.FileListener(file)
}

// copyOfPackets returns a new connection on the same socket.
func copyOfPackets(c *net.UDPConn) (net.PacketConn, error) {
	file, err := c.File()
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // a copy without written data
	return net.FilePacketConn(file)
}

// maxConnections is the maximum number of connections, unless the limit of file descriptors is lower.
const maxConnections = 4096
