//go:build !linux

package servicepoint

// diskSizes returns zeros, because this system is not supported.
func diskSizes(string) (total, free int) { return 0, 0 }
