package backup

import (
	"os"
	"path/filepath"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
)

// Path returns the path of a backup file on this machine.
func Path(a *resource.API, row *store.Resource) (string, error) {
	o, err := a.Object(row)
	if err != nil {
		return "", err
	}
	x := o.(*DatabaseBackupFile)
	path := filepath.Join(optionsOf(a).Dir, x.relativePath())
	if _, err := os.Stat(path); err != nil || optionsOf(a).Dir == "" {
		return "", problem.Conflict("ResourceConflictsWithOther", "the file %s of the manager on %s is not on %s", x.Name, x.Host,
			a.Manager.Hostname)
	}
	return path, nil
}
