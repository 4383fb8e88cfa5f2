package resolver

import "syscall"

// endsWithParent makes the kernel kill a process when the thread that started it ends.
func endsWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
