package store

import (
	"fmt"
	"strings"
)

// findDamage runs SQLite's integrity check and returns its faults with the names of the damaged tables.
func (s *session) findDamage() (faults []string, err error) {
	hasIndex, err := hasTable(s, trigramTable.Name)
	if err != nil {
		return nil, err
	}
	if hasIndex { // FTS5 checks against what its connection cached at the last query. Another query makes it read again (SQLite 3.54.1).
		err := s.each("SELECT rowid FROM trigram WHERE trigram MATCH 'abc' LIMIT 1", nil, func(row) error { return nil })
		if err != nil && !IsDamage(err) {
			return nil, err
		}
	}
	faults, err = s.integrity("PRAGMA integrity_check(20)")
	if err != nil && !IsDamage(err) || err == nil && len(faults) == 0 {
		return faults, err
	}
	// Check each table, together with its indexes, to find the damaged ones.
	var tables []string
	if err := s.each("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name", nil, func(r row) error {
		var name string
		err := r.scan(&name)
		tables = append(tables, name)
		return err
	}); err != nil {
		return nil, err
	}
	named := 0
	for _, table := range tables {
		of, err := s.integrity(fmt.Sprintf("PRAGMA integrity_check(%q)", table))
		if err != nil {
			of = append(of, err.Error())
		}
		for _, text := range of {
			faults = append(faults, "table "+table+": "+text)
			named++
		}
	}
	if named > 0 { // these repeat the faults with the table
		faults = faults[len(faults)-named:]
	}
	return faults, nil
}

// runShielded runs fn: an error of a query does not abort a snapshot of SQLite.
func (s *session) runShielded(fn func() error) error { return fn() }

// maxFaultLength is the maximum length in bytes of a shown fault. SQLite lists every damaged page.
const maxFaultLength = 300

// integrity returns the faults that a PRAGMA integrity_check reports.
func (s *session) integrity(pragma string) (faults []string, err error) {
	err = s.each(pragma, nil, func(r row) error {
		var text string
		err := r.scan(&text)
		if text != "ok" {
			if text = strings.Join(strings.Fields(text), " "); len(text) > maxFaultLength {
				text = text[:maxFaultLength] + "..."
			}
			faults = append(faults, text)
		}
		return err
	})
	return faults, err
}
