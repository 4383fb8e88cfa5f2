package servicepoint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"sync"
	"time"

	"portolan/internal/base/dirlock"
	"portolan/internal/base/fairlisten"
	"portolan/internal/wire/checkin"
)

// Options say what a service point is and where it looks.
type Options struct {
	// State is the state directory.
	State string
	// Endpoint and Key are where to enrol and with what; not needed once enrolled.
	Endpoint, Key string
	// Variant is checkin.Fleet or checkin.V4; empty means what it enrolled as, and at first checkin.Fleet.
	Variant string
	// Diagnostics is the listener of the diagnostics; Run closes it. Where it is nil, Run listens at DiagnosticsListen, as soon as that
	// is free.
	Diagnostics       net.Listener
	DiagnosticsListen string
	// Names are names of this machine, beside its host name, by which diagnostics and status may be asked for.
	Names []string
	// StatusListen are the addresses where, while the resolver is to run, load balancers find its status; none where it is empty.
	StatusListen []string
	Targets      Targets
	Version      string
	Log          *slog.Logger
	// ProbeInterval is how often the network is probed; 0 means DefaultProbeInterval.
	ProbeInterval time.Duration
	// Program is the command that runs an application, with its name behind it; Versions are those that it has, by name.
	Program  []string
	Versions map[string]string
	// Driving are what stands behind the names of applications that drive a program of the machine: they need its files, and run as the
	// agent does.
	Driving map[string][]string
	// Base is the version of the program that was installed on the machine; empty means Version. Launched says that a Launcher runs this
	// one, so that a release can take its place.
	Base     string
	Launched bool
	// Patience is how long a service point that the manager refuses waits before it asks again; 0 means DefaultPatience.
	Patience time.Duration
}

// DefaultPatience is how long a service point waits that the manager refused: who has restored a wrong backup, or deleted the wrong
// one, finds it again.
const DefaultPatience = 5 * time.Minute

// DefaultProbeInterval is how often the network is probed, probeLimit how long a probe may take.
const (
	DefaultProbeInterval = 10 * time.Second
	probeLimit           = 5 * time.Second
)

// States of the registration (spec.md 2.5 shows REGISTERED).
const (
	registering  = "REGISTERING"
	registered   = "REGISTERED"
	refused      = "REFUSED"
	deregistered = "DEREGISTERED"
)

// Agent is a running service point.
type Agent struct {
	options Options
	state   state
	host    host
	probes  *probes
	log     *slog.Logger
	lock    io.Closer
	// supervisor runs the applications; desired is the generation that is on the disk, and belongs to Run.
	supervisor *supervisor
	desired    int64
	// before is the id from before it enrols anew. It belongs to Run.
	before string
	// process is this process, for check-ins; processKept says that the state directory has it. They belong to Run.
	process     checkin.Process
	processKept bool
	// releases are the releases on the disk; updates is the work on them, and end ends Run for a cause.
	releases *releases
	machine  *machine
	anycast  *announcer
	updates  sync.WaitGroup
	end      context.CancelCauseFunc
	// moved has a token when something was found that the manager does not know yet.
	moved chan struct{}

	mu sync.Mutex
	// What follows is guarded by mu.
	identity     *identity
	manager      *manager
	registration checkin.Registration
	// trouble, where it is not empty, is why what is to run cannot be kept.
	trouble string
	// shownAt is the address that the diagnostics are shown at.
	shownAt string
	// disowned says that the manager has refused this service point since it last answered.
	disowned bool
	// lastAnswer is when the manager last answered, silence why it has not since, settled when what is to run last changed.
	lastAnswer time.Time
	silence    string
	settled    time.Time
	interval   time.Duration
	// spread is within how long the service points of the manager should come back when they have lost it.
	spread time.Duration
	update updating
}

// New makes an agent. Its errors are those of the options: there is no point in trying again.
func New(o Options) (*Agent, error) {
	if o.Variant != "" && o.Variant != checkin.Fleet && o.Variant != checkin.V4 {
		return nil, fmt.Errorf("variant %q is neither %s nor %s", o.Variant, checkin.Fleet, checkin.V4)
	}
	if err := os.MkdirAll(o.State, 0o700); err != nil {
		return nil, fmt.Errorf("making the state directory: %w", err)
	}
	o.ProbeInterval, o.Patience = cmp.Or(max(o.ProbeInterval, 0), DefaultProbeInterval), cmp.Or(max(o.Patience, 0), DefaultPatience)
	if o.Log == nil {
		o.Log = slog.Default()
	}
	lock, err := dirlock.Take(o.State, "service point")
	if err != nil {
		return nil, err
	}
	a := &Agent{options: o, releases: newReleases(o.State, cmp.Or(o.Base, o.Version), o.Version), state: state{o.State},
		host: thisHost(), log: o.Log, lock: lock, moved: make(chan struct{}, 1), interval: checkin.Interval}
	a.machine = newMachine(o.State, o.Log, a.move)
	if a.process, err = a.state.newProcess(); err != nil {
		_ = lock.Close()
		return nil, err
	}
	if err := a.begin(); err != nil {
		_ = lock.Close()
		return nil, err
	}
	return a, nil
}

// begin takes on the identity that the state directory has, or prepares to enrol.
func (a *Agent) begin() error {
	id, err := a.state.load()
	if err != nil {
		return err
	}
	o := &a.options
	if id != nil && (o.Key == "" || id.Registered == "" || id.Registered == digestOf([]byte(o.Key))) {
		was := *id
		o.Variant = cmp.Or(o.Variant, id.Variant)
		id.Variant, id.Endpoint = o.Variant, cmp.Or(o.Endpoint, id.Endpoint) // the manager has moved
		if o.Key != "" {
			id.Registered = digestOf([]byte(o.Key))
		}
		if err := a.become(id); err != nil || *id == was {
			return err
		}
		return a.state.save(id)
	}
	o.Variant = cmp.Or(o.Variant, checkin.Fleet)
	if id != nil {
		a.before, o.Endpoint = id.ID, cmp.Or(o.Endpoint, id.Endpoint)
	}
	if o.Endpoint == "" || o.Key == "" {
		return errors.New("this service point is not enrolled: it needs --registration-endpoint and --registration-key")
	}
	key, err := checkin.ParseKey(o.Key)
	if err != nil {
		return err
	}
	base, err := baseOf(o.Endpoint)
	if err != nil {
		return err
	}
	a.manager = newManager(base, pinned(key.Authority), o.Targets.proxy)
	a.registration = checkin.Registration{State: registering}
	return nil
}

// become takes on an identity.
func (a *Agent) become(id *identity) error {
	config, err := id.tlsConfig()
	if err != nil {
		return err
	}
	base, err := baseOf(id.Endpoint)
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.manager != nil {
		a.manager.http.CloseIdleConnections()
	}
	a.identity, a.manager = id, newManager(base, config, a.options.Targets.proxy)
	a.registration = checkin.Registration{State: registered}
	return nil
}

// Run enrols where that has not been done, then checks in and probes until the context ends, or gives ErrSwitch.
func (a *Agent) Run(ctx context.Context) error {
	ctx, a.end = context.WithCancelCause(ctx)
	defer a.end(nil)
	a.probes = &probes{targets: a.options.Targets, host: a.host, every: a.options.ProbeInterval, limit: probeLimit, log: a.log,
		last: unprobed, reasons: map[string]string{},
		manager: func() *manager { a.mu.Lock(); defer a.mu.Unlock(); return a.manager }, changed: a.move}
	defer func() { _ = a.lock.Close() }()
	wanted, err := a.state.loadDesired()
	if err != nil { // the manager has it, too
		a.log.Error("what is to run is asked for again", "reason", err)
	}
	a.desired, a.settled = wanted.Generation, a.state.settledAt()
	a.beginUpdates(wanted.Update)
	a.machine.ask(wanted.NTPServers)
	a.supervisor = &supervisor{dir: a.options.State, program: a.options.Program, driving: a.options.Driving,
		proxy:    a.options.Targets.environment(),
		versions: a.options.Versions, log: a.log,
		moved: a.move,
		fetch: a.fetchContent, decide: a.decideUpdate, ctx: ctx, applied: make(chan struct{}), processes: map[string]*process{},
		leaving: map[string]*process{}}
	a.supervisor.groups = a.groups()
	a.supervisor.streams = newStreams(a.options.State, a.log, a.postBatch)
	a.anycast = a.newAnnouncer()
	a.supervisor.start(wanted, err == nil)
	defer a.supervisor.group.Wait()
	var group sync.WaitGroup
	group.Go(func() { a.serveDiagnostics(ctx) })
	for _, address := range a.options.StatusListen {
		group.Go(func() { a.serveStatus(ctx, address) })
	}
	group.Go(func() { a.anycast.run(ctx) })
	group.Go(func() { a.supervisor.streams.run(ctx) })
	group.Go(func() { a.probes.run(ctx) })
	group.Go(func() { a.machine.run(ctx) })
	group.Go(func() {
		if a.enrol(ctx) == nil {
			a.checkIn(ctx)
		}
	})
	group.Wait()
	a.updates.Wait()
	if errors.Is(context.Cause(ctx), ErrSwitch) {
		return ErrSwitch
	}
	return nil
}

// groups are the control groups of applications; nil where there are none.
func (a *Agent) groups() *groups {
	if len(a.options.Program) == 0 { // nothing runs
		return nil
	}
	g, err := ownGroups()
	if err != nil {
		a.log.Info("applications have no control groups: their limits are kept by their runtime alone", "reason", err)
		return nil
	}
	return g
}

// Bounds of connections to the diagnostics and to the status at a time, in all and from one network of clients: anybody on the network may
// connect.
const (
	maxConnections = 64
	maxPerNetwork  = 8
)

// serveDiagnostics serves the diagnostics until the context ends.
func (a *Agent) serveDiagnostics(ctx context.Context) {
	a.serveAt(ctx, "diagnostics", checkin.DiagnosticsPath, a.handler(), func() (l net.Listener, err error) {
		if l, a.options.Diagnostics = a.options.Diagnostics, nil; l == nil {
			if l, err = net.Listen("tcp", a.options.DiagnosticsListen); err != nil {
				return nil, err
			}
		}
		a.mu.Lock()
		a.shownAt = l.Addr().String()
		a.mu.Unlock()
		a.move()
		return l, nil
	})
}

// diagnosticsURL is where the diagnostics are shown, on a node; empty where they are not.
func (a *Agent) diagnosticsURL(of checkin.Node) string {
	a.mu.Lock()
	at, err := netip.ParseAddrPort(a.shownAt)
	a.mu.Unlock()
	if err != nil {
		return ""
	}
	host := at.Addr().Unmap().WithZone("")
	if host.IsUnspecified() { // at all addresses of the machine, or all of IPv4: the first one
		i := slices.IndexFunc(of.Addresses, func(a checkin.NodeAddress) bool {
			one, err := netip.ParseAddr(a.IPAddress)
			return err == nil && (one.Is4() || host.Is6())
		})
		if i < 0 {
			return ""
		}
		host = netip.MustParseAddr(of.Addresses[i].IPAddress)
	}
	return "http://" + netip.AddrPortFrom(host, at.Port()).String() + checkin.DiagnosticsPath
}

