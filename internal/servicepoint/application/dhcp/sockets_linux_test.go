package dhcp

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv6"
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

// TestListenersSurviveErrors checks that listeners of both protocols count the failures of a socket, and receive again after them.
func TestListenersSurviveErrors(t *testing.T) {
	s, at := start6(t, t.TempDir(), units6(t))
	s.mu.Lock()
	conns := map[string]*net.UDPConn{}
	for address, l := range s.listeners {
		conns[address] = l.conn
	}
	conns[at.String()] = s.listeners6[at.String()].conn
	s.mu.Unlock()
	for address, conn := range conns {
		before := refusals(s, receiveFailed)
		if err := conn.SetReadDeadline(time.Unix(1, 0)); err != nil {
			t.Fatal(err)
		}
		waitFor(t, func() bool { return refusals(s, receiveFailed) > before+5 })
		if err := conn.SetReadDeadline(time.Time{}); err != nil {
			t.Fatal(err)
		}
		if address == at.String() {
			if m := dial6(t, at, 1).ask(dhcpv6.MessageTypeSolicit, dhcpv6.WithIAID([4]byte{1})); m == nil {
				t.Error("DHCPv6 does not answer any more")
			}
		} else if a := dial(t, address, 1).lease(); a != "10.0.1.0" {
			t.Error(a)
		}
	}
}

// TestLinkSurvivesErrors checks that a link whose descriptor fails is counted, and can be closed.
func TestLinkSurvivesErrors(t *testing.T) {
	s, _ := start(t, t.TempDir(), units(t))
	i, err := net.InterfaceByName("lo")
	if err != nil {
		t.Skip(err)
	}
	l, err := openLink(i, s)
	if err != nil {
		t.Skip(err)
	}
	file, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if err := unix.Dup3(int(file.Fd()), l.fd, unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	l.start()
	waitFor(t, func() bool { return refusals(s, receiveFailed) > 5 })
	l.close()
}

// failingListener is a listener whose first connections fail.
type failingListener struct {
	net.Listener
	left int
}

func (l *failingListener) Accept() (net.Conn, error) {
	if l.left--; l.left < 0 {
		return nil, net.ErrClosed
	}
	return nil, unix.EMFILE
}

// TestPairListenerSurvivesErrors checks that the listener for failover partners counts failures.
func TestPairListenerSurvivesErrors(t *testing.T) {
	s, _ := start(t, t.TempDir(), units(t))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	s.engine.accept(&failingListener{l, 4})
	if n := refusals(s, receiveFailed); n != 4 {
		t.Errorf("%d failures are counted, want 4", n)
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
