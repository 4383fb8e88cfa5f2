package nameserver

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// canReusePort reports whether several sockets can share an address, with clients distributed across them.
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
