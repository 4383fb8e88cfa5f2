// Package nameserver is the application dns-authoritative-service: an authoritative name server that answers from zones in memory. It
// serves no zones before the service point sends some. It depends on neither files nor the manager.
package nameserver

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"log/slog"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	dns "portolan/internal/base/dnsmsg"
	"portolan/internal/base/fairlisten"
	"portolan/internal/base/problem"
	"portolan/internal/servicepoint/application"
	"portolan/internal/wire/checkin"
)

// errBroken restarts the process, because the served data may be inconsistent.
var errBroken = application.ErrBroken

// Configuration is the configuration of the application. Zones are not part of it: they are the content, which deployments change.
type Configuration struct {
	// Listen are the listeners: over UDP and TCP, over TLS, or over HTTPS.
	Listen []Listener `json:"listen" about:"The addresses at which the server answers."`
	// TLS contains the certificate of TLS and HTTPS listeners; nil if there are none.
	TLS *application.Credentials `json:"tls,omitempty" about:"The certificate and its key (PEM), for TLS and HTTPS."`
	// Identity is the name server identifier in answers (RFC 5001); empty disables it.
	Identity string `json:"identity,omitempty" about:"The server identifier in answers (RFC 5001). Empty disables it."`
	// RateLimit limits answers over UDP; nil means no limit.
	RateLimit *RateLimit `json:"rateLimit,omitempty" about:"Limits similar answers over UDP. Empty: no limit."`
}

// Listener is an address at which the name server answers.
type Listener struct {
	// Address is an address of the machine.
	Address string `json:"address" about:"An address of the machine."`
	// Port is 1 to 65535; 0 means 53, with TLS 853, with HTTPS 443.
	Port int `json:"port,omitempty" about:"Empty: 53, with TLS 853, with HTTPS 443."`
	// TLS enables DNS over TLS (RFC 7858). HTTPS enables DNS over HTTPS at the path /dns-query (RFC 8484). Each replaces plain DNS.
	TLS   bool `json:"tls,omitempty"`
	HTTPS bool `json:"https,omitempty"`
}

// transport is the transport of a listener.
type transport int

const (
	plainTransport transport = iota
	tlsTransport
	httpsTransport
)

// ports are the default ports of the transports.
var ports = [...]int{plainTransport: 53, tlsTransport: 853, httpsTransport: 443}

// transport returns the transport of the listener.
func (l Listener) transport() transport {
	switch {
	case l.HTTPS:
		return httpsTransport
	case l.TLS:
		return tlsTransport
	}
	return plainTransport
}

// Limits of a configuration.
const (
	maxListeners = 64
	maxIdentity  = 64
)

// provides returns the capabilities of an engine. BIND also resolves names, but accepts no dynamic updates for a manager.
func provides(engine string) []checkin.Capability {
	if engine == "" {
		return []checkin.Capability{checkin.AnswersZones, checkin.AcceptsUpdates}
	}
	return []checkin.Capability{checkin.AnswersZones, checkin.ResolvesNames}
}

// Kind returns the application.
func Kind() application.Kind {
	return application.Kind{Name: checkin.Authority, Program: checkin.Program{Version: "1.1.0", ServesContent: true, Fill: application.FillKey,
		Provides: provides, Sample: Configuration{}, Default: defaultFor,
		Hide:  func(text json.RawMessage) json.RawMessage { return application.HideKey(text, &Configuration{}) },
		Check: func(text json.RawMessage) error { _, err := read(text); return err },
		Claims: func(text json.RawMessage) (claims []string) {
			c, err := read(text)
			if err != nil {
				return nil
			}
			for _, l := range c.Listen {
				claims = append(claims, l.addrPort().String())
			}
			return claims
		}},
		New: func(log *slog.Logger) application.Application { return newNameServer(log) }}
}

// defaultFor returns the default configuration: the server answers at the first free address.
func defaultFor(h checkin.Host) any {
	c := Configuration{Listen: []Listener{}}
	for _, address := range h.Free[:min(1, len(h.Free))] {
		c.Listen = append(c.Listen, Listener{Address: address.String()})
	}
	return c
}

