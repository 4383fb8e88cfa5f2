package servicepoint

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// nobody is the user and group id of applications if the service point runs as root.
const nobody = 65534

// confinements returns the ways to start a process, the strictest first. Later ones are for systems that do not permit the strict ones.
func confinements() []func(*exec.Cmd) {
	plain := func(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
	if os.Geteuid() != 0 {
		return []func(*exec.Cmd){plain}
	}
	as := func(capabilities ...uintptr) func(*exec.Cmd) {
		return func(c *exec.Cmd) {
			c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: &syscall.Credential{Uid: nobody, Gid: nobody}, AmbientCaps: capabilities}
		}
	}
	// The last one is for containers whose root user cannot change to another user.
	return []func(*exec.Cmd){as(unix.CAP_NET_BIND_SERVICE, unix.CAP_NET_RAW), as(unix.CAP_NET_BIND_SERVICE), as(), plain}
}

// ownData makes the user of a process that has not started yet the owner of a folder and the files in it.
func ownData(dir string, c *exec.Cmd) error {
	if os.Geteuid() != 0 {
		return nil
	}
	user, group := os.Getuid(), os.Getgid()
	if to := c.SysProcAttr.Credential; to != nil {
		user, group = int(to.Uid), int(to.Gid)
	}
	root, err := os.OpenRoot(dir) // the application may have left links to other folders
	if err != nil {
		return err
	}
	return errors.Join(fs.WalkDir(root.FS(), ".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return root.Lchown(path, user, group)
	}), root.Close())
}

// socketIn returns a short path of the socket in a folder. The path is valid while dir is open. It is needed because socket paths have at
// most 107 bytes.
func socketIn(folder string) (dir *os.File, path string, err error) {
	dir, err = os.Open(folder)
	if err != nil {
		return nil, "", err
	}
	return dir, fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), socketFile), nil
}

// startTime returns the start time of a process in clock ticks since the system's start; empty if the process does not exist or is a
// zombie.
func startTime(pid int) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	// The name is in parentheses and can contain any character. The state follows it; the start time is 19 fields after the state.
	_, behind, _ := strings.Cut(string(text[bytes.LastIndexByte(text, ')')+1:]), " ")
	cells := strings.Fields(behind)
	if len(cells) < 20 || cells[0] == "Z" {
		return ""
	}
	return cells[19]
}

// isAlive reports whether a started process still runs.
func isAlive(s startedProcess) bool { return s.ID > 1 && s.At != "" && startTime(s.ID) == s.At }

// kill kills a process and its process group.
func kill(s startedProcess) error { return syscall.Kill(-s.ID, syscall.SIGKILL) }
