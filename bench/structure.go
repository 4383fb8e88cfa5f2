package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"portolan/client"
	dns "portolan/internal/base/dnsmsg"
)

// The number of changes of each kind that are measured one after another, and the goals for them.
const (
	structuralChanges = 20
	manyZones         = 10_000
	structuralTime    = 50 * time.Millisecond
	structuralCPU     = 20 * time.Millisecond
	fullTime          = time.Second
)

// cpuOf returns the CPU time that a process has used, in steps of 10 ms.
func cpuOf(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0, errors.New("the statistics of the process cannot be read")
	}
	total := 0
	for _, field := range fields[11:13] { // utime and stime, see proc(5)
		n, err := strconv.Atoi(field)
		if err != nil {
			return 0, err
		}
		total += n
	}
	return time.Duration(total) * 10 * time.Millisecond, nil
}

// answersWith waits until every service point answers a question with the given number of records.
func (w *wired) answersWith(name string, kind uint16, records int) error {
	m := new(dns.Msg)
	m.SetQuestion(name, kind)
	for start, left := time.Now(), w.points; len(left) > 0; {
		r, _, err := (&dns.Client{Timeout: time.Second}).Exchange(m, left[0])
		if err == nil && len(r.Answer) == records {
			left = left[1:]
			continue
		}
		if time.Since(start) > time.Minute {
			return fmt.Errorf("%s does not answer %s with %d records", left[0], name, records)
		}
		time.Sleep(time.Millisecond)
	}
	return nil
}

// structure measures changes of zones beside others: the time until every service point answers, and the CPU time of the manager.
func (w *wired) structure(m *child, beside string) error {
	ctx, b := context.Background(), w.b
	view, err := w.api.IDs(ctx, "views", "", 1)
	if err != nil {
		return err
	}
	zone := func(n int) string { return fmt.Sprintf("small-%d.example", n) } // below the large zone, which delegates it
	ids := make([]int64, structuralChanges)
	for _, step := range []struct {
		name   string
		change func(n int) error
		answer func(n int) error
	}{
		{"the comment of a large zone", func(n int) error {
			return w.api.Change(ctx, "zones/"+w.zone, map[string]any{"userDefinedFields": map[string]any{"comment": strconv.Itoa(n)}}, nil)
		}, nil},
		{"a new zone with a record below the large zone", func(n int) error {
			var made client.Head
			if err := w.api.Create(ctx, fmt.Sprintf("views/%d/zones", view[0]), map[string]any{"type": "Zone", "absoluteName": zone(n),
				"deploymentEnabled": true}, &made); err != nil {
				return err
			}
			ids[n] = made.ID
			return w.api.Create(ctx, fmt.Sprintf("zones/%d/resourceRecords", made.ID), map[string]any{"type": "TXTRecord", "name": "a",
				"text": "here"}, nil)
		}, func(n int) error { return w.answersWith("a."+zone(n)+".", dns.TypeTXT, 1) }},
		{"a renamed zone", func(n int) error {
			return w.api.Change(ctx, fmt.Sprintf("zones/%d", ids[n]), map[string]any{"name": fmt.Sprintf("renamed-%d", n)}, nil)
		}, func(n int) error { return w.answersWith(fmt.Sprintf("a.renamed-%d.example.", n), dns.TypeTXT, 1) }},
		{"a deleted zone", func(n int) error {
			return w.api.Delete(ctx, fmt.Sprintf("zones/%d", ids[n]))
		}, func(n int) error { return w.answersWith(fmt.Sprintf("a.renamed-%d.example.", n), dns.TypeTXT, 0) }},
	} {
		var all []time.Duration
		before, err := cpuOf(m.cmd.Process.Pid)
		if err != nil {
			return err
		}
		for n := range structuralChanges {
			if err := step.change(n); err != nil {
				return fmt.Errorf("%s: %w", step.name, err)
			}
			start := time.Now()
			if step.answer != nil {
				if err := step.answer(n); err != nil {
					return err
				}
			}
			all = append(all, time.Since(start))
		}
		after, err := cpuOf(m.cmd.Process.Pid)
		if err != nil {
			return err
		}
		slices.Sort(all)
		name := fmt.Sprintf("(B) %s beside %s", step.name, beside)
		if step.answer != nil {
			took := all[len(all)/2]
			b.add(name+", from acknowledgement to answer at "+strconv.Itoa(len(w.points))+" service points", took.Round(time.Millisecond).String(),
				structuralTime.String(), float64(took)/float64(structuralTime), "at most 1", took <= structuralTime)
		}
		cpu := (after - before) / structuralChanges
		b.add(name+", CPU time of the manager", cpu.String(), structuralCPU.String(), float64(cpu)/float64(structuralCPU), "at most 1",
			cpu <= structuralCPU)
	}
	return nil
}

// zonesInBatch is the number of zones that one request creates.
const zonesInBatch = 2000

// zones measures (J): changes of zones beside many zones of one record each.
func (b *bench) zones() error {
	w, m, err := b.newWired(crowdRecords)
	if err != nil {
		return err
	}
	defer m.stop()
	defer w.stop()
	ctx := context.Background()
	view, err := w.api.IDs(ctx, "views", "", 1)
	if err != nil {
		return err
	}
	for n := 0; n < manyZones; n += zonesInBatch {
		var changes []client.BatchChange
		for i := range zonesInBatch {
			changes = append(changes, client.BatchChange{Method: http.MethodPost, Path: fmt.Sprintf("views/%d/zones", view[0]),
				Body: map[string]any{"type": "Zone", "absoluteName": fmt.Sprintf("z%d.example", n+i), "deploymentEnabled": true}})
		}
		if _, err := w.api.Batch(ctx, changes, client.BatchOptions{}); err != nil {
			return err
		}
	}
	if err := w.serve(1); err != nil {
		return err
	}
	took, err := w.deploy()
	if err != nil {
		return err
	}
	b.addResult(fmt.Sprintf("(J) the first deployment of %d zones", manyZones), took.Round(time.Millisecond).String())
	if err := w.settle(m); err != nil {
		return err
	}
	if err := w.measure(0, 0, 0); err != nil {
		return err
	}
	return w.structure(m, fmt.Sprintf("%d zones", manyZones))
}

// fullAgain measures a full deployment that changes nothing.
func (w *wired) fullAgain(what string) error {
	ctx := context.Background()
	servers, err := w.api.IDs(ctx, "servers", "", 1)
	if err != nil {
		return err
	}
	start := time.Now()
	d, err := w.api.DeployServer(ctx, servers[0], "FullDeployment")
	for id := d.ID; err == nil && !d.Ended(); time.Sleep(5 * time.Millisecond) { // WaitForDeployment asks less often
		err = w.api.Get(ctx, fmt.Sprintf("deployments/%d", id), d)
	}
	if err != nil || d.State == "FAILED" {
		return errors.Join(err, errors.New(d.Message))
	}
	took := time.Since(start)
	w.b.add(fmt.Sprintf("(B) a full deployment of %d records %s", w.records, what), took.Round(time.Millisecond).String(),
		fullTime.String(), float64(took)/float64(fullTime), "at most 1", took <= fullTime)
	return nil
}
