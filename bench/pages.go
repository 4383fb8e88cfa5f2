package main

import (
	"bufio"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"
)

// scan measures a bare scan of n rows that writes a number of bytes for each row.
func scan(addr string, n, rowSize, times int) (time.Duration, error) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return 0, err
	}
	defer func() { _ = c.Close() }()
	in := bufio.NewReaderSize(c, 64<<10)
	var all []time.Duration
	for range times {
		start := time.Now()
		if _, err := fmt.Fprintf(c, "%d %d\n", n, rowSize); err != nil {
			return 0, err
		}
		for {
			part, err := in.ReadSlice(0)
			if err == nil {
				break
			}
			if err != bufio.ErrBufferFull || len(part) == 0 {
				return 0, err
			}
		}
		all = append(all, time.Since(start))
	}
	slices.Sort(all)
	return all[len(all)/2], nil
}

// pageRounds is the number of rounds in which a page and the bare scan take turns.
const pageRounds = 5

// comparePage returns the median durations of a page of n rows and of a bare scan that writes as many bytes.
func comparePage(m, bare *child, rq []byte, n, times int) (ours, theirs time.Duration, err error) {
	c, err := dial(m.addr, nil)
	if err != nil {
		return 0, 0, err
	}
	_, body, err := c.do(rq, true)
	_ = c.conn.Close()
	if err != nil {
		return 0, 0, err
	}
	var all [2][]time.Duration
	for range pageRounds {
		one, err := scan(bare.addr, n, len(body)/n, times/pageRounds+1)
		if err != nil {
			return 0, 0, err
		}
		other, err := latency(m.addr, times/pageRounds+1, code200, func(int) []byte { return rq })
		if err != nil {
			return 0, 0, err
		}
		all[0], all[1] = append(all[0], one), append(all[1], other)
	}
	slices.Sort(all[0])
	slices.Sort(all[1])
	return all[1][pageRounds/2], all[0][pageRounds/2], nil
}

// page compares a page of n addresses in both JSON forms with a bare scan.
func (b *bench) page(name string, n, times int) (m *child, err error) {
	dir, _, err := b.data(max(n, 100000))
	if err != nil {
		return nil, err
	}
	bare, err := spawn("bare-scan", dir, "")
	if err != nil {
		return nil, err
	}
	defer bare.stop()
	if m, err = spawn("manager", dir, ""); err != nil {
		return nil, err
	}
	for _, form := range []string{"application/hal+json", "application/json"} {
		rq := []byte(strings.Replace(string(request("GET", fmt.Sprintf("/api/v2/addresses?limit=%d", n), m.token, "")),
			"Host: bench", "Host: bench\r\nAccept: "+form, 1))
		ours, theirs, err := comparePage(m, bare, rq, n, times)
		if err != nil {
			return m, err
		}
		ratio := float64(ours) / float64(theirs)
		maxRatio := 2.0
		if n <= 1000 && form == "application/hal+json" {
			maxRatio = 1.6
		}
		b.add(name+", "+form, ours.Round(10*time.Microsecond).String(), theirs.Round(10*time.Microsecond).String(), ratio,
			fmt.Sprintf("at most %.1f", maxRatio), ratio <= maxRatio)
	}
	return m, nil
}

// page1000 measures (b): a page of 1,000 addresses.
func (b *bench) page1000() error {
	m, err := b.page("(b) page of 1,000", 1000, 200)
	if m != nil {
		m.stop()
	}
	return err
}

// page100000 measures (c): a page of 100,000 addresses, and the growth of resident memory.
func (b *bench) page100000() error {
	m, err := b.page("(c) page of 100,000", 100000, 7)
	if m != nil {
		m.stop()
	}
	if err != nil {
		return err
	}
	dir, _, err := b.data(100000)
	if err != nil {
		return err
	}
	if m, err = spawn("manager", dir, ""); err != nil {
		return err
	}
	defer m.stop()
	small := request("GET", "/api/v2/addresses?limit=1000", m.token, "")
	if _, err := latency(m.addr, 20, code200, func(int) []byte { return small }); err != nil {
		return err
	}
	before, err := m.residentNow()
	if err != nil {
		return err
	}
	large := request("GET", "/api/v2/addresses?limit=100000", m.token, "")
	if _, err := latency(m.addr, 3, code200, func(int) []byte { return large }); err != nil {
		return err
	}
	after, err := m.resident()
	if err != nil {
		return err
	}
	b.add("(c) its resident memory", fmt.Sprintf("%.1f MiB", after), fmt.Sprintf("%.1f MiB before", before), after-before,
		"at most 64 MiB more", after-before <= 64)
	return nil
}
