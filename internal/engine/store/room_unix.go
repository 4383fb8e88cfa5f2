//go:build unix

package store

import "golang.org/x/sys/unix"

// FreeBytes is how much room the disk of a directory has for whoever asks, in bytes; nil where nobody knows.
func FreeBytes(dir string) (*int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return nil, err
	}
	free := int64(s.Bavail) * int64(s.Bsize) //nolint:gosec,unconvert // no disk is as large; the types differ from system to system
	return &free, nil
}
