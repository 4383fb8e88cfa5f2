package nameserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"portolan/internal/base/dirlock"
	dns "portolan/internal/base/dnsmsg"
	"portolan/internal/base/problem"
	"portolan/internal/servicepoint/application"
)

// Bind describes a BIND name server (9.16 or later) that answers in place of this application. The application writes BIND's
// configuration and zone files.
type Bind struct {
	// Config is the path of BIND's configuration, such as /etc/bind/named.conf, which this application replaces. Zones is a directory for
	// zone files.
	Config, Zones string
	// Control is the address of BIND's control channel for rndc.
	Control netip.AddrPort
	// Options is a file with further statements for BIND's options block; empty means none.
	Options string
	// Overwrite permits the replacement of a configuration that Portolan did not write.
	Overwrite bool
}

// marker follows the comment mark at the start of files that Portolan wrote.
const marker = " Written by Portolan. Changes are lost: Portolan rewrites the file.\n"

// Timing of BIND: the timeout of its programs, the interval of status checks, and the time limit for loading zones.
const (
	bindProgramTime   = 30 * time.Second
	bindCheckInterval = 2 * time.Second
	bindServeTime     = 30 * time.Second
)

// BindKind returns the application dns-authoritative-service with BIND as its engine.
func BindKind(b Bind) application.Kind {
	kind := Kind()
	kind.Check = func(text json.RawMessage) error { _, err := readForBind(text); return err }
	kind.Claims = nil // BIND opens the listeners
	kind.New = func(log *slog.Logger) application.Application { return newBind(b, log) }
	return kind
}

// readForBind decodes and checks a configuration. It rejects TLS, which is not supported with BIND.
func readForBind(text json.RawMessage) (Configuration, error) {
	c, err := read(text)
	if err != nil {
		return c, err
	}
	for i, l := range c.Listen {
		if l.transport() != plainTransport {
			return c, problem.Invalid(fmt.Sprintf("configuration.listen[%d].tls", i), "listeners for TLS are not supported with --engine bind")
		}
	}
	return c, nil
}

// bind is the running application.
type bind struct {
	Bind
	log     *slog.Logger
	started time.Time
	stop    context.CancelFunc
	checks  sync.WaitGroup
	// zones receives the content, but answers no queries.
	zones *nameServer

	// updateLock is held while BIND is configured.
	updateLock sync.Mutex
	// The following fields are guarded by updateLock. configuration is nil before the first one. renewal is the time when signatures must
	// be renewed; zero if never.
	configuration *Configuration
	renewal       time.Time
	// lock is the lock of the directory; nil before it is acquired.
	lock io.Closer
	// isStale reports that BIND may not serve its last configuration and zones.
	isStale bool

	mu sync.Mutex
	// The following fields are guarded by mu. content is the revision that BIND serves. lastError is the error of the last attempt.
	content   string
	lastError error
}

func newBind(b Bind, log *slog.Logger) *bind {
	ctx, stop := context.WithCancel(context.Background())
	x := &bind{Bind: b, log: log, started: time.Now(), stop: stop, zones: &nameServer{log: log},
		lastError: errors.New("BIND has not received any content yet"), isStale: true}
	x.zones.served.Store(&served{})
	x.zones.signatures.seed = maphash.MakeSeed()
	x.checks.Go(func() { x.watch(ctx) })
	return x
}

// Configure writes another configuration for BIND. Failures are reported by Health and retried.
func (b *bind) Configure(text json.RawMessage) error {
	c, err := readForBind(text)
	if err != nil {
		return err
	}
	b.updateLock.Lock()
	defer b.updateLock.Unlock()
	b.configuration = &c
	b.update()
	return nil
}

// Content returns the revision that BIND serves.
func (b *bind) Content() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.content
}

// ApplyContent applies content streams. If BIND cannot be updated immediately, watch retries.
func (b *bind) ApplyContent(in io.Reader) error {
	if _, err := b.zones.applyContent(in); err != nil {
		return err
	}
	b.updateLock.Lock()
	defer b.updateLock.Unlock()
	b.update()
	return nil
}

