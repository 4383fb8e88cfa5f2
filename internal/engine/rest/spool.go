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

// spool holds the bytes of an answer between whoever makes them and whoever sends them. What a client does not
// take at once waits in memory, and beyond that in a file without a name: the database is free as soon as the
// answer is made, however slow the client is.
type spool struct {
	// all is what all spools of an API have, own what those of the caller have in files, in bytes.
	all *backlog
	own *atomic.Int64
	log *slog.Logger

	mu    sync.Mutex
	moved *sync.Cond // something was put or taken
	// queue are pieces in memory, older than all that is in the file. Guarded by mu.
	queue [][]byte
	// file is nil until it is needed; wrote and read are how far it was written and read. Guarded by mu; the
	// file is written by who puts and read by who takes, each in its own place.
	file        *os.File
	wrote, read int64
	// refused says that no file could be made. Guarded by mu.
	refused bool
	// closed says that nothing more comes, failed why nothing more is taken. Guarded by mu.
	closed bool
	failed error
}

// Bounds of a spool: how many pieces may always wait in memory, and how many while all spools together have fewer than so many there
// (or a few more, put at the same moment): a page of the usual size needs no file. How many bytes the answers of one caller, and all of
// them together, may have in files.
const (
	maxQueued   = 8
	maxAhead    = 32
	maxAllAhead = 256
	maxOwnFiles = 512 << 20
	maxAllFiles = 4 << 30
)

// backlog is what all spools of an API have: pieces in memory, and bytes in files.
type backlog struct{ pieces, bytes atomic.Int64 }

// reserve reserves bytes in files; false where there is no room.
func (s *spool) reserve(n int64) bool {
	all, own := s.all.bytes.Add(n), s.own.Add(n)
	if all <= maxAllFiles && own <= maxOwnFiles {
		return true
	}
	s.giveBack(n)
	return false
}

// giveBack ends a reservation.
func (s *spool) giveBack(n int64) {
	s.all.bytes.Add(-n)
	s.own.Add(-n)
}

func newSpool(all *backlog, own *atomic.Int64, log *slog.Logger) *spool {
	s := &spool{all: all, own: own, log: log}
	s.moved = sync.NewCond(&s.mu)
	return s
}

// put adds a piece, which is the spool's from then on where kept is true, and the caller's again where it is not.
// Where there is no room in files, or none can be made, it waits until the client has taken something.
func (s *spool) put(piece []byte) (kept bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.failed != nil:
			return false, s.failed
		case s.wrote == s.read && (len(s.queue) < maxQueued || len(s.queue) < maxAhead && s.all.pieces.Load() < maxAllAhead):
			s.all.pieces.Add(1)
			s.queue = append(s.queue, piece)
			s.moved.Broadcast()
			return true, nil
		case s.room(int64(len(piece))):
			if err := s.write(piece); !errors.Is(err, syscall.ENOSPC) {
				return false, err
			}
		}
		s.moved.Wait()
	}
}

// room reserves so many bytes in the file; false where they cannot be had. s.mu is held.
func (s *spool) room(n int64) bool {
	if s.file == nil && !s.refused {
		var err error
		if s.file, err = nameless(); err != nil {
			s.refused = true
			s.log.Warn("lists of slow clients hold up the database: no file can be made for them", "error", err)
		}
	}
	if s.file == nil {
		return false
	}
	if s.wrote == s.read { // all of it was sent: its place is used again
		s.giveBack(s.wrote)
		s.wrote, s.read = 0, 0
	}
	return s.reserve(n)
}

// write writes a piece behind what is in the file, in room that was reserved. s.mu is held, and let go meanwhile:
// nobody else writes, and nobody reads that far.
func (s *spool) write(piece []byte) error {
	n, at, file := int64(len(piece)), s.wrote, s.file
	s.mu.Unlock()
	_, err := file.WriteAt(piece, at)
	s.mu.Lock()
	if err != nil {
		s.giveBack(n)
		return fmt.Errorf("keeping what waits to be sent: %w", err)
	}
	s.wrote += n
	s.moved.Broadcast()
	return nil
}

// nameless makes a file that is gone when it is closed.
func nameless() (*os.File, error) {
	f, err := os.CreateTemp("", "portolan-list-")
	if err != nil {
		return nil, fmt.Errorf("keeping what waits to be sent: %w", err)
	}
	if err := os.Remove(f.Name()); err != nil { // where a file that is open cannot be removed it is left to the system
		return f, nil //nolint:nilerr // it is only untidy
	}
	return f, nil
}

// next gives the next piece, reading what was in the file into b; nil at the end.
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
				return nil, fmt.Errorf("reading what waits to be sent: %w", err)
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

// end says that nothing more comes.
func (s *spool) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.moved.Broadcast()
}

// fail says that nothing more is taken.
func (s *spool) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed = err
	s.moved.Broadcast()
}

// free gives back what the spool has. Nobody puts or takes any more.
func (s *spool) free() {
	s.all.pieces.Add(-int64(len(s.queue)))
	s.queue = nil
	if s.file != nil {
		s.giveBack(s.wrote)
		_ = s.file.Close() // what was in it was sent, or is not wanted
	}
}
