package dhcp

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestSendOnClosedLink checks that a late reply is not written to the descriptor of a closed link, whose number another file may have.
func TestSendOnClosedLink(t *testing.T) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	l := &link{fd: pair[0], closed: make(chan struct{})}
	l.close()
	for _, fd := range pair[1:] {
		if err := unix.Close(fd); err != nil {
			t.Error(err)
		}
	}
	err = l.send(netip.MustParseAddr("10.0.0.9"), make([]byte, 6), netip.MustParseAddr("10.0.0.1"), nil)
	if !errors.Is(err, net.ErrClosed) {
		t.Errorf("send: %v", err)
	}
}

// TestListenerSurvivesErrors checks that a listener receives again after an error, which it counts.
func TestListenerSurvivesErrors(t *testing.T) {
	s, address := start(t, t.TempDir(), units(t, noPing))
	s.mu.Lock()
	l := s.listeners[address]
	s.mu.Unlock()
	if err := l.conn.SetReadDeadline(time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return refusals(s, "receive-failed") > 0 })
	if err := l.conn.SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	if a := dial(t, address, 1).lease(); a != "10.0.1.0" {
		t.Error(a)
	}
}

// TestFilesAreClosed checks that a closed service has no file of its journal open.
func TestFilesAreClosed(t *testing.T) {
	dir := t.TempDir()
	s, address := start(t, dir, units(t, noPing))
	dial(t, address, 1).lease()
	if all := s.reports.read(); len(all) != 1 {
		t.Errorf("%d records", len(all))
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	s.reports.read()
	all, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range all {
		if path, err := os.Readlink(one); err == nil && filepath.Dir(path) == filepath.Join(dir, "leases") {
			t.Errorf("%s is open", path)
		}
	}
}
