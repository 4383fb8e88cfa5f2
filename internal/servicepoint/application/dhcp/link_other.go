//go:build !linux

package dhcp

import (
	"errors"
	"net"
	"net/netip"
	"syscall"
)

// flagTruncated marks a received packet that is longer than its buffer, which this system does not report.
const flagTruncated = 0

// link does not exist on this system: clients without a relay are not served.
type link struct {
	index   int
	started bool
}

func openLink(*net.Interface, *service) (*link, error) {
	return nil, errors.New("packet sockets exist on Linux only")
}

func (l *link) interfaceName() string { return "" }

func (l *link) start() { l.started = true }

func (l *link) close() {}

func (l *link) send(netip.Addr, []byte, netip.Addr, []byte) error { return net.ErrClosed }

func allowBroadcast(syscall.RawConn) error { return nil }

// setReceiveBuffer enlarges the receive buffer of a socket.
func setReceiveBuffer(conn *net.UDPConn) { _ = conn.SetReadBuffer(receiveBuffer) } // the system limits it
