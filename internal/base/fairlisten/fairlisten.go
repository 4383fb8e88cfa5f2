// Package fairlisten has listeners that one client cannot exhaust: a network of clients has a share of the connections, and a newcomer
// takes the place of the connection that has been idle longest. It knows no protocol, and imports no package of the project.
package fairlisten

import (
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// Limits are how many connections may be open at a time.
type Limits struct {
	// Max is how many there may be in all, PerNetwork how many from one network of clients: an IPv4 address, or an IPv6 /64.
	Max, PerNetwork int
	// Shared reports whether many clients come from an address, such as that of a proxy: it has no share of its own. nil: none is shared.
	Shared func(netip.Addr) bool
	// Ended is called for each connection that is closed for a newcomer; nil: not.
	Ended func()
}

// leastConnections is how many connections a listener takes however few descriptors there are.
const leastConnections = 16

// Each is how many connections each of so many listeners may have, most at most: half of the descriptors of the process are for files, for
// UDP and for control.
func Each(listeners, most int) int {
	return min(most, max(Descriptors()/2/max(listeners, 1), leastConnections))
}

// Listener is a listener with limits. Accept never waits for a place: where there is none, the connection that has been idle longest is
// closed, of the same network where that has its share, else of the network with the most connections.
type Listener struct {
	net.Listener
	limits Limits

	mu sync.Mutex
	// What follows is guarded by mu.
	open     map[*conn]struct{}
	networks map[netip.Prefix]int
}

// New gives a listener with limits.
func New(l net.Listener, limits Limits) *Listener {
	return &Listener{Listener: l, limits: limits, open: map[*conn]struct{}{}, networks: map[netip.Prefix]int{}}
}

// conn is an accepted connection.
type conn struct {
	net.Conn
	of      *Listener
	network netip.Prefix
	// active is when bytes last came or went, in Unix nanoseconds.
	active atomic.Int64
	closed sync.Once
}

// Accept gives the next connection.
func (l *Listener) Accept() (net.Conn, error) {
	inner, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: inner, of: l, network: l.networkOf(inner.RemoteAddr())}
	c.active.Store(time.Now().UnixNano())
	l.mu.Lock()
	victim := l.victim(c.network)
	if victim != nil {
		l.forget(victim)
	}
	l.open[c] = struct{}{}
	l.networks[c.network]++
	l.mu.Unlock()
	if victim != nil {
		_ = victim.Close() // its client comes again
		if l.limits.Ended != nil {
			l.limits.Ended()
		}
	}
	return c, nil
}

// Settle takes a connection out of the limits: it is known whose it is.
func (l *Listener) Settle(one net.Conn) {
	if c, is := one.(*conn); is && c.of == l {
		l.mu.Lock()
		l.forget(c)
		l.mu.Unlock()
	}
}

// Open gives how many connections are open.
func (l *Listener) Open() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.open)
}

// networkOf gives the network that an address has its share with; the zero Prefix where it has none.
func (l *Listener) networkOf(a net.Addr) netip.Prefix {
	tcp, is := a.(*net.TCPAddr)
	if !is {
		return netip.Prefix{}
	}
	addr := tcp.AddrPort().Addr().Unmap().WithZone("")
	if l.limits.Shared != nil && l.limits.Shared(addr) {
		return netip.Prefix{}
	}
	bits := 32
	if addr.Is6() {
		bits = 64
	}
	p, err := addr.Prefix(bits)
	if err != nil {
		return netip.Prefix{}
	}
	return p
}

// victim gives the connection that makes room for one of a network; nil where there is room. It is called with mu held.
func (l *Listener) victim(network netip.Prefix) *conn {
	full := network.IsValid() && l.networks[network] >= l.limits.PerNetwork
	if !full && len(l.open) < l.limits.Max {
		return nil
	}
	from := network
	if !full {
		most := -1
		for one, n := range l.networks {
			if n > most {
				from, most = one, n
			}
		}
	}
	var idle *conn
	for c := range l.open {
		if c.network == from && (idle == nil || c.active.Load() < idle.active.Load()) {
			idle = c
		}
	}
	return idle
}

// forget gives the place of a connection free. It is called with mu held.
func (l *Listener) forget(c *conn) {
	if _, there := l.open[c]; !there {
		return
	}
	delete(l.open, c)
	if l.networks[c.network]--; l.networks[c.network] == 0 {
		delete(l.networks, c.network)
	}
}

func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.active.Store(time.Now().UnixNano())
	}
	return n, err
}

func (c *conn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if n > 0 {
		c.active.Store(time.Now().UnixNano())
	}
	return n, err
}

// Close closes the connection, and gives its place free.
func (c *conn) Close() error {
	c.closed.Do(func() {
		c.of.mu.Lock()
		c.of.forget(c)
		c.of.mu.Unlock()
	})
	return c.Conn.Close()
}
