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

// Bind is BIND's name server (9.16 or later) that answers in our place: what is to be served is written for it.
type Bind struct {
	// Config is its configuration, such as /etc/bind/named.conf, which is ours alone; Zones a directory for the files of zones.
	Config, Zones string
	// Control is where it is told to load what has changed.
	Control netip.AddrPort
	// Options is a file with further statements for its options; empty is none.
	Options string
	// Overwrite lets a configuration be written over that is not ours.
	Overwrite bool
}

// marker is what files begin with that are ours, behind the mark of a remark.
const marker = " Written by Portolan, which writes it anew when something changes.\n"

// Times of work on BIND: how long a program of its may take, how often it is looked after, and how long it may take to serve what it is
// told to.
const (
	bindProgramTime = 30 * time.Second
	bindLook        = 2 * time.Second
	bindServeTime   = 30 * time.Second
)

// BindKind is the application dns-authoritative-service where BIND answers.
func BindKind(b Bind) application.Kind {
	kind := Kind()
	kind.Check = func(text json.RawMessage) error { _, err := readForBind(text); return err }
	kind.Claims = nil // it listens nowhere itself
	kind.New = func(log *slog.Logger) application.Application { return newBind(b, log) }
	return kind
}

// readForBind reads a configuration, and refuses what BIND is not set up for.
func readForBind(text json.RawMessage) (Configuration, error) {
	c, err := read(text)
	if err != nil {
		return c, err
	}
	for i, l := range c.Listen {
		if l.way() != plainWay {
			return c, problem.Invalid(fmt.Sprintf("configuration.listen[%d].tls", i), "the service point drives BIND, which is not set up for TLS")
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
	looks   sync.WaitGroup
	// zones takes content, and answers nothing.
	zones *nameServer

	// turn is held while BIND is given something.
	turn sync.Mutex
	// What follows is guarded by turn: the configuration, nil before there is one, and when signatures are to be made anew.
	configuration *Configuration
	renewal       time.Time
	// lock is that of the directory, nil before it is taken.
	lock io.Closer
	// doubts says that it is not known that BIND serves what it was given before.
	doubts bool

	mu sync.Mutex
	// What follows is guarded by mu: what BIND serves, and why not what it is to.
	content string
	trouble error
}

func newBind(b Bind, log *slog.Logger) *bind {
	ctx, stop := context.WithCancel(context.Background())
	x := &bind{Bind: b, log: log, started: time.Now(), stop: stop, zones: &nameServer{log: log},
		trouble: errors.New("BIND was not given anything yet"), doubts: true}
	x.zones.served.Store(&served{})
	x.zones.signatures.seed = maphash.MakeSeed()
	x.looks.Go(func() { x.watch(ctx) })
	return x
}

// Configure writes another configuration.
func (b *bind) Configure(text json.RawMessage) error {
	c, err := readForBind(text)
	if err != nil {
		return err
	}
	b.turn.Lock()
	defer b.turn.Unlock()
	b.configuration = &c
	b.give()
	return nil
}

// Content names what BIND serves.
func (b *bind) Content() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.content
}

// TakeContent has BIND serve what streams say. Where it cannot be given that now it is, later.
func (b *bind) TakeContent(in io.Reader) error {
	if err := b.zones.take(in); err != nil {
		return err
	}
	b.turn.Lock()
	defer b.turn.Unlock()
	b.give()
	return nil
}

// give gives BIND what it is to serve, and notes what came of it. It is called with turn held.
func (b *bind) give() {
	err := b.apply()
	b.doubts = err != nil || b.zones.served.Load().revision == "" // what is written may not be loaded yet
	b.mu.Lock()
	defer b.mu.Unlock()
	if err != nil && (b.trouble == nil || b.trouble.Error() != err.Error()) {
		b.log.Error("BIND does not serve what it is to", "reason", err)
	}
	if b.trouble = err; err == nil {
		b.trouble = b.zones.served.Load().cannot() // which all else is served without
		if now := b.zones.served.Load().revision; b.content != now {
			b.content = now
			b.log.Info("another revision is served", "revision", now)
		}
	}
}

// watch looks after BIND until ctx ends: it is given what it was not, and asked whether it is there.
func (b *bind) watch(ctx context.Context) {
	tick := time.NewTicker(bindLook)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		b.turn.Lock()
		b.mu.Lock()
		well := b.content == b.zones.served.Load().revision && !b.doubts
		b.mu.Unlock()
		_, err := b.control("status")
		b.doubts = b.doubts || err != nil
		if b.configuration != nil && (!well || err != nil || !b.renewal.IsZero() && time.Now().After(b.renewal)) {
			b.give()
		}
		b.turn.Unlock()
	}
}

