//go:build !unix

// Package dirlock locks a directory for one process at a time.
package dirlock

import "os"

// Acquire does nothing on this system. The locks of SQLite still protect its data.
func Acquire(string, string) (*os.File, error) { return nil, nil }

// IsHeld always returns false on this system.
func IsHeld(string) bool { return false }
