//go:build !linux

package resolver

import "syscall"

// endsWithParent has a process end by itself: this system does not end it with the one that has started it.
func endsWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }
