package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	dns "portolan/internal/base/dnsmsg"
	"portolan/internal/servicepoint/application"
	"portolan/internal/servicepoint/application/nameserver"
	"portolan/internal/testkit/pgtest"
	"portolan/internal/wire/zonedata"

	"github.com/coredns/caddy"
	"github.com/coredns/coredns/core/dnsserver"
	// The plugins of its configurations.
	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/file"
	_ "github.com/coredns/coredns/plugin/forward"
)

// answeredNames is the number of names in the zone of the measurement.
const answeredNames = 1_000_000

// answeredName returns the n-th name, and answeredAddress its address.
func answeredName(n int) string    { return fmt.Sprintf("host-%d.example.", n) }
func answeredAddress(n int) string { return fmt.Sprintf("10.%d.%d.%d", n>>16&255, n>>8&255, n&255) }

// answeredHead are the other records of the zone.
const answeredHead = "example. 3600 IN SOA ns.example. h.example. %d 3600 600 86400 60\nexample. 3600 IN NS ns.example.\n" +
	"ns.example. 3600 IN A 192.0.2.1\n"

// nameServer is a name server to compare with.
type nameServer struct {
	name string
	// program is the server's executable, or empty if this program runs it. A server whose program is not installed is left out. start returns
	// the command that serves a zone file.
	program string
	start   func(dir, zone string, port int) *exec.Cmd
}

// nameServers are other name servers, in the versions of Debian.
var nameServers = []nameServer{
	{"BIND", "named", func(dir, zone string, port int) *exec.Cmd {
		return withConfig(dir, "named.conf", fmt.Sprintf(`options { directory %q; listen-on port %d { 127.0.0.1; }; listen-on-v6 { none; };
pid-file none; session-keyfile none; recursion no; minimal-responses yes; notify no; empty-zones-enable no; }; controls { };
zone "example" { type primary; file %q; };`, dir, port, zone), "named", "-g", "-c")
	}},
	{"CoreDNS", "", func(dir, zone string, port int) *exec.Cmd {
		self, err := os.Executable()
		if err != nil {
			return exec.Command("false")
		}
		return withConfig(dir, "Corefile", fmt.Sprintf(".:%d {\n bind 127.0.0.1\n file %s example\n}\n", port, zone), self, "-role", "coredns",
			"-body")
	}},
	{"NSD", "nsd", func(dir, zone string, port int) *exec.Cmd {
		return withConfig(dir, "nsd.conf", fmt.Sprintf(nsdConfiguration, dir, port, zone), "nsd", "-d", "-c")
	}},
	{"Knot", "knotd", func(dir, zone string, port int) *exec.Cmd {
		return withConfig(dir, "knot.conf", fmt.Sprintf(knotConfiguration, dir, port, zone), "knotd", "-c")
	}},
}

// nsdConfiguration and knotConfiguration are configurations of NSD and Knot. Their parameters are a directory, a port and a zone file.
const (
	nsdConfiguration = `server:
 ip-address: 127.0.0.1@%[2]d
 server-count: 2
 reuseport: yes
 rrl-ratelimit: 0
 rrl-whitelist-ratelimit: 0
 username: ""
 pidfile: ""
 database: ""
 cookie-secret-file: ""
 zonesdir: %[1]q
 xfrdir: %[1]q
 xfrdfile: "%[1]s/xfrd"
 zonelistfile: "%[1]s/list"
remote-control:
 control-enable: no
zone:
 name: example
 zonefile: %[3]q
`
	knotConfiguration = `server:
  listen: 127.0.0.1@%[2]d
  rundir: %[1]q
  pidfile: "%[1]s/pid"
database:
  storage: %[1]q
zone:
  - domain: example
    file: %[3]q
    zonefile-load: whole
    journal-content: none
`
)

// withConfig writes a configuration and returns the command that runs a program with it. The path of the configuration is the last
// argument.
func withConfig(dir, name, text, program string, args ...string) *exec.Cmd {
	file := filepath.Join(dir, name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return exec.Command("false")
	}
	c := exec.Command(program, append(args, file)...)
	log, err := os.Create(filepath.Join(dir, name+".log"))
	if err == nil {
		c.Stdout, c.Stderr = log, log
	}
	return c
}

