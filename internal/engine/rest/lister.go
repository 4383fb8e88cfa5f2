package rest

import (
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// lister gathers a list's bytes and hands them to a spool when there are enough; another goroutine sends them.
type lister struct {
	w     http.ResponseWriter
	spool *spool
	// limit is how long one piece may take to be sent, and how late the client may be in all; spent is how long
	// it was waited for so far.
	limit, spent time.Duration
	buf          []byte
	started      bool
	head         bool
	status       func()
	sent         chan error // what came of sending; nil until there is something to send
	// stopped says that nothing is sent any more.
	stopped bool
}

// leastRate is how many bytes a second a client must take, but for what it may be late by at any time.
const leastRate = 32 << 10

// flush hands over what has gathered.
func (l *lister) flush() error {
	l.begin()
	if l.sent == nil {
		l.sent = make(chan error, 1)
		go l.send()
	}
	kept, err := l.spool.put(l.buf)
	if kept {
		l.buf = piece()
	}
	l.buf = l.buf[:0]
	return err
}

// pieces are buffers that can be used again, by piece and recycle.
var pieces = sync.Pool{New: func() any { return make([]byte, 0, flushAt+flushAt/4) }}

// piece gives an empty buffer.
func piece() []byte {
	b, _ := pieces.Get().([]byte)
	return b[:0]
}

// recycle takes a buffer that nobody uses any more; those that have grown large are left to the collector.
func recycle(b []byte) {
	if cap(b) >= flushAt && cap(b) <= 4*flushAt {
		pieces.Put(b[:0]) //nolint:staticcheck // a slice is what it holds
	}
}

// send sends pieces until there are no more, or one cannot be sent.
func (l *lister) send() {
	spare := piece()
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

func (l *lister) begin() {
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

// abandon ends what nobody has ended: whatever made the answer has panicked.
func (l *lister) abandon() {
	if !l.stopped {
		l.spool.fail(errCut)
		_ = l.stop() // what came of it is lost with the rest
	}
}

// finish hands over the rest.
func (l *lister) finish() error {
	one := l.sent == nil // all there is fits into one piece
	if one && !l.started && !l.head {
		l.w.Header().Set("Content-Length", strconv.Itoa(len(l.buf)))
	}
	l.begin()
	if one || len(l.buf) == 0 {
		return nil
	}
	return l.flush()
}

// rest sends what was not handed over, once the database is not needed any more.
func (l *lister) rest() error {
	defer func() { recycle(l.buf) }()
	if err := l.stop(); err != nil || l.sent != nil || l.head || !l.started || len(l.buf) == 0 {
		return err
	}
	return l.write(l.buf, 0)
}

// write sends bytes within the limits, after so many others. The time that is spent waiting for the client is
// held against it, that in which nothing was there to be sent is not. The server sets its own deadline again at
// the next request.
func (l *lister) write(b []byte, sent int64) error {
	late := l.limit + time.Duration(sent/leastRate)*time.Second - l.spent
	began := time.Now()
	err := http.NewResponseController(l.w).SetWriteDeadline(began.Add(min(l.limit, late)))
	if err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	_, err = l.w.Write(b)
	l.spent += time.Since(began)
	return err
}
