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
	u := units(t, noPing, dhcpdata.Option{Code: 6, Name: "dns-server", Value: dhcpdata.Hex{10, 0, 0, 53}, From: from},
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

var perfNumbers = regexp.MustCompile(`(?s)DISCOVER-OFFER.*?received packets: (\d+).*?REQUEST-ACK.*?received packets: (\d+).*?` +
	`avg delay: ([0-9.]+) ms`)

// measure runs perfdhcp and returns the ACKs per second and the average delay from REQUEST to ACK in milliseconds.
func (l *lab) measure(o offered) (acks, delay float64) {
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
	n, err := strconv.Atoi(all[2])
	if err != nil {
		l.t.Fatal(err)
	}
	delay, err = strconv.ParseFloat(all[3], 64)
	if err != nil {
		l.t.Fatal(err)
	}
	return float64(n) / float64(o.seconds), delay
}

// TestKeaRatio compares the exchanges per second with those of Kea, in turn. Both have the same networks, options, class and reservations;
// ours waits for the disk before each ACK. The ratio is printed and fails nothing.
func TestKeaRatio(t *testing.T) {
	if os.Getenv("PORTOLAN_TEST_LONG") == "" {
		t.Skip("a measurement: PORTOLAN_TEST_LONG=yes")
	}
	for _, rate := range []int{4000, 8000} {
		results := map[string][]float64{}
		delays := map[string][]float64{}
		for range 3 {
			for _, name := range []string{"portolan", "kea 1", "kea 2"} {
				acks, delay := measureServer(t, name, offered{rate, 5})
				results[name], delays[name] = append(results[name], acks), append(delays[name], delay)
			}
		}
		best := math.Max(median(results["kea 1"]), median(results["kea 2"]))
		t.Logf("%d offered: portolan %.0f/s %.2f ms, kea 1 thread %.0f/s %.2f ms, 2 threads %.0f/s %.2f ms; ratio %.2f", rate,
			median(results["portolan"]), median(delays["portolan"]), median(results["kea 1"]), median(delays["kea 1"]),
			median(results["kea 2"]), median(delays["kea 2"]), median(results["portolan"])/best)
	}
}

func median(all []float64) float64 { slices.Sort(all); return all[len(all)/2] }

// measureServer measures one server in new namespaces.
func measureServer(t *testing.T, name string, o offered) (acks, delay float64) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		l := newLab(t)
		l.in(l.client, "ip", "address", "add", "10.0.0.3/16", "dev", "c0")
		if text, isKea := strings.CutPrefix(name, "kea "); isKea {
			threads, err := strconv.Atoi(text)
			if err != nil {
				t.Fatal(err)
			}
			l.startKea(keaConfiguration(t, l.dir, threads))
		} else {
			l.serve(loadedUnits(t))
		}
		acks, delay = l.measure(o)
	})
	return acks, delay
}

// startKea starts Kea and waits until it answers.
func (l *lab) startKea(configuration string) {
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
}