// answers measures (A): UDP queries by dnsperf for a zone of a million names, compared with other name servers. It also measures memory and
// the change of one record.
func (b *bench) answers() error {
	if _, err := exec.LookPath("dnsperf"); err != nil {
		return fmt.Errorf("dnsperf: %w", pgtest.ErrNone)
	}
	dir, err := filepath.EvalSymlinks(b.dir)
	if err != nil {
		return err
	}
	zone, queries := filepath.Join(dir, "example.zone"), filepath.Join(dir, "queries")
	if err := writeAnswered(zone, queries, answeredNames); err != nil {
		return err
	}
	report := filepath.Join(dir, "report")
	c, err := spawn("authority", fmt.Sprint(answeredNames), report)
	if err != nil {
		return err
	}
	defer c.stop()
	ours, err := b.perf(c.addr, queries)
	if err != nil {
		return err
	}
	mib := residentOfAll(c.cmd.Process.Pid)
	times, err := os.ReadFile(report)
	if err != nil {
		return err
	}
	b.addResult("(A) a zone of a million names: all of it, a change of one record, memory", fmt.Sprintf("%s, %.0f MiB", times, mib))
	goals := map[string]float64{"BIND": 1, "CoreDNS": 1, "NSD": 0.5, "Knot": 0}
	for _, s := range nameServers {
		theirs, resident, err := b.measureOther(s, dir, zone, queries)
		if err != nil {
			fmt.Fprintf(os.Stderr, "(A) %s is left out: %v\n", s.name, err)
			continue
		}
		goal, good := "none", true
		if goals[s.name] > 0 {
			goal, good = fmt.Sprintf("at least %.1f", goals[s.name]), ours/theirs >= goals[s.name]
		}
		b.add("(A) questions of a million names, against "+s.name, perSecond(ours), perSecond(theirs), ours/theirs, goal, good)
		if s.name == "BIND" {
			b.add("(A) memory of a million names, against "+s.name, fmt.Sprintf("%.0f MiB", mib), fmt.Sprintf("%.0f MiB", resident), mib/resident,
				"at most 1", mib <= resident)
		}
	}
	return nil
}

// writeAnswered writes a zone with a number of names, and the queries. Nine of ten queried names exist.
func writeAnswered(zone, queries string, names int) error {
	var out, asked bytes.Buffer
	fmt.Fprintf(&out, answeredHead, 1)
	for n := range names {
		fmt.Fprintf(&out, "%s 3600 IN A %s\n", answeredName(n), answeredAddress(n))
	}
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a measurement
	for range 200_000 {
		fmt.Fprintf(&asked, "%s A\n", answeredName(random.IntN(names*10/9)))
	}
	if err := os.WriteFile(zone, out.Bytes(), 0o600); err != nil {
		return err
	}
	return os.WriteFile(queries, asked.Bytes(), 0o600)
}

// measureOther measures another name server. It returns queries per second and memory in MiB.
func (b *bench) measureOther(s nameServer, dir, zone, queries string) (rate, mib float64, err error) {
	c, err := s.run(dir, zone)
	if err != nil {
		return 0, 0, err
	}
	defer c.stop()
	if rate, err = b.perf(c.addr, queries); err != nil {
		return 0, 0, err
	}
	return rate, residentOfAll(c.cmd.Process.Pid), nil
}

// run starts the name server with a zone file and waits until it answers.
func (s nameServer) run(dir, zone string) (*child, error) {
	if _, err := exec.LookPath(s.program); s.program != "" && err != nil {
		return nil, err
	}
	place, err := os.MkdirTemp(dir, s.program)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	port := l.Addr().(*net.TCPAddr).Port
	_ = l.Close()
	c := &child{cmd: s.start(place, zone, port), addr: fmt.Sprintf("127.0.0.1:%d", port)}
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	m := new(dns.Msg)
	m.SetQuestion(answeredName(0), dns.TypeA)
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		if r, _, err := (&dns.Client{Timeout: time.Second}).Exchange(m, c.addr); err == nil && len(r.Answer) > 0 {
			return c, nil
		}
		if time.Now().After(deadline) {
			c.stop()
			return nil, errors.New("it does not answer")
		}
	}
}

// residentOfAll returns the memory of a process and its children, in MiB.
func residentOfAll(pid int) (mib float64) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if found := regexp.MustCompile(`(?m)^Pss:\s+(\d+) kB`).FindSubmatch(text); err == nil && found != nil {
		kib, _ := strconv.ParseFloat(string(found[1]), 64) // matches digits only
		mib += kib / 1024
	}
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		return mib
	}
	for _, one := range strings.Fields(string(children)) {
		if child, err := strconv.Atoi(one); err == nil {
			mib += residentOfAll(child)
		}
	}
	return mib
}

// perf runs dnsperf three times and returns the median of the answered queries per second.
func (b *bench) perf(at, queries string) (float64, error) {
	host, port, err := net.SplitHostPort(at)
	if err != nil {
		return 0, err
	}
	seconds := strconv.Itoa(max(2, int(b.time.Seconds())))
	var rates []float64
	for range 3 {
		out, err := exec.Command("dnsperf", "-s", host, "-p", port, "-d", queries, "-l", seconds, "-c", "16", "-T", "1",
			"-q", "200").CombinedOutput()
		found := regexp.MustCompile(`Queries per second:\s+([0-9.]+)`).FindSubmatch(out)
		if err != nil || found == nil {
			return 0, fmt.Errorf("dnsperf: %w: %s", err, out)
		}
		rate, err := strconv.ParseFloat(string(found[1]), 64)
		if err != nil {
			return 0, err
		}
		rates = append(rates, rate)
	}
	slices.Sort(rates)
	return rates[1], nil
}

