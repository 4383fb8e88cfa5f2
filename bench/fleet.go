package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"portolan/client"
	"portolan/internal/servicepoint"
	"portolan/internal/wire/release"
)

// fleetSize is the number of simulated service points; with -big it is bigFleet. released is the version that they are updated to.
const (
	fleetSize  = 10_000
	bigFleet   = 100_000
	released   = "2.0"
	fleetHands = 32
)

// crowdGCPercent is the GC percentage of this process while it simulates service points. Real service points run on other machines, so the
// simulation must not take processor time from the manager.
const crowdGCPercent = 400

// fleetRun is a measurement of a fleet: the database at a location, and the release repository of the managers.
type fleetRun struct {
	mark, address, releases string
	managers, size          int
	// carried reports that there are more service points than a process may have connections (carriedListener).
	carried bool
}

// fleet measures (m): enrolments, memory per connection, the time until the last service point has received a change, and the list by
// status and label.
func (b *bench) fleet() error {
	runs := []fleetRun{{mark: "(m)", managers: 1, size: fleetSize}}
	if b.big {
		runs = append(runs, fleetRun{mark: "(m) of 100,000:", managers: 1, size: bigFleet, carried: true})
	}
	for i, run := range runs {
		dir, _, err := b.data(10_000 + i) // a separate database each
		if err != nil {
			return err
		}
		if err := publish(filepath.Join(dir, "releases"), filepath.Join(dir, "keys")); err != nil {
			return err
		}
		run.address = dir
		if err := b.fleetOn(run); err != nil {
			return err
		}
	}
	return nil
}

// sharedFleet measures (o): a fleet on PostgreSQL with two managers.
func (b *bench) sharedFleet() error {
	url, _, err := b.filled(10_000)
	if err != nil {
		return err
	}
	releases := filepath.Join(b.dir, "shared-releases")
	if err := publish(releases, filepath.Join(b.dir, "shared-keys")); err != nil {
		return err
	}
	return b.fleetOn(fleetRun{mark: "(o) PostgreSQL, two managers:", address: url, releases: releases, managers: 2, size: fleetSize})
}

// fleetOn measures a fleet.
func (b *bench) fleetOn(run fleetRun) error {
	if !run.carried { // otherwise the garbage would fill the memory
		defer debug.SetGCPercent(debug.SetGCPercent(crowdGCPercent))
	}
	var all []*child
	var clients []*client.Client
	resident := func() (sum float64, err error) {
		for _, m := range all {
			one, e := m.residentNow()
			sum, err = sum+one, errors.Join(err, e)
		}
		return sum, err
	}
	simulation := &servicepoint.Crowd{Size: run.size, Hands: fleetHands, Version: "1.0", Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Enrol: func(ctx context.Context, number int) (string, string, error) {
			created, err := clients[number%run.managers].CreateInstance(ctx, fmt.Sprintf("bench-%06d", number), "", 1)
			return created.RegistrationEndpoint, created.RegistrationKey, err
		}}
	role := "manager"
	if run.carried {
		role, simulation.Dial = "carried manager", dialCarried()
	}
	for range run.managers {
		m, err := spawn(role, run.address, run.releases)
		if err != nil {
			return err
		}
		defer m.stop()
		all, clients = append(all, m), append(clients, &client.Client{Base: "http://" + m.addr, Token: m.token})
	}
	ctx, cancel := context.WithCancel(context.Background())
	empty, err := resident()
	if err != nil {
		cancel()
		return err
	}
	start := time.Now()
	ended := make(chan error, 1)
	go func() { ended <- simulation.Run(ctx) }()
	defer func() { cancel(); <-ended }()
	if err := waitForCheckIns(simulation, ended); err != nil {
		return err
	}
	took := time.Since(start)
	full, err := resident()
	if err != nil {
		return err
	}
	rate := float64(run.size) / took.Seconds()
	b.addResult(fmt.Sprintf("%s enrolments of %d, with their creation and two handshakes each", run.mark, run.size), perSecond(rate))
	each := (full - empty) * 1024 / float64(run.size)
	b.add(run.mark+" memory for a connected service point, garbage counted", fmt.Sprintf("%.0f KiB", each), "30 KiB", each/30,
		"at most 1", each <= 30)
	if err := b.fleetChange(ctx, run.mark, clients[0], simulation); err != nil {
		return err
	}
	return b.fleetList(ctx, run.mark, clients[0], all[0], func() error { return waitForCheckIns(simulation, ended) })
}

