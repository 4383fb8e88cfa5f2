package main

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"
)

// followers is the number of concurrent followers of the change feed. followRounds is the number of changes.
const (
	followers    = 10_000
	followRounds = 20
)

// follow measures (l): the memory of many followers of the change feed, and the time until the last follower has received a change. The
// comparison is a bare server that writes the same bytes to as many connections.
func (b *bench) follow() error {
	dir, network, err := b.data(10)
	if err != nil {
		return err
	}
	m, err := spawn("manager", dir, "")
	if err != nil {
		return err
	}
	defer m.stop()
	create := request("POST", "/api/v2/networks/"+network+"/addresses", m.token, `{"type":"IPv4Address","state":"STATIC"}`)
	if _, err := latency(m.addr, 200, 201, func(int) []byte { return create }); err != nil {
		return err
	}
	before, err := m.residentNow()
	if err != nil {
		return err
	}
	var received atomic.Int64
	var bytesOfOne atomic.Int64
	conns, err := followAll(m, &received, &bytesOfOne)
	defer func() {
		for _, c := range conns {
			_ = c.Close()
		}
	}()
	if err != nil {
		return err
	}
	took, err := b.measureFeed(m, create, &received)
	if err != nil {
		return err
	}
	after, err := m.residentNow()
	if err != nil {
		return err
	}
	b.add(fmt.Sprintf("(l) memory of %d followers of the changes", followers),
		fmt.Sprintf("%.1f MiB", after), fmt.Sprintf("%.1f MiB before", before), after-before, "at most 200 MiB more", after-before <= 200)
	for _, c := range conns { // frees file descriptors for the bare server
		_ = c.Close()
	}
	bare, err := measureSpread(int(bytesOfOne.Load()) / followRounds)
	if err != nil {
		return err
	}
	ratio := float64(took) / float64(bare)
	b.add(fmt.Sprintf("(l) until %d followers have heard of a change", followers), took.Round(time.Millisecond).String(),
		bare.Round(time.Millisecond).String(), ratio, "at most 5", ratio <= 5)
	return nil
}

// followAll opens many connections to the change feed. received counts the transactions. size counts the bytes that the first connection
// received.
func followAll(m *child, received, size *atomic.Int64) (conns []net.Conn, err error) {
	rq := request("GET", "/api/v2/changes", m.token, "")
	opened := make(chan error, followers)
	for i := range followers {
		conn, err := net.Dial("tcp", m.addr)
		if err != nil {
			return conns, err
		}
		conns = append(conns, conn)
		if _, err := conn.Write(rq); err != nil {
			return conns, err
		}
		go func() {
			buffer, ready := make([]byte, 2048), false
			for {
				n, err := conn.Read(buffer)
				if err != nil {
					if !ready {
						opened <- err
					}
					return
				}
				if !ready && bytes.Contains(buffer[:n], []byte("event: position")) {
					ready = true
					opened <- nil
					continue
				}
				if i == 0 && ready {
					size.Add(int64(n))
				}
				received.Add(int64(bytes.Count(buffer[:n], []byte("event: transaction"))))
			}
		}()
		if i%100 == 99 { // not more at once than the listen backlog
			for range 100 {
				if err := <-opened; err != nil {
					return conns, fmt.Errorf("a follower: %w", err)
				}
			}
		}
	}
	return conns, nil
}

// measureFeed makes changes and returns the average time until the last follower has received one.
func (b *bench) measureFeed(m *child, change []byte, received *atomic.Int64) (time.Duration, error) {
	c, err := dial(m.addr, nil)
	if err != nil {
		return 0, err
	}
	defer func() { _ = c.conn.Close() }()
	start := time.Now()
	for round := range followRounds {
		if code, _, err := c.do(change, false); err != nil || code != 201 {
			return 0, fmt.Errorf("a change answers %d %w", code, err)
		}
		for deadline := time.Now().Add(time.Minute); received.Load() < int64(round+1)*followers; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				return 0, errors.New("the followers did not receive the change within a minute")
			}
		}
	}
	return time.Since(start) / followRounds, nil
}

// measureSpread measures how long it takes to write size bytes to as many connections, one by one, and until all have read them.
func measureSpread(size int) (time.Duration, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer func() { _ = l.Close() }()
	const pairs = followers / 4 // both ends are in this process, which limits the number of open files
	var received atomic.Int64
	ends := make([]net.Conn, 0, pairs)
	defer func() {
		for _, c := range ends {
			_ = c.Close()
		}
	}()
	for range pairs {
		out, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			return 0, err
		}
		in, err := l.Accept()
		if err != nil {
			return 0, err
		}
		ends = append(ends, in)
		go func() {
			defer func() { _ = out.Close() }()
			buffer := make([]byte, 2048)
			for {
				n, err := out.Read(buffer)
				if err != nil {
					return
				}
				received.Add(int64(n))
			}
		}()
	}
	text := bytes.Repeat([]byte{'x'}, size)
	start := time.Now()
	for round := range followRounds {
		for _, c := range ends {
			if _, err := c.Write(text); err != nil {
				return 0, err
			}
		}
		for received.Load() < int64(round+1)*int64(pairs*size) {
			time.Sleep(time.Millisecond)
		}
	}
	return time.Since(start) / followRounds * (followers / pairs), nil
}