// authorityRole serves a zone with a number of names, which is signed if the word signed follows. It writes to a file how long loading the
// zone and changing one record took, in milliseconds. A signed zone is served once all signatures exist.
func authorityRole(ctx context.Context, shape, report string) error {
	a := nameserver.Kind().New(slog.New(slog.DiscardHandler))
	defer func() { _ = a.Close() }()
	served, ok := a.(application.ContentServer)
	if !ok {
		return errors.New("the name server takes no zones")
	}
	names, signed := strings.CutSuffix(shape, " signed")
	z := &answeredZone{}
	var err error
	if z.names, err = strconv.Atoi(names); err != nil {
		return err
	}
	if signed {
		if err := z.createKeys(); err != nil {
			return err
		}
	}
	start := time.Now()
	if err := z.loadAll(served); err != nil {
		return err
	}
	whole := time.Since(start)
	var changes []time.Duration
	for range 50 {
		took, err := z.change(served)
		if err != nil {
			return err
		}
		changes = append(changes, took)
	}
	slices.Sort(changes)
	runtime.GC()
	text := fmt.Sprintf("%.0f ms, %.2f ms", float64(whole.Microseconds())/1000, float64(changes[len(changes)/2].Microseconds())/1000)
	if err := os.WriteFile(report, []byte(text), 0o600); err != nil {
		return err
	}
	for signed && a.Diagnostics().(nameserver.Diagnostics).Unsigned > 0 {
		time.Sleep(100 * time.Millisecond)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	port := l.Addr().(*net.TCPAddr).Port
	_ = l.Close()
	if err := a.Configure(fmt.Appendf(nil, `{"listen":[{"address":"127.0.0.1","port":%d}]}`, port)); err != nil {
		return err
	}
	fmt.Printf("127.0.0.1:%d\n", port)
	<-ctx.Done()
	return nil
}

// coreDNSRole runs CoreDNS with a Corefile and the plugin file.
func coreDNSRole(ctx context.Context, corefile string) error {
	text, err := os.ReadFile(corefile)
	if err != nil {
		return err
	}
	dnsserver.Quiet, caddy.Quiet = true, true
	instance, err := caddy.Start(caddy.CaddyfileInput{Contents: text, Filepath: corefile, ServerTypeName: "dns"})
	if err != nil {
		return err
	}
	<-ctx.Done()
	return instance.Stop()
}

// answeredZone is the zone in the form that the name server receives.
type answeredZone struct {
	names int
	// signing is nil if the zone is not signed; keys are its DNSKEY records.
	signing  *zonedata.Signing
	keys     string
	settings []byte
	hash     zonedata.Hash
	revision string
	number   int64
}

// record returns a record from its text.
func record(text string) (zonedata.Record, error) {
	rr, err := dns.NewRR(text)
	if err != nil {
		return nil, err
	}
	return zonedata.NewRecord(rr)
}

// visitRecords calls fn for all records, the SOA first.
func (z *answeredZone) visitRecords(fn func(zonedata.Record)) error {
	for line := range strings.Lines(fmt.Sprintf(answeredHead, 1) + z.keys) {
		r, err := record(line)
		if err != nil {
			return err
		}
		fn(r)
	}
	for n := range z.names {
		name := make([]byte, 32)
		end, err := dns.PackDomainName(answeredName(n), name, 0, nil, false)
		if err != nil {
			return err
		}
		fn(append(name[:end:end], 0, 1, 0, 1, 0, 0, 0x0e, 0x10, 0, 4, 10, byte(n>>16), byte(n>>8), byte(n)))
	}
	return nil
}

// nextRevision returns the next revision with the current content.
func (z *answeredZone) nextRevision() string {
	z.number++
	return zonedata.Revision{Number: z.number, Hash: zonedata.Total(z.settings, map[string]string{"1/example": z.hash.String()})}.String()
}

// loadAll sends the whole zone to a name server.
func (z *answeredZone) loadAll(to application.ContentServer) error {
	var err error
	if z.settings, err = json.Marshal(zonedata.Settings{Views: []zonedata.View{{ID: 1, Name: "default"}},
		Zones: []zonedata.Zone{{ID: "1/example", View: 1, Name: "example.", Signing: z.signing,
			Transfer: []zonedata.Match{{Prefix: netip.MustParsePrefix("127.0.0.0/8")}}}}}); err != nil {
		return err
	}
	if err := z.visitRecords(z.hash.Add); err != nil {
		return err
	}
	z.revision = z.nextRevision()
	in, out := io.Pipe()
	go func() {
		w := zonedata.NewWriter(out, zonedata.Header{To: z.revision})
		w.Settings(z.settings)
		w.Zone(zonedata.Change{ID: "1/example", To: z.hash.String(), Serial: 1})
		err := z.visitRecords(w.Added)
		_ = out.CloseWithError(errors.Join(err, w.Close()))
	}()
	return to.ApplyContent(in)
}

// change changes one record and the SOA, and returns how long that took.
func (z *answeredZone) change(to application.ContentServer) (time.Duration, error) {
	serial := int(z.number)
	var records [4]zonedata.Record
	soa := func(serial int) string { return strings.SplitN(fmt.Sprintf(answeredHead, serial), "\n", 2)[0] }
	host := func(serial int) string { return fmt.Sprintf("ns.example. 3600 IN A 192.0.2.%d", serial) }
	for i, text := range []string{soa(serial), host(serial), soa(serial + 1), host(serial + 1)} {
		var err error
		if records[i], err = record(text); err != nil {
			return 0, err
		}
	}
	from, before := z.hash.String(), z.revision
	for i, r := range records {
		if i < 2 {
			z.hash.Remove(r)
		} else {
			z.hash.Add(r)
		}
	}
	z.revision = z.nextRevision()
	var stream bytes.Buffer
	w := zonedata.NewWriter(&stream, zonedata.Header{From: before, To: z.revision})
	w.Zone(zonedata.Change{ID: "1/example", From: from, To: z.hash.String(), Serial: uint32(serial + 1)})
	for i, r := range records {
		if i < 2 {
			w.Removed(r)
		} else {
			w.Added(r)
		}
	}
	if err := w.Close(); err != nil {
		return 0, err
	}
	start := time.Now()
	err := to.ApplyContent(&stream)
	return time.Since(start), err
}
