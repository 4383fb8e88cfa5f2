//go:build !linux

package servicepoint

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// confinements returns the ways to start a process.
func confinements() []func(*exec.Cmd) { return []func(*exec.Cmd){func(*exec.Cmd) {}} }

// socketIn returns the path of the socket in a folder.
func socketIn(folder string) (dir *os.File, path string, err error) {
	dir, err = os.Open(folder)
	return dir, filepath.Join(folder, socketFile), err
}

// startTime returns a constant, because this system does not report start times. A process is identified by its id alone.
func startTime(int) string { return "?" }

// isAlive reports whether a started process still runs.
func isAlive(s startedProcess) bool {
	one, err := os.FindProcess(s.ID)
	return err == nil && s.ID > 1 && one.Signal(syscall.Signal(0)) == nil
}

// kill kills a process.
func kill(s startedProcess) error {
	one, err := os.FindProcess(s.ID)
	if err != nil {
		return err
	}
	return one.Kill()
}

// ownData does nothing: applications run as the user of the agent.
func ownData(string, *exec.Cmd) error { return nil }
