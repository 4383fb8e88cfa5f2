//go:build unix

// Package dirlock locks a directory for one process at a time.
package dirlock

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// Acquire locks a directory. what names the process in the error if another process has the lock. The kernel releases the lock when the
// process ends, in any way.
func Acquire(dir, what string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the directory: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("the directory %s is already in use by another %s", dir, what)
	}
	return f, nil
}

// IsHeld reports whether a process has locked a directory.
func IsHeld(dir string) bool {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR, 0)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil
}
