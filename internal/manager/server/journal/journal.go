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

// Files are those that a journal has, the oldest first.
func (j *Journal) Files() []string {
	switch {
	case j == nil || j.path == "-":
		return nil
	case j.most > 0:
		return []string{j.path + earlier, j.path}
	}
	return []string{j.path}
}

// Journal is a file that lines are appended to: the access log, the audit log, or the manager's own. The nil journal takes everything, and
// keeps nothing.
type Journal struct {
	path string
	// most is how long the file becomes, in bytes, before it is renamed to path+earlier, and begun anew; 0: whoever wants that does it.
	most int64
	mu   sync.Mutex
	// file, size and failed are guarded by mu; size is how long the file is where most says something, failed that the last line could not
	// be written.
	file   io.WriteCloser
	size   int64
	failed bool
	log    *slog.Logger
}

// Open opens a journal; "-" is standard output, "" none.
func Open(path string, most int64, log *slog.Logger) (*Journal, error) {
	if path == "" {
		return nil, nil
	}
	j := &Journal{path: path, most: most, log: log}
	return j, j.Reopen()
}

// Reopen opens the file anew, as when another program has renamed it.
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
	if j.most > 0 {            // in the data directory
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

// earlier ends the name of what a file was before it was begun anew.
const earlier = ".1"

// turn begins the file anew where it would become longer than it may by so many bytes; mu is held.
func (j *Journal) turn(more int) error {
	if j.most == 0 || j.size == 0 || j.size+int64(more) <= j.most {
		return nil
	}
	if there, err := os.Stat(j.path); err == nil && there.Size()+int64(more) <= j.most { // somebody has begun it anew
		return j.open()
	}
	if err := os.Rename(j.path, j.path+earlier); err != nil && !errors.Is(err, fs.ErrNotExist) { // which somebody has removed
		return err
	}
	return j.open()
}

// Write appends a line, as Append does: a log is written by it (io.Writer). It never returns an error.
func (j *Journal) Write(line []byte) (int, error) {
	j.Append(line)
	return len(line), nil
}

// Append appends a line. What cannot be written is logged, once until it can be again.
func (j *Journal) Append(line []byte) {
	if j == nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	err := j.turn(len(line))
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

// both is a log that has in a file, too, what goes to another one.
type both struct{ log, file slog.Handler }

// Enabled reports whether the log takes a level.
func (b both) Enabled(ctx context.Context, level slog.Level) bool {
	return b.log.Enabled(ctx, level)
}

// Handle writes a line to both.
func (b both) Handle(ctx context.Context, r slog.Record) error {
	return errors.Join(b.log.Handle(ctx, r.Clone()), b.file.Handle(ctx, r))
}

// WithAttrs is a log of the same kind.
func (b both) WithAttrs(attrs []slog.Attr) slog.Handler {
	return both{b.log.WithAttrs(attrs), b.file.WithAttrs(attrs)}
}

// WithGroup is a log of the same kind.
func (b both) WithGroup(name string) slog.Handler {
	return both{b.log.WithGroup(name), b.file.WithGroup(name)}
}

// Both returns a log of which each line goes to a log, at its level, and to a file.
func Both(log, file slog.Handler) slog.Handler { return both{log, file} }
