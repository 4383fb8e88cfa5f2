package dhcp

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"portolan/internal/testkit/peers"
	"portolan/internal/wire/dhcpdata"
)

// loadedReservations is the content of the comparison: a /16 with options, a class with an option, and 50,000 reservations in another
// network.
const loadedReservations = 50_000

// loadedUnits returns the content for our server.
func loadedUnits(t *testing.T) dhcpdata.Units {
	t.Helper()
	from := dhcpdata.Source{Level: dhcpdata.AtNetwork, ID: 7}
	u := units(t, noPing, option("dhcp-cache-threshold", 0),
		dhcpdata.Option{Code: 6, Name: "dns-server", Value: dhcpdata.Hex{10, 0, 0, 53}, From: from},
		dhcpdata.Option{Code: 15, Name: "domain-name", Value: dhcpdata.Hex("example.com"), From: from})
	items := []dhcpdata.Item{dhcpdata.Network{ID: 20, Prefix: netip.MustParsePrefix("10.64.0.0/10")}}
	for n := range loadedReservations {
		items = append(items, dhcpdata.Reservation{ID: int64(1000 + n), Address: netip.AddrFrom4([4]byte{10, 64, byte(n >> 8), byte(n)}),
			MAC: dhcpdata.Hex{2, 1, 0, byte(n >> 16), byte(n >> 8), byte(n)}})
	}
	u[dhcpdata.NetworkUnit(20)] = unit(t, dhcpdata.NetworkUnit(20), items...)
	condition, _, err := dhcpdata.ParseMatch(`if substring(option vendor-class-identifier, 0, 9) = "PXEClient"`, nil)
	if err != nil {
		t.Fatal(err)
	}
	u[dhcpdata.ClassUnit(21)] = unit(t, dhcpdata.ClassUnit(21), dhcpdata.Class{ID: 21, Name: "pxe", If: condition},
		dhcpdata.Option{Code: 67, Name: "boot-file-name", Value: dhcpdata.Hex("a.efi"), From: dhcpdata.Source{Level: dhcpdata.AtClass, ID: 21}})
	return u
}

