//go:build unix

package server

import "golang.org/x/sys/unix"

// room is how much room the disk of a directory has for whoever asks, in bytes.
func room(dir string) (*int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return nil, err
	}
	free := int64(s.Bavail) * int64(s.Bsize) //nolint:gosec,unconvert // no disk is as large; the types differ from system to system
	return &free, nil
}
