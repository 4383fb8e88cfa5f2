//go:build !linux

package resolver

import "syscall"

// endsWithParent has no effect on this system: a process survives the end of its parent.
func endsWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }
