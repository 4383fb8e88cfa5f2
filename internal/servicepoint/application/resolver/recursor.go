package resolver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os/exec"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	dns "portolan/internal/base/dnsmsg"
	"portolan/internal/base/freeport"
	"portolan/internal/base/naming"
)

// Recursion makes unbound, which this process starts, resolve names from the root and validate answers (RFC 4035). If there are
// upstreams, unbound forwards to them and validates their answers.
type Recursion struct {
	// Validation enables validation; nil enables it if unbound is installed.
	Validation *bool `json:"validation,omitempty"`
	// TrustAnchors are DS or DNSKEY records that replace the root's trust anchors.
	TrustAnchors []string `json:"trustAnchors,omitempty"`
	// Insecure are zones whose answers are not validated.
	Insecure []string `json:"insecure,omitempty"`
	// RandomCase sends names in random case and accepts only answers with the same case (draft-vixie-dnsext-dns0x20). A forged answer must
	// then guess the case as well. Some name servers do not preserve the case; unbound then compares the answers of several servers.
	RandomCase bool `json:"randomCase,omitempty"`
}

// maxAnchors is the maximum number of trust anchors, and of insecure zones.
const maxAnchors = 1000

// rootAnchors are the current trust anchors of the root (IANA, KSK-2017 and KSK-2024).
var rootAnchors = []string{". IN DS 20326 8 2 E06D44B80B8F1D39A95C0B0D7C65D08458E880409BBC683457104237C7F8EC8D",
	". IN DS 38696 8 2 683D2D0ACB8C9B712A1948B27F741219298D0A450D612C483AF444A4C0FB2B16"}

// validate returns the error of invalid settings, created by bad; nil if they are valid.
func (n *Recursion) validate(bad func(field, format string, args ...any) error) error {
	if n == nil {
		return nil
	}
	if len(n.TrustAnchors) > maxAnchors || len(n.Insecure) > maxAnchors {
		return bad("recursion", "has more than %d trust anchors or insecure zones", maxAnchors)
	}
	for i, text := range n.TrustAnchors {
		rr, err := naming.ReadRecord(text)
		if err != nil || rr.Header().Rrtype != dns.TypeDS && rr.Header().Rrtype != dns.TypeDNSKEY {
			return bad(fmt.Sprintf("recursion.trustAnchors[%d]", i), "must be a DS or DNSKEY record, such as . IN DS 20326 8 2 E06D...")
		}
	}
	for i, name := range n.Insecure {
		if naming.Check(strings.TrimSuffix(name, "."), naming.AnyName) != nil || strings.ContainsAny(name, " \t\n{}#\"\\") {
			return bad(fmt.Sprintf("recursion.insecure[%d]", i), "%q is not the name of a zone", name)
		}
	}
	return nil
}

// validates reports whether answers are validated.
func (n *Recursion) validates() bool { return n.Validation == nil || *n.Validation }

// errNoUnbound reports that unbound is not installed.
var errNoUnbound = errors.New("unbound is not installed on this machine: install it, or omit recursion and set upstreams")

