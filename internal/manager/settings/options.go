package settings

import (
	"time"

	"portolan/internal/engine/store"
)

// Options are the start options of the manager that this package uses.
type Options struct {
	// LogLevel is the level of --log-level; empty where the log level settings apply.
	LogLevel string
	// Backups reports whether the manager has a directory for backups.
	Backups bool
	// LastBackup returns the time of the newest backup of the database, or the zero time if there is none.
	LastBackup func(tx *store.Tx) (time.Time, error)
}
