package dhcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
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

	"portolan/internal/testkit/peers"
	"portolan/internal/wire/dhcpdata"
)

// millionFolder is the variable with the folder of the process that TestMillion measures.
const millionFolder = "PORTOLAN_TEST_MILLION"

// TestMillion measures the memory of a million leases and the time to read them at a start, in a process of its own, beside those of Kea.
// Without PORTOLAN_TEST_LONG there are fewer.
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
	found := regexp.MustCompile(`\d+ leases: .* (\d+) MB resident at most, read in ([0-9.µms]+) of CPU`).FindSubmatch(text)
	if found == nil {
		t.Fatalf("%s", text)
	}
	t.Logf("%s", found[0])
	read, err := time.ParseDuration(string(found[2]))
	if err != nil {
		t.Fatal(err)
	}
	memory, start := startKeaWithMillion(t, leases)
	t.Logf("Kea: %d MB resident at most, read in %v of CPU; ratios %.2f and %.2f", memory/1e6, start, number(t, string(found[1]))*1e6/
		float64(memory), read.Seconds()/start.Seconds())
}

// startKeaWithMillion starts Kea with as many leases in its file, and returns its peak resident memory in bytes and the CPU time of its
// start. It listens to no interface.
func startKeaWithMillion(t *testing.T, leases int) (memory int64, start time.Duration) {
	t.Helper()
	dir := t.TempDir()
	text := bytes.NewBufferString("address,hwaddr,client_id,valid_lifetime,expire,subnet_id,fqdn_fwd,fqdn_rev,hostname,state,user_context\n")
	end := time.Now().Unix() + 86400
	for n := range leases {
		fmt.Fprintf(text, "10.%d.%d.%d,02:00:00:%02x:%02x:%02x,,86400,%d,7,0,0,pc-%d,0,\n", n>>16, n>>8&255, n&255, n>>16, n>>8&255, n&255,
			end+int64(n%3600), n)
	}
	file := filepath.Join(dir, "kea.csv")
	configuration, err := json.Marshal(map[string]any{"Dhcp4": map[string]any{
		"interfaces-config": map[string]any{"interfaces": []string{}},
		"lease-database":    map[string]any{"type": "memfile", "persist": true, "name": file, "lfc-interval": 0},
		"valid-lifetime":    86400,
		"subnet4":           []any{map[string]any{"id": 7, "subnet": "10.0.0.0/8", "pools": []any{map[string]any{"pool": "10.0.0.0/8"}}}},
		"loggers": []any{map[string]any{"name": "kea-dhcp4", "severity": "INFO",
			"output_options": []any{map[string]any{"output": "stdout"}}}},
	}})
	if err == nil {
		err = errors.Join(os.WriteFile(file, text.Bytes(), 0o600), os.WriteFile(filepath.Join(dir, "kea.json"), configuration, 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), peers.Program(t, "kea-dhcp4"), "-c", filepath.Join(dir, "kea.json"))
	c.Env = append(os.Environ(), "KEA_PIDFILE_DIR="+dir, "KEA_LOCKFILE_DIR=none")
	c.Stdout, c.Stderr = log, log
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = c.Process.Kill() // it runs until then
		_ = c.Wait()
	}()
	waitFor(t, func() bool {
		text, err := os.ReadFile(log.Name())
		if err != nil || bytes.Contains(text, []byte("FAIL")) {
			t.Fatalf("%v\n%s", err, text)
		}
		return bytes.Contains(text, []byte("DHCP4_STARTED"))
	})
	return peakMemory(t, c.Process.Pid), time.Duration(processTime(t, c.Process.Pid) * float64(time.Second))
}

// startWithMillion starts an engine with leases, and prints the figures of the process.
func startWithMillion(t *testing.T, dir string, leases int) {
	before := cpuUsage(t)
	s := newService(dir, slog.New(slog.DiscardHandler))
	after := cpuUsage(t)
	if s.failed != nil {
		t.Fatal(s.failed)
	}
	peak := peakMemory(t, os.Getpid())
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

// peakMemory returns the peak resident memory of a process in bytes.
func peakMemory(t *testing.T, process int) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", process))
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