// update updates BIND and records the result. The caller holds updateLock.
func (b *bind) update() {
	err := b.apply()
	b.isStale = err != nil || b.zones.served.Load().revision == "" // the files may be written but not loaded
	b.mu.Lock()
	defer b.mu.Unlock()
	if err != nil && (b.lastError == nil || b.lastError.Error() != err.Error()) {
		b.log.Error("BIND update failed", "reason", err)
	}
	if b.lastError = err; err == nil {
		b.lastError = b.zones.served.Load().checkSupport() // unsupported settings; the rest is served
		if now := b.zones.served.Load().revision; b.content != now {
			b.content = now
			b.log.Info("content applied", "revision", now)
		}
	}
}

// watch checks BIND at intervals until ctx ends. It retries failed updates and renews signatures.
func (b *bind) watch(ctx context.Context) {
	tick := time.NewTicker(bindCheckInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		b.updateLock.Lock()
		b.mu.Lock()
		well := b.content == b.zones.served.Load().revision && !b.isStale
		b.mu.Unlock()
		_, err := b.rndc("status")
		b.isStale = b.isStale || err != nil
		if b.configuration != nil && (!well || err != nil || !b.renewal.IsZero() && time.Now().After(b.renewal)) {
			b.update()
		}
		b.updateLock.Unlock()
	}
}

// apply writes BIND's configuration and changed zone files, and makes BIND load them.
func (b *bind) apply() error {
	if b.configuration == nil {
		return errors.New("it has no configuration yet")
	}
	s := b.zones.served.Load()
	if err := b.checkOwnership(); err != nil {
		return err
	}
	if s.revision == "" { // BIND keeps its previous zones
		return nil
	}
	if err := os.MkdirAll(b.Zones, 0o755); err != nil { //nolint:gosec // BIND runs as another user
		return err
	}
	if err := b.lockDir(); err != nil {
		return err
	}
	key, err := b.key()
	if err != nil {
		return err
	}
	options, err := b.furtherOptions()
	if err != nil {
		return err
	}
	var loads []bindZone
	b.renewal = time.Time{}
	all := s.bindZones(b.Zones)
	for _, z := range all {
		changed, err := b.writeZone(z)
		if err != nil {
			return err
		}
		if changed {
			loads = append(loads, z)
		}
	}
	changed, err := b.writeConfig(bindConfig(b, s, all, key, options))
	if err != nil {
		return err
	}
	if changed || b.isStale { // BIND may still run with the previous configuration
		if err := b.reconfigure(); err != nil {
			return err
		}
	}
	if changed || b.isStale {
		loads = all
	}
	var wrong error
	for _, z := range loads { // a failure does not prevent the other zones from loading
		if out, err := b.rndc("reload", z.name, "IN", z.view); err != nil && !strings.Contains(out, "not found") {
			wrong = errors.Join(wrong, err)
		}
	}
	return errors.Join(wrong, b.waitAllServed(loads), b.checkListeners(), b.removeOldFiles(all))
}

// checkOwnership returns an error if Portolan did not write the existing configuration and Overwrite is not set.
func (b *bind) checkOwnership() error {
	text, err := os.ReadFile(b.Config)
	if errors.Is(err, os.ErrNotExist) || err == nil && (b.Overwrite || bytes.HasPrefix(text, []byte("//"+marker))) {
		return nil
	}
	if err != nil {
		return err
	}
	return fmt.Errorf("%s was not written by Portolan and stays unchanged: move it away, or start the agent with --bind-overwrite", b.Config)
}

// furtherOptions returns the statements in the file Options.
func (b *bind) furtherOptions() (string, error) {
	if b.Options == "" {
		return "", nil
	}
	text, err := os.ReadFile(b.Options)
	return string(text), err
}

// runProgram runs a program of BIND and returns its output.
func (b *bind) runProgram(name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), bindProgramTime)
	defer cancel()
	path := ""
	for _, folder := range []string{"/usr/sbin", "/usr/bin", "/usr/local/sbin", "/usr/local/bin"} {
		if _, err := os.Stat(filepath.Join(folder, name)); err == nil {
			path = filepath.Join(folder, name)
			break
		}
	}
	if path == "" {
		return "", fmt.Errorf("the program %s of BIND is not on this machine", name)
	}
	out, err := exec.CommandContext(ctx, path, args...).CombinedOutput() //nolint:gosec // a program of BIND, without a shell
	text := strings.TrimSpace(string(out))
	if err != nil {
		return text, fmt.Errorf("%s %s: %w: %s", name, args[len(args)-1], err, text)
	}
	return text, nil
}

