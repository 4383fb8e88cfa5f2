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

// Options configure a service point.
type Options struct {
	// State is the state directory.
	State string
	// Endpoint and Key are the registration endpoint and the registration key. They are not needed after enrolment.
	Endpoint, Key string
	// Variant is checkin.Fleet or checkin.V4. Empty means the variant used at enrolment, or checkin.Fleet before enrolment.
	Variant string
	// Diagnostics is the listener for the diagnostics; Run closes it. If it is nil, Run listens at DiagnosticsListen and retries until the
	// address is free.
	Diagnostics       net.Listener
	DiagnosticsListen string
	// Names are further names of this machine, besides its host name, that the Host header of a diagnostics or status request may contain.
	Names []string
	// StatusListen are the addresses of the resolver's status endpoint for load balancers. They are open while a resolver is configured.
	// Empty disables the endpoint.
	StatusListen []string
	Targets      Targets
	Version      string
	Log          *slog.Logger
	// ProbeInterval is the time between two network probes; 0 means DefaultProbeInterval.
	ProbeInterval time.Duration
	// Program is the command that runs an application; the application's name is appended. Versions maps the names of the applications that
	// the command contains to their versions.
	Program  []string
	Versions map[string]string
	// Driving maps the names of applications that control another program of this machine to their further arguments. Such an application
	// needs the program's files and runs with the privileges of the agent.
	Driving map[string][]string
	// Namespaces maps the names of applications to the network namespaces that they run in, as `ip netns` names them. Other applications
	// run in the namespace of the agent.
	Namespaces map[string]string
	// Stateful are the names of the applications that keep data on the disk. Each one gets a folder of its own.
	Stateful []string
	// Base is the version of the program that was installed on the machine; empty means Version. Launched reports that a Launcher started
	// this agent, so that an update can replace it.
	Base     string
	Launched bool
	// Patience is the pause before a service point that the manager refused tries again; 0 means DefaultPatience.
	Patience time.Duration
}

// DefaultPatience is the pause after the manager refused this service point. Retries let the service point reconnect after an
// administrator corrects a mistake, such as a wrong backup restored or a wrong service point deleted.
const DefaultPatience = 5 * time.Minute

// DefaultProbeInterval is the time between two network probes. probeLimit is the timeout of one probe.
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
	// supervisor runs the applications. desired is the generation of the desired state on the disk; only Run uses it.
	supervisor *supervisor
	desired    int64
	// previousID is the service point id of the earlier enrolment when the agent enrols again. Only Run uses it.
	previousID string
	// process identifies this process in check-ins. processKept reports that the state directory contains it. Only Run uses them.
	process     checkin.Process
	processKept bool
	// releases are the releases on the disk. updates waits for the update goroutines. end ends Run with a cause.
	releases *releases
	machine  *machine
	anycast  *announcer
	updates  sync.WaitGroup
	end      context.CancelCauseFunc
	// changed contains a token when the report may have changed since the last check-in.
	changed chan struct{}

	mu sync.Mutex
	// The following fields are guarded by mu.
	identity     *identity
	manager      *manager
	registration checkin.Registration
	// storeError is the reason why the desired state cannot be stored; empty if it can.
	storeError string
	// diagnosticsAddr is the address of the diagnostics listener.
	diagnosticsAddr string
	// isRefused reports that the manager has refused this service point since its last answer.
	isRefused bool
	// lastAnswer is the time of the manager's last answer. lastFailure is the error since then. desiredChanged is the time of the last
	// change of the desired state.
	lastAnswer     time.Time
	lastFailure    string
	desiredChanged time.Time
	interval       time.Duration
	// spread is the time across which the service points of the manager distribute their reconnects after they lost it.
	spread time.Duration
	update updating
}

// New creates an agent. All its errors are permanent: they are caused by the options or the state directory, so a retry does not help.
func New(o Options) (*Agent, error) {
	if o.Variant != "" && o.Variant != checkin.Fleet && o.Variant != checkin.V4 {
		return nil, fmt.Errorf("variant %q is neither %s nor %s", o.Variant, checkin.Fleet, checkin.V4)
	}
	if err := os.MkdirAll(o.State, 0o700); err != nil {
		return nil, fmt.Errorf("create the state directory: %w", err)
	}
	o.ProbeInterval, o.Patience = cmp.Or(max(o.ProbeInterval, 0), DefaultProbeInterval), cmp.Or(max(o.Patience, 0), DefaultPatience)
	if o.Log == nil {
		o.Log = slog.Default()
	}
	lock, err := dirlock.Acquire(o.State, "service point")
	if err != nil {
		return nil, err
	}
	a := &Agent{options: o, releases: newReleases(o.State, cmp.Or(o.Base, o.Version), o.Version), state: state{o.State},
		host: thisHost(), log: o.Log, lock: lock, changed: make(chan struct{}, 1), interval: checkin.Interval}
	a.machine = newMachine(o.State, o.Log, a.notifyChange)
	if a.process, err = a.state.newProcess(); err != nil {
		_ = lock.Close()
		return nil, err
	}
	if err := a.initIdentity(); err != nil {
		_ = lock.Close()
		return nil, err
	}
	return a, nil
}

