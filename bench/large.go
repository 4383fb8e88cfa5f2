package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"portolan/internal/manager/server"
)

// The number of rows of large operations, and the number of changes in the batch.
const (
	largeRows  = 50_000
	largeBatch = 10_000
)

// largeWork measures (F): how long creates wait during a large operation on SQLite, where changes run one by one. It reports the 95th
// percentile and the maximum.
func (b *bench) largeWork() error {
	dir := filepath.Join(b.dir, "large")
	wide, _, err := b.createNetwork(server.Options{Data: dir})
	if err != nil {
		return err
	}
	m, err := spawn("manager", dir, "")
	if err != nil {
		return err
	}
	defer m.stop()
	block, err := firstOf(m, "blocks?filter=range:'10.0.0.0/8'")
	if err != nil {
		return err
	}
	id := func(path, body string) (id string) {
		if err == nil {
			id, err = post(m.addr, "/api/v2/"+path, m.token, body)
		}
		return id
	}
	other := id("configurations", `{"name":"apart"}`)
	apart := id("configurations/"+other+"/blocks", `{"type":"IPv4Block","range":"10.0.0.0/8"}`)
	network := id("blocks/"+apart+"/networks", `{"type":"IPv4Network","range":"10.0.0.0/8"}`)
	view := id("configurations/"+other+"/views", `{"name":"v"}`)
	zone := id("views/"+view+"/zones", `{"type":"Zone","absoluteName":"bench.test"}`)
	if err != nil {
		return err
	}
	create := request("POST", "/api/v2/networks/"+network+"/addresses", m.token, `{"type":"IPv4Address","state":"STATIC"}`)
	addresses, records, changes := []string{"type,address,state"}, []string{"type,name,text"}, []string{}
	for i := range largeRows {
		addresses = append(addresses, fmt.Sprintf("IPv4Address,10.%d.%d.%d,STATIC", 1+i>>16, i>>8&255, i&255))
		records = append(records, fmt.Sprintf("TXTRecord,n%d,text", i))
	}
	for i := range largeBatch {
		changes = append(changes, fmt.Sprintf(`{"method":"POST","path":"networks/%s/addresses","body":{"type":"IPv4Address","state":"STATIC","name":"b%d"}}`,
			wide, i))
	}
	for _, large := range []struct {
		what string
		do   func() error
	}{
		{fmt.Sprintf("an import of %d addresses", largeRows), func() error {
			_, err := runImport(m, "networks/"+wide+"/addresses", strings.Join(addresses, "\n"), largeRows)
			return err
		}},
		{fmt.Sprintf("an import of %d records", largeRows), func() error {
			_, err := runImport(m, "zones/"+zone+"/resourceRecords", strings.Join(records, "\n"), largeRows)
			return err
		}},
		{fmt.Sprintf("a batch of %d", largeBatch), func() error {
			return sendOnce(m, request("POST", "/api/v2/batch", m.token, `{"changes":[`+strings.Join(changes, ",")+"]}"))
		}},
		{fmt.Sprintf("renaming a zone with %d records", largeRows), func() error {
			return sendOnce(m, []byte(strings.Replace(string(request("PATCH", "/api/v2/zones/"+zone, m.token, `{"name":"renamed"}`)),
				"Content-Type: application/json", "Content-Type: application/merge-patch+json", 1)))
		}},
		{fmt.Sprintf("deleting a block with %d addresses in steps", largeRows+largeBatch), func() error {
			return deleteInSteps(m, "blocks/"+block)
		}},
	} {
		if err := b.measureDuringLarge(m, create, large.what, large.do); err != nil {
			return fmt.Errorf("%s: %w", large.what, err)
		}
	}
	return nil
}

// sendOnce sends a request and returns an error unless it succeeds.
func sendOnce(m *child, rq []byte) error {
	c, err := dial(m.addr, nil)
	if err != nil {
		return err
	}
	defer func() { _ = c.conn.Close() }()
	code, body, err := c.do(rq, true)
	if err == nil && code >= 300 {
		err = fmt.Errorf("an answer of %d: %.200s", code, body)
	}
	return err
}

// deleteInSteps deletes a resource and everything below it like portolan delete.
func deleteInSteps(m *child, resource string) error {
	c, err := dial(m.addr, nil)
	if err != nil {
		return err
	}
	defer func() { _ = c.conn.Close() }()
	for {
		code, body, err := c.do(request("DELETE", "/api/v2/"+resource, m.token+"\r\nx-portolan-at-most: 500", ""), true)
		if err != nil {
			return err
		}
		var step struct{ Done bool }
		if code != code200 || json.Unmarshal(body, &step) != nil {
			return fmt.Errorf("a step answers %d %.200s", code, body)
		}
		if step.Done {
			return nil
		}
	}
}

// measureDuringLarge measures creates alone and during a large operation.
func (b *bench) measureDuringLarge(m *child, create []byte, what string, large func() error) error {
	alone, err := b.createP95(m.addr, create)
	if err != nil {
		return err
	}
	c, err := dial(m.addr, nil)
	if err != nil {
		return err
	}
	defer func() { _ = c.conn.Close() }()
	start, ended := time.Now(), make(chan error, 1)
	go func() { ended <- large() }()
	var all []time.Duration
	for {
		select {
		case err := <-ended:
			took := time.Since(start)
			if err == nil && len(all) == 0 {
				err = errors.New("the large job ended before a concurrent change")
			}
			if err != nil {
				return err
			}
			slices.Sort(all)
			b.addResult(fmt.Sprintf("(F) creates beside %s, %v: what 95 of 100 take at most (%v alone), and the longest", what,
				took.Round(10*time.Millisecond), alone.Round(10*time.Microsecond)),
				fmt.Sprintf("%v, %v", all[len(all)*95/100].Round(10*time.Microsecond), all[len(all)-1].Round(time.Millisecond)))
			return nil
		default:
		}
		sent := time.Now()
		code, body, err := c.do(create, true)
		if err == nil && code != 201 {
			err = fmt.Errorf("a create answers %d %.200s", code, body)
		}
		if err != nil {
			return err
		}
		all = append(all, time.Since(sent))
	}
}
