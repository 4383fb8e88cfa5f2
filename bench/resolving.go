package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"time"

	dns "portolan/internal/base/dnsmsg"
	"portolan/internal/servicepoint/application/resolver"
	"portolan/internal/servicepoint/application/udpbatch"
	"portolan/internal/testkit/pgtest"
)

// Sizes of the measurement of resolvers: the number of cached names, the number of new names in a turn, and the number of turns.
const (
	cachedNames   = 20_000
	coldNames     = 40_000
	resolverTurns = 7
)

// resolving is a resolver of the measurement (R). It forwards to one upstream.
type resolving struct {
	name, program string
	start         func(dir, upstream string, port int) *exec.Cmd
	// goals are the minimum ratios of Portolan for cached answers and for new names; 0 is none.
	goals   [2]float64
	pid     int
	address string
	// rates are answers a second, costs the CPU time of an answer in microseconds: for cached answers and for new names.
	rates, costs [2][]float64
}

// resolvers are Portolan and the resolvers to compare with. All may use two threads.
func resolvers() []*resolving {
	self, err := os.Executable()
	if err != nil {
		self = "false"
	}
	return []*resolving{
		{name: "Portolan", start: func(dir, upstream string, port int) *exec.Cmd {
			return withConfig(dir, "resolver.json", fmt.Sprintf(`{"listen":[{"address":"127.0.0.1","port":%d}],"upstreams":[{"address":%q}],
"cache":{"entries":400000}}`, port, upstream), self, "-role", "resolver", "-body")
		}},
		{name: "unbound", program: "unbound", goals: [2]float64{1, 0.8}, start: func(dir, upstream string, port int) *exec.Cmd {
			return withConfig(dir, "unbound.conf", fmt.Sprintf(unboundConfiguration, dir, port, strings.Replace(upstream, ":", "@", 1)), "unbound",
				"-d", "-c")
		}},
		{name: "CoreDNS", goals: [2]float64{1, 1}, start: func(dir, upstream string, port int) *exec.Cmd {
			return withConfig(dir, "Corefile", fmt.Sprintf(".:%d {\n bind 127.0.0.1\n cache 3600 {\n success 400000\n }\n forward . %s {\n"+
				" prefer_udp\n expire 0s\n max_idle_conns 1\n }\n}\n", port, upstream), self, "-role", "coredns", "-body")
		}},
	}
}

// unboundConfiguration is a configuration of unbound. Its parameters are a directory, a port and an upstream.
const unboundConfiguration = `server:
 interface: 127.0.0.1@%[2]d
 access-control: 127.0.0.0/8 allow
 do-daemonize: no
 use-syslog: no
 logfile: ""
 username: ""
 chroot: ""
 directory: %[1]q
 pidfile: ""
 num-threads: 2
 do-not-query-localhost: no
 module-config: "iterator"
 msg-cache-size: 256m
 rrset-cache-size: 256m
 local-zone: "test." nodefault
 verbosity: 0
remote-control:
 control-enable: no
forward-zone:
 name: "."
 forward-addr: %[3]s
`

// resolvers measures (R): UDP queries by dnsperf to resolvers that forward to the same upstream, for cached answers and for new names. The
// resolvers take turns, and the results are medians. The CPU time is that of the resolver alone.
func (b *bench) resolvers() error {
	if _, err := exec.LookPath("dnsperf"); err != nil {
		return fmt.Errorf("dnsperf: %w", pgtest.ErrNone)
	}
	up, err := spawn("upstream", "", "")
	if err != nil {
		return err
	}
	defer up.stop()
	var all []*resolving
	for _, r := range resolvers() {
		if _, err := exec.LookPath(r.program); r.program != "" && err != nil {
			fmt.Fprintf(os.Stderr, "(R) %s is left out: %v\n", r.name, err)
			continue
		}
		stop, err := r.run(b.dir, up.addr)
		if err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
		defer stop()
		all = append(all, r)
	}
	cached := filepath.Join(b.dir, "cached")
	if err := writeNames(cached, "cached", cachedNames); err != nil {
		return err
	}
	for _, r := range all {
		for range 3 { // until each answer is cached
			if _, _, err := r.ask(cached, "-n", "1"); err != nil {
				return err
			}
		}
	}
	seconds := strconv.Itoa(max(1, int(b.time.Seconds())))
	for turn := range resolverTurns {
		cold := filepath.Join(b.dir, "cold")
		if err := writeNames(cold, fmt.Sprintf("turn-%d", turn), coldNames); err != nil {
			return err
		}
		for i := range all {
			r := all[(i+turn)%len(all)]
			if err := r.measure(0, cached, "-l", seconds); err != nil {
				return err
			}
			if err := r.measure(1, cold, "-n", "1"); err != nil {
				return err
			}
		}
	}
	b.compareResolvers(all[0], all[1:])
	return nil
}

// compareResolvers adds the ratios of Portolan to the others.
func (b *bench) compareResolvers(ours *resolving, others []*resolving) {
	for _, r := range others {
		for i, what := range []string{"cached answers", "new names"} {
			goal, least := "none", r.goals[i]
			if least > 0 {
				goal = fmt.Sprintf("at least %.1f", least)
			}
			ratio := medianOf(r.costs[i]) / medianOf(ours.costs[i])
			b.add(fmt.Sprintf("(R) %s against %s, by CPU of an answer", what, r.name), fmt.Sprintf("%.1f us", medianOf(ours.costs[i])),
				fmt.Sprintf("%.1f us", medianOf(r.costs[i])), ratio, goal, ratio >= least)
			ratio = medianOf(ours.rates[i]) / medianOf(r.rates[i])
			b.add(fmt.Sprintf("(R) %s against %s, by rate", what, r.name), perSecond(medianOf(ours.rates[i])),
				perSecond(medianOf(r.rates[i])), ratio, goal, ratio >= least)
		}
	}
}

// medianOf returns the median of measurements.
func medianOf(of []float64) float64 {
	sorted := slices.Sorted(slices.Values(of))
	return sorted[len(sorted)/2]
}

// run starts a resolver and waits until it answers.
func (r *resolving) run(dir, upstream string) (stop func(), err error) {
	place, err := os.MkdirTemp(dir, r.name)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	port := l.Addr().(*net.TCPAddr).Port
	_ = l.Close()
	cmd := r.start(place, upstream, port)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	r.pid, r.address = cmd.Process.Pid, fmt.Sprintf("127.0.0.1:%d", port)
	stop = func() {
		_ = cmd.Process.Signal(os.Interrupt)
		kill := time.AfterFunc(10*time.Second, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait()
		kill.Stop()
	}
	m := new(dns.Msg)
	m.SetQuestion("ready.example.", dns.TypeA)
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		if a, _, err := (&dns.Client{Timeout: time.Second}).Exchange(m, r.address); err == nil && len(a.Answer) == 1 {
			return stop, nil
		}
		if time.Now().After(deadline) {
			stop()
			return nil, errors.New("it does not answer")
		}
	}
}

// writeNames writes queries for a number of names.
func writeNames(file, beginning string, n int) error {
	var out bytes.Buffer
	for i := range n {
		fmt.Fprintf(&out, "%s-%d.example A\n", beginning, i)
	}
	return os.WriteFile(file, out.Bytes(), 0o600)
}

// measure adds a measurement of one kind.
func (r *resolving) measure(kind int, queries string, args ...string) error {
	before, err := cpuOf(r.pid)
	if err != nil {
		return err
	}
	rate, answers, err := r.ask(queries, args...)
	if err != nil {
		return fmt.Errorf("%s: %w", r.name, err)
	}
	after, err := cpuOf(r.pid)
	if err != nil {
		return err
	}
	r.rates[kind] = append(r.rates[kind], rate)
	r.costs[kind] = append(r.costs[kind], float64((after-before).Microseconds())/answers)
	return nil
}

// ask runs dnsperf. It returns the rate and the number of the answers.
func (r *resolving) ask(queries string, args ...string) (rate, answers float64, err error) {
	host, port, err := net.SplitHostPort(r.address)
	if err != nil {
		return 0, 0, err
	}
	out, err := exec.Command("dnsperf", append([]string{"-s", host, "-p", port, "-d", queries, "-c", "16", "-T", "1", "-q", "200"},
		args...)...).CombinedOutput()
	perSecond := regexp.MustCompile(`Queries per second:\s+([0-9.]+)`).FindSubmatch(out)
	completed := regexp.MustCompile(`Queries completed:\s+([0-9]+)`).FindSubmatch(out)
	if err != nil || perSecond == nil || completed == nil {
		return 0, 0, fmt.Errorf("dnsperf: %w: %s", err, out)
	}
	if rate, err = strconv.ParseFloat(string(perSecond[1]), 64); err != nil {
		return 0, 0, err
	}
	answers, err = strconv.ParseFloat(string(completed[1]), 64)
	return rate, answers, err
}

// upstreamRole answers each query with one address.
func upstreamRole(ctx context.Context) error {
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	p, err := udpbatch.New(c.(*net.UDPConn))
	if err != nil {
		return err
	}
	fmt.Println(c.LocalAddr())
	go func() { <-ctx.Done(); _ = c.Close() }()
	record := []byte{0xc0, 12, 0, 1, 0, 1, 0, 0, 0x0e, 0x10, 0, 4, 192, 0, 2, 1}
	err = p.Serve(func(n int) {
		for i := range n {
			m := p.Message(i)
			end := bytes.IndexByte(m[12:], 0) + 12 + 5
			if end < 12+5 || end > len(m) {
				continue
			}
			answer := append(append(p.Buffer(i), m[:end]...), record...)
			answer[2], answer[3] = 0x81, 0x80
			copy(answer[4:12], []byte{0, 1, 0, 1, 0, 0, 0, 0})
			p.Reply(i, answer)
		}
	}, func(error) { time.Sleep(time.Millisecond) })
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// resolverRole runs the resolver with a configuration from a file.
func resolverRole(ctx context.Context, file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	a := resolver.Kind().New(slog.New(slog.DiscardHandler))
	if err := a.Configure(text); err != nil {
		return err
	}
	if name := os.Getenv("BENCH_PROFILE"); name != "" { // profiles the resolver
		f, err := os.Create(name)
		if err != nil {
			return err
		}
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	<-ctx.Done()
	return a.Close()
}
