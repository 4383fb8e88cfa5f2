package servicepoint

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"portolan/internal/checkin"
)

// Options say what a service point is and where it looks.
type Options struct {
	// State is the state directory.
	State string
	// Endpoint and Key are where to enrol and with what; not needed once enrolled.
	Endpoint, Key string
	// Variant is checkin.Fleet or checkin.V4.
	Variant string
	// Diagnostics is the listener of the diagnostics; Run closes it.
	Diagnostics net.Listener
	Targets     Targets
	Version     string
	Log         *slog.Logger
	// ProbeInterval is how often the network is probed; 0 means DefaultProbeInterval.
	ProbeInterval time.Duration
}

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

// Registration is the registration state of the diagnostics.
type Registration struct {
	Details string `json:"details"`
	State   string `json:"state"`
}

// Agent is a running service point.
type Agent struct {
	options Options
	state   state
	host    host
	probes  *probes
	log     *slog.Logger
	// moved has a token when something was found that the manager does not know yet.
	moved chan struct{}

	mu sync.Mutex
	// What follows is guarded by mu.
	identity     *identity
	manager      *manager
	registration Registration
	lastAnswer   time.Time
	interval     time.Duration
}

// New makes an agent. Its errors are those of the options: there is no point in trying again.
func New(o Options) (*Agent, error) {
	if o.Variant != checkin.Fleet && o.Variant != checkin.V4 {
		return nil, fmt.Errorf("variant %q is neither %s nor %s", o.Variant, checkin.Fleet, checkin.V4)
	}
	if err := os.MkdirAll(o.State, 0o700); err != nil {
		return nil, fmt.Errorf("making the state directory: %w", err)
	}
	if o.ProbeInterval <= 0 {
		o.ProbeInterval = DefaultProbeInterval
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	a := &Agent{options: o, state: state{o.State}, host: thisHost(), log: o.Log, moved: make(chan struct{}, 1), interval: checkin.Interval}
	id, err := a.state.load()
	if err != nil {
		return nil, err
	}
	if id != nil {
		if o.Endpoint != "" && o.Endpoint != id.Endpoint { // the manager has moved
			id.Endpoint = o.Endpoint
			if err := a.state.save(id); err != nil {
				return nil, err
			}
		}
		return a, a.become(id)
	}
	if o.Endpoint == "" || o.Key == "" {
		return nil, errors.New("this service point is not enrolled: it needs --registration-endpoint and --registration-key")
	}
	key, err := checkin.ParseKey(o.Key)
	if err != nil {
		return nil, err
	}
	base, err := baseOf(o.Endpoint)
	if err != nil {
		return nil, err
	}
	a.manager = newManager(base, pinned(key.Authority))
	a.registration = Registration{State: registering}
	return a, nil
}

// become takes on an identity.
func (a *Agent) become(id *identity) error {
	config, _, err := id.tlsConfig()
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
	a.identity, a.manager = id, newManager(base, config)
	a.registration = Registration{State: registered}
	return nil
}

// Run enrols where that has not been done, then checks in and probes until the context ends.
func (a *Agent) Run(ctx context.Context) error {
	a.probes = &probes{targets: a.options.Targets, host: a.host, every: a.options.ProbeInterval, limit: probeLimit, log: a.log,
		last: unprobed, reasons: map[string]string{},
		manager: func() *manager { a.mu.Lock(); defer a.mu.Unlock(); return a.manager }, changed: a.move}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	server := &http.Server{Handler: a.handler(), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, MaxHeaderBytes: 16 << 10}
	var group sync.WaitGroup
	var served error
	group.Go(func() {
		if err := server.Serve(a.options.Diagnostics); !errors.Is(err, http.ErrServerClosed) {
			served = fmt.Errorf("serving diagnostics: %w", err)
			cancel()
		}
	})
	group.Go(func() { a.probes.run(ctx) })
	group.Go(func() {
		if err := a.enrol(ctx); err != nil {
			if ctx.Err() == nil {
				a.log.Error("enrolment refused", "reason", err)
			}
			return
		}
		a.checkIn(ctx)
	})
	<-ctx.Done()
	grace, done := context.WithTimeout(context.Background(), 2*time.Second)
	defer done()
	if err := server.Shutdown(grace); err != nil {
		_ = server.Close()
	}
	group.Wait()
	return served
}

// move notes that the report may have changed.
func (a *Agent) move() {
	select {
	case a.moved <- struct{}{}:
	default:
	}
}

func (a *Agent) register(state, details string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.registration = Registration{State: state, Details: details}
}

// backoff waits longer each time, with jitter, up to half a minute; it reports whether to go on.
type backoff struct{ wait time.Duration }

func (b *backoff) pause(ctx context.Context) bool {
	b.wait = min(max(2*b.wait, 500*time.Millisecond), 30*time.Second)
	t := time.NewTimer(b.wait/2 + rand.N(b.wait)) //nolint:gosec // jitter needs no secrecy
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// enrol gets the service point its certificate. It tries until the manager answers; a refusal is
// final and stays visible in the diagnostics.
func (a *Agent) enrol(ctx context.Context) error {
	if a.identity != nil {
		return nil
	}
	key, err := a.state.enrolmentKey()
	if err != nil {
		a.register(refused, err.Error())
		return err
	}
	request, err := certificateRequest(key)
	if err != nil {
		return err
	}
	for b := (backoff{}); ; {
		var answer checkin.EnrolAnswer
		err := a.manager.post(ctx, checkin.EnrolPath, checkin.EnrolRequest{RegistrationKey: a.options.Key, Request: request,
			Variant: a.options.Variant, Version: a.options.Version}, &answer)
		if err == nil {
			return a.enrolled(key, answer)
		}
		if final(err) || errors.Is(err, errForeign) {
			a.register(refused, err.Error())
			return err
		}
		a.register(registering, err.Error())
		a.log.Warn("cannot enrol yet", "error", err)
		if !b.pause(ctx) {
			return ctx.Err()
		}
	}
}
