package main

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"

	"github.com/hashicorp/yamux"
)

// A process cannot open a connection for each of 100,000 simulated service points. They reach the manager through a few multiplexed
// connections. The manager's work and memory per service point stay the same, except for the kernel's part.

// carriers is the number of connections that carry those of all service points.
const carriers = 8

func carrierConfig() *yamux.Config {
	c := yamux.DefaultConfig()
	c.EnableKeepAlive, c.AcceptBacklog, c.LogOutput = false, 1024, io.Discard
	return c
}

// carriedConn releases its buffer when all of it has been read, because the buffers of real connections belong to the kernel.
type carriedConn struct{ *yamux.Stream }

func (c carriedConn) Read(b []byte) (int, error) {
	n, err := c.Stream.Read(b)
	c.Shrink()
	if errors.Is(err, yamux.ErrTimeout) { // TLS requires os.ErrDeadlineExceeded to continue
		err = os.ErrDeadlineExceeded
	}
	return n, err
}

// carriedListener accepts the connections that arrive through the carriers.
type carriedListener struct {
	net.Listener
	carried chan net.Conn
	closed  chan struct{}
	once    sync.Once
}

func listenCarried() (net.Listener, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	d := &carriedListener{Listener: l, carried: make(chan net.Conn), closed: make(chan struct{})}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go d.unload(conn)
		}
	}()
	return d, nil
}

// unload passes on the connections of a carrier.
func (d *carriedListener) unload(carrier net.Conn) {
	session, err := yamux.Server(carrier, carrierConfig())
	if err != nil {
		_ = carrier.Close()
		return
	}
	defer func() { _ = session.Close() }()
	for {
		s, err := session.AcceptStream()
		if err != nil {
			return
		}
		select {
		case d.carried <- carriedConn{s}:
		case <-d.closed:
			return
		}
	}
}

func (d *carriedListener) Accept() (net.Conn, error) {
	select {
	case c := <-d.carried:
		return c, nil
	case <-d.closed:
		return nil, net.ErrClosed
	}
}

func (d *carriedListener) Close() error {
	d.once.Do(func() { close(d.closed) })
	return d.Listener.Close()
}

// dialCarried returns a dial function for a carriedListener. It uses the carriers in turn.
func dialCarried() func(ctx context.Context, network, address string) (net.Conn, error) {
	var mu sync.Mutex
	sessions, next := map[string][]*yamux.Session{}, 0
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		mu.Lock()
		all := sessions[address]
		if len(all) < carriers {
			conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
			if err == nil {
				var s *yamux.Session
				s, err = yamux.Client(conn, carrierConfig())
				all = append(all, s)
			}
			if err != nil {
				mu.Unlock()
				return nil, err
			}
			sessions[address] = all
		}
		next++
		session := all[next%len(all)]
		mu.Unlock()
		s, err := session.OpenStream()
		if err != nil {
			return nil, err
		}
		return carriedConn{s}, nil
	}
}
