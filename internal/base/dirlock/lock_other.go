//go:build !unix

// Package dirlock keeps a directory for one process at a time.
package dirlock

import "os"

// Take has no lock to take on this system: SQLite's own locks still keep its data whole.
func Take(string, string) (*os.File, error) { return nil, nil }

// Held is not known there.
func Held(string) bool { return false }
