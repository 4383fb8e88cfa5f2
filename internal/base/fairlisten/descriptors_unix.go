//go:build unix

package fairlisten

import "golang.org/x/sys/unix"

// Descriptors returns the maximum number of open files and connections of the process.
func Descriptors() int {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 1024
	}
	return int(min(limit.Cur, 1<<20)) //nolint:gosec // it is at most that
}
