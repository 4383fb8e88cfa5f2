//go:build !linux

package servicepoint

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// confinements are ways to start a process.
func confinements() []func(*exec.Cmd) { return []func(*exec.Cmd){func(*exec.Cmd) {}} }

// socketIn gives the path of the socket in a folder.
func socketIn(folder string) (dir *os.File, path string, err error) {
	dir, err = os.Open(folder)
	return dir, filepath.Join(folder, socketFile), err
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