// apply writes what BIND is to serve, and has it loaded. What is served already is left.
func (b *bind) apply() error {
	if b.configuration == nil {
		return errors.New("it has no configuration yet")
	}
	s := b.zones.served.Load()
	if err := b.ours(); err != nil {
		return err
	}
	if s.revision == "" { // BIND goes on with what it has
		return nil
	}
	if err := os.MkdirAll(b.Zones, 0o755); err != nil { //nolint:gosec // BIND is another user
		return err
	}
	if err := b.alone(); err != nil {
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
	if changed || b.doubts { // it may run by the one before
		if err := b.reconfigure(); err != nil {
			return err
		}
	}
	if changed || b.doubts {
		loads = all
	}
	var wrong error
	for _, z := range loads { // one that is not loaded keeps no other from it
		if out, err := b.control("reload", z.name, "IN", z.view); err != nil && !strings.Contains(out, "not found") {
			wrong = errors.Join(wrong, err)
		}
	}
	return errors.Join(wrong, b.serveAll(loads), b.answers(), b.tidy(all))
}

// ours refuses to write over a configuration that is not ours.
func (b *bind) ours() error {
	text, err := os.ReadFile(b.Config)
	if errors.Is(err, os.ErrNotExist) || err == nil && (b.Overwrite || bytes.HasPrefix(text, []byte("//"+marker))) {
		return nil
	}
	if err != nil {
		return err
	}
	return fmt.Errorf("%s was not written by Portolan, and is left as it is: move it away, or start the agent with --bind-overwrite", b.Config)
}

// furtherOptions reads the statements that others want in the options.
func (b *bind) furtherOptions() (string, error) {
	if b.Options == "" {
		return "", nil
	}
	text, err := os.ReadFile(b.Options)
	return string(text), err
}

// program runs a program of BIND, and gives what it says.
func (b *bind) program(name string, args ...string) (string, error) {
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

// control tells BIND something.
func (b *bind) control(args ...string) (string, error) {
	at := []string{"-s", b.Control.Addr().String(), "-p", fmt.Sprint(b.Control.Port()), "-k", b.keyFile()}
	return b.program("rndc", append(at, args...)...)
}

// reconfigure has BIND read its configuration. One that runs by another configuration is told by the key that it has by itself.
func (b *bind) reconfigure() error {
	_, err := b.control("reconfig")
	if err == nil {
		return nil
	}
	if out, other := b.program("rndc", "reconfig"); other != nil {
		if strings.Contains(out, "connection refused") {
			return b.notRunning()
		}
		return fmt.Errorf("BIND is not told of its configuration: %w; start it with -c %s", err, b.Config)
	}
	return nil
}

func (b *bind) notRunning() error {
	return fmt.Errorf("BIND does not run: start it with -c %s", b.Config)
}

// serveAll waits until BIND says that it serves zones by their serial numbers, or all of them have taken too long.
func (b *bind) serveAll(all []bindZone) (wrong error) {
	end := time.Now().Add(bindServeTime)
	for _, z := range all {
		wrong = errors.Join(wrong, b.serves(z, end))
	}
	return wrong
}

// serves waits until BIND says that it serves a zone by its serial number.
func (b *bind) serves(z bindZone, end time.Time) error {
	want := fmt.Sprintf("serial: %d", z.serialNow())
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, time.Second) { // BIND tells nobody when it has loaded
		out, err := b.control("zonestatus", z.name, "IN", z.view)
		if err == nil && slices.Contains(strings.Split(out, "\n"), want) {
			return nil
		}
		if strings.Contains(out, "connection refused") {
			return b.notRunning()
		}
		if time.Now().After(end) {
			if err == nil {
				err = fmt.Errorf("it says %q", out)
			}
			return fmt.Errorf("BIND does not serve zone %s with the serial number %d: %w", z.name, z.serialNow(), err)
		}
		time.Sleep(pause)
	}
}

// answers asks BIND for its version wherever it is to listen: it passes over addresses that it cannot listen at.
func (b *bind) answers() error {
	m := new(dns.Msg)
	m.SetQuestion("version.bind.", dns.TypeTXT)
	m.Question[0].Qclass = dns.ClassCHAOS
	for _, l := range b.configuration.Listen {
		for _, network := range []string{"udp", "tcp"} {
			if _, _, err := (&dns.Client{Net: network, Timeout: askTime}).Exchange(m, l.at().String()); err != nil {
				return fmt.Errorf("BIND does not answer at %s over %s: %w", l.at(), network, err)
			}
		}
	}
	return nil
}

// alone takes the directory of the files: two applications would write over each other.
func (b *bind) alone() (err error) {
	if b.lock == nil {
		b.lock, err = dirlock.Take(b.Zones, "application that drives BIND")
	}
	return err
}

// tidy removes the files of zones that are served no more.
func (b *bind) tidy(all []bindZone) error {
	found, err := filepath.Glob(filepath.Join(b.Zones, "*"+zoneFileEnd))
	if err != nil {
		return err
	}
	left, err := filepath.Glob(filepath.Join(b.Zones, newFile+"*")) // by who was killed
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

// Health says why BIND does not serve what it is to.
func (b *bind) Health() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.trouble != nil {
		return []string{"service is not healthy: " + b.trouble.Error()}
	}
	return nil
}

// Engine is what answers.
func (b *bind) Engine() string { return "BIND" }

// Diagnostics says how much BIND serves.
func (b *bind) Diagnostics() any {
	d, _ := b.zones.Diagnostics().(Diagnostics)
	d.Engine, d.Revision, d.ID = b.Engine(), b.Content(), b.started.UnixMilli()
	return d
}

// Close leaves BIND as it is: it goes on.
func (b *bind) Close() error {
	b.stop()
	b.looks.Wait()
	if b.lock != nil {
		return b.lock.Close()
	}
	return nil
}
