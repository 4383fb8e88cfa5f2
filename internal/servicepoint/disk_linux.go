package servicepoint

import "golang.org/x/sys/unix"

// diskSizes returns the total and free size of a directory's file system in MB; zeros if they are unknown.
func diskSizes(dir string) (total, free int) {
	var s unix.Statfs_t
	if unix.Statfs(dir, &s) != nil || s.Bsize <= 0 {
		return 0, 0
	}
	size := uint64(s.Bsize)
	return int(s.Blocks * size >> 20), int(s.Bavail * size >> 20) //nolint:gosec // megabytes
}
