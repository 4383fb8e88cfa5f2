package dhcp

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"portolan/internal/testkit/peers"
)

// keaConfiguration6 is the configuration of Kea with the ranges of manyAddresses. Kea writes its leases to a file without waiting for the
// disk.
const keaConfiguration6 = `{"Dhcp6":{"interfaces-config":{"interfaces":["s6"]},"valid-lifetime":86400,
"server-id":{"type":"EN","enterprise-id":2495,"identifier":"0123456789","persist":false},
"lease-database":{"type":"memfile","persist":true,"name":%q,"lfc-interval":0},"control-socket":{"socket-type":"unix","socket-name":%q},
"subnet6":[{"subnet":"2001:db8:1::/48","interface":"s6","pools":[{"pool":"2001:db8:1::1:0-2001:db8:1::1000:ffff"}],
"pd-pools":[{"prefix":"2001:db8:1:8000::","prefix-len":49,"delegated-len":64}]}],
"loggers":[{"name":"kea-dhcp6","severity":"ERROR","output_options":[{"output":"stderr"}]}]}}`

// TestKeaRatio6 compares the exchanges of four messages with those of Kea, in turn, for addresses, and for addresses and prefixes. It
// raises the offer until both servers lose exchanges. The figures are printed and fail nothing.
func TestKeaRatio6(t *testing.T) {
	if os.Getenv("PORTOLAN_TEST_LONG") == "" {
		t.Skip("a measurement: PORTOLAN_TEST_LONG=yes")
	}
	kea, perfdhcp := peers.Program(t, "kea-dhcp6"), peers.Program(t, "perfdhcp")
	ip, server, client := link6(t)
	const seconds = 5
	for _, kind := range []string{"address-only", "address-and-prefix"} {
		var most [2]float64
		for rate := 4000; rate <= 24_000; rate += 4000 {
			var all [2]figures
			for i, start := range []func() func() time.Duration{
				func() func() time.Duration { return serve6(t, ip, server) },
				func() func() time.Duration { return serveKea6(t, ip, kea, server) },
			} {
				all[i] = medians(t, 3, func() figures {
					stop := start()
					begun, done := offer6Load(t, ip, perfdhcp, client, kind, offered{rate, seconds})
					return figures{rate: done / seconds, lost: 1 - done/begun, cpu: 1e6 * stop().Seconds() / done}
				})
				if all[i].lost <= acceptedLoss {
					most[i] = max(most[i], all[i].rate)
				}
			}
			t.Logf("%s, %d offered: portolan %.0f/s, %.1f %% lost, %.0f us CPU; kea %.0f/s, %.1f %% lost, %.0f us CPU; ratio %.2f, CPU %.2f", kind,
				rate, all[0].rate, 100*all[0].lost, all[0].cpu, all[1].rate, 100*all[1].lost, all[1].cpu, all[0].rate/all[1].rate,
				all[0].cpu/all[1].cpu)
			if all[0].lost > acceptedLoss && all[1].lost > acceptedLoss {
				break
			}
		}
		t.Logf("%s, most at %.1f %% lost: portolan %.0f/s, kea %.0f/s; ratio %.2f", kind, 100*acceptedLoss, most[0], most[1], most[0]/most[1])
	}
}

// serveKea6 runs Kea in a network namespace, and returns a function that ends it and returns its CPU time.
func serveKea6(t testing.TB, ip, kea, namespace string) (stop func() time.Duration) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "kea.json")
	text := fmt.Sprintf(keaConfiguration6, filepath.Join(dir, "leases.csv"), filepath.Join(dir, "socket"))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), ip, "netns", "exec", namespace, kea, "-c", file) //nolint:gosec // the programs of the benchmark
	c.Env = append(os.Environ(), "KEA_PIDFILE_DIR="+dir, "KEA_LOCKFILE_DIR=none")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool {
		out, err := exec.Command(ip, "netns", "exec", namespace, "cat", "/proc/net/udp6").Output() //nolint:gosec // as above
		return err == nil && strings.Contains(string(out), ":0223 ")                               // port 547
	})
	return func() time.Duration {
		if err := c.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		_ = c.Wait() // it ends by the signal
		return c.ProcessState.SystemTime() + c.ProcessState.UserTime()
	}
}

// perfNumbers6 are the numbers of SOLICITs that were sent and of REPLYs that were received.
var perfNumbers6 = regexp.MustCompile(`(?s)SOLICIT-ADVERTISE.*?sent packets: (\d+).*?REQUEST-REPLY.*?received packets: (\d+)`)

// offer6Load lets perfdhcp offer exchanges to the server, and returns the numbers of those that began and of completed ones.
func offer6Load(t testing.TB, ip, perfdhcp, namespace, kind string, o offered) (begun, done float64) {
	t.Helper()
	out, _ := exec.CommandContext(t.Context(), ip, "netns", "exec", namespace, perfdhcp, "-6", "-l", "c6", "-r", strconv.Itoa(o.rate),
		"-R", "100000", "-p", strconv.Itoa(o.seconds), "-e", kind, "-W", "1000000").
		CombinedOutput() //nolint:gosec // as above; it fails where packets are lost
	m := perfNumbers6.FindStringSubmatch(string(out))
	if m == nil {
		t.Fatalf("perfdhcp: %s", out)
	}
	return number(t, m[1]), number(t, m[2])
}