// waitForCheckIns waits until all service points have enrolled and are waiting for the manager.
func waitForCheckIns(simulation *servicepoint.Crowd, ended chan error) error {
	all := int64(simulation.Size)
	deadline := time.Now().Add(time.Duration(all) * 60 * time.Millisecond)
	for simulation.Enrolled.Load() < all || simulation.Held.Load() < all*999/1000 { // the remaining ones are between two check-ins
		select {
		case err := <-ended:
			ended <- err
			return errors.Join(errors.New("the service points ended"), err)
		case <-time.After(10 * time.Millisecond): // poll interval
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%d of %d service points wait, %d enrolled, %d check-ins failed", simulation.Held.Load(), simulation.Size,
				simulation.Enrolled.Load(), simulation.Failed.Load())
		}
	}
	return nil
}

// publish creates a release repository with a dummy program.
func publish(dir, keys string) error {
	r, now := release.Repository{Dir: dir}, time.Now()
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if err := r.Init(keys, now); err != nil {
		return err
	}
	if err := r.Add(keys, released, runtime.GOOS+"/"+runtime.GOARCH, strings.NewReader("none"), now); err != nil {
		return err
	}
	return r.Publish(keys, release.TimestampLife, now)
}

// fleetChange measures how long a rollout takes to reach all service points.
func (b *bench) fleetChange(ctx context.Context, mark string, c *client.Client, simulation *servicepoint.Crowd) error {
	start := time.Now()
	started, err := c.StartRollout(ctx, client.Plan{Version: released, Waves: []string{"100%"}, MostAway: "100%",
		Filter: map[string]any{"version": simulation.Version, "nameContains": "bench-00"}}) // the first 10,000
	if err != nil {
		return err
	}
	// The interval between polls is long because each poll costs processor time.
	for deadline := start.Add(3 * time.Minute); len(simulation.Changes(start)) < fleetSize; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			return fmt.Errorf("only %d of %d service points received the order", len(simulation.Changes(start)), fleetSize)
		}
	}
	all := simulation.Changes(start)
	known := all[fleetSize-1].Sub(start)
	for deadline := time.Now().Add(3 * time.Minute); ; time.Sleep(100 * time.Millisecond) { // poll interval
		r, err := c.Rollout(ctx, started.ID)
		if err != nil {
			return err
		}
		if r.Status == "DONE" {
			break
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the rollout is %+v", r)
		}
	}
	b.add(fmt.Sprintf("%s an order to %d service points, until the last one has it", mark, fleetSize),
		known.Round(10*time.Millisecond).String(),
		"2s", known.Seconds()/2, "at most 1", known <= 2*time.Second)
	b.addResult(fmt.Sprintf("%s a rollout to %d service points, until it is done", mark, fleetSize),
		time.Since(start).Round(10*time.Millisecond).String())
	return nil
}

// labelled is the number of service points that receive the label.
const labelled = 500

// fleetList compares the list by status and label with a page of addresses of the same size: during the update of the service points, and
// afterwards.
func (b *bench) fleetList(ctx context.Context, mark string, c *client.Client, m *child, quiet func() error) error {
	all, err := c.Instances(ctx, "")
	if err != nil {
		return err
	}
	site := "oslo"
	for i := 0; i < len(all); i += len(all) / labelled {
		if _, err := c.ChangeInstance(ctx, all[i].ID, client.InstanceChange{Labels: map[string]*string{"site": &site}}); err != nil {
			return err
		}
	}
	rq := request("GET", "/user/api/v1/fleetInstances?status=HEALTHY&label=site:oslo", m.token, "")
	bytes, err := sizeOf(m.addr, rq)
	if err != nil {
		return err
	}
	ten, err := sizeOf(m.addr, request("GET", "/api/v2/addresses?limit=10", m.token, ""))
	if err != nil {
		return err
	}
	page := request("GET", fmt.Sprintf("/api/v2/addresses?limit=%d", bytes*10/ten), m.token, "")
	for _, when := range []struct {
		name string
		wait func() error
	}{{"right behind a rollout", func() error { return nil }}, {"when all wait", quiet}} {
		if err := when.wait(); err != nil {
			return err
		}
		ours, err := latency(m.addr, 50, code200, func(int) []byte { return rq })
		if err != nil {
			return err
		}
		theirs, err := latency(m.addr, 50, code200, func(int) []byte { return page })
		if err != nil {
			return err
		}
		ratio := ours.Seconds() / theirs.Seconds()
		b.add(fmt.Sprintf("%s the %d of %d with a status and a label, against a page of addresses of as many bytes, %s", mark, labelled, len(all),
			when.name), ours.String(), theirs.String(), ratio, "at most 2", ratio <= 2)
	}
	return nil
}

// sizeOf returns the size of a response, in bytes.
func sizeOf(addr string, rq []byte) (int, error) {
	c, err := dial(addr, nil)
	if err != nil {
		return 0, err
	}
	defer func() { _ = c.conn.Close() }()
	_, body, err := c.do(rq, true)
	return len(body), err
}
