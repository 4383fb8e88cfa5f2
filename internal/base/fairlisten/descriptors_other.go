//go:build !unix

package fairlisten

// Descriptors is how many files and connections the process may have open: there is no limit of its own.
func Descriptors() int { return 1 << 20 }
