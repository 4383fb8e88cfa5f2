// Package fairlisten provides listeners that one client cannot exhaust. Each client network has a share of the connections, and a new
// connection replaces the one that has been idle longest. The package is independent of the protocol and imports no other package of the
// project.
package fairlisten

import (
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// Limits are the maximum numbers of open connections.
type Limits struct {
	// Max is the total, PerNetwork the number from one client network: an IPv4 address, or an IPv6 /64.
	Max, PerNetwork int
	// Shared reports whether many clients use an address, such as that of a proxy. Such an address has no limit of its own. Nil means that
	// no address is shared.
	Shared func(netip.Addr) bool
	// Ended is called for each connection that is closed to make room; it may be nil.
	Ended func()
}

// minConnections is the minimum number of connections of a listener, even with few file descriptors.
const minConnections = 16

// ShareLimit returns the number of connections for each of several listeners, up to limit. Half of the process's descriptors are reserved
// for files, UDP and control.
func ShareLimit(listeners, limit int) int {
	return min(limit, max(Descriptors()/2/max(listeners, 1), minConnections))
}

// Listener is a listener with limits. Accept never waits for a free slot. If there is none, it closes the connection that has been idle
// longest: from the same network if that has reached its limit, otherwise from the network with the most connections.
type Listener struct {
	net.Listener
	limits Limits

	mu sync.Mutex
	// The following fields are guarded by mu.
	open     map[*conn]struct{}
	networks map[netip.Prefix]int
}

// New returns a listener with limits.
func New(l net.Listener, limits Limits) *Listener {
	return &Listener{Listener: l, limits: limits, open: map[*conn]struct{}{}, networks: map[netip.Prefix]int{}}
}

// conn is an accepted connection.
type conn struct {
	net.Conn
	listener *Listener
	network  netip.Prefix
	// active is the time of the last received or sent byte, in Unix nanoseconds.
	active atomic.Int64
	closed sync.Once
}

// Accept returns the next connection.
func (l *Listener) Accept() (net.Conn, error) {
	inner, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: inner, listener: l, network: l.networkOf(inner.RemoteAddr())}
	c.active.Store(time.Now().UnixNano())
	l.mu.Lock()
	victim := l.chooseVictim(c.network)
	if victim != nil {
		l.remove(victim)
	}
	l.open[c] = struct{}{}
	l.networks[c.network]++
	l.mu.Unlock()
	if victim != nil {
		_ = victim.Close() // its client can connect again
		if l.limits.Ended != nil {
			l.limits.Ended()
		}
	}
	return c, nil
}

// Settle removes a connection from the limits after its client has been authenticated.
func (l *Listener) Settle(one net.Conn) {
	if c, is := one.(*conn); is && c.listener == l {
		l.mu.Lock()
		l.remove(c)
		l.mu.Unlock()
	}
}

// Open returns the number of open connections.
func (l *Listener) Open() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.open)
}

// networkOf returns the network whose limit applies to an address; the zero Prefix if none does.
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

// chooseVictim returns the connection to close for a new one from a network; nil if there is room. l.mu must be held.
func (l *Listener) chooseVictim(network netip.Prefix) *conn {
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

// remove removes a connection from the counters. l.mu must be held.
func (l *Listener) remove(c *conn) {
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

// Close closes the connection and releases its slot.
func (c *conn) Close() error {
	c.closed.Do(func() {
		c.listener.mu.Lock()
		c.listener.remove(c)
		c.listener.mu.Unlock()
	})
	return c.Conn.Close()
}
