package settings

import (
	"time"

	"portolan/internal/engine/store"
)

// Options are how the manager was started.
type Options struct {
	// LogLevel is the level that the command line sets; empty where the settings do.
	LogLevel string
	// Backups reports a directory for backups.
	Backups bool
	// LastBackup returns when the newest backup of the database was made; the zero time where there is none.
	LastBackup func(tx *store.Tx) (time.Time, error)
}
