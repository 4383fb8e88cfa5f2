package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	dns "portolan/internal/base/dnsmsg"
	"portolan/internal/testkit/pgtest"
	"portolan/internal/wire/zonedata"
)

// costNames is the number of names in the zone of (G). costRounds is the number of alternating measurements of each server.
const (
	costNames  = 100_000
	costRounds = 7
)

// cost measures (G): the CPU of a question over UDP and the latency at half load, compared with BIND and NSD in alternating rounds; and the
// first questions and transfers of a signed zone.
func (b *bench) cost() error {
	if _, err := exec.LookPath("dnsperf"); err != nil {
		return fmt.Errorf("dnsperf: %w", pgtest.ErrNone)
	}
	dir, err := filepath.EvalSymlinks(b.dir)
	if err != nil {
		return err
	}
	zone, queries := filepath.Join(dir, "cost.zone"), filepath.Join(dir, "cost.queries")
	if err := writeAnswered(zone, queries, costNames); err != nil {
		return err
	}
	if err := b.costOfQuestions(dir, zone, queries); err != nil {
		return err
	}
	return b.costOfSigning(dir, zone)
}

// costOfQuestions compares the CPU of questions at saturation, and the latency at half of the lowest rate.
func (b *bench) costOfQuestions(dir, zone, queries string) error {
	ours, err := spawn("authority", fmt.Sprint(costNames), filepath.Join(dir, "report"))
	if err != nil {
		return err
	}
	defer ours.stop()
	servers, names := []*child{ours}, []string{"Portolan"}
	goals := map[string]float64{"BIND": 1.1, "NSD": 0.9}
	for _, s := range nameServers {
		if goals[s.name] == 0 {
			continue
		}
		c, err := s.run(dir, zone)
		if err != nil {
			fmt.Fprintf(os.Stderr, "(G) %s is left out: %v\n", s.name, err)
			continue
		}
		defer c.stop()
		servers, names = append(servers, c), append(names, s.name)
	}
	costs, ratios, rates := make([][]float64, len(servers)), make([][]float64, len(servers)), make([][]float64, len(servers))
	for range costRounds {
		for i, c := range servers {
			one, err := b.costOf(c, queries)
			if err != nil {
				return err
			}
			costs[i], rates[i] = append(costs[i], one.cpu), append(rates[i], one.rate)
			ratios[i] = append(ratios[i], one.cpu/costs[0][len(costs[0])-1])
		}
	}
	load := median(rates[0])
	for i, name := range names[1:] {
		ratio := median(ratios[i+1])
		b.add("(G) CPU of a question at saturation, "+name+"'s by ours", fmt.Sprintf("%.2f us", median(costs[0])),
			fmt.Sprintf("%.2f us", median(costs[i+1])), ratio, fmt.Sprintf("at least %.1f", goals[name]), ratio >= goals[name])
		load = min(load, median(rates[i+1]))
	}
	late := make([][]float64, len(servers))
	for range costRounds {
		for i, c := range servers {
			one, err := b.latencyAt(c, queries, int(load/2))
			if err != nil {
				return err
			}
			late[i] = append(late[i], one)
		}
	}
	for i, name := range names[1:] {
		ratio, goal, good := median(late[0])/median(late[i+1]), "none", true
		if name == "BIND" {
			goal, good = "at most 1", ratio <= 1
		}
		b.add(fmt.Sprintf("(G) p99 of questions at %.0f/s, against %s", load/2, name), fmt.Sprintf("%.2f ms", median(late[0])),
			fmt.Sprintf("%.2f ms", median(late[i+1])), ratio, goal, good)
	}
	return nil
}

// median returns the median of values.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// questionCost is the CPU of a question in microseconds, with the rate of answers.
type questionCost struct{ cpu, rate float64 }

var (
	perfCompleted = regexp.MustCompile(`Queries completed:\s+(\d+)`)
	perfRate      = regexp.MustCompile(`Queries per second:\s+([0-9.]+)`)
)

