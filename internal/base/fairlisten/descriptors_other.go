//go:build !unix

package fairlisten

// Descriptors returns the maximum number of open files and connections of the process. This system has no such limit.
func Descriptors() int { return 1 << 20 }
