package resolver

import "syscall"

// endsWithParent has a process end when the thread ends that has started it.
func endsWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