// initIdentity loads the identity from the state directory, or prepares enrolment if there is none.
func (a *Agent) initIdentity() error {
	id, err := a.state.load()
	if err != nil {
		return err
	}
	o := &a.options
	if id != nil && (o.Key == "" || id.Registered == "" || id.Registered == digestOf([]byte(o.Key))) {
		was := *id
		o.Variant = cmp.Or(o.Variant, id.Variant)
		id.Variant, id.Endpoint = o.Variant, cmp.Or(o.Endpoint, id.Endpoint) // the manager's address may have changed
		if o.Key != "" {
			id.Registered = digestOf([]byte(o.Key))
		}
		if err := a.useIdentity(id); err != nil || *id == was {
			return err
		}
		return a.state.save(id)
	}
	o.Variant = cmp.Or(o.Variant, checkin.Fleet)
	if id != nil {
		a.previousID, o.Endpoint = id.ID, cmp.Or(o.Endpoint, id.Endpoint)
	}
	if o.Endpoint == "" || o.Key == "" {
		return errors.New("this service point is not enrolled: set --registration-endpoint and --registration-key")
	}
	key, err := checkin.ParseKey(o.Key)
	if err != nil {
		return err
	}
	base, err := baseURL(o.Endpoint)
	if err != nil {
		return err
	}
	a.manager = newManager(base, pinnedConfig(key.Authority), o.Targets.proxy)
	a.registration = checkin.Registration{State: registering}
	return nil
}

// useIdentity sets the identity and the connection to its manager.
func (a *Agent) useIdentity(id *identity) error {
	config, err := id.tlsConfig()
	if err != nil {
		return err
	}
	base, err := baseURL(id.Endpoint)
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

// Run enrols if necessary, then checks in and probes until the context ends. It returns ErrSwitch if another release must replace this
// one.
func (a *Agent) Run(ctx context.Context) error {
	ctx, a.end = context.WithCancelCause(ctx)
	defer a.end(nil)
	a.probes = &probes{targets: a.options.Targets, host: a.host, every: a.options.ProbeInterval, limit: probeLimit, log: a.log,
		last: noResults, reasons: map[string]string{},
		manager: func() *manager { a.mu.Lock(); defer a.mu.Unlock(); return a.manager }, changed: a.notifyChange}
	defer func() { _ = a.lock.Close() }()
	wanted, err := a.state.loadDesired()
	if err != nil { // the manager sends it again
		a.log.Error("desired state unreadable, waiting for the manager", "reason", err)
	}
	a.desired, a.desiredChanged = wanted.Generation, a.state.desiredTime()
	a.loadUpdates(wanted.Update)
	a.machine.setServers(wanted.NTPServers)
	a.supervisor = &supervisor{dir: a.options.State, program: a.options.Program, driving: a.options.Driving, namespaces: a.options.Namespaces,
		proxy:    a.options.Targets.environment(),
		versions: a.options.Versions, stateful: a.options.Stateful, log: a.log,
		changed: a.notifyChange,
		fetch:   a.fetchContent, decide: a.decideUpdate, ctx: ctx, applied: make(chan struct{}), processes: map[string]*process{},
		removing: map[string]*process{}}
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
	group.Go(func() { a.supervisor.reportCounters(ctx) })
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

// groups returns the control groups of applications; nil if they are not available.
func (a *Agent) groups() *groups {
	if len(a.options.Program) == 0 { // applications cannot run
		return nil
	}
	g, err := ownGroups()
	if err != nil {
		a.log.Info("control groups not available, limits enforced by the runtime only", "reason", err)
		return nil
	}
	return g
}

// Limits on concurrent connections to the diagnostics and the status endpoint: in total and per client network. Both endpoints are open
// to the whole network.
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
		a.diagnosticsAddr = l.Addr().String()
		a.mu.Unlock()
		a.notifyChange()
		return l, nil
	})
}

