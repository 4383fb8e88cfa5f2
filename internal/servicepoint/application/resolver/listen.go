package resolver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

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

// uncached is the name of the plugin after the cache. It sees the queries that the cache does not answer.
const uncached = "uncached"

// socket contains the sockets of a listener: TCP, and UDP unless it uses TLS.
type socket struct {
	listener Listener
	stream   *net.TCPListener
	// packets are the UDP sockets, one per processor; the kernel distributes clients across them. local is their address.
	packets []*net.UDPConn
	local   net.Addr
	// front answers over UDP; nil until the first configuration is in use. read starts the readers then.
	front   atomic.Pointer[front]
	read    sync.Once
	readers sync.WaitGroup
	// work passes queries to idle goroutines, of which idle is the number.
	work chan *packetWriter
	idle atomic.Int64
}

// packetSockets returns the number of UDP sockets of a listener.
func packetSockets() int {
	if runtime.GOOS != "linux" { // other systems do not distribute clients
		return 1
	}
	return runtime.GOMAXPROCS(0)
}

// open opens the sockets of an address.
func open(of Listener) (*socket, error) {
	l, err := reuseport.Listen("tcp", of.address())
	if err != nil {
		return nil, err
	}
	s := &socket{listener: of, stream: l.(*net.TCPListener), work: make(chan *packetWriter)} //nolint:forcetypeassert // the network is tcp
	if of.TLS {
		return s, nil
	}
	for range packetSockets() {
		p, err := reuseport.ListenPacket("udp", of.address())
		if err != nil {
			return nil, errors.Join(err, s.close())
		}
		s.packets = append(s.packets, p.(*net.UDPConn)) //nolint:forcetypeassert // the network is udp
	}
	s.local = s.packets[0].LocalAddr()
	return s, nil
}

// close closes the sockets and waits for the readers.
func (s *socket) close() error {
	err := s.stream.Close()
	for _, p := range s.packets {
		err = errors.Join(err, p.Close())
	}
	s.readers.Wait()
	close(s.work)
	return err
}

// use makes a front answer over UDP.
func (s *socket) use(f *front) {
	s.front.Store(f)
	s.read.Do(func() {
		for _, p := range s.packets {
			s.readers.Go(func() { s.readPackets(p) })
		}
	})
}

// openFor returns the sockets for listeners: existing ones and new ones. If one cannot be opened, the new ones are closed.
func (r *resolver) openFor(listeners []Listener) (all []*socket, err error) {
	for _, of := range listeners {
		at := slices.IndexFunc(r.sockets, func(s *socket) bool { return s.listener == of })
		if at >= 0 {
			all = append(all, r.sockets[at])
			continue
		}
		s, err := open(of)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("listen on %s: %w", of.address(), err), closeExcept(all, r.sockets))
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
	Stop() error
}

// generation serves one configuration. Its servers use copies of the TCP sockets, so that the end of a server does not close the socket.
// Its fronts answer over UDP.
type generation struct {
	resolver *resolver
	config   *dnsserver.Config
	settings frontSettings
	sockets  []*socket
	servers  []server
	// fronts are the fronts of the sockets; nil for those without UDP.
	fronts []*front
	copies []io.Closer
	log    *slog.Logger
	// maxConnections is the maximum number of connections in total, unless the limit of file descriptors is lower.
	maxConnections int
	ended          atomic.Bool
	// pending is the number of queries over UDP that CoreDNS is answering. idle is closed when there are none after the end.
	pending  atomic.Int64
	idle     chan struct{}
	idleOnce sync.Once
}

func newGeneration(r *resolver, sockets []*socket, settings frontSettings) *generation {
	return &generation{resolver: r, settings: settings, sockets: sockets, log: r.log, maxConnections: r.connections,
		idle: make(chan struct{})}
}

// enter begins an answer of CoreDNS. It returns false if the generation has ended; otherwise the caller must call leave.
func (g *generation) enter() bool {
	g.pending.Add(1)
	if g.ended.Load() {
		g.endAnswer()
		return false
	}
	return true
}

// endAnswer ends an answer of CoreDNS.
func (g *generation) endAnswer() {
	if g.pending.Add(-1) == 0 && g.ended.Load() {
		g.idleOnce.Do(func() { close(g.idle) })
	}
}

// graceTime is the maximum time for the pending queries of an ended generation, as in CoreDNS.
const graceTime = 5 * time.Second

// drain waits for the pending queries over UDP.
func (g *generation) drain() {
	if g.pending.Load() == 0 {
		return
	}
	select {
	case <-g.idle:
	case <-time.After(graceTime):
	}
}

// install makes the generation answer over UDP, unless it has ended.
func (g *generation) install() {
	if g.ended.Load() {
		return
	}
	for i, s := range g.sockets {
		if g.fronts[i] != nil {
			s.use(g.fronts[i])
		}
	}
}

// start starts serving. It creates all servers before the first one serves, because creating one sets up the shared plugins.
func (g *generation) start() error {
	for _, s := range g.sockets {
		one, err := g.serverOf(s.listener)
		if err != nil {
			return err
		}
		g.servers = append(g.servers, one)
		g.fronts = append(g.fronts, g.frontOf(one))
	}
	most := fairlisten.ShareLimit(len(g.sockets), g.maxConnections)
	for i, s := range g.sockets {
		if err := g.serve(g.servers[i], s, most); err != nil {
			return errors.Join(err, g.stop())
		}
	}
	g.install()
	return nil
}

// frontOf returns the front of a server; nil if the server has no UDP.
func (g *generation) frontOf(one server) *front {
	plain, is := one.(*dnsserver.Server)
	if !is {
		return nil
	}
	ctx := context.WithValue(context.Background(), dnsserver.Key{}, plain)
	f := &front{generation: g, server: plain, ctx: context.WithValue(ctx, dnsserver.LoopKey{}, 0)}
	f.hits.load(f)
	return f
}

// serve starts a server on copies of a socket with at most limit connections.
func (g *generation) serve(one server, s *socket, limit int) error {
	stream, err := copyOf(s.stream)
	if err != nil {
		return err
	}
	fair := fairlisten.New(stream, fairlisten.Limits{Max: limit, PerNetwork: max(limit/4, 1)})
	g.copies = append(g.copies, fair)
	go func() { g.logStopped(s.listener, one.Serve(fair)) }()
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
	group.Go(g.drain)
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

// maxConnections is the maximum number of connections, unless the limit of file descriptors is lower.
const maxConnections = 4096
