// Package tftp is the application tftp-service: a read-only server for a tree of files over TFTP (RFC 1350, with the options of RFC 2347,
// 2348, 2349 and 7440) and HTTP. It serves no files before the service point sends some. It depends on neither the manager nor a folder
// of files: a name in a request is looked up in a table, so no name can point outside the tree.
package tftp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"portolan/internal/base/problem"
	"portolan/internal/servicepoint/application"
	"portolan/internal/wire/checkin"
)

// Configuration is the configuration of the application. Files are not part of it: they are the content, which deployments change.
type Configuration struct {
	// Listen are the addresses that serve files over TFTP, HTTP those that serve them over HTTP.
	Listen []Listener `json:"listen"`
	HTTP   []Listener `json:"http,omitempty"`
	// MaxTransfers is the maximum number of transfers at a time over TFTP, 1 to 10,000; 0 means 500. A client may have a quarter of them.
	MaxTransfers int `json:"maxTransfers,omitempty"`
}

// Listener is an address of the machine and a port, 1 to 65535; 0 means 69 for TFTP and 80 for HTTP.
type Listener struct {
	Address string `json:"address"`
	Port    int    `json:"port,omitempty"`
}

// Limits and defaults of a configuration.
const (
	maxListeners        = 64
	defaultPort         = 69
	defaultHTTPPort     = 80
	defaultMaxTransfers = 500
	maxMaxTransfers     = 10_000
)

// Kind returns the application.
func Kind() application.Kind {
	return application.Kind{Name: checkin.FileServer, Program: checkin.Program{Version: "1.0.0", ServesContent: true,
		Sample: Configuration{}, Default: defaultFor,
		Provides: func(string) []checkin.Capability { return []checkin.Capability{checkin.ServesFiles} },
		Check:    func(text json.RawMessage) error { _, err := read(text); return err },
		Claims: func(text json.RawMessage) (claims []string) {
			c, err := read(text)
			if err != nil {
				return nil
			}
			for _, l := range slices.Concat(c.Listen, c.HTTP) {
				claims = append(claims, l.addrPort().String())
			}
			return claims
		}},
		New: func(log *slog.Logger) application.Application { return newServer(log) }}
}

// defaultFor returns the default configuration: the server answers at the first free address.
func defaultFor(h checkin.Host) any {
	c := Configuration{Listen: []Listener{}}
	for _, address := range h.Free[:min(1, len(h.Free))] {
		c.Listen = append(c.Listen, Listener{Address: address.String()})
	}
	return c
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
	if len(c.Listen) == 0 || len(c.Listen)+len(c.HTTP) > maxListeners {
		return c, problem.Invalid("configuration.listen", "needs 1 to %d listeners, together with those of http", maxListeners)
	}
	if c.MaxTransfers == 0 {
		c.MaxTransfers = defaultMaxTransfers
	}
	if c.MaxTransfers < 1 || c.MaxTransfers > maxMaxTransfers {
		return c, problem.Invalid("configuration.maxTransfers", "must be 1 to %d", maxMaxTransfers)
	}
	known := map[netip.AddrPort]bool{}
	for _, part := range []struct {
		field    string
		all      []Listener
		standard int
	}{{"listen", c.Listen, defaultPort}, {"http", c.HTTP, defaultHTTPPort}} {
		for i := range part.all {
			l := &part.all[i]
			if l.Port == 0 {
				l.Port = part.standard
			}
			at := fmt.Sprintf("configuration.%s[%d]", part.field, i)
			address, err := netip.ParseAddr(l.Address)
			switch {
			case err != nil || address.Zone() != "" || address.Is4In6():
				return c, problem.Invalid(at+".address", "%q is not an address", l.Address)
			case address.IsUnspecified():
				return c, problem.Invalid(at+".address", "must be an address of the machine: files are sent from where they were requested")
			case l.Port < 0 || l.Port > 65535:
				return c, problem.Invalid(at+".port", "must be 1 to 65535")
			case known[l.addrPort()]:
				return c, problem.Invalid(at, "occurs twice")
			}
			known[l.addrPort()] = true
		}
	}
	return c, nil
}

var _ application.Engine = (*server)(nil)

// server is the running application.
type server struct {
	log     *slog.Logger
	started time.Time
	tree    atomic.Pointer[tree]
	counts  counts
	stop    context.CancelFunc
	checks  sync.WaitGroup
	// checkNow contains a token when the listeners must be checked immediately.
	checkNow chan struct{}
	// configuring is held while a configuration is applied, contentLock while content is applied.
	configuring, contentLock sync.Mutex

	mu sync.Mutex
	// The following fields are guarded by mu. active are the transfers by the address and port of the client, perClient counts them by the
	// address.
	listeners    map[netip.AddrPort]listener
	maxTransfers int
	active       map[netip.AddrPort]bool
	perClient    map[netip.Addr]int
	failures     []string
	hasChecked   bool
}

