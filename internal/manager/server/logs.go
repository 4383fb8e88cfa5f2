package server

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"

	"portolan/internal/manager/server/journal"
)

// maxOwnLog is the size in bytes at which the manager's log file is rotated; one earlier file is kept.
const maxOwnLog = 10 << 20

// Names of the logs in the API.
const (
	ownLogName    = "manager.log"
	accessLogName = "access.log"
	auditLogName  = "audit.log"
)

// openOwnLog also writes the manager's log to a file in the data directory, which must be locked by now. The manager serves without the
// file if it cannot be opened.
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
	m.ownLog, o.Log = j, slog.New(journal.Tee(plain.Handler(), slog.NewJSONHandler(j, &slog.HandlerOptions{Level: lowest})))
	m.log = m.logOf(&m.levels.manager)
	m.chain.Log = m.log
}

// Log returns the logger for events of the manager as a whole, such as its start and its end.
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

// lowest is below every level: the log before it has already selected the lines.
const lowest = slog.Level(-100)

// logFiles returns the files of each log in the API, the oldest first; none for a log that is not kept.
func (m *Manager) logFiles() map[string][]string {
	return map[string][]string{ownLogName: m.ownLog.Files(), accessLogName: m.chain.Access.Files(), auditLogName: m.chain.Audit.Files()}
}

// Reload reopens the log files and reads the certificate again.
func (m *Manager) Reload() error {
	errs := []error{m.ownLog.Reopen(), m.chain.Access.Reopen(), m.chain.Audit.Reopen()}
	if m.files != nil {
		errs = append(errs, m.files.reread())
	}
	return errors.Join(errs...)
}
