package backup

import (
	"sync"

	"portolan/internal/engine/resource"
)

// Options are the settings of the manager for backups, and the state that its requests share.
type Options struct {
	// Dir is the directory for backups; empty if there is none.
	Dir string
	// place is locked while the file that names the directory is read or created. verify has space for one token: only one received backup
	// is verified at a time, as this takes much processor time.
	place  *sync.Mutex
	verify chan struct{}
}

// NewOptions returns the options of a manager with a directory for backups; an empty dir means none.
func NewOptions(dir string) Options {
	return Options{Dir: dir, place: &sync.Mutex{}, verify: make(chan struct{}, 1)}
}

// optionsOf returns the options of an API.
func optionsOf(a *resource.API) Options { return resource.Provided[Options](a.Provisions) }
