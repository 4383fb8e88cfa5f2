package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"time"

	"portolan/client"
	dns "portolan/internal/base/dnsmsg"
	"portolan/internal/servicepoint"
	"portolan/internal/servicepoint/application"
	"portolan/internal/servicepoint/application/all"
	"portolan/internal/wire/checkin"
)

// The number of records in the zone, of service points that serve it, and of changes per second. With -big, the zone has bigWireRecords.
const (
	wireRecords    = 1_000_000
	bigWireRecords = 10_000_000
	wirePoints     = 3
	wireRate       = 100
	highRate       = 1000
	// lonelyChanges is the number of changes that are made one after another.
	lonelyChanges = 200
	// crowdRecords and crowdPoints are those of the measurement with many service points.
	crowdRecords = 1000
	crowdPoints  = 50
)

// wired is a manager with service points that serve its zone.
type wired struct {
	b       *bench
	api     *client.Client
	zone    string
	records int      // of the zone, at first
	points  []string // the addresses of the name servers
	agents  []*child
	last    int // the number of the last change
}

// wire measures (B): the time from the acknowledgement of a change to the answer of one service point and of three, and the CPU time of the
// agent.
func (b *bench) wire() error {
	records := wireRecords
	if b.big {
		records = bigWireRecords
	}
	w, m, err := b.newWired(records)
	if err != nil {
		return err
	}
	defer m.stop()
	defer w.stop()
	if err := w.serve(1); err != nil {
		return err
	}
	took, err := w.deploy()
	if err != nil {
		return err
	}
	b.addResult(fmt.Sprintf("(B) the first deployment of a zone of %d records to a service point", records),
		took.Round(time.Millisecond).String())
	if err := w.settle(m); err != nil { // the zone is examined as a whole after its view has become live
		return err
	}
	before, err := cpuOf(w.agents[0].cmd.Process.Pid)
	if err != nil {
		return err
	}
	if err := w.measure(0, 5*time.Millisecond, 15*time.Millisecond); err != nil {
		return err
	}
	after, err := cpuOf(w.agents[0].cmd.Process.Pid)
	if err != nil {
		return err
	}
	each := (after - before) / lonelyChanges
	b.add("(B) CPU time of the agent for a change, without its name server", each.Round(10*time.Microsecond).String(),
		time.Millisecond.String(), float64(each)/float64(time.Millisecond), "at most 1", each <= time.Millisecond)
	if err := w.measure(highRate, 0, 50*time.Millisecond); err != nil {
		return err
	}
	if err := w.serve(wirePoints - 1); err != nil {
		return err
	}
	if _, err := w.deploy(); err != nil {
		return err
	}
	if err := w.measure(0, 0, 0); err != nil {
		return err
	}
	if err := w.measure(wireRate, 50*time.Millisecond, 150*time.Millisecond); err != nil {
		return err
	}
	if err := w.structure(m, fmt.Sprintf("%d records", w.records)); err != nil {
		return err
	}
	if err := w.fullAgain("without changes"); err != nil {
		return err
	}
	if err := w.measureDuringImport(m); err != nil {
		return err
	}
	views, err := w.api.IDs(context.Background(), "views", "", 1)
	if err != nil {
		return err
	}
	if err := w.api.Change(context.Background(), fmt.Sprintf("views/%d", views[0]), map[string]any{"liveDeployment": false}, nil); err != nil {
		return err
	}
	if err := w.settle(m); err != nil {
		return err
	}
	if err := w.fullAgain("after the import, in a view that is not live"); err != nil { // examines the whole zone
		return err
	}
	return w.fullAgain("without changes, in a view that is not live")
}

// crowd measures (H): the time from the acknowledgement of a change to the answer of the last of 50 service points on this machine.
func (b *bench) crowd() error {
	w, m, err := b.newWired(crowdRecords)
	if err != nil {
		return err
	}
	defer m.stop()
	defer w.stop()
	if err := w.serve(crowdPoints); err != nil {
		return err
	}
	if _, err := w.deploy(); err != nil {
		return err
	}
	return w.measure(0, 0, 150*time.Millisecond)
}

// newWired starts a manager with a zone.
func (b *bench) newWired(records int) (*wired, *child, error) {
	dir, zone, err := b.zoneOf(records)
	if err != nil {
		return nil, nil, err
	}
	m, err := spawn("manager", dir, "")
	if err != nil {
		return nil, nil, err
	}
	return &wired{b: b, api: &client.Client{Base: "http://" + m.addr, Token: m.token}, zone: zone, records: records}, m, nil
}

