package rest

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
)

// spool holds the bytes of an answer between the producer and the sender. Data that a client does not read at once waits in memory, and
// beyond that in an unnamed file. The database is therefore released as soon as the answer is complete, however slow the client is.
type spool struct {
	// all counts the data of all spools of an API, callerBytes the bytes of the caller's spools in files.
	all         *backlog
	callerBytes *atomic.Int64
	log         *slog.Logger

	mu    sync.Mutex
	moved *sync.Cond // signals that a piece was added or removed
	// queue are pieces in memory, older than all data in the file. Guarded by mu.
	queue [][]byte
	// file is nil until it is needed; wrote and read are the write and read positions. Guarded by mu. put writes the file and next reads
	// it, each at its own position.
	file        *os.File
	wrote, read int64
	// refused says that no file could be created. Guarded by mu.
	refused bool
	// closed says that no more pieces will be added, failed is the error that stopped the spool. Guarded by mu.
	closed bool
	failed error
}

// Limits of a spool. maxQueued pieces may always wait in memory. maxAhead pieces may wait there while all spools together have fewer than
// maxAllAhead, so that a page of the usual size needs no file. Concurrent additions may exceed maxAllAhead by a few. maxOwnFiles and
// maxAllFiles are the maximum number of bytes in files, of one caller and of all.
const (
	maxQueued   = 8
	maxAhead    = 32
	maxAllAhead = 256
	maxOwnFiles = 512 << 20
	maxAllFiles = 4 << 30
)

// backlog counts the data of all spools of an API: pieces in memory, and bytes in files.
type backlog struct{ pieces, bytes atomic.Int64 }

// reserve reserves bytes in files; false if a limit is exceeded.
func (s *spool) reserve(n int64) bool {
	all, own := s.all.bytes.Add(n), s.callerBytes.Add(n)
	if all <= maxAllFiles && own <= maxOwnFiles {
		return true
	}
	s.release(n)
	return false
}

// release releases reserved bytes.
func (s *spool) release(n int64) {
	s.all.bytes.Add(-n)
	s.callerBytes.Add(-n)
}

func newSpool(all *backlog, own *atomic.Int64, log *slog.Logger) *spool {
	s := &spool{all: all, callerBytes: own, log: log}
	s.moved = sync.NewCond(&s.mu)
	return s
}

// put adds a piece. If kept is true, the spool owns the piece afterwards; otherwise the caller may reuse it. If neither memory nor files
// have room, put waits until the client has read some data.
func (s *spool) put(piece []byte) (kept bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.failed == nil {
		if s.hasRoom() {
			s.all.pieces.Add(1)
			s.queue = append(s.queue, piece)
			s.moved.Broadcast()
			return true, nil
		}
		if s.reserveInFile(int64(len(piece))) {
			if err := s.write(piece); !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EDQUOT) {
				return false, err
			}
			if s.hasRoom() || s.failed != nil { // next or fail ran during the write, so that no other signal follows
				continue
			}
		}
		s.moved.Wait()
	}
	return false, s.failed
}

// hasRoom reports whether the next piece may wait in memory: only while no older data waits in the file. s.mu must be held.
func (s *spool) hasRoom() bool {
	return s.wrote == s.read && (len(s.queue) < maxQueued || len(s.queue) < maxAhead && s.all.pieces.Load() < maxAllAhead)
}

// reserveInFile reserves n bytes in the file; false if that is not possible. s.mu must be held.
func (s *spool) reserveInFile(n int64) bool {
	if s.file == nil && !s.refused {
		var err error
		if s.file, err = createUnnamed(); err != nil {
			s.refused = true
			s.log.Warn("spool file not created, slow clients block the database", "error", err)
		}
	}
	if s.file == nil {
		return false
	}
	if s.wrote == s.read { // everything was sent, so the file is reused from its start
		s.release(s.wrote)
		s.wrote, s.read = 0, 0
	}
	return s.reserve(n)
}

// write appends a piece to the file, in reserved space. s.mu must be held; write unlocks it during the write. That is safe because there
// is only one writer, and the reader does not read that far.
func (s *spool) write(piece []byte) error {
	n, at, file := int64(len(piece)), s.wrote, s.file
	s.mu.Unlock()
	_, err := file.WriteAt(piece, at)
	s.mu.Lock()
	if err != nil {
		s.release(n)
		return fmt.Errorf("write the spool file: %w", err)
	}
	s.wrote += n
	s.moved.Broadcast()
	return nil
}

// createUnnamed creates a file that is deleted when it is closed.
func createUnnamed() (*os.File, error) {
	f, err := os.CreateTemp("", "portolan-list-")
	if err != nil {
		return nil, fmt.Errorf("create the spool file: %w", err)
	}
	if err := os.Remove(f.Name()); err != nil { // some systems cannot remove an open file; it then remains in the temporary directory
		return f, nil //nolint:nilerr // a remaining file does no harm
	}
	return f, nil
}

// next returns the next piece, reading data from the file into b; nil at the end.
func (s *spool) next(b []byte) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.failed != nil:
			return nil, s.failed
		case len(s.queue) > 0:
			piece := s.queue[0]
			s.queue = s.queue[1:]
			s.all.pieces.Add(-1)
			s.moved.Broadcast()
			return piece, nil
		case s.read < s.wrote:
			n, at, file := min(int64(cap(b)), s.wrote-s.read), s.read, s.file
			s.mu.Unlock()
			_, err := file.ReadAt(b[:n], at)
			s.mu.Lock()
			if err != nil {
				return nil, fmt.Errorf("read the spool file: %w", err)
			}
			s.read += n
			s.moved.Broadcast()
			return b[:n], nil
		case s.closed:
			return nil, nil
		}
		s.moved.Wait()
	}
}

// end marks the spool as complete.
func (s *spool) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.moved.Broadcast()
}

// fail stops the spool with an error.
func (s *spool) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed = err
	s.moved.Broadcast()
}

// free releases the memory and the file of the spool. It must not be called concurrently with put or next.
func (s *spool) free() {
	s.all.pieces.Add(-int64(len(s.queue)))
	s.queue = nil
	if s.file != nil {
		s.release(s.wrote)
		_ = s.file.Close() // the data was sent, or is not needed
	}
}