// serveAt serves what anybody may read, until the context ends. Where the address is not free, or no connection can be had just now, all
// else goes on.
func (a *Agent) serveAt(ctx context.Context, what, path string, handler http.Handler, listen func() (net.Listener, error)) {
	why := ""
	for b := (backoff{}); ctx.Err() == nil; b.pause(ctx) {
		l, err := listen()
		if err != nil {
			if text := err.Error(); text != why { // it is tried for as long as it takes
				a.log.Error(what+" cannot be shown yet", "reason", err)
				why = text
			}
			continue
		}
		why = ""
		server := &http.Server{Handler: a.ownHosts(handler), ReadHeaderTimeout: time.Second, ReadTimeout: 2 * time.Second,
			WriteTimeout: 10 * time.Second, IdleTimeout: 2 * time.Second, MaxHeaderBytes: 16 << 10}
		stop := context.AfterFunc(ctx, func() {
			grace, done := context.WithTimeout(context.Background(), 2*time.Second)
			defer done()
			if err := server.Shutdown(grace); err != nil {
				_ = server.Close()
			}
		})
		a.log.Info(what+" are shown", "at", "http://"+l.Addr().String()+path)
		if err := server.Serve(fairlisten.New(l, fairlisten.Limits{Max: maxConnections, PerNetwork: maxPerNetwork})); !errors.Is(err,
			http.ErrServerClosed) {
			a.log.Error("serving "+what, "error", err)
		}
		stop()
	}
}

// conditions gives the sentences that make the service point unhealthy.
func (a *Agent) conditions() []string {
	_, wrong := a.anycast.now()
	all := append(a.probes.conditions(), wrong...)
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, text := range []string{a.trouble, shortened(a.update.left)} {
		if text != "" {
			all = append(all, text)
		}
	}
	return all
}

// troubled notes why what is to run cannot be kept; an empty text is nothing.
func (a *Agent) troubled(why string) (changed bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	changed = a.trouble != why
	a.trouble = why
	return changed
}

// move notes that the report may have changed.
func (a *Agent) move() {
	if a.anycast != nil { // its first look is its own
		a.anycast.look()
	}
	select {
	case a.moved <- struct{}{}:
	default:
	}
}

func (a *Agent) register(state, details string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.registration = checkin.Registration{State: state, Details: details}
}

// backoff waits longer each time, with jitter, up to half a minute; it reports whether to go on.
type backoff struct {
	// wait is the last pause, most the longest one; 0 means 30 s.
	wait, most time.Duration
}

func (b *backoff) pause(ctx context.Context) bool {
	b.wait = min(max(2*b.wait, 500*time.Millisecond), cmp.Or(b.most, 30*time.Second))
	return sleep(ctx, b.wait/2+rand.N(b.wait)) //nolint:gosec // jitter needs no secrecy
}

// patiently waits before the manager is asked again that has refused.
func (a *Agent) patiently(ctx context.Context) bool {
	return sleep(ctx, a.options.Patience/2+rand.N(a.options.Patience)) //nolint:gosec // jitter needs no secrecy
}

// sleep waits, and reports whether to go on.
func sleep(ctx context.Context, wait time.Duration) bool {
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// enrol gets the service point its certificate. It tries until the manager gives one; a refusal stays visible in the diagnostics, and
// is asked for again from time to time.
func (a *Agent) enrol(ctx context.Context) error {
	if a.identity != nil {
		return nil
	}
	for b := (backoff{}); ; {
		err := a.tryEnrol(ctx)
		switch {
		case err == nil || ctx.Err() != nil:
			return err
		case final(err) || errors.Is(err, errForeign):
			a.register(refused, err.Error())
			a.log.Error("enrolment refused", "reason", err)
			if !a.patiently(ctx) {
				return ctx.Err()
			}
		default:
			a.register(registering, err.Error())
			a.log.Warn("cannot enrol yet", "error", err)
			if !b.pause(ctx) {
				return ctx.Err()
			}
		}
	}
}

func (a *Agent) tryEnrol(ctx context.Context) error {
	key, err := a.state.enrolmentKey()
	if err != nil {
		return err
	}
	request, err := certificateRequest(key)
	if err != nil {
		return err
	}
	var answer checkin.EnrolAnswer
	if err := a.manager.post(ctx, checkin.EnrolPath, 0, checkin.EnrolRequest{RegistrationKey: a.options.Key, Request: request,
		Variant: a.options.Variant, Version: a.options.Version}, &answer); err != nil {
		return err
	}
	return a.enrolled(key, answer)
}
