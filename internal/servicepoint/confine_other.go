//go:build !linux

package servicepoint

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// confinements are ways to start a process.
func confinements() []func(*exec.Cmd) { return []func(*exec.Cmd){func(*exec.Cmd) {}} }

// listenIn listens at the socket of a folder, and gives what a process can be given.
func listenIn(folder string) (*os.File, error) {
	path := filepath.Join(folder, socketFile)
	if err := os.RemoveAll(path); err != nil {
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

// dialIn connects to the socket of a folder.
func dialIn(ctx context.Context, folder string) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(folder, socketFile))
}

// birth is not told on this system: a process is known by its number.
func birth(int) string { return "?" }

// alive reports whether a process that was started is still there.
func alive(s started) bool {
	one, err := os.FindProcess(s.ID)
	return err == nil && s.ID > 1 && one.Signal(syscall.Signal(0)) == nil
}

// kill ends a process.
func kill(s started) error {
	one, err := os.FindProcess(s.ID)
	if err != nil {
		return err
	}
	return one.Kill()
}
