package servicepoint

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// nobody is the user that applications run as where the service point is root.
const nobody = 65534

// confinements are ways to start a process, the strictest first: a later one is for a system that does not let us.
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
	// The last is for a container whose root may be nobody else.
	return []func(*exec.Cmd){as(unix.CAP_NET_BIND_SERVICE, unix.CAP_NET_RAW), as(unix.CAP_NET_BIND_SERVICE), as(), plain}
}

// socketIn gives a short path of the socket in a folder, good while the folder is open: paths of sockets have 107 bytes at most.
func socketIn(folder string) (dir *os.File, path string, err error) {
	dir, err = os.Open(folder)
	if err != nil {
		return nil, "", err
	}
	return dir, fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), socketFile), nil
}

// birth says when a process began, by the kernel's count since it started; empty where there is none.
func birth(pid int) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	// The name stands in parentheses, and may have anything in it; the state is behind it, the start nineteen fields further.
	_, behind, _ := strings.Cut(string(text[bytes.LastIndexByte(text, ')')+1:]), " ")
	cells := strings.Fields(behind)
	if len(cells) < 20 || cells[0] == "Z" {
		return ""
	}
	return cells[19]
}

// alive reports whether a process that was started is still there.
func alive(s started) bool { return s.ID > 1 && s.At != "" && birth(s.ID) == s.At }

// kill ends a process, and what it started.
func kill(s started) error { return syscall.Kill(-s.ID, syscall.SIGKILL) }
