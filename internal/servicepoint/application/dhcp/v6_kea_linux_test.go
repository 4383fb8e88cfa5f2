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

// BenchmarkKea6 offers exchanges of four messages to this server and to Kea in turn, for addresses, and for addresses and prefixes. It
// reports the completed exchanges and the CPU time for each of them relative to Kea.
func BenchmarkKea6(b *testing.B) {
	if os.Geteuid() != 0 {
		b.Skip("network namespaces require root")
	}
	kea, perfdhcp := peers.Program(b, "kea-dhcp6"), peers.Program(b, "perfdhcp")
	ip, server, client := link6(b)
	for _, kind := range []string{"address-only", "address-and-prefix"} {
		b.Run(kind, func(b *testing.B) {
			var done, cpu [2]float64
			for b.Loop() {
				for i, start := range []func() func() time.Duration{
					func() func() time.Duration { return serve6(b, ip, server) },
					func() func() time.Duration { return serveKea6(b, ip, kea, server) },
				} {
					stop := start()
					n := offer6Load(b, ip, perfdhcp, client, kind)
					done[i] += n
					cpu[i] += stop().Seconds()
				}
			}
			b.Logf("exchanges: %.0f, Kea %.0f; CPU for 1,000: %.3f s, Kea %.3f s", done[0], done[1], 1000*cpu[0]/done[0], 1000*cpu[1]/done[1])
			b.ReportMetric(done[0]/done[1], "exchanges/Kea")
			b.ReportMetric(cpu[0]/done[0]/(cpu[1]/done[1]), "CPU/Kea")
		})
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

// offer6Load lets perfdhcp offer exchanges to the server, and returns the number of completed ones.
func offer6Load(t testing.TB, ip, perfdhcp, namespace, kind string) float64 {
	t.Helper()
	const rate, seconds = "4000", "5"
	out, _ := exec.CommandContext(t.Context(), ip, "netns", "exec", namespace, perfdhcp, "-6", "-l", "c6", "-r", rate, "-R", "100000",
		"-p", seconds, "-e", kind, "-W", "1").CombinedOutput() //nolint:gosec // as above; it fails where packets are lost
	m := regexp.MustCompile(`(?s)REQUEST-REPLY.*?received packets: (\d+)`).FindSubmatch(out)
	if m == nil {
		t.Fatalf("perfdhcp: %s", out)
	}
	n, err := strconv.ParseFloat(string(m[1]), 64)
	if err != nil || n == 0 {
		t.Fatalf("perfdhcp: %s", out)
	}
	return n
}
