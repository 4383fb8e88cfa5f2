// Package dhcp is the application dhcp-service: a server of DHCPv4 and DHCPv6. It decides by portolan/internal/wire/dhcpdata, keeps its
// leases in a journal on the disk, and reports them to the manager. It serves no networks before the service point sends content.
package dhcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"portolan/internal/base/dirlock"
	"portolan/internal/base/ping"
	"portolan/internal/servicepoint/application"
)

// service is the application: an engine with its sockets.
type service struct {
	log *slog.Logger
	// engine is nil if the leases could not be opened; failed is the reason.
	engine  *engine
	failed  error
	damaged error
	unlock  func() error
	reports *reports
	metrics *metricsEndpoint
	limiter *limiter

	mu sync.Mutex
	// The following fields are guarded by mu: the configuration, the listeners by address, the links by interface name, and their errors.
	configuration Configuration
	configured    bool
	listeners     map[string]*listener
	listeners6    map[string]*listener6
	links         map[string]*link
	linkErrors    map[string]string
	stop          chan struct{}
	watching      sync.WaitGroup
	closing       sync.Once

	// interfaces and interfaces6 are the addresses of IPv4 and IPv6.
	interfaces, interfaces6 interfaces

	// linkLock guards the following fields, which the receivers read: the links by the index of the interface, and the listener at the port
	// of DHCP.
	linkLock     sync.RWMutex
	linksByIndex map[int]*link
	primary      *listener
	// times are the sources of time at the start; nil stands for those of the system.
	times *times
}

var (
	_ application.ContentServer = (*service)(nil)
	_ application.RecordSource  = (*service)(nil)
)

// watchInterval is the time between two examinations of the interfaces.
const watchInterval = 2 * time.Second

// newService opens the leases in a folder.
func newService(dir string, log *slog.Logger) *service { return newServiceAt(dir, log, nil) }

// newServiceAt is newService with other sources of time; nil stands for those of the system.
func newServiceAt(dir string, log *slog.Logger, t *times) *service {
	s := &service{log: log, times: t, limiter: newLimiter(), listeners: map[string]*listener{}, listeners6: map[string]*listener6{},
		links:      map[string]*link{},
		linkErrors: map[string]string{}, interfaces: interfaces{of: func(index int) []netip.Prefix { return prefixesOf(index, true) }},
		interfaces6: interfaces{of: func(index int) []netip.Prefix { return prefixesOf(index, false) }},
		stop:        make(chan struct{})}
	s.failed = s.open(dir)
	if s.failed != nil {
		log.Error("open leases failed", "error", s.failed)
		return s
	}
	s.watching.Go(s.watch)
	return s
}

// errFolder reports an application without a folder for its leases.
var errFolder = errors.New("the service point provides no folder for the leases")

func (s *service) open(dir string) error {
	if dir == "" {
		return errFolder
	}
	folder := filepath.Join(dir, "leases")
	if err := os.MkdirAll(folder, 0o700); err != nil { //nolint:gosec // the folder that the service point provides
		return err
	}
	lock, err := dirlock.Acquire(folder, "the leases")
	if err != nil {
		return err
	}
	s.unlock = lock.Close
	id, err := journalID(folder)
	if err != nil {
		return errors.Join(err, s.unlock())
	}
	started := time.Now()
	s.engine, s.damaged, err = newEngine(folder, s.log, journalOptions{times: s.times}, s.ping)
	if err != nil {
		return errors.Join(err, s.unlock())
	}
	if s.damaged != nil {
		s.log.Error("lease journal damaged", "error", s.damaged)
	}
	s.engine.id = id
	s.log.Info("leases read", "addresses", s.engine.table.slots.used, "millis", time.Since(started).Milliseconds())
	s.reports = newReports(s.engine, id)
	return nil
}

// neighborTime is the time that a probe waits for an answer of ARP after the address has answered an echo request.
const neighborTime = 200 * time.Millisecond

// ping reports whether an address answers an echo request or, on a link of the server, a request of ARP. hardware is the hardware address
// of the machine that answers, if it is on a link of the server. If the system forbids it, no address answers.
func (s *service) ping(a netip.Addr, seconds uint32) (hardware net.HardwareAddr, answers bool) {
	limit := time.Duration(seconds) * time.Second
	if index := s.linkOf(a); index != 0 {
		asked := make(chan net.HardwareAddr, 1)
		go func() {
			hardware, err := askARP(index, a, limit)
			if err != nil {
				s.engine.counters.refuse(0, "ping-failed")
				s.log.Debug("ARP before an offer failed", "address", a, "error", err)
			}
			asked <- hardware
		}()
		wait := limit
		if answers = s.echo(a, limit); answers {
			wait = min(limit, neighborTime) // for the hardware address alone
		}
		select {
		case hardware = <-asked:
		case <-time.After(wait):
		}
		return hardware, answers || hardware != nil
	}
	return nil, s.echo(a, limit)
}

