package servicepoint

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"portolan/internal/wire/checkin"
	"portolan/internal/wire/release"
)

// Crowd simulates many service points in one process. They enrol and check in as real ones do: over mutual TLS, each with its own key,
// certificate and connection. They run no applications and store nothing on the disk. An application is reported healthy as soon as it is
// requested, and an update is reported done after its first report.
type Crowd struct {
	// Enrol returns the registration endpoint and key for the service point with this number, from 0.
	Enrol func(ctx context.Context, number int) (endpoint, key string, err error)
	// Size is the number of service points. Hands is the number of concurrent enrolments.
	Size, Hands int
	Version     string
	Log         *slog.Logger
	// Stalled reports whether the update of a service point never ends; nil means that none does.
	Stalled func(number int) bool
	// Dial connects to a manager; nil means the dialer of real service points.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	// Enrolled, Answered and Failed count service points, answered check-ins and failed check-ins. Held is the number of check-ins that
	// wait for an answer.
	Enrolled, Answered, Failed, Held atomic.Int64

	mu sync.Mutex
	// changed is the time of each service point's last change of the desired state. It is guarded by mu.
	changed map[int]time.Time
}

// Run enrols the service points and lets them check in until ctx ends. It returns the first enrolment error.
func (c *Crowd) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var points sync.WaitGroup
	numbers := make(chan int)
	var hands sync.WaitGroup
	for range max(1, c.Hands) {
		hands.Go(func() {
			for number := range numbers {
				p, err := c.enrol(ctx, number)
				if err != nil {
					cancel(fmt.Errorf("enrol service point %d: %w", number, err))
					continue
				}
				c.Enrolled.Add(1)
				points.Go(func() { c.checkIn(ctx, number, p) })
			}
		})
	}
	for number := range c.Size {
		if ctx.Err() != nil {
			break
		}
		numbers <- number
	}
	close(numbers)
	hands.Wait()
	points.Wait()
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

// Changes returns the times after behind at which service points received another desired state, in ascending order.
func (c *Crowd) Changes(behind time.Time) (all []time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, at := range c.changed {
		if at.After(behind) {
			all = append(all, at)
		}
	}
	slices.SortFunc(all, time.Time.Compare)
	return all
}

// simulated is a service point of a crowd.
type simulated struct {
	manager *manager
	process checkin.Process
	report  checkin.Report
	desired checkin.Desired
}

func (c *Crowd) enrol(ctx context.Context, number int) (*simulated, error) {
	endpoint, text, err := c.Enrol(ctx, number)
	if err != nil {
		return nil, err
	}
	key, err := checkin.ParseKey(text)
	if err != nil {
		return nil, err
	}
	base, err := baseURL(endpoint)
	if err != nil {
		return nil, err
	}
	own, pem, err := newKey()
	if err != nil {
		return nil, err
	}
	request, err := certificateRequest(own)
	if err != nil {
		return nil, err
	}
	first := c.connect(number, newManager(base, pinnedConfig(key.Authority), http.ProxyFromEnvironment))
	defer first.http.CloseIdleConnections()
	var answer checkin.EnrolAnswer
	for again := range enrolTimes { // an overloaded manager may be too slow for the handshake
		if err = first.post(ctx, checkin.EnrolPath, 0, checkin.EnrolRequest{RegistrationKey: text, Request: request, Variant: checkin.Fleet,
			Version: c.Version}, &answer); err == nil || again == enrolTimes-1 || !sleep(ctx, time.Second<<again) {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	id := &identity{ID: answer.ID, credentials: credentials{Certificate: answer.Certificate, Key: string(pem)}, Authority: answer.Authority}
	config, err := id.tlsConfig()
	if err != nil {
		return nil, err
	}
	address := fmt.Sprintf("198.18.%d.%d", number/250%250, number%250+1) // RFC 2544: reserved for benchmarks
	return &simulated{process: newProcess(""), manager: c.connect(number, newManager(base, config, http.ProxyFromEnvironment)),
		report: checkin.Report{Version: c.Version, BaseVersion: c.Version, Platform: release.Platform(), Variant: checkin.Fleet,
			ErrorConditions: []string{},
			Nodes: []checkin.Node{{ID: answer.ID + "-node-1", Name: "simulated", Hostname: "simulated", IPv4CIDRAddress: address + "/15",
				IPv4GatewayAddress: "198.18.0.1", Addresses: []checkin.NodeAddress{{Type: checkin.Primary, IPAddress: address}}}}}}, nil
}

// enrolTimes is the maximum number of enrolment attempts of a simulated service point.
const enrolTimes = 4

// connectionsOfAddress is the number of connections per source address on loopback. It is limited by the number of ports.
const connectionsOfAddress = 20_000

// connect distributes the connections to a manager on loopback across several source addresses.
func (c *Crowd) connect(number int, m *manager) *manager {
	transport, ok := m.http.Transport.(*http.Transport)
	if ok && c.Dial != nil {
		transport.DialContext = c.Dial
		return m
	}
	if !ok || c.Size <= connectionsOfAddress {
		return m
	}
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(1+number/connectionsOfAddress))}}
	transport.DialContext = dialer.DialContext
	return m
}

