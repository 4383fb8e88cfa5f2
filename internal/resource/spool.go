package resource

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
)

// spool holds the bytes of an answer between whoever makes them and whoever sends them. What a client does not
// take at once waits in memory, and beyond that in a file without a name: the database is free as soon as the
// answer is made, however slow the client is.
type spool struct {
	// disk counts the bytes that all spools of an API have in files.
	disk *diskBudget

	mu    sync.Mutex
	moved *sync.Cond // something was put or taken
	// queue are pieces in memory, older than all that is in the file. Guarded by mu.
	queue [][]byte
	// file is nil until it is needed; wrote and read are how far it was written and read. Guarded by mu; the
	// file is written by who puts and read by who takes, each in its own place.
	file        *os.File
	wrote, read int64
	// closed says that nothing more comes, failed why nothing more is taken. Guarded by mu.
	closed bool
	failed error
}

// Bounds of a spool: how many pieces wait in memory, and how much one answer, and all of them together, may
// have in files.
const (
	maxQueued   = 8
	maxSpooled  = 1 << 30
	maxAllFiles = 4 << 30
)

// diskBudget is what files may take.
type diskBudget struct{ used atomic.Int64 }

// take reserves bytes; false where there is no room.
func (d *diskBudget) take(n int64) bool {
	if d.used.Add(n) <= maxAllFiles {
		return true
	}
	d.used.Add(-n)
	return false
}

func newSpool(disk *diskBudget) *spool {
	s := &spool{disk: disk}
	s.moved = sync.NewCond(&s.mu)
	return s
}

// errNoRoom is an answer that is too long for a client that does not read it.
var errNoRoom = errors.New("the client reads too slowly: there is no room for what waits")

// put adds a piece, which is the spool's from then on where kept is true, and the caller's again where it is not.
func (s *spool) put(piece []byte) (kept bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed != nil {
		return false, s.failed
	}
	if s.wrote == s.read && len(s.queue) < maxQueued {
		s.queue = append(s.queue, piece)
		s.moved.Broadcast()
		return true, nil
	}
	if s.file == nil {
		if s.file, err = nameless(); err != nil {
			return false, err
		}
	}
	n := int64(len(piece))
	if s.wrote+n > maxSpooled || !s.disk.take(n) {
		return false, errNoRoom
	}
	at, file := s.wrote, s.file
	s.mu.Unlock()
	_, err = file.WriteAt(piece, at)
	s.mu.Lock()
	if err != nil {
		s.disk.used.Add(-n)
		return false, fmt.Errorf("keeping what waits to be sent: %w", err)
	}
	s.wrote += n
	s.moved.Broadcast()
	return false, nil
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
}

// free gives back what the spool has. Nobody puts or takes any more.
func (s *spool) free() {
	if s.file != nil {
		s.disk.used.Add(-s.wrote)
		_ = s.file.Close() // what was in it was sent, or is not wanted
	}
}
