//go:build unix

package store

import "golang.org/x/sys/unix"

// FreeBytes returns the disk space in bytes that is available to this process in a directory. It returns nil if the system does not
// report it.
func FreeBytes(dir string) (*int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return nil, err
	}
	free := int64(s.Bavail) * int64(s.Bsize) //nolint:gosec,unconvert // no disk exceeds int64; the types differ between systems
	return &free, nil
}