// costOf measures a server with dnsperf and further arguments of it.
func (b *bench) costOf(c *child, queries string, args ...string) (one questionCost, err error) {
	host, port, _ := strings.Cut(c.addr, ":")
	if len(args) == 0 {
		args = []string{"-l", strconv.Itoa(max(1, int(b.time.Seconds())))}
	}
	before, err := cpuOfAll(c.cmd.Process.Pid)
	if err != nil {
		return one, err
	}
	out, err := exec.Command("dnsperf", append([]string{"-s", host, "-p", port, "-d", queries, "-c", "16", "-T", "1", "-q", "200"},
		args...)...).CombinedOutput()
	completed, rate := perfCompleted.FindSubmatch(out), perfRate.FindSubmatch(out)
	if err != nil || completed == nil || rate == nil {
		return one, fmt.Errorf("dnsperf: %w: %s", err, out)
	}
	after, err := cpuOfAll(c.cmd.Process.Pid)
	if err != nil {
		return one, err
	}
	n, err := strconv.ParseFloat(string(completed[1]), 64)
	if err != nil {
		return one, err
	}
	one.cpu = float64((after - before).Microseconds()) / n
	one.rate, err = strconv.ParseFloat(string(rate[1]), 64)
	return one, err
}

// latencyAt returns the p99 of the latency in milliseconds at a rate of questions.
func (b *bench) latencyAt(c *child, queries string, rate int) (float64, error) {
	host, port, _ := strings.Cut(c.addr, ":")
	out, err := exec.Command("dnsperf", "-v", "-s", host, "-p", port, "-d", queries, "-c", "16", "-T", "1", "-q", "200", "-Q",
		strconv.Itoa(rate), "-l", strconv.Itoa(max(1, int(b.time.Seconds())))).Output()
	if err != nil {
		return 0, fmt.Errorf("dnsperf: %w", err)
	}
	var all []float64
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line) // > NOERROR host-1.example A 0.000123
		if len(words) < 5 || words[0] != ">" {
			continue
		}
		seconds, err := strconv.ParseFloat(words[len(words)-1], 64)
		if err != nil { // a lost question
			seconds = 5
		}
		all = append(all, seconds*1000)
	}
	if len(all) == 0 {
		return 0, fmt.Errorf("dnsperf answers %.500s", out)
	}
	slices.Sort(all)
	return all[len(all)*99/100], nil
}

// cpuOfAll returns the CPU time of a process and its children.
func cpuOfAll(pid int) (total time.Duration, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < 13 {
		return 0, fmt.Errorf("the state of process %d is %q", pid, text)
	}
	for _, field := range fields[11:13] { // utime and stime in hundredths of a second
		ticks, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, err
		}
		total += time.Duration(ticks) * 10 * time.Millisecond
	}
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		return total, err
	}
	for _, one := range strings.Fields(string(children)) {
		child, err := strconv.Atoi(one)
		if err != nil {
			return total, err
		}
		more, err := cpuOfAll(child)
		if err != nil {
			return total, err
		}
		total += more
	}
	return total, nil
}

