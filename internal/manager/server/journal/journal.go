// Package journal keeps lines in files: the access log, the audit log, and the log of the manager.
package journal

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
)

// Files returns the files of a journal, the oldest first.
func (j *Journal) Files() []string {
	switch {
	case j == nil || j.path == "-":
		return nil
	case j.maxSize > 0:
		return []string{j.path + earlier, j.path}
	}
	return []string{j.path}
}

// Journal is a file that lines are appended to: the access log, the audit log, or the manager's own. The nil journal takes everything, and
// keeps nothing.
type Journal struct {
	path string
	// maxSize is the size in bytes at which the file is renamed to path+earlier and a new one is created; 0 disables the rotation.
	maxSize int64
	mu      sync.Mutex
	// file, size and failed are guarded by mu. size is the length of the file if maxSize is set. failed is set after a failed write.
	file   io.WriteCloser
	size   int64
	failed bool
	log    *slog.Logger
}

// Open opens a journal. The path "-" means standard output, "" no journal.
func Open(path string, maxSize int64, log *slog.Logger) (*Journal, error) {
	if path == "" {
		return nil, nil
	}
	j := &Journal{path: path, maxSize: maxSize, log: log}
	return j, j.Reopen()
}

// Reopen opens the file again, for example after another program has renamed it.
func (j *Journal) Reopen() error {
	if j == nil {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.open()
}

// open opens the file; mu is held.
func (j *Journal) open() error {
	if j.path == "-" {
		j.file = os.Stdout
		return nil
	}
	mode := fs.FileMode(0o640) // a group may read logs
	if j.maxSize > 0 {         // in the data directory
		mode = 0o600
		if err := os.MkdirAll(filepath.Dir(j.path), 0o700); err != nil {
			return err
		}
	}
	file, err := os.OpenFile(j.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err != nil {
		return errors.Join(err, file.Close())
	}
	if j.file != nil {
		_ = j.file.Close()
	}
	j.file, j.size = file, info.Size()
	return nil
}

// earlier is the name suffix of the previous file after a rotation.
const earlier = ".1"

// rotate rotates the file if it would exceed maxSize with more bytes. The caller holds mu.
func (j *Journal) rotate(more int) error {
	if j.maxSize == 0 || j.size == 0 || j.size+int64(more) <= j.maxSize {
		return nil
	}
	if there, err := os.Stat(j.path); err == nil && there.Size()+int64(more) <= j.maxSize { // another program has rotated it
		return j.open()
	}
	if err := os.Rename(j.path, j.path+earlier); err != nil && !errors.Is(err, fs.ErrNotExist) { // the file was deleted
		return err
	}
	return j.open()
}

// Write appends a line, as Append does (io.Writer). It never returns an error.
func (j *Journal) Write(line []byte) (int, error) {
	j.Append(line)
	return len(line), nil
}

// Append appends a line. It logs the first of consecutive write failures.
func (j *Journal) Append(line []byte) {
	if j == nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	err := j.rotate(len(line))
	n, writing := j.file.Write(line)
	j.size += int64(n)
	if err = errors.Join(err, writing); err != nil && !j.failed {
		j.log.Error("log file write failed", "file", j.path, "error", err)
	}
	j.failed = err != nil
}

// Close closes the file.
func (j *Journal) Close() {
	if j == nil || j.path == "-" {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	_ = j.file.Close()
}

// both is a log handler that passes each record to another handler and to a file.
type both struct{ log, file slog.Handler }

// Enabled reports whether the log accepts a level.
func (b both) Enabled(ctx context.Context, level slog.Level) bool {
	return b.log.Enabled(ctx, level)
}

// Handle writes a line to both.
func (b both) Handle(ctx context.Context, r slog.Record) error {
	return errors.Join(b.log.Handle(ctx, r.Clone()), b.file.Handle(ctx, r))
}

// WithAttrs returns a handler of the same kind.
func (b both) WithAttrs(attrs []slog.Attr) slog.Handler {
	return both{b.log.WithAttrs(attrs), b.file.WithAttrs(attrs)}
}

// WithGroup returns a handler of the same kind.
func (b both) WithGroup(name string) slog.Handler {
	return both{b.log.WithGroup(name), b.file.WithGroup(name)}
}

// Tee returns a handler that passes each record to a log, subject to its level, and to a file.
func Tee(log, file slog.Handler) slog.Handler { return both{log, file} }
