//go:build !linux

package servicepoint

// clockSynchronized is false: this system is not asked.
func clockSynchronized() bool { return false }