// unboundProgram returns the path of unbound.
func unboundProgram() (string, error) {
	for _, name := range []string{"unbound", "/usr/sbin/unbound", "/usr/local/sbin/unbound"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errNoUnbound
}

// recursor is a running unbound process.
type recursor struct {
	settings  Recursion
	upstreams []Upstream
	address   string
	log       *slog.Logger
	stop      context.CancelFunc
	ended     sync.WaitGroup
	// down reports that unbound has ended and will be restarted.
	down atomic.Bool
}

// Timing of unbound: the time limit for its start, and the pause before a restart.
const (
	recursorStart = 10 * time.Second
	recursorAgain = time.Second
)

// recursorFor returns the recursor for a configuration: the running one if its settings are the same, else a new one. It returns nil if
// the upstreams resolve names; otherwise then explains why, if recursion was requested. The caller holds r.applyLock.
func (r *resolver) recursorFor(c Configuration) (n *recursor, otherwise string, err error) {
	if c.Recursion == nil {
		return nil, "", nil
	}
	if n := r.recursor; n != nil && reflect.DeepEqual(n.settings, *c.Recursion) && reflect.DeepEqual(n.upstreams, c.Upstreams) {
		return n, "", nil
	}
	program, err := unboundProgram()
	if err != nil {
		if len(c.Upstreams) > 0 && c.Recursion.Validation == nil {
			return nil, "unbound is not installed on this machine: the upstreams answer, without validation", nil
		}
		return nil, "", err
	}
	n, err = startRecursor(program, c, r.log)
	return n, "", err
}

// startRecursor starts unbound and waits until it answers.
func startRecursor(program string, c Configuration, log *slog.Logger) (*recursor, error) {
	at, err := freeport.Loopback() // the address stays free for a restart of unbound
	if err != nil {
		return nil, err
	}
	n := &recursor{settings: *c.Recursion, upstreams: c.Upstreams, address: at.String(), log: log}
	ctx, stop := context.WithCancel(context.Background())
	n.stop = stop
	failed := make(chan error, 1)
	n.ended.Go(func() { n.run(ctx, program, failed) })
	q := new(dns.Msg)
	q.SetQuestion("localhost.", dns.TypeA) // unbound answers this name itself
	for end := time.Now().Add(recursorStart); ; {
		client := dns.Client{Timeout: 200 * time.Millisecond}
		if _, _, err = client.ExchangeContext(ctx, q.Copy(), n.address); err == nil {
			return n, nil
		}
		select {
		case err := <-failed:
			n.close()
			return nil, err
		case <-time.After(50 * time.Millisecond):
		}
		if time.Now().After(end) {
			n.close()
			return nil, fmt.Errorf("unbound does not respond: %w", err)
		}
	}
}

// run runs unbound until ctx ends, and restarts it when it ends.
func (n *recursor) run(ctx context.Context, program string, failed chan<- error) {
	runtime.LockOSThread() // unbound ends with the thread that started it, and therefore with this process
	defer runtime.UnlockOSThread()
	for ctx.Err() == nil {
		command := exec.CommandContext(ctx, program, "-d", "-c", "/dev/stdin") //nolint:gosec // the installed unbound
		command.Stdin = strings.NewReader(n.configuration())
		command.SysProcAttr = endsWithParent()
		words := &outputTail{}
		command.Stdout, command.Stderr = words, words
		err := command.Start()
		if err == nil {
			n.down.Store(false)
			err = command.Wait()
		}
		if ctx.Err() != nil {
			return
		}
		n.down.Store(true)
		err = fmt.Errorf("unbound has ended (%w): %s", err, words.text())
		n.log.Error("unbound ended, restarting it", "reason", err)
		select {
		case failed <- err:
		default: // its start has already succeeded
		}
		select {
		case <-ctx.Done():
		case <-time.After(recursorAgain):
		}
	}
}

// close stops unbound.
func (n *recursor) close() {
	n.stop()
	n.ended.Wait()
}

// configuration returns the configuration of unbound. All values were checked, so none can inject other options.
func (n *recursor) configuration() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	_, port, _ := net.SplitHostPort(n.address)
	line("server:\n interface: 127.0.0.1@%s\n access-control: 127.0.0.0/8 allow\n do-daemonize: no\n use-syslog: no\n logfile: \"\"", port)
	line(" username: \"\"\n chroot: \"\"\n directory: \"\"\n pidfile: \"\"\n num-threads: %d", min(runtime.NumCPU(), 4))
	line(" hide-version: yes\n hide-identity: yes")
	line(" do-not-query-localhost: no\n unblock-lan-zones: yes\n insecure-lan-zones: yes\n qname-minimisation: yes\n prefetch: no")
	line(" verbosity: 0\n val-log-level: 0")
	if n.settings.RandomCase {
		line(" use-caps-for-id: yes")
	}
	if n.settings.validates() {
		anchors := n.settings.TrustAnchors
		if len(anchors) == 0 {
			anchors = rootAnchors
		}
		line(" module-config: \"validator iterator\"")
		for _, text := range anchors {
			rr, err := naming.ReadRecord(text)
			if err == nil { // checked before
				line(" trust-anchor: \"%s\"", strings.ReplaceAll(rr.String(), "\t", " "))
			}
		}
		for _, name := range n.settings.Insecure {
			line(" domain-insecure: \"%s\"", name)
		}
	} else {
		line(" module-config: \"iterator\"")
	}
	if len(n.upstreams) > 0 { // the upstreams may serve such names
		line(" local-zone: \"test.\" nodefault")
	}
	line("remote-control:\n control-enable: no")
	if len(n.upstreams) > 0 {
		n.forward(line)
	}
	return b.String()
}

// forward writes the upstreams of unbound.
func (n *recursor) forward(line func(string, ...any)) {
	line("forward-zone:\n name: \".\"")
	for _, u := range n.upstreams {
		host, port, _ := net.SplitHostPort(u.Address)
		name := ""
		if u.TLSServerName != "" {
			name = "#" + u.TLSServerName
		}
		line(" forward-addr: %s@%s%s", host, port, name)
	}
	if n.upstreams[0].TLSServerName != "" {
		line(" forward-tls-upstream: yes\nserver:\n tls-system-cert: yes")
	}
}

// outputTail keeps the last 500 bytes of a program's output.
type outputTail struct {
	mu  sync.Mutex
	all []byte
}

func (l *outputTail) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	const maxLines = 500
	l.all = append(l.all, p...)
	l.all = l.all[max(0, len(l.all)-maxLines):]
	return len(p), nil
}

func (l *outputTail) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.TrimSpace(string(l.all))
}
