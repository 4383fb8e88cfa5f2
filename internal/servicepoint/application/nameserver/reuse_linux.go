package nameserver

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// canReusePort says that several sockets can have one address, and the system spreads clients over them.
const canReusePort = true

func reusePort(_, _ string, c syscall.RawConn) error {
	var err error
	if e := c.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1) //nolint:gosec // a file descriptor
	}); e != nil {
		return e
	}
	return err
}
