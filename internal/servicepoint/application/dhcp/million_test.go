package dhcp

import (
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	"portolan/internal/wire/dhcpdata"
)

// TestMillion measures the memory of a million leases and the time to read them at a start. Without PORTOLAN_TEST_LONG there are fewer.
func TestMillion(t *testing.T) {
	leases := 20_000
	if os.Getenv("PORTOLAN_TEST_LONG") != "" {
		leases = 1_000_000
	}
	dir := t.TempDir()
	folder := filepath.Join(dir, "leases")
	j, _, _ := open(t, folder, journalOptions{})
	end := time.Now().Unix() + 86400
	if err := j.writeCheckpoint(1, func(add func([]byte) error) error {
		for n := range leases {
			l := &lease{network: 7, pool: 8, address: netip.AddrFrom4([4]byte{10, byte(n >> 16), byte(n >> 8), byte(n)}), state: dhcpdata.Leased,
				start: 100, renewed: 100, expires: end + int64(n%3600), holder: &holder{hardwareType: 1,
					hardware: []byte{2, 0, 0, byte(n >> 16), byte(n >> 8), byte(n)}, hostName: "pc-" + strconv.Itoa(n), vendor: []byte("MSFT 5.0"),
					parameters: []byte{1, 3, 6, 15, 31, 33, 43, 44, 46, 47, 119, 121, 249, 252}, relayAddress: netip.AddrFrom4([4]byte{10, 0, 0, 1}),
					relay: []byte{1, 4, 0, 0, 0, byte(n)}}}
			l.holder.client = dhcpdata.Identity(1, l.holder.hardware, nil)
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
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	started := time.Now()
	s := newService(dir, slog.New(slog.DiscardHandler))
	took := time.Since(started)
	if s.failed != nil {
		t.Fatal(s.failed)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if n := s.engine.table.Used(8); n != uint64(leases) {
		t.Errorf("%d leases", n)
	}
	t.Logf("%d leases: %.0f MB in the heap, read in %v", leases, float64(after.HeapAlloc-before.HeapAlloc)/1e6, took.Round(time.Millisecond))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