// keaConfiguration returns the same content for Kea.
func keaConfiguration(t *testing.T, dir string, threads int) string {
	t.Helper()
	var reservations []map[string]string
	for n := range loadedReservations {
		reservations = append(reservations, map[string]string{"ip-address": fmt.Sprintf("10.64.%d.%d", n>>8, n&255),
			"hw-address": fmt.Sprintf("02:01:00:%02x:%02x:%02x", n>>16, n>>8&255, n&255)})
	}
	options := []map[string]string{{"name": "domain-name-servers", "data": "10.0.0.53"}, {"name": "domain-name", "data": "example.com"},
		{"name": "routers", "data": "10.0.0.1"}}
	text, err := json.Marshal(map[string]any{"Dhcp4": map[string]any{
		"interfaces-config": map[string]any{"interfaces": []string{"s0"}, "dhcp-socket-type": "raw"},
		"lease-database":    map[string]any{"type": "memfile", "persist": true, "name": filepath.Join(dir, "kea.csv"), "lfc-interval": 0},
		"multi-threading":   map[string]any{"enable-multi-threading": threads > 1, "thread-pool-size": threads, "packet-queue-size": 64},
		"valid-lifetime":    86400, "client-classes": []any{map[string]any{"name": "pxe",
			"test": "substring(option[60].hex,0,9) == 'PXEClient'", "boot-file-name": "a.efi"}},
		"subnet4": []any{map[string]any{"id": 7, "subnet": "10.0.0.0/16", "pools": []any{map[string]any{"pool": "10.0.1.0 - 10.0.200.255"}},
			"option-data": options, "interface": "s0"},
			map[string]any{"id": 20, "subnet": "10.64.0.0/10", "reservations": reservations}},
		"loggers": []any{map[string]any{"name": "kea-dhcp4", "severity": "ERROR",
			"output_options": []any{map[string]any{"output": "stderr"}}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "kea.json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// offered is the load in exchanges per second, and its duration in seconds.
type offered struct{ rate, seconds int }

// figures are those of a load on a server: the completed exchanges per second, the share of exchanges that were lost, the CPU time of the
// server for an exchange in microseconds, and the 99th percentiles of the time of an exchange and of a renewal in milliseconds.
type figures struct{ rate, lost, cpu, exchange, renewal float64 }

// perfNumbers are the numbers of DISCOVERs that were sent and of ACKs that were received.
var perfNumbers = regexp.MustCompile(`(?s)DISCOVER-OFFER.*?sent packets: (\d+).*?REQUEST-ACK.*?received packets: (\d+)`)

// measure runs perfdhcp and returns the exchanges that began and that were completed.
func (l *lab) measure(o offered) (begun, done float64) {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.t.Context(), time.Duration(o.seconds+20)*time.Second)
	defer cancel()
	// perfdhcp ends with an exit status of 3 if packets were lost.
	out, err := exec.CommandContext(ctx, "ip", "netns", "exec", l.client, peers.Program(l.t, "perfdhcp"), "-4", "-l", "10.0.0.3",
		"-r", strconv.Itoa(o.rate), "-R", "60000", "-p", strconv.Itoa(o.seconds), "-W", "1000000", "10.0.0.2").CombinedOutput()
	all := perfNumbers.FindStringSubmatch(string(out))
	if all == nil {
		l.t.Fatalf("perfdhcp: %v\n%s", err, out)
	}
	return number(l.t, all[1]), number(l.t, all[2])
}

func number(t testing.TB, text string) float64 {
	t.Helper()
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// processTime returns the CPU time that a process has used, in seconds. It does not depend on the load of the machine.
func processTime(t testing.TB, process int) float64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", process))
	if err != nil {
		t.Fatal(err)
	}
	const user, system, ticks = 11, 12, 100
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	return (number(t, fields[user]) + number(t, fields[system])) / ticks
}

// acceptedLoss is the share of exchanges that may be lost at the most exchanges per second of a server.
const acceptedLoss = 0.025

// TestKeaRatio compares with Kea, in turn: the most exchanges per second, the CPU time for each, and the times of exchanges and renewals at
// half of the most exchanges of Kea. Both have the same networks, options, class and reservations; ours waits for the disk before each
// ACK. The figures are printed and fail nothing.
func TestKeaRatio(t *testing.T) {
	if os.Getenv("PORTOLAN_TEST_LONG") == "" {
		t.Skip("a measurement: PORTOLAN_TEST_LONG=yes")
	}
	names := []string{"portolan", "kea 1", "kea 2"}
	most := map[string]float64{}
	for rate := 8000; rate <= 28_000; rate += 4000 {
		all := map[string]figures{}
		for _, name := range names {
			all[name] = medians(t, 3, func() figures { return offerTo(t, name, offered{rate, 5}) })
			t.Logf("%d offered: %s %.0f/s, %.1f %% lost, %.0f us CPU", rate, name, all[name].rate, 100*all[name].lost, all[name].cpu)
			if all[name].lost <= acceptedLoss {
				most[name] = math.Max(most[name], all[name].rate)
			}
		}
		kea := math.Min(all["kea 1"].lost, all["kea 2"].lost)
		t.Logf("%d offered: ratio %.2f, CPU %.2f", rate, all["portolan"].rate/math.Max(all["kea 1"].rate, all["kea 2"].rate),
			all["portolan"].cpu/math.Min(all["kea 1"].cpu, all["kea 2"].cpu))
		if all["portolan"].lost > acceptedLoss && kea > acceptedLoss {
			break
		}
	}
	best := math.Max(most["kea 1"], most["kea 2"])
	t.Logf("most at %.1f %% lost: portolan %.0f/s, kea %.0f/s; ratio %.2f", 100*acceptedLoss, most["portolan"], best, most["portolan"]/best)
	half := max(int(best)/2, 1000)
	all := map[string]figures{}
	for _, name := range names {
		all[name] = medians(t, 3, func() figures { return timesOf(t, name, half) })
		t.Logf("%d offered: %s p99 of an exchange %.2f ms, of a renewal %.2f ms, %.1f %% lost", half, name, all[name].exchange,
			all[name].renewal, 100*all[name].lost)
	}
	t.Logf("ratio of p99: exchange %.2f, renewal %.2f", all["portolan"].exchange/math.Min(all["kea 1"].exchange, all["kea 2"].exchange),
		all["portolan"].renewal/math.Min(all["kea 1"].renewal, all["kea 2"].renewal))
}

// medians measures several times and returns the median of each figure.
func medians(t *testing.T, times int, measure func() figures) figures {
	t.Helper()
	var all [5][]float64
	for range times {
		f := measure()
		for i, one := range []float64{f.rate, f.lost, f.cpu, f.exchange, f.renewal} {
			all[i] = append(all[i], one)
		}
	}
	return figures{median(all[0]), median(all[1]), median(all[2]), median(all[3]), median(all[4])}
}

func median(all []float64) float64 { slices.Sort(all); return all[len(all)/2] }

// startServer starts a server in new namespaces and returns its process.
func startServer(t *testing.T, name string) (l *lab, process int) {
	t.Helper()
	l = newLab(t)
	l.in(l.client, "ip", "address", "add", "10.0.0.3/16", "dev", "c0")
	text, isKea := strings.CutPrefix(name, "kea ")
	if !isKea {
		return l, child(t, l.dir, loadedUnits(t), `{}`, "ip", "netns", "exec", l.server).Process.Pid
	}
	return l, l.startKea(keaConfiguration(t, l.dir, int(number(t, text))))
}

// offerTo offers exchanges to a server by perfdhcp.
func offerTo(t *testing.T, name string, o offered) (f figures) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		l, process := startServer(t, name)
		before := processTime(t, process)
		begun, done := l.measure(o)
		f = figures{rate: done / float64(o.seconds), lost: 1 - done/begun, cpu: 1e6 * (processTime(t, process) - before) / done}
	})
	return f
}

// timesOf measures the times of exchanges, and of renewals of their leases.
func timesOf(t *testing.T, name string, rate int) (f figures) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		l, _ := startServer(t, name)
		const seconds = 4
		g := newGenerator(t, l, min(rate*seconds, 40_000))
		f.exchange = g.run(rate, g.discover)
		f.lost = g.lost()
		f.renewal = g.run(rate, g.renewal)
	})
	return f
}

// startKea starts Kea, waits until it answers, and returns its process.
func (l *lab) startKea(configuration string) int {
	l.t.Helper()
	c := exec.Command("ip", "netns", "exec", l.server, peers.Program(l.t, "kea-dhcp4"), "-c", configuration)
	c.Env = append(os.Environ(), "KEA_PIDFILE_DIR="+l.dir, "KEA_LOCKFILE_DIR=none")
	out, err := os.Create(filepath.Join(l.dir, "kea.log"))
	if err != nil {
		l.t.Fatal(err)
	}
	c.Stdout, c.Stderr = out, out
	if err := c.Start(); err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() {
		_ = c.Process.Kill() // it runs until then
		_ = c.Wait()
		text, err := os.ReadFile(out.Name())
		if l.t.Failed() && err == nil {
			l.t.Logf("%s", text)
		}
	})
	waitFor(l.t, func() bool {
		text := l.in(l.server, "ss", "-lnu")
		return strings.Contains(text, ":67 ")
	})
	return c.Process.Pid
}
