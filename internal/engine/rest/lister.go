package rest

import (
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// lister collects a list's bytes and passes them to a spool in pieces; another goroutine sends them.
type lister struct {
	w     http.ResponseWriter
	spool *spool
	// limit is the maximum time for sending one piece, and the client's total permitted delay. spent is the time spent on waiting for the
	// client so far.
	limit, spent time.Duration
	buf          []byte
	started      bool
	head         bool
	status       func()
	sent         chan error // the result of sending; nil until there is something to send
	// stopped says that nothing is sent any more.
	stopped bool
}

// minRate is the minimum rate of the client, in bytes per second, in addition to the permitted delay.
const minRate = 32 << 10

// flush passes the buffer to the spool.
func (l *lister) flush() error {
	l.startPage()
	if l.sent == nil {
		l.sent = make(chan error, 1)
		go l.send()
	}
	kept, err := l.spool.put(l.buf)
	if kept {
		l.buf = newPiece()
	}
	l.buf = l.buf[:0]
	return err
}

// pieces are reusable buffers, for piece and recycle.
var pieces = sync.Pool{New: func() any { return make([]byte, 0, flushAt+flushAt/4) }}

// newPiece returns an empty buffer.
func newPiece() []byte {
	b, _ := pieces.Get().([]byte)
	return b[:0]
}

// recycle puts back a buffer that is not in use any more; large buffers are left to the garbage collector.
func recycle(b []byte) {
	if cap(b) >= flushAt && cap(b) <= 4*flushAt {
		pieces.Put(b[:0]) //nolint:staticcheck // the pool holds slices
	}
}

// send sends pieces until there are no more, or one cannot be sent.
func (l *lister) send() {
	spare := newPiece()
	defer recycle(spare)
	sent := int64(0)
	for {
		next, err := l.spool.next(spare[:cap(spare)])
		if err == nil && next == nil {
			l.sent <- nil
			return
		}
		if err == nil {
			err = l.write(next, sent)
		}
		if err != nil {
			l.spool.fail(err)
			l.sent <- err
			return
		}
		sent += int64(len(next))
		if &next[0] != &spare[:1][0] {
			recycle(next)
		}
	}
}

func (l *lister) startPage() {
	if !l.started {
		l.started = true
		l.status()
	}
}

// stop waits until nothing is being sent any more. It must be called before the answer ends.
func (l *lister) stop() error {
	l.stopped = true
	defer l.spool.free()
	if l.sent == nil {
		return nil
	}
	l.spool.end()
	return <-l.sent
}

// abandon stops a list that was not stopped, because its handler has panicked.
func (l *lister) abandon() {
	if !l.stopped {
		l.spool.fail(errCut)
		_ = l.stop() // the error is lost with the rest
	}
}

// finish passes the rest of the list to the spool.
func (l *lister) finish() error {
	one := l.sent == nil // the whole list fits into one piece
	if one && !l.started && !l.head && len(l.buf) > shortBody {
		l.w.Header().Set("Content-Length", strconv.Itoa(len(l.buf)))
	}
	l.startPage()
	if one || len(l.buf) == 0 {
		return nil
	}
	return l.flush()
}

// sendRest sends the bytes that the spool did not get, after the database was released.
func (l *lister) sendRest() error {
	defer func() { recycle(l.buf) }()
	if err := l.stop(); err != nil || l.sent != nil || l.head || !l.started || len(l.buf) == 0 {
		return err
	}
	return l.write(l.buf, 0)
}

// write sends bytes within the time limits; sent is the number of bytes before them. Time that is spent waiting for the client counts
// against it; time without data to send does not. The server sets its own deadline again at the next request.
func (l *lister) write(b []byte, sent int64) error {
	late := l.limit + time.Duration(sent/minRate)*time.Second - l.spent
	began := time.Now()
	err := http.NewResponseController(l.w).SetWriteDeadline(began.Add(min(l.limit, late)))
	if err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	_, err = l.w.Write(b)
	l.spent += time.Since(began)
	return err
}
