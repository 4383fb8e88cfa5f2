package servicepoint

import (
	"context"
	"net"
	"os"
	"path/filepath"
)

// listenIn listens at the socket in a folder, whose path may be longer than a socket path. It returns the listener's file for a child
// process.
func listenIn(folder string) (*os.File, error) {
	dir, path, err := socketIn(folder)
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }()
	if err := os.RemoveAll(filepath.Join(folder, socketFile)); err != nil {
		return nil, err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	defer func() { _ = l.Close() }()
	l.SetUnlinkOnClose(false)
	return l.File()
}

// dialIn connects to the socket in a folder.
func dialIn(ctx context.Context, folder string) (net.Conn, error) {
	dir, path, err := socketIn(folder)
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }()
	return (&net.Dialer{}).DialContext(ctx, "unix", path)
}
