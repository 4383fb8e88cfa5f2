package server

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"

	"portolan/internal/manager/server/journal"
)

// maxOwnLog is the size at which the manager's log file is rotated, in bytes. The current and the previous file are kept.
const maxOwnLog = 10 << 20

// The logs that the API shows.
const (
	ownLogName    = "manager.log"
	accessLogName = "access.log"
	auditLogName  = "audit.log"
)

// openOwnLog also writes the manager log to a file in the data directory, which this manager must already own.
// If the file cannot be opened, the manager serves without it.
func (m *Manager) openOwnLog() {
	o := &m.options
	if o.Data == "" {
		return
	}
	path, plain := filepath.Join(o.Data, "logs", ownLogName), o.Log
	j, err := journal.Open(path, maxOwnLog, plain)
	if err != nil {
		plain.Warn("manager log file not opened", "file", path, "error", err)
		return
	}
	m.ownLog, o.Log = j, slog.New(journal.Both(plain.Handler(), slog.NewJSONHandler(j, &slog.HandlerOptions{Level: lowest})))
	m.log = m.logOf(&m.levels.manager)
	m.chain.Log = m.log
}

// Log returns the logger for events of the whole manager, such as its start and stop.
func (m *Manager) Log() *slog.Logger { return m.options.Log }

// openLogs opens the access log and the audit log.
func (m *Manager) openLogs() (err error) {
	m.log = m.logOf(&m.levels.manager)
	m.chain.Log = m.log
	if m.chain.Access, err = journal.Open(m.options.AccessLog, 0, m.log); err != nil {
		return fmt.Errorf("the access log: %w", err)
	}
	if m.chain.Audit, err = journal.Open(m.options.AuditLog, 0, m.log); err != nil {
		return fmt.Errorf("the audit log: %w", err)
	}
	return nil
}

// lowest is below every level. Records have already passed the level of another handler.
const lowest = slog.Level(-100)

// logFiles returns the files of each log that the API shows, the oldest first; none for a log that is not kept.
func (m *Manager) logFiles() map[string][]string {
	return map[string][]string{ownLogName: m.ownLog.Files(), accessLogName: m.chain.Access.Files(), auditLogName: m.chain.Audit.Files()}
}

// Reload reopens the log files and reloads the certificate.
func (m *Manager) Reload() error {
	errs := []error{m.ownLog.Reopen(), m.chain.Access.Reopen(), m.chain.Audit.Reopen()}
	if m.files != nil {
		errs = append(errs, m.files.again())
	}
	return errors.Join(errs...)
}
