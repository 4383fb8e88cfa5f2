package dhcp

import (
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"portolan/internal/wire/dhcpdata"
)

// millionFolder is the variable with the folder of the process that TestMillion measures.
const millionFolder = "PORTOLAN_TEST_MILLION"

// TestMillion measures the memory of a million leases and the time to read them at a start, in a process of its own. Without
// PORTOLAN_TEST_LONG there are fewer.
func TestMillion(t *testing.T) {
	leases := 20_000
	if os.Getenv("PORTOLAN_TEST_LONG") != "" {
		leases = 1_000_000
	}
	if dir := os.Getenv(millionFolder); dir != "" {
		startWithMillion(t, dir, leases)
		return
	}
	dir := t.TempDir()
	j, _, _ := open(t, filepath.Join(dir, "leases"), journalOptions{})
	end := time.Now().Unix() + 86400
	if err := j.writeCheckpoint(1, func(add func([]byte) error) error {
		for n := range leases {
			number := string([]byte{byte(n >> 16), byte(n >> 8), byte(n)})
			l := &lease{network: 7, pool: 8, address: netip.AddrFrom4([4]byte{10, byte(n >> 16), byte(n >> 8), byte(n)}), state: dhcpdata.Leased,
				start: 100, renewed: 100, expires: end + int64(n%3600), holder: &holder{hardwareType: 1,
					hardware: "\x02\x00\x00" + number, hostName: "pc-" + strconv.Itoa(n), vendor: "MSFT 5.0",
					parameters: "\x01\x03\x06\x0f\x1f\x21\x2b\x2c\x2e\x2f\x77\x79\xf9\xfc", relayAddress: netip.AddrFrom4([4]byte{10, 0, 0, 1}),
					relay: "\x01\x04\x00" + number}}
			l.holder.client = dhcpdata.Identity(1, []byte(l.holder.hardware), nil)
			if err := add(l.append([]byte{entryLease})); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := j.close(); err != nil {
		t.Fatal(err)
	}
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestMillion$", "-test.v") //nolint:gosec // this test
	child.Env = append(os.Environ(), millionFolder+"="+dir)
	text, err := child.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	t.Logf("%s", regexp.MustCompile(`\d+ leases: .*`).Find(text))
}

// startWithMillion starts an engine with leases, and prints the figures of the process.
func startWithMillion(t *testing.T, dir string, leases int) {
	before := cpuUsage(t)
	s := newService(dir, slog.New(slog.DiscardHandler))
	after := cpuUsage(t)
	if s.failed != nil {
		t.Fatal(s.failed)
	}
	peak := peakMemory(t)
	var heap runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&heap)
	if n := s.engine.table.CountUsed(8); n != uint64(leases) {
		t.Errorf("%d leases", n)
	}
	t.Logf("%d leases: %d MB in the heap, %d MB resident at most, read in %v of CPU", leases, heap.HeapAlloc/1e6, peak/1e6,
		(after - before).Round(time.Millisecond))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// cpuUsage returns the CPU time of the process.
func cpuUsage(t *testing.T) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// peakMemory returns the peak resident memory of the process in bytes.
func peakMemory(t *testing.T) int64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(text)
	if found == nil {
		t.Fatal("the peak is not known")
	}
	n, err := strconv.ParseInt(string(found[1]), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n << 10
}
