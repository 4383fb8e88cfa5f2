package backup

import (
	"sync"

	"portolan/internal/engine/resource"
)

// Options are how the manager was started, and what its backups share.
type Options struct {
	// Dir is the directory for backups; empty where there is none.
	Dir string
	// place is held while the file that names the directory may be made; verify has room for the one sent backup that is verified: that
	// takes a processor for a while.
	place  *sync.Mutex
	verify chan struct{}
}

// NewOptions returns the options of a manager with a directory for backups, or with none.
func NewOptions(dir string) Options {
	return Options{Dir: dir, place: &sync.Mutex{}, verify: make(chan struct{}, 1)}
}

// optionsOf returns the options of an API.
func optionsOf(a *resource.API) Options { return resource.Provided[Options](a.Provisions) }