// costOfSigning measures the questions for each name of a signed zone, once and again, and transfers of it, compared with BIND and a zone
// that was signed before.
func (b *bench) costOfSigning(dir, zone string) error {
	start := time.Now()
	ours, err := spawn("authority", fmt.Sprint(costNames, " signed"), filepath.Join(dir, "report"))
	if err != nil {
		return err
	}
	defer ours.stop()
	used, err := cpuOfAll(ours.cmd.Process.Pid)
	if err != nil {
		return err
	}
	b.addResult("(G) signing a zone of 100,000 names ahead, at most half of a processor", fmt.Sprintf("%.1f s of CPU in %.1f s, %.0f MiB",
		used.Seconds(), time.Since(start).Seconds(), residentOfAll(ours.cmd.Process.Pid)))
	var asked bytes.Buffer
	for n := range costNames {
		fmt.Fprintf(&asked, "%s A\n", answeredName(n))
	}
	queries := filepath.Join(dir, "cost.each")
	if err := os.WriteFile(queries, asked.Bytes(), 0o600); err != nil {
		return err
	}
	var passes [3]float64
	for i := range passes {
		one, err := b.costOf(ours, queries, "-n", "1", "-D")
		if err != nil {
			return err
		}
		passes[i] = one.cpu
	}
	ratio := passes[0] / min(passes[1], passes[2])
	b.add("(G) CPU of the first questions of a signed zone, against later ones", fmt.Sprintf("%.2f us", passes[0]),
		fmt.Sprintf("%.2f us", min(passes[1], passes[2])), ratio, "at most 1.5", ratio <= 1.5)
	signed, err := signZone(dir, zone)
	if err != nil {
		fmt.Fprintf(os.Stderr, "(G) signed transfers are left out: %v\n", err)
		return nil
	}
	theirs, err := nameServers[0].run(dir, signed)
	if err != nil {
		fmt.Fprintf(os.Stderr, "(G) signed transfers are left out: %v\n", err)
		return nil
	}
	defer theirs.stop()
	var all [2][]float64
	for range 3 {
		for i, c := range []*child{ours, theirs} {
			one, err := transferCost(c)
			if err != nil {
				return err
			}
			all[i] = append(all[i], one)
		}
	}
	ratio = median(all[0]) / median(all[1])
	b.add("(G) CPU of a signed transfer of 100,000 names, against BIND", fmt.Sprintf("%.2f s", median(all[0])),
		fmt.Sprintf("%.2f s", median(all[1])), ratio, "at most 2", ratio <= 2)
	return nil
}

// transferCost returns the CPU of a transfer of the zone in seconds. The zone must be signed.
func transferCost(c *child) (float64, error) {
	before, err := cpuOfAll(c.cmd.Process.Pid)
	if err != nil {
		return 0, err
	}
	m := new(dns.Msg)
	m.SetAxfr("example.")
	envelopes, err := (&dns.Transfer{ReadTimeout: time.Minute}).In(m, c.addr)
	if err != nil {
		return 0, err
	}
	signatures := 0
	for e := range envelopes {
		err = errors.Join(err, e.Error)
		for _, rr := range e.RR {
			if rr.Header().Rrtype == dns.TypeRRSIG {
				signatures++
			}
		}
	}
	if err == nil && signatures < 2*costNames {
		err = fmt.Errorf("the transfer has %d signatures", signatures)
	}
	if err != nil {
		return 0, err
	}
	after, err := cpuOfAll(c.cmd.Process.Pid)
	return (after - before).Seconds(), err
}

// signZone signs a zone file with BIND's programs and returns the signed one.
func signZone(dir, zone string) (string, error) {
	keys, err := os.MkdirTemp(dir, "keys")
	if err != nil {
		return "", err
	}
	signed := zone + ".signed"
	for _, args := range [][]string{
		{"dnssec-keygen", "-q", "-K", keys, "-a", "ECDSAP256SHA256", "-f", "KSK", "example"},
		{"dnssec-keygen", "-q", "-K", keys, "-a", "ECDSAP256SHA256", "example"},
		{"dnssec-signzone", "-q", "-S", "-x", "-K", keys, "-d", keys, "-o", "example", "-f", signed, zone},
	} {
		c := exec.Command(args[0], args[1:]...) //nolint:gosec // the installed programs
		c.Dir = keys
		if out, err := c.CombinedOutput(); err != nil {
			return "", fmt.Errorf("%s: %w: %s", args[0], err, out)
		}
	}
	return signed, nil
}

// createKeys creates the keys of a signed zone.
func (z *answeredZone) createKeys() error {
	z.signing = &zonedata.Signing{Validity: 1209600, Renewal: 259200}
	for _, flags := range []uint16{257, 256} {
		key := &dns.DNSKEY{Hdr: dns.RR_Header{Name: "example.", Rrtype: dns.TypeDNSKEY, Class: dns.ClassINET, Ttl: 3600}, Flags: flags,
			Protocol: 3, Algorithm: dns.ECDSAP256SHA256}
		private, err := key.Generate(256)
		if err != nil {
			return err
		}
		z.signing.Keys = append(z.signing.Keys, zonedata.ZoneKey{Flags: flags, Algorithm: key.Algorithm, Public: key.PublicKey,
			Private: key.PrivateKeyString(private)})
		z.keys += key.String() + "\n"
	}
	return nil
}