// listener serves files at one address.
type listener interface {
	// run begins to answer. check sends a request to the listener. close ends it and its transfers.
	run()
	check(ctx context.Context) error
	close()
	// protocol is TFTP or HTTP.
	protocol() string
}

func newServer(log *slog.Logger) *server {
	ctx, stop := context.WithCancel(context.Background())
	s := &server{log: log, started: time.Now(), stop: stop, checkNow: make(chan struct{}, 1), listeners: map[netip.AddrPort]listener{},
		active: map[netip.AddrPort]bool{}, perClient: map[netip.Addr]int{}}
	s.tree.Store(&tree{})
	s.checks.Go(func() { s.watch(ctx) })
	return s
}

// Configure replaces the listeners. Listeners that stay the same continue their transfers. After an error the previous ones remain in use.
func (s *server) Configure(text json.RawMessage) error {
	c, err := read(text)
	if err != nil {
		return err
	}
	s.configuring.Lock()
	defer s.configuring.Unlock()
	s.mu.Lock()
	before := s.listeners
	s.mu.Unlock()
	after, opened := map[netip.AddrPort]listener{}, []listener{}
	open := func(l Listener, protocol string, listen func(netip.AddrPort) (listener, error)) {
		at := l.addrPort()
		if there := before[at]; there != nil && there.protocol() == protocol {
			after[at] = there
			return
		}
		one, failed := listen(at)
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("listen for %s on %s: %w", protocol, at, failed))
			return
		}
		after[at], opened = one, append(opened, one)
	}
	for _, l := range c.Listen {
		open(l, protocolTFTP, s.listenTFTP)
	}
	for _, l := range c.HTTP {
		open(l, protocolHTTP, func(at netip.AddrPort) (listener, error) { return s.listenHTTP(at, len(c.HTTP)) })
	}
	if err != nil {
		for _, one := range opened {
			one.close()
		}
		return err
	}
	s.mu.Lock()
	s.listeners, s.maxTransfers, s.hasChecked = after, c.MaxTransfers, false
	s.mu.Unlock()
	for _, one := range opened {
		one.run()
	}
	for at, one := range before {
		if after[at] != one {
			one.close()
		}
	}
	select {
	case s.checkNow <- struct{}{}:
	default: // a check is pending already
	}
	return nil
}

// Content returns the revision of the files; empty if there are none.
func (s *server) Content() string { return s.tree.Load().revision }

// ApplyContent applies content streams. Transfers under way end with the files that they began with.
func (s *server) ApplyContent(in io.Reader) error {
	s.contentLock.Lock()
	defer s.contentLock.Unlock()
	before := s.tree.Load()
	after, err := load(in, before, newSpace())
	if after != before {
		s.tree.Store(after)
		s.log.Info("content applied", "revision", after.revision, "files", len(after.files), "bytes", after.bytes)
	}
	return err
}

// Engine returns an empty string, because the application answers itself.
func (s *server) Engine() string { return "" }

// Timing of the listener checks.
const (
	checkInterval = 5 * time.Second
	checkTimeout  = 2 * time.Second
)

// watch checks the listeners at intervals until ctx ends.
func (s *server) watch(ctx context.Context) {
	tick := time.NewTicker(checkInterval)
	defer tick.Stop()
	for {
		s.checkListeners(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-s.checkNow:
		}
	}
}

// checkListeners sends a request to each listener.
func (s *server) checkListeners(ctx context.Context) {
	s.mu.Lock()
	all := make(map[netip.AddrPort]listener, len(s.listeners))
	addresses := []netip.AddrPort{}
	for at, one := range s.listeners {
		all[at], addresses = one, append(addresses, at)
	}
	s.mu.Unlock()
	slices.SortFunc(addresses, netip.AddrPort.Compare)
	failures := []string{}
	for _, at := range addresses {
		limited, cancel := context.WithTimeout(ctx, checkTimeout)
		if err := all[at].check(limited); err != nil {
			failures = append(failures, fmt.Sprintf("it does not answer over %s at %s: %v", all[at].protocol(), at, err))
		}
		cancel()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() == nil {
		s.failures, s.hasChecked = failures, len(all) > 0
	}
}

// Health returns the error conditions of the last listener check.
func (s *server) Health() (conditions []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.hasChecked {
		return []string{"service is not healthy: it has not answered yet"}
	}
	for _, text := range s.failures {
		conditions = append(conditions, "service is not healthy: "+text)
	}
	return conditions
}

// Close stops the server.
func (s *server) Close() error {
	s.stop()
	s.checks.Wait()
	s.configuring.Lock()
	defer s.configuring.Unlock()
	s.mu.Lock()
	all := s.listeners
	s.listeners = map[netip.AddrPort]listener{}
	s.mu.Unlock()
	for _, one := range all {
		one.close()
	}
	return nil
}
