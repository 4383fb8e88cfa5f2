package main

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// preview measures (z): the 95th percentile of a create while another client performs up to twenty dry runs per second, compared with the
// same without dry runs. The dry runs delete a block with a million addresses, create 2,000 addresses at once, and rename a block.
func (b *bench) preview() error {
	dir, network, err := b.data(usedAddresses)
	if err != nil {
		return err
	}
	return b.previewed("(z)", dir, network)
}

// previewed measures dry runs of a manager with a data directory or a database.
func (b *bench) previewed(name, data, network string) error {
	m, err := spawn("manager", data, "")
	if err != nil {
		return err
	}
	defer m.stop()
	create := request("POST", "/api/v2/networks/"+network+"/addresses", m.token, `{"type":"IPv4Address","state":"STATIC","name":"x"}`)
	block, err := firstOf(m, "blocks?filter=range:'10.0.0.0/8'")
	if err != nil {
		return err
	}
	var list []string
	for range 2000 {
		list = append(list, `{"type":"IPv4Address","state":"STATIC"}`)
	}
	header := m.token + "\r\nx-portolan-dry-run: true"
	for _, try := range []struct {
		what string
		rq   []byte
	}{
		{"deleting 1,000,000", request("DELETE", "/api/v2/blocks/"+block, header, "")},
		{"creating 2,000", request("POST", "/api/v2/networks/"+network+"/addresses", header, "["+strings.Join(list, ",")+"]")},
		{"a new name", request("PATCH", "/api/v2/blocks/"+block, header, `{"name":"other"}`)},
	} {
		if err := b.measureDuringDryRuns(name, m.addr, create, try.what, try.rq); err != nil {
			return err
		}
	}
	return nil
}

// measureDuringDryRuns measures creates during dry runs.
func (b *bench) measureDuringDryRuns(name, addr string, create []byte, what string, try []byte) error {
	before, err := b.createP95(addr, create)
	if err != nil {
		return err
	}
	stop, tries := make(chan struct{}), 0
	var failed error
	var trying sync.WaitGroup
	trying.Go(func() {
		c, err := dial(addr, nil)
		for ; err == nil; tries++ {
			select {
			case <-stop:
				_ = c.conn.Close()
				return
			case <-time.After(50 * time.Millisecond): // the rate of a user; without a pause the dry runs would use one core completely
			}
			var code int
			if code, _, err = c.do(try, false); err == nil && code != code200 {
				err = fmt.Errorf("a dry run answers %d", code)
			}
		}
		failed = err
	})
	beside, err := b.createP95(addr, create)
	close(stop)
	trying.Wait()
	if err == nil {
		err = failed
	}
	if err != nil {
		return err
	}
	after, err := b.createP95(addr, create) // measured before and after, because the speed of the machine varies
	if err != nil {
		return err
	}
	alone := (before + after) / 2
	ratio := float64(beside) / float64(alone)
	b.add(fmt.Sprintf("%s p95 of a create beside %d dry runs of %s", name, tries, what), beside.Round(time.Microsecond).String(),
		alone.Round(time.Microsecond).String(), ratio, "at most 1.2", ratio <= 1.2)
	return nil
}

// createP95 repeats a create on one connection for b.time and returns the 95th percentile of its duration.
func (b *bench) createP95(addr string, rq []byte) (time.Duration, error) {
	c, err := dial(addr, nil)
	if err != nil {
		return 0, err
	}
	defer func() { _ = c.conn.Close() }()
	var all []time.Duration
	for end := time.Now().Add(b.time); time.Now().Before(end); {
		start := time.Now()
		code, body, err := c.do(rq, true)
		if err != nil {
			return 0, fmt.Errorf("create: %w", err)
		}
		if code != 201 {
			return 0, fmt.Errorf("create: status %d, want 201: %s", code, body)
		}
		all = append(all, time.Since(start))
	}
	slices.Sort(all)
	return all[len(all)*95/100], nil
}
