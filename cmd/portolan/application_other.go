//go:build !linux

package main

// noNewPrivileges does nothing on this system.
func noNewPrivileges() error { return nil }
