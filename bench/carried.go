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

// More service points than a process may have files open reach a manager by few connections, which carry theirs: what a manager keeps of
// each, and what it does for it, is the same, but for what the kernel would.

// carriers are how many connections carry those of all service points.
const carriers = 8

func carrierConfig() *yamux.Config {
	c := yamux.DefaultConfig()
	c.EnableKeepAlive, c.AcceptBacklog, c.LogOutput = false, 1024, io.Discard
	return c
}

// carriedConn gives back its buffer whenever all of it has been read: the kernel's is no part of a manager's memory either.
type carriedConn struct{ *yamux.Stream }

func (c carriedConn) Read(b []byte) (int, error) {
	n, err := c.Stream.Read(b)
	c.Shrink()
	if errors.Is(err, yamux.ErrTimeout) { // behind which TLS would not go on
		err = os.ErrDeadlineExceeded
	}
	return n, err
}

// carriedDoor accepts the connections that carriers carry.
type carriedDoor struct {
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
	d := &carriedDoor{Listener: l, carried: make(chan net.Conn), closed: make(chan struct{})}
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

// unload gives on what a carrier carries.
func (d *carriedDoor) unload(carrier net.Conn) {
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

func (d *carriedDoor) Accept() (net.Conn, error) {
	select {
	case c := <-d.carried:
		return c, nil
	case <-d.closed:
		return nil, net.ErrClosed
	}
}

func (d *carriedDoor) Close() error {
	d.once.Do(func() { close(d.closed) })
	return d.Listener.Close()
}

// dialCarried gives what connects to a carried door, each time by the next of its carriers.
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