func newNameServer(log *slog.Logger) *nameServer {
	a := &nameServer{log: log, started: time.Now(), listeners: map[netip.AddrPort]*listener{}, checkNow: make(chan struct{}, 1)}
	a.replays.latestForgotten = uint64(a.started.Unix()) //nolint:gosec // after 1970
	a.served.Store(&served{})
	another := make(chan struct{})
	a.revisionChanged.Store(&another)
	newCookies(&a.cookies)
	a.signatures.seed = maphash.MakeSeed()
	a.ahead.wake, a.ahead.pending = make(chan struct{}, 1), map[zoneKey]*namesToSign{}
	ctx, stop := context.WithCancel(context.Background())
	a.stop = stop
	a.notifier = newNotifier(ctx, log, a.sourceAddress)
	a.checks.Go(func() { a.watch(ctx) })
	a.checks.Go(func() { a.signAhead(ctx) })
	return a
}

// addrPort returns the address and port.
func (l Listener) addrPort() netip.AddrPort {
	address, _ := netip.ParseAddr(l.Address)           // checked before
	return netip.AddrPortFrom(address, uint16(l.Port)) //nolint:gosec // checked before
}

// read decodes and checks a configuration and fills in the defaults.
func read(text json.RawMessage) (c Configuration, err error) {
	if err := application.Decode(text, &c); err != nil {
		return c, err
	}
	bad := func(field, format string, args ...any) error {
		return problem.Invalid("configuration."+field, format, args...)
	}
	if len(c.Listen) == 0 || len(c.Listen) > maxListeners {
		return c, bad("listen", "must have 1 to %d listeners", maxListeners)
	}
	if len(c.Identity) > maxIdentity {
		return c, bad("identity", "must be at most %d bytes long", maxIdentity)
	}
	if err := c.RateLimit.validate(bad); err != nil {
		return c, err
	}
	for i, l := range c.Listen {
		if c.Listen[i].Port == 0 {
			c.Listen[i].Port = ports[l.transport()]
		}
		address, err := netip.ParseAddr(l.Address)
		switch {
		case err != nil || address.Zone() != "" || address.Is4In6():
			return c, bad(fmt.Sprintf("listen[%d].address", i), "must be an address, not %q", l.Address)
		case address.IsUnspecified():
			return c, bad(fmt.Sprintf("listen[%d].address", i), "must be a specific address of the machine, because answers are sent from it")
		case l.TLS && l.HTTPS:
			return c, bad(fmt.Sprintf("listen[%d].https", i), "cannot be combined with tls: https already uses TLS")
		case l.transport() != plainTransport && c.TLS == nil:
			return c, bad(fmt.Sprintf("listen[%d].tls", i), "requires a certificate and its key in configuration.tls")
		case l.Port < 0 || l.Port > 65535:
			return c, bad(fmt.Sprintf("listen[%d].port", i), "must be 1 to 65535")
		case slices.ContainsFunc(c.Listen[:i], func(o Listener) bool { return o.addrPort() == c.Listen[i].addrPort() }):
			return c, bad(fmt.Sprintf("listen[%d]", i), "is there twice")
		}
	}
	return c, c.TLS.Wrong(slices.ContainsFunc(c.Listen, func(l Listener) bool { return l.transport() != plainTransport }), bad)
}

// The engines of the name server: its own code, and BIND.
var _, _ application.Engine = (*nameServer)(nil), (*bind)(nil)

// nameServer is the running application.
type nameServer struct {
	log     *slog.Logger
	stop    context.CancelFunc
	checks  sync.WaitGroup
	started time.Time
	served  atomic.Pointer[served]
	// listenerCount is the number of configured listeners. It is guarded by configuring.
	listenerCount int
	// identity is Configuration.Identity.
	identity atomic.Pointer[string]
	// certificate is the certificate of TLS listeners, expiry its expiry time in Unix milliseconds.
	certificate atomic.Pointer[tls.Certificate]
	expiry      atomic.Int64
	cookies     cookies
	// signatures caches the signatures of signed zones.
	signatures signatures
	// ahead creates signatures before they are needed.
	ahead    ahead
	notifier *notifier
	limiter  atomic.Pointer[limiter]
	counts   counts
	updates  updates
	replays  replays
	// lastRefusal is the time of the last logged refusal in Unix seconds.
	lastRefusal atomic.Int64
	// revisionChanged is closed and replaced when another revision is served.
	revisionChanged atomic.Pointer[chan struct{}]
	// contentLock is held while content is applied, configuring while a configuration is applied.
	contentLock, configuring sync.Mutex
	// checkNow contains a token when the listeners must be checked immediately.
	checkNow chan struct{}

	mu sync.Mutex
	// The following fields are guarded by mu. failures describes the listeners that failed the last check.
	listeners  map[netip.AddrPort]*listener
	failures   []string
	hasChecked bool
}

