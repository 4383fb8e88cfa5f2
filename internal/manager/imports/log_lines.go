package imports

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// logLines appends lines to the log of an import until it has limit lines.
func logLines(tx *store.Tx, id int64, limit int, lines []string) error {
	if len(lines) == 0 {
		return nil
	}
	var last int
	if err := tx.QueryRow("SELECT coalesce(max(number), 0) FROM import_line WHERE import = ?", id).Scan(&last); err != nil {
		return fmt.Errorf("read a log: %w", err)
	}
	for _, line := range lines {
		if last++; last > limit {
			return nil
		}
		if last == limit {
			line = logIsFull
		}
		if err := tx.Write("INSERT INTO import_line (import, number, line) VALUES (?, ?, ?)", id, last, printable(line)); err != nil {
			return err
		}
	}
	return nil
}

// printable removes control characters from a line and shortens it, as it may quote the file.
func printable(line string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, schema.Cut(line, maxLine))
}

// logRows appends lines about rows to the log of an import. Lines of rejected rows and of changed rows have separate limits (maxRowLines,
// maxChangedLines).
func logRows(tx *store.Tx, id int64, lines []string) error {
	changed := slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return !strings.Contains(line, changedText) })
	if err := logLines(tx, id, maxChangedLines, changed); err != nil {
		return err
	}
	return logLines(tx, id, maxRowLines, slices.DeleteFunc(lines, func(line string) bool { return strings.Contains(line, changedText) }))
}

// changedText is a part of the line about a row that has changed its resource.
const changedText = ": changed: "