// serve starts more service points.
func (w *wired) serve(more int) error {
	for range more {
		a, err := w.point(len(w.agents))
		if a != nil {
			w.agents = append(w.agents, a)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// stop ends the service points.
func (w *wired) stop() {
	for _, a := range w.agents {
		a.stop()
	}
}

// settle waits until the manager has used less than 20 ms of CPU time in half a second: it has no work left.
func (w *wired) settle(m *child) error {
	for range 600 {
		before, err := cpuOf(m.cmd.Process.Pid)
		if err != nil {
			return err
		}
		time.Sleep(500 * time.Millisecond)
		after, err := cpuOf(m.cmd.Process.Pid)
		if err != nil || after-before < 20*time.Millisecond {
			return err
		}
	}
	return errors.New("the manager has worked for five minutes without an end")
}

// measure adds the median and the 99 % of the durations of changes at a rate, as changes does. A limit of 0 is no goal.
func (w *wired) measure(rate int, median, p99 time.Duration) error {
	all, err := w.changes(rate)
	if err != nil {
		return err
	}
	slices.Sort(all)
	pace := "one after another"
	if rate > 0 {
		pace = fmt.Sprintf("%d changes a second", rate)
	}
	where := fmt.Sprintf("%d service points", len(w.points))
	if len(w.points) == 1 {
		where = "a service point"
	}
	for _, row := range []struct {
		name  string
		of    float64
		limit time.Duration
	}{{"median", 0.5, median}, {"p99", 0.99, p99}} {
		at := all[int(row.of*float64(len(all)-1))]
		what := fmt.Sprintf("(B) from acknowledgement to answer at %s, %s, %s of %d", where, pace, row.name, len(all))
		if row.limit == 0 {
			w.b.addResult(what, at.Round(100*time.Microsecond).String())
			continue
		}
		w.b.add(what, at.Round(100*time.Microsecond).String(), row.limit.String(), float64(at)/float64(row.limit), "at most 1", at <= row.limit)
	}
	return nil
}

// point starts a service point with a name server.
func (w *wired) point(n int) (*child, error) {
	ctx := context.Background()
	made, err := w.api.CreateInstance(ctx, fmt.Sprintf("edge-%d", n), "", 1)
	if err != nil {
		return nil, err
	}
	a, err := spawn("agent", filepath.Join(w.b.dir, fmt.Sprintf("edge-%d", n)), made.RegistrationEndpoint+" "+made.RegistrationKey)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return a, err
	}
	at := l.Addr().(*net.TCPAddr)
	_ = l.Close()
	w.points = append(w.points, at.String())
	_, err = w.api.Deploy(ctx, made.FleetInstanceID, checkin.Authority, client.ApplicationChange{Configuration: fmt.Appendf(nil,
		`{"listen":[{"address":"127.0.0.1","port":%d}]}`, at.Port)})
	if err != nil {
		return a, err
	}
	configuration, err := w.api.IDs(ctx, "configurations", "", 1)
	if err != nil {
		return a, err
	}
	face := map[string]any{"type": "NetworkInterface", "name": fmt.Sprintf("ns%d.example", n),
		"managementAddress": fmt.Sprintf("192.0.2.%d", n+1)}
	var server client.Head
	if err := w.api.Create(ctx, fmt.Sprintf("configurations/%d/servers", configuration[0]), map[string]any{"type": "Server",
		"name": fmt.Sprintf("ns%d", n), "profile": "DNS_DHCP_SERVER_20", "servicePoint": made.FleetInstanceID,
		"interfaces": []any{face}}, &server); err != nil {
		return a, err
	}
	interfaces, err := w.api.IDs(ctx, fmt.Sprintf("servers/%d/interfaces", server.ID), "", 1)
	if err != nil {
		return a, err
	}
	kind := "SECONDARY"
	if n == 0 {
		kind = "PRIMARY"
	}
	return a, w.api.Create(ctx, "zones/"+w.zone+"/deploymentRoles", map[string]any{"type": "DNSDeploymentRole", "roleType": kind,
		"interfaces": []map[string]any{{"id": interfaces[0]}}}, nil)
}

// deploy deploys the zone to all servers and enables live deployment for later changes.
func (w *wired) deploy() (took time.Duration, err error) {
	ctx := context.Background()
	if err := w.api.Change(ctx, "zones/"+w.zone, map[string]any{"deploymentEnabled": true}, nil); err != nil {
		return 0, err
	}
	servers, err := w.api.IDs(ctx, "servers", "", crowdPoints)
	if err != nil {
		return 0, err
	}
	start := time.Now()
	for _, id := range servers {
		d, err := w.api.DeployServer(ctx, id, "FullDeployment")
		if err == nil {
			d, err = w.api.WaitForDeployment(ctx, d.ID)
		}
		if err != nil {
			return 0, err
		}
		if d.State == "FAILED" {
			return 0, errors.New(d.Message)
		}
	}
	took = time.Since(start)
	views, err := w.api.IDs(ctx, "views", "", 1)
	if err != nil {
		return 0, err
	}
	if err := w.api.Change(ctx, fmt.Sprintf("views/%d", views[0]), map[string]any{"liveDeployment": true}, nil); err != nil {
		return 0, err
	}
	_, err = w.change(w.next()) // waits for the deployment that the change of the view caused
	return took, err
}

// change creates a record and returns the time from the acknowledgement until the last service point answered with it.
func (w *wired) change(n int) (time.Duration, error) {
	name := fmt.Sprintf("new-%d", n)
	if err := w.api.Create(context.Background(), "zones/"+w.zone+"/resourceRecords", map[string]any{"type": "TXTRecord",
		"name": name, "text": "here"}, nil); err != nil {
		return 0, err
	}
	start := time.Now()
	m := new(dns.Msg)
	m.SetQuestion(name+".example.", dns.TypeTXT)
	for _, at := range w.points {
		for {
			r, _, err := (&dns.Client{Timeout: time.Second}).Exchange(m, at)
			if err == nil && len(r.Answer) == 1 {
				break
			}
			if time.Since(start) > time.Minute {
				return 0, fmt.Errorf("%s is not answered at %s", name, at)
			}
			time.Sleep(500 * time.Microsecond)
		}
	}
	return time.Since(start), nil
}

// changes makes changes at a rate per second, or one after another for the rate 0, and returns the duration of each.
func (w *wired) changes(rate int) (all []time.Duration, err error) {
	if rate == 0 {
		for range lonelyChanges {
			took, err := w.change(w.next())
			if err != nil {
				return nil, err
			}
			all = append(all, took)
		}
		return all, nil
	}
	var mu sync.Mutex
	var group sync.WaitGroup
	tick := time.NewTicker(time.Second / time.Duration(rate))
	defer tick.Stop()
	for range max(5*rate, int(w.b.time.Seconds()*float64(rate))) {
		<-tick.C
		n := w.next()
		group.Go(func() {
			took, e := w.change(n)
			mu.Lock()
			defer mu.Unlock()
			all, err = append(all, took), errors.Join(err, e)
		})
	}
	group.Wait()
	return all, err
}

// next returns the number of the next change.
func (w *wired) next() int {
	w.last++
	return w.last
}

// agentRole runs a service point. where is the registration endpoint and the registration key.
func agentRole(ctx context.Context, state, where string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	endpoint, key, _ := strings.Cut(where, " ")
	versions := map[string]string{}
	for _, kind := range all.Kinds("") {
		versions[kind.Name] = kind.Version
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	a, err := servicepoint.New(servicepoint.Options{State: state, Endpoint: endpoint, Key: key, Diagnostics: l, Version: "bench",
		Targets: servicepoint.Targets{Gateway: "off", Ping: "off", HTTP: "off"}, Log: slog.New(slog.DiscardHandler),
		Program: []string{self, "-role", "application", "-body"}, Versions: versions})
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	if name := os.Getenv("BENCH_PROFILE_AGENT"); name != "" {
		f, err := os.Create(name) //nolint:gosec // the path is the user's
		if err == nil {
			err = pprof.StartCPUProfile(f)
		}
		if err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	return a.Run(ctx)
}

// applicationRole runs an application of a service point, which passes a socket as file descriptor 3.
func applicationRole(ctx context.Context, name string) error {
	socket, err := net.FileListener(os.NewFile(3, "socket"))
	if err != nil {
		return err
	}
	for _, kind := range all.Kinds("") {
		if kind.Name == name {
			return application.Serve(ctx, kind, socket, slog.New(slog.DiscardHandler))
		}
	}
	return errors.New("no such application: " + name)
}
