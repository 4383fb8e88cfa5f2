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

// descriptors is how many files and connections the process may have open.
func descriptors() int {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 1024
	}
	return int(min(limit.Cur, 1<<20)) //nolint:gosec // it is at most that
}