// counts are the numbers of answers by response code, and of ignored packets.
type counts struct {
	codes   [16]atomic.Int64
	ignored atomic.Int64
	// limited counts the answers that the rate limit truncated or dropped.
	limited atomic.Int64
	// receiveFailures counts failures of sockets.
	receiveFailures atomic.Int64
}

// Configure replaces the listeners and settings. After an error the previous ones remain in use.
func (a *nameServer) Configure(text json.RawMessage) error {
	c, err := read(text)
	if err != nil {
		return err
	}
	var shown *tls.Certificate
	if c.TLS != nil {
		pair, err := c.TLS.Pair()
		if err != nil {
			return err
		}
		shown = &pair
	}
	a.configuring.Lock()
	defer a.configuring.Unlock()
	a.mu.Lock()
	before := maps.Clone(a.listeners)
	a.mu.Unlock()
	after, opened, err := a.reopen(before, c.Listen)
	if err != nil {
		return err
	}
	if shown != nil {
		a.certificate.Store(shown)
	}
	a.expiry.Store(c.TLS.Expiration())
	for _, l := range opened {
		l.run()
	}
	a.identity.Store(&c.Identity)
	if before := a.limiter.Load(); before == nil || c.RateLimit == nil || !reflect.DeepEqual(before.RateLimit, *c.RateLimit) {
		a.limiter.Store(newLimiter(c.RateLimit))
	}
	a.mu.Lock()
	a.listeners, a.hasChecked = after, false
	a.mu.Unlock()
	for at, l := range before {
		if after[at] != l {
			l.close() // it may wait for answers in progress
		}
	}
	select {
	case a.checkNow <- struct{}{}:
	default: // a check is pending already
	}
	return nil
}