// diagnosticsURL returns the URL of the diagnostics on a node; empty if they are not served.
func (a *Agent) diagnosticsURL(of checkin.Node) string {
	a.mu.Lock()
	at, err := netip.ParseAddrPort(a.diagnosticsAddr)
	a.mu.Unlock()
	if err != nil {
		return ""
	}
	host := at.Addr().Unmap().WithZone("")
	if host.IsUnspecified() { // the listener accepts all addresses of the machine, or all IPv4 addresses: use the first one
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

// serveAt serves an endpoint that needs no sign-in until the context ends. It retries with backoff while it cannot listen or serve.
func (a *Agent) serveAt(ctx context.Context, what, path string, handler http.Handler, listen func() (net.Listener, error)) {
	why := ""
	for b := (backoff{}); ctx.Err() == nil; b.pause(ctx) {
		l, err := listen()
		if err != nil {
			if text := err.Error(); text != why { // retried without a limit
				a.log.Error("endpoint listen failed, retrying", "endpoint", what, "error", err)
				why = text
			}
			continue
		}
		why = ""
		server := &http.Server{Handler: a.checkHost(handler), ReadHeaderTimeout: time.Second, ReadTimeout: 2 * time.Second,
			WriteTimeout: 10 * time.Second, IdleTimeout: 2 * time.Second, MaxHeaderBytes: 16 << 10}
		stop := context.AfterFunc(ctx, func() {
			grace, done := context.WithTimeout(context.Background(), 2*time.Second)
			defer done()
			if err := server.Shutdown(grace); err != nil {
				_ = server.Close()
			}
		})
		a.log.Info("endpoint served", "endpoint", what, "url", "http://"+l.Addr().String()+path)
		if err := server.Serve(fairlisten.New(l, fairlisten.Limits{Max: maxConnections, PerNetwork: maxPerNetwork})); !errors.Is(err,
			http.ErrServerClosed) {
			a.log.Error("endpoint serve failed", "endpoint", what, "error", err)
		}
		stop()
	}
}

// conditions returns the error conditions that make the service point unhealthy.
func (a *Agent) conditions() []string {
	_, wrong := a.anycast.report()
	all := append(a.probes.conditions(), wrong...)
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, text := range []string{a.storeError, shortenText(a.update.abandoned)} {
		if text != "" {
			all = append(all, text)
		}
	}
	return all
}

// setTrouble sets the reason why the desired state cannot be stored; empty clears it. It reports whether the reason changed.
func (a *Agent) setTrouble(why string) (changed bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	changed = a.storeError != why
	a.storeError = why
	return changed
}

// notifyChange signals that the report may have changed.
func (a *Agent) notifyChange() {
	if a.anycast != nil { // the announcer reconciles at its own start
		a.anycast.notify()
	}
	select {
	case a.changed <- struct{}{}:
	default:
	}
}

func (a *Agent) register(state, details string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.registration = checkin.Registration{State: state, Details: details}
}

// backoff waits with jitter. The pause doubles each time, up to the limit.
type backoff struct {
	// wait is the last pause. limit is the longest pause; 0 means 30 s.
	wait, limit time.Duration
}

func (b *backoff) pause(ctx context.Context) bool {
	b.wait = min(max(2*b.wait, 500*time.Millisecond), cmp.Or(b.limit, 30*time.Second))
	return sleep(ctx, b.wait/2+rand.N(b.wait)) //nolint:gosec // jitter needs no secrecy
}

// waitAfterRefusal waits before the next request to a manager that refused this service point. It reports whether ctx is still valid.
func (a *Agent) waitAfterRefusal(ctx context.Context) bool {
	return sleep(ctx, a.options.Patience/2+rand.N(a.options.Patience)) //nolint:gosec // jitter needs no secrecy
}

// sleep waits. It returns false if ctx ended first.
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

// enrol requests the service point's certificate from the manager and retries until it succeeds or ctx ends. A refusal is shown in the
// diagnostics and retried after Patience.
func (a *Agent) enrol(ctx context.Context) error {
	if a.identity != nil {
		return nil
	}
	for b := (backoff{}); ; {
		err := a.tryEnrol(ctx)
		switch {
		case err == nil || ctx.Err() != nil:
			return err
		case isPermanent(err) || errors.Is(err, errWrongManager):
			a.register(refused, err.Error())
			a.log.Error("enrolment refused", "reason", err)
			if !a.waitAfterRefusal(ctx) {
				return ctx.Err()
			}
		default:
			a.register(registering, err.Error())
			a.log.Warn("enrolment failed, retrying", "error", err)
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
	return a.storeIdentity(key, answer)
}
