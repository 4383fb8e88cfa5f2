package server

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"

	"portolan/internal/manager/server/journal"
)

// maxOwnLog is how long the file of what the manager logs becomes, in bytes, before it is begun anew: it and the one before are kept.
const maxOwnLog = 10 << 20

// The logs that the API shows.
const (
	ownLogName    = "manager.log"
	accessLogName = "access.log"
	auditLogName  = "audit.log"
)

// openOwnLog lets what the manager logs go to a file in its data directory, too, which is its own by then. That there can be none keeps no
// manager from serving.
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

// Log is where what happens to the manager as a whole goes: that it serves, that it ends.
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

// lowest is below every level: what is written has passed another log.
const lowest = slog.Level(-100)

// logFiles are the files of each log that the API shows, the oldest first; none where it is not kept.
func (m *Manager) logFiles() map[string][]string {
	return map[string][]string{ownLogName: m.ownLog.Files(), accessLogName: m.chain.Access.Files(), auditLogName: m.chain.Audit.Files()}
}

// Reload opens the journals anew, and reads the certificate again.
func (m *Manager) Reload() error {
	errs := []error{m.ownLog.Reopen(), m.chain.Access.Reopen(), m.chain.Audit.Reopen()}
	if m.files != nil {
		errs = append(errs, m.files.again())
	}
	return errors.Join(errs...)
}