// reopen returns the listeners of a configuration: those that exist unchanged, and new ones in opened. A listener whose transport changes
// is closed first. If another listener then cannot be opened, the closed one is opened again.
func (a *nameServer) reopen(before map[netip.AddrPort]*listener, wanted []Listener) (after map[netip.AddrPort]*listener, opened []*listener,
	err error,
) {
	a.listenerCount = len(wanted)
	for _, one := range before {
		one.mu.Lock()
		one.maxConnections = fairlisten.ShareLimit(a.listenerCount, maxConnections)
		one.maxPerNetwork = one.maxConnections / 4
		one.mu.Unlock()
	}
	after = map[netip.AddrPort]*listener{}
	var closed []*listener
	open := func(at netip.AddrPort, by transport) error {
		one, err := a.listen(at, by)
		if err != nil {
			return fmt.Errorf("listen on %s: %w", at, err)
		}
		after[at], opened = one, append(opened, one)
		return nil
	}
	var others []Listener
	for _, l := range wanted {
		switch there := before[l.addrPort()]; {
		case there == nil:
			err = errors.Join(err, open(l.addrPort(), l.transport()))
		case there.transport == l.transport():
			after[l.addrPort()] = there
		default:
			others = append(others, l)
		}
	}
	for _, l := range others {
		if err == nil {
			closed = append(closed, before[l.addrPort()])
			before[l.addrPort()].close()
			err = open(l.addrPort(), l.transport())
		}
	}
	if err == nil {
		return after, opened, nil
	}
	for _, one := range opened {
		one.close()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, l := range closed {
		again, failed := a.listen(l.address, l.transport)
		if failed != nil {
			delete(a.listeners, l.address)
			err = fmt.Errorf("%w: %w; and listening on %s as before: %w", application.ErrBroken, err, l.address, failed)
			continue
		}
		a.listeners[l.address] = again
		again.run()
	}
	return nil, nil, err
}

// sourceAddress returns a listen address of the same family as target; the zero value if there is none.
func (a *nameServer) sourceAddress(target netip.Addr) netip.Addr {
	a.mu.Lock()
	defer a.mu.Unlock()
	var found netip.Addr
	for at := range a.listeners {
		if at.Addr().Is4() == target.Unmap().Is4() && (!found.IsValid() || at.Addr().Less(found)) {
			found = at.Addr()
		}
	}
	return found
}

// Content returns the revision of the content in use; empty if there is none.
func (a *nameServer) Content() string { return a.served.Load().revision }

// ApplyContent applies content streams.
func (a *nameServer) ApplyContent(in io.Reader) error {
	changed, err := a.applyContent(in)
	a.notifier.notifyChanged(changed)
	if err != nil {
		return err
	}
	a.notifyRevision()
	s := a.served.Load()
	a.log.Info("content applied", "revision", s.revision, "zones", len(s.zones))
	return nil
}

// Timing of the listener checks.
const (
	checkInterval = time.Second
	checkTimeout  = 2 * time.Second
)

// watch checks the listeners at intervals until ctx ends.
func (a *nameServer) watch(ctx context.Context) {
	tick := time.NewTicker(checkInterval)
	defer tick.Stop()
	for {
		a.mu.Lock()
		var all []*listener
		for _, one := range a.listeners {
			all = append(all, one)
		}
		a.mu.Unlock()
		slices.SortFunc(all, func(a, b *listener) int { return a.address.Compare(b.address) })
		silent := []string{}
		for _, one := range all {
			if err := one.check(ctx); err != nil {
				silent = append(silent, fmt.Sprintf("it does not answer at %s: %v", one.address, err))
			}
		}
		if until := a.expiry.Load(); until > 0 && time.Now().UnixMilli() > until {
			silent = append(silent, "its certificate has expired")
		}
		if ctx.Err() == nil {
			a.mu.Lock()
			a.failures, a.hasChecked = silent, len(all) > 0
			a.mu.Unlock()
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-a.checkNow:
		}
	}
}

// Health returns the error conditions of the last listener check.
func (a *nameServer) Health() (conditions []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.hasChecked {
		return []string{"service is not healthy: it has not answered yet"}
	}
	for _, text := range a.failures {
		conditions = append(conditions, "service is not healthy: "+text)
	}
	return conditions
}

// Diagnostics are the diagnostics of the application.
type Diagnostics struct {
	// Engine is BIND if BIND answers in place of this name server; otherwise it is empty.
	Engine string `json:"engine,omitempty"`
	// Revision is the revision of the content in use; empty if there is none.
	Revision string `json:"revision"`
	Zones    int    `json:"zones"`
	Records  int    `json:"records"`
	// Signed is the number of signed zones. Signatures counts the created signatures. Unsigned is the number of zones with names for which
	// signatures are being created ahead of questions.
	Signed     int   `json:"signed"`
	Unsigned   int   `json:"unsigned"`
	Signatures int64 `json:"signatures"`
	// ID is the start time in Unix milliseconds.
	ID int64 `json:"id"`
	// Answers counts the answers since the start by response code. Left counts packets that were not questions.
	Answers map[string]int64 `json:"answers"`
	Left    int64            `json:"left"`
	// Limited counts the answers that the rate limit truncated or dropped.
	Limited int64 `json:"limited"`
	// ReceiveFailures counts failures of sockets, which are read again.
	ReceiveFailures int64 `json:"receiveFailures"`
	// CertificateExpiration is the expiry time of the certificate in Unix milliseconds; 0 without one.
	CertificateExpiration int64 `json:"certificateExpiration,omitempty"`
}

// Diagnostics returns the size of the content and the numbers of answers.
func (a *nameServer) Diagnostics() any {
	s := a.served.Load()
	d := Diagnostics{Revision: s.revision, Zones: len(s.zones), ID: a.started.UnixMilli(), Answers: map[string]int64{},
		Left: a.counts.ignored.Load(), Limited: a.counts.limited.Load(), CertificateExpiration: a.expiry.Load(),
		ReceiveFailures: a.counts.receiveFailures.Load(), Signatures: a.signatures.created.Load(), Unsigned: a.ahead.zones()}
	for _, z := range s.zones {
		z.mu.RLock()
		if d.Records += z.records; z.chain != nil {
			d.Signed++
		}
		z.mu.RUnlock()
	}
	for code := range a.counts.codes {
		if n := a.counts.codes[code].Load(); n > 0 {
			d.Answers[dns.RcodeToString[code]] = n
		}
	}
	return d
}

// Close stops the name server.
func (a *nameServer) Close() error {
	a.stop()
	a.checks.Wait()
	a.notifier.all.Wait()
	a.updates.close()
	a.configuring.Lock()
	defer a.configuring.Unlock()
	a.mu.Lock()
	all := a.listeners
	a.listeners = map[netip.AddrPort]*listener{}
	a.mu.Unlock()
	for _, l := range all {
		l.close()
	}
	return nil
}

// Engine returns an empty string, because the name server answers itself.
func (a *nameServer) Engine() string { return "" }