// checkIn sends the check-ins of a service point until ctx ends.
func (c *Crowd) checkIn(ctx context.Context, number int, p *simulated) {
	defer p.manager.http.CloseIdleConnections()
	var l latest
	b, spread := backoff{}, time.Duration(0)
	for interval := checkin.Interval; ctx.Err() == nil; {
		text, err := json.Marshal(p.report)
		if err != nil { // all types of a report can be encoded
			panic(err)
		}
		if digest := digestOf(text); digest != l.digest {
			l = latest{digest: digest, sequence: l.sequence + 1}
		}
		request := checkin.Request{Desired: p.desired.Generation, Sequence: l.sequence, Digest: l.digest, WaitSeconds: int(interval.Seconds()),
			Process: &p.process}
		if !l.kept {
			request.Report, request.WaitSeconds = &p.report, 0
		}
		began := time.Now()
		var answer checkin.Answer
		c.Held.Add(1)
		err = p.manager.post(ctx, checkin.CheckInPath, time.Duration(request.WaitSeconds)*time.Second, request, &answer)
		c.Held.Add(-1)
		if err != nil {
			if ctx.Err() == nil {
				c.handleFailure(ctx, err, &b, spread)
			}
			continue
		}
		c.Answered.Add(1)
		b, l.kept = backoff{}, !answer.SendReport
		interval = time.Duration(max(1, answer.IntervalSeconds)) * time.Second
		spread = time.Duration(answer.SpreadMillis) * time.Millisecond
		if answer.State != nil && answer.State.Generation != p.desired.Generation {
			c.mu.Lock()
			if c.changed == nil {
				c.changed = map[int]time.Time{}
			}
			c.changed[number] = time.Now()
			c.mu.Unlock()
			p.applyDesired(*answer.State)
			if spread > ackShare {
				sleep(ctx, rand.N(spread/ackShare)) //nolint:gosec // jitter needs no secrecy
			}
			continue
		}
		if u := p.report.Update; u != nil && l.kept && !c.stalls(number) { // the manager has the report
			p.report.Version, p.report.Update = u.Version, nil
			continue
		}
		if request.Report != nil && l.kept {
			continue
		}
		sleep(ctx, minPause-time.Since(began))
	}
}

func (c *Crowd) stalls(number int) bool { return c.Stalled != nil && c.Stalled(number) }

// handleFailure handles a failed check-in as an agent does: with a random delay and backoff.
func (c *Crowd) handleFailure(ctx context.Context, err error, b *backoff, spread time.Duration) {
	if c.Failed.Add(1) == 1 {
		c.Log.Warn("check-in failed", "error", err)
	}
	if b.wait == 0 && spread > 0 {
		sleep(ctx, rand.N(spread)) //nolint:gosec // jitter needs no secrecy
	}
	b.pause(ctx)
}

// applyDesired applies another desired state.
func (p *simulated) applyDesired(d checkin.Desired) {
	p.desired = d
	p.report.Applied, p.report.Applications, p.report.Update = d.Generation, nil, nil
	for _, a := range d.Applications {
		p.report.Applications = append(p.report.Applications, checkin.Application{ID: a.ID, Name: a.Name, Version: a.Version,
			Status: checkin.Healthy, ErrorConditions: []string{}})
	}
	if u := d.Update; u != nil && u.Version != p.report.Version {
		p.report.Update = &checkin.UpdateReport{Update: *u, Status: checkin.UpdateRunning}
	}
}