// linkOf returns the index of the link that an address is on; 0 if it is behind a router, or clients on the link are not served.
func (s *service) linkOf(a netip.Addr) int {
	s.linkLock.RLock()
	indexes := slices.Collect(maps.Keys(s.linksByIndex))
	s.linkLock.RUnlock()
	for _, index := range indexes {
		if slices.ContainsFunc(s.interfaces.prefixes(index), func(p netip.Prefix) bool { return p.Contains(a) }) {
			return index
		}
	}
	return 0
}

// echo reports whether an address answers an echo request.
func (s *service) echo(a netip.Addr, limit time.Duration) bool {
	ctx, cancel := context.WithTimeout(context.Background(), limit+time.Second)
	defer cancel()
	answers, err := ping.Answers(ctx, a, limit)
	if err != nil {
		s.engine.counters.refuse(0, "ping-failed")
		s.log.Debug("ping before an offer failed", "address", a, "error", err)
	}
	return answers
}

// Configure implements application.Application.
func (s *service) Configure(text json.RawMessage) error {
	c, err := read(text)
	if err != nil {
		return err
	}
	if s.engine == nil {
		return s.failed
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	opened := map[string]*listener{}
	opened6, err := s.open6(c)
	if err != nil {
		return err
	}
	for _, address := range c.Listen {
		l := s.listeners[address]
		if l == nil {
			if l, err = listen(address, s); err != nil {
				for _, one := range opened {
					one.close()
				}
				closeAll6(opened6)
				return err
			}
			opened[address] = l
		}
	}
	metrics, err := s.metricsAt(c.Metrics)
	if err != nil {
		for _, one := range opened {
			one.close()
		}
		closeAll6(opened6)
		return err
	}
	if s.metrics != metrics {
		err = s.metrics.close()
		s.metrics = metrics
	}
	wanted := map[string]bool{}
	for _, address := range c.Listen {
		wanted[address] = true
		if l := opened[address]; l != nil {
			s.listeners[address] = l
			l.start()
		}
	}
	for address, l := range s.listeners {
		if !wanted[address] {
			l.close()
			delete(s.listeners, address)
		}
	}
	s.choosePrimary()
	s.engine.setPairAddress(c.ListenPair)
	s.replace6(c, opened6)
	s.configuration, s.configured = c, true
	s.limiter.set(c.Rate)
	s.examineLinks()
	return err
}

// choosePrimary finds the listener at the port of DHCP. The caller holds mu.
func (s *service) choosePrimary() {
	s.linkLock.Lock()
	defer s.linkLock.Unlock()
	s.primary = nil
	for _, l := range s.listeners {
		if l.address.Port() == serverPort {
			s.primary = l
		}
	}
}

// Content implements application.ContentServer.
func (s *service) Content() string {
	if s.engine == nil {
		return ""
	}
	return s.engine.revision()
}

// ApplyContent implements application.ContentServer.
func (s *service) ApplyContent(streams io.Reader) error {
	if s.engine == nil {
		return s.failed
	}
	err := s.engine.takeContent(streams)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.configured {
		s.examineLinks()
	}
	return err
}

// Records implements application.RecordSource.
func (s *service) Records(ctx context.Context) []application.Record {
	if s.engine == nil {
		<-ctx.Done()
		return nil
	}
	return s.reports.next(ctx)
}

// Acknowledge implements application.RecordSource.
func (s *service) Acknowledge(number int64) {
	if s.engine == nil {
		return
	}
	if err := s.reports.kept(number); err != nil {
		s.log.Error("acknowledge lease records failed", "error", err)
	}
}

// Health implements application.Application.
func (s *service) Health() (conditions []string) {
	if s.engine == nil {
		return []string{fmt.Sprintf("leases are not available: %v", s.failed)}
	}
	if s.engine.full.Load() {
		conditions = append(conditions, "leases cannot be written to the disk: no client gets an address")
	}
	conditions = append(conditions, s.engine.pairConditions()...)
	conditions = append(conditions, s.engine.journalConditions()...)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.configured {
		return append(conditions, "no configuration yet")
	}
	for name, reason := range s.linkErrors {
		conditions = append(conditions, fmt.Sprintf("clients on %s are not served without a relay: %s", name, reason))
	}
	return conditions
}

// Close implements application.Application.
func (s *service) Close() error {
	var err error
	s.closing.Do(func() { err = s.closeAll() })
	return err
}

func (s *service) closeAll() error {
	if s.engine == nil {
		return nil
	}
	close(s.stop)
	s.watching.Wait()
	s.mu.Lock()
	for _, l := range s.listeners {
		l.close()
	}
	for _, l := range s.links {
		l.close()
	}
	closeAll6(s.listeners6)
	err := s.metrics.close()
	s.mu.Unlock()
	return errors.Join(err, s.reports.close(), s.engine.close(), s.unlock())
}

// watch opens and closes the sockets of interfaces that appear, change and vanish.
func (s *service) watch() {
	ticker := time.NewTicker(watchInterval)
	defer ticker.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-ticker.C:
			s.mu.Lock()
			if s.configured {
				s.examineLinks()
			}
			s.mu.Unlock()
		}
	}
}
