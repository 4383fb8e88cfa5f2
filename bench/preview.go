package main

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// (z) how long a change takes at most in 95 of 100 cases while somebody tries to delete a block over a million addresses twenty
// times a second, against that while nobody does.
func (b *bench) preview() error {
	dir, network, err := b.data(inUse)
	if err != nil {
		return err
	}
	m, err := spawn("manager", dir, "")
	if err != nil {
		return err
	}
	defer m.stop()
	create := request("POST", "/api/v2/networks/"+network+"/addresses", m.token, `{"type":"IPv4Address","state":"STATIC","name":"x"}`)
	alone, err := b.slowest(m.addr, create)
	if err != nil {
		return err
	}
	block, err := firstOf(m, "blocks?filter=range:'10.0.0.0/8'")
	if err != nil {
		return err
	}
	try := request("DELETE", "/api/v2/blocks/"+block, m.token+"\r\nx-portolan-dry-run: true", "")
	stop, tries := make(chan struct{}), 0
	var failed error
	var trying sync.WaitGroup
	trying.Go(func() {
		c, err := dial(m.addr, nil)
		for ; err == nil; tries++ {
			select {
			case <-stop:
				_ = c.conn.Close()
				return
			case <-time.After(50 * time.Millisecond): // as people do, or a console; without a pause it would measure one core less
			}
			var code int
			if code, _, err = c.do(try, false); err == nil && code != code200 {
				err = fmt.Errorf("a dry run answers %d", code)
			}
		}
		failed = err
	})
	beside, err := b.slowest(m.addr, create)
	close(stop)
	trying.Wait()
	if err == nil {
		err = failed
	}
	if err != nil {
		return err
	}
	ratio := float64(beside) / float64(alone)
	b.add(fmt.Sprintf("(z) p95 of a create beside %d dry runs of deleting 1,000,000", tries), beside.Round(time.Microsecond).String(),
		alone.Round(time.Microsecond).String(), ratio, "at most 1.2", ratio <= 1.2)
	return nil
}

// slowest sends a request again and again, and gives the time that 95 of 100 take at most.
func (b *bench) slowest(addr string, rq []byte) (time.Duration, error) {
	c, err := dial(addr, nil)
	if err != nil {
		return 0, err
	}
	defer func() { _ = c.conn.Close() }()
	var all []time.Duration
	for end := time.Now().Add(b.time); time.Now().Before(end); {
		began := time.Now()
		if code, body, err := c.do(rq, true); err != nil || code != 201 {
			return 0, fmt.Errorf("a create answers %d %s: %w", code, body, err)
		}
		all = append(all, time.Since(began))
	}
	slices.Sort(all)
	return all[len(all)*95/100], nil
}
