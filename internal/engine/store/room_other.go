//go:build !unix

package store

// FreeBytes returns nil, because free disk space is not supported on this system.
func FreeBytes(string) (*int64, error) { return nil, nil }
