package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"portolan/internal/base/problem"
)

// usedFile is a file next to the database that records that the database existed. Without it, a manager that finds no database would
// create an empty one.
const usedFile = "portolan.used"

// checkNotRemoved returns an error if the directory contains portolan.used but no database.
func checkNotRemoved(path string) error {
	used := filepath.Join(filepath.Dir(path), usedFile)
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	switch _, err := os.Lstat(used); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	}
	return fmt.Errorf("%s does not exist: move it and its -wal to this path, or restore a backup into a new directory "+
		"(docs/troubleshoot.md). Delete %s to create an empty database", path, used)
}

// markUsed creates usedFile.
func markUsed(path string) error {
	f, err := os.OpenFile(filepath.Join(filepath.Dir(path), usedFile), os.O_WRONLY|os.O_CREATE|os.O_EXCL,
		0o600) //nolint:gosec // the operator's
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("mark the data directory: %w", err)
	}
	_, err = fmt.Fprintf(f, "A database was created here on %s.\n", time.Now().UTC().Format(time.RFC3339))
	return errors.Join(err, f.Sync(), f.Close())
}

// errFileGone is returned if the database file is no longer the one that was opened.
var errFileGone = problem.New(503, "DatabaseDamaged", "the database file was moved, deleted or replaced while the manager has it open: "+
	"move it and its -wal to their old path, then start the manager again (docs/troubleshoot.md)")

// isSameFile reports whether a path still refers to an open file.
func isSameFile(path string, open os.FileInfo) bool {
	now, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	return err != nil || os.SameFile(open, now) // other errors do not mean that the file is gone
}

// Sizes in the write-ahead log (https://www.sqlite.org/fileformat2.html#walformat).
const (
	walHeader   = 32
	frameHeader = 24
	walMagic    = 0x377f0682 // plus one if the checksums are of big-endian numbers
)

// findLogFault looks for damage in the middle of a write-ahead log. SQLite reads a log up to the first frame with a wrong checksum and
// drops the rest without an error. at is the offset of that frame, 0 if there is none. lost is the number of transactions committed after
// it. An incomplete last transaction is the result of a power failure and not damage.
func findLogFault(path string) (at int64, lost int, err error) {
	f, err := os.Open(path) //nolint:gosec // the operator's
	if errors.Is(err, fs.ErrNotExist) {
		return 0, 0, nil
	}
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = f.Close() }() // it was only read
	header := make([]byte, walHeader)
	if _, err := io.ReadFull(f, header); err != nil {
		return 0, 0, nil //nolint:nilerr // the log is empty
	}
	word := func(b []byte, i int) uint32 { return binary.BigEndian.Uint32(b[4*i:]) }
	var order binary.ByteOrder = binary.LittleEndian
	if word(header, 0)&^1 != walMagic {
		return 0, 0, nil
	}
	if word(header, 0)&1 == 1 {
		order = binary.BigEndian
	}
	sums := walSums{order: order}
	sums.add(header[:24])
	size := int64(word(header, 2))
	if sums.a != word(header, 6) || sums.b != word(header, 7) || size < 512 || size > 65536 {
		return 0, 0, nil
	}
	frame := make([]byte, frameHeader+size)
	for begins := int64(walHeader); ; begins += int64(len(frame)) {
		if _, err := io.ReadFull(f, frame); err != nil {
			break // end of the log
		}
		own := word(frame, 2) == word(header, 4) && word(frame, 3) == word(header, 5)
		if at == 0 {
			sums.add(frame[:8])
			sums.add(frame[frameHeader:])
			if !own || sums.a != word(frame, 4) || sums.b != word(frame, 5) {
				at = begins
			}
		}
		if at != 0 && own && word(frame, 1) != 0 {
			lost++
		}
	}
	if lost < 2 { // the last transaction was not acknowledged, or the rest is older than the log
		return 0, 0, nil
	}
	return at, lost, nil
}

// walSums is the running checksum of a write-ahead log.
type walSums struct {
	order binary.ByteOrder
	a, b  uint32
}

func (s *walSums) add(b []byte) {
	for i := 0; i+8 <= len(b); i += 8 {
		s.a += s.order.Uint32(b[i:]) + s.b
		s.b += s.order.Uint32(b[i+4:]) + s.a
	}
}

// checkWholeLog returns an error if the log of a database is damaged in the middle.
func checkWholeLog(path string) error {
	at, lost, err := findLogFault(path + "-wal")
	if err != nil || at == 0 {
		return err
	}
	return fmt.Errorf("the log %s-wal is damaged at byte %d, and has %d transactions after it: keep a copy of the directory, then restore "+
		"a backup, or drop those transactions with truncate -s %d %s-wal (docs/troubleshoot.md)", path, at, lost, at, path)
}