// rndc sends BIND a command with rndc.
func (b *bind) rndc(args ...string) (string, error) {
	at := []string{"-s", b.Control.Addr().String(), "-p", fmt.Sprint(b.Control.Port()), "-k", b.keyFile()}
	return b.runProgram("rndc", append(at, args...)...)
}

// reconfigure makes BIND read its configuration. If BIND runs with another configuration, rndc uses its default key.
func (b *bind) reconfigure() error {
	_, err := b.rndc("reconfig")
	if err == nil {
		return nil
	}
	if out, other := b.runProgram("rndc", "reconfig"); other != nil {
		if strings.Contains(out, "connection refused") {
			return b.notRunning()
		}
		return fmt.Errorf("BIND cannot be reconfigured: %w; start it with -c %s", err, b.Config)
	}
	return nil
}

func (b *bind) notRunning() error {
	return fmt.Errorf("BIND does not run: start it with -c %s", b.Config)
}

// waitAllServed waits until BIND serves the current serials of zones, or bindServeTime has passed.
func (b *bind) waitAllServed(all []bindZone) (wrong error) {
	end := time.Now().Add(bindServeTime)
	for _, z := range all {
		wrong = errors.Join(wrong, b.waitServed(z, end))
	}
	return wrong
}

// waitServed waits until BIND serves the current serial of a zone, or end is reached.
func (b *bind) waitServed(z bindZone, end time.Time) error {
	want := fmt.Sprintf("serial: %d", z.serialNow())
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, time.Second) { // BIND sends no notification after loading
		out, err := b.rndc("zonestatus", z.name, "IN", z.view)
		if err == nil && slices.Contains(strings.Split(out, "\n"), want) {
			return nil
		}
		if strings.Contains(out, "connection refused") {
			return b.notRunning()
		}
		if time.Now().After(end) {
			if err == nil {
				err = fmt.Errorf("it returned %q", out)
			}
			return fmt.Errorf("BIND does not serve zone %s with the serial number %d: %w", z.name, z.serialNow(), err)
		}
		time.Sleep(pause)
	}
}

// checkListeners sends BIND a version query at each listener, because BIND ignores addresses that it cannot listen at.
func (b *bind) checkListeners() error {
	m := new(dns.Msg)
	m.SetQuestion("version.bind.", dns.TypeTXT)
	m.Question[0].Qclass = dns.ClassCHAOS
	for _, l := range b.configuration.Listen {
		for _, network := range []string{"udp", "tcp"} {
			if _, _, err := (&dns.Client{Net: network, Timeout: checkTimeout}).Exchange(m, l.addrPort().String()); err != nil {
				return fmt.Errorf("BIND does not respond at %s over %s: %w", l.addrPort(), network, err)
			}
		}
	}
	return nil
}

// lockDir locks the directory of the zone files, so that two applications do not overwrite each other's files.
func (b *bind) lockDir() (err error) {
	if b.lock == nil {
		b.lock, err = dirlock.Acquire(b.Zones, "application that drives BIND")
	}
	return err
}

// removeOldFiles removes the files of zones that are no longer served.
func (b *bind) removeOldFiles(all []bindZone) error {
	found, err := filepath.Glob(filepath.Join(b.Zones, "*"+zoneFileEnd))
	if err != nil {
		return err
	}
	left, err := filepath.Glob(filepath.Join(b.Zones, newFile+"*")) // left by a process that was killed
	if err != nil {
		return err
	}
	found = append(found, left...)
	for _, path := range found {
		if !slices.ContainsFunc(all, func(z bindZone) bool { return z.file == path }) {
			if err := os.Remove(path); err != nil {
				return err
			}
		}
	}
	return nil
}

// Health returns the error of the last attempt to update BIND.
func (b *bind) Health() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.lastError != nil {
		return []string{"service is not healthy: " + b.lastError.Error()}
	}
	return nil
}

// Engine returns the name of the answering program.
func (b *bind) Engine() string { return "BIND" }

// Diagnostics returns the size of the content in BIND.
func (b *bind) Diagnostics() any {
	d, _ := b.zones.Diagnostics().(Diagnostics)
	d.Engine, d.Revision, d.ID = b.Engine(), b.Content(), b.started.UnixMilli()
	return d
}

// Close stops this application. BIND continues to run.
func (b *bind) Close() error {
	b.stop()
	b.checks.Wait()
	if b.lock != nil {
		return b.lock.Close()
	}
	return nil
}
