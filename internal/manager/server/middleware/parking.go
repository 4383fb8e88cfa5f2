package middleware

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"
)

// Parking is where connections stand whose request is answered later. Their server has let go of them: they have no goroutine, and no
// buffer of what is read and written. With their answers they come back to the server by Accept, as if they were new; what TLS has agreed
// on stays.
type Parking struct {
	at net.Addr
	// counts is told how many more stand here.
	counts func(more int)
	// behind waits until connections that were answered may come back: what they ask for next is in nobody's way then.
	behind func(context.Context)
	back   chan net.Conn
	// open ends with close, when no connection comes back any more.
	open  context.Context
	close context.CancelFunc
	// ends is set when no connection is to go on behind its answer.
	ends atomic.Bool
	// mu guards parked, how many requests were parked and are not answered yet; none, which is closed when that is none; the connections
	// that are being answered, those that are to come back, which somebody sees to where returning is set, and those that came back and
	// have asked for nothing since.
	mu        sync.Mutex
	parked    int
	none      chan struct{}
	answering map[net.Conn]bool
	answered  []net.Conn
	returning bool
	fresh     map[net.Conn]bool
}

// NewParking returns a parking of connections to an address. counts is told how many more stand there, and behind waits until connections
// that were answered may come back.
func NewParking(at net.Addr, counts func(more int), behind func(context.Context)) *Parking {
	none := make(chan struct{})
	close(none)
	p := &Parking{at: at, counts: counts, behind: behind, back: make(chan net.Conn), none: none, answering: map[net.Conn]bool{},
		fresh: map[net.Conn]bool{}}
	p.open, p.close = context.WithCancel(context.Background())
	return p
}

// Accept gives a connection that comes back.
func (p *Parking) Accept() (net.Conn, error) {
	select {
	case c := <-p.back:
		return c, nil
	case <-p.open.Done():
		return nil, net.ErrClosed
	}
}

// Close lets no connection come back any more.
func (p *Parking) Close() error {
	p.close()
	return nil
}

// End has connections end with their answers from now on, and those that ask for nothing at once: the manager is about to end. Their server
// would wait for these, which are as new to it.
func (p *Parking) End() {
	p.ends.Store(true)
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.fresh {
		_ = c.Close()
	}
	for _, c := range p.answered {
		p.drop(c)
	}
	p.answered = nil
}

// drop closes a connection that was to come back.
func (p *Parking) drop(c net.Conn) {
	_ = c.Close()
	p.counts(-1)
}

// giveBack lets a connection that was answered come back. Until then it stands here.
func (p *Parking) giveBack(c net.Conn) {
	p.counts(1)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answered = append(p.answered, c)
	if !p.returning {
		p.returning = true
		go p.bringBack()
	}
}

// bringBack lets connections come back until there are no more that were answered.
func (p *Parking) bringBack() {
	for {
		p.behind(p.open)
		p.mu.Lock()
		some := p.answered
		p.answered, p.returning = nil, len(some) > 0
		p.mu.Unlock()
		if len(some) == 0 {
			return
		}
		for _, c := range some {
			if p.ends.Load() {
				p.drop(c)
				continue
			}
			select {
			case p.back <- c:
				p.counts(-1)
			case <-p.open.Done():
				p.drop(c)
			}
		}
	}
}

// StateChanged is a connection's that came back.
func (p *Parking) StateChanged(c net.Conn, state http.ConnState) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if state != http.StateNew {
		delete(p.fresh, c)
		return
	}
	if p.fresh[c] = true; p.ends.Load() { // it was on its way back
		_ = c.Close()
	}
}

// Addr is that of the door.
func (p *Parking) Addr() net.Addr { return p.at }

// count counts a request more that is parked, or one less.
func (p *Parking) count(more int) {
	p.counts(more)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.parked == 0 {
		p.none = make(chan struct{})
	}
	if p.parked += more; p.parked == 0 {
		close(p.none)
	}
}

// Waiting returns how many requests were parked and are not answered yet.
func (p *Parking) Waiting() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.parked
}

// Wait waits until all that was parked is answered, or ctx ends.
func (p *Parking) Wait(ctx context.Context) error {
	p.mu.Lock()
	none := p.none
	p.mu.Unlock()
	select {
	case <-none:
	case <-ctx.Done(): // somebody does not read its answer
		p.mu.Lock()
		for c := range p.answering {
			_ = c.Close()
		}
		p.mu.Unlock()
	}
	select {
	case <-none:
		return nil
	case <-time.After(cutTime): // it cannot be: what is closed ends
		return errors.New("requests that were parked do not end")
	}
}

// answer notes that a connection is being answered, or is not any more.
func (p *Parking) answer(c net.Conn, is bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if is {
		p.answering[c] = true
	} else {
		delete(p.answering, c)
	}
}

// Parked is a request that is answered later.
type Parked struct {
	*passing
	lot  *Parking
	conn net.Conn
	// last says that the connection ends with the answer.
	last bool
}

// Park takes the connection of a request from its server (HTTP/1.1, RFC 9112): its handler returns nil then, and calls reply once. Of the
// request is kept what logs say of it, and of its context what it is called and its span: there may be very many. The answer has the
// headers that every answer has, and those that are set then.
func (p *Parking) Park(w http.ResponseWriter) (*Parked, error) {
	rec, ok := w.(*recorder)
	if !ok || rec.status != 0 {
		return nil, errors.New("this answer has begun")
	}
	p.count(1) // before its server forgets it: who ends the manager waits for the one or the other
	conn, buffers, err := http.NewResponseController(rec.ResponseWriter).Hijack()
	if err != nil {
		p.count(-1)
		return nil, err
	}
	rec.ResponseWriter, rec.parked = nil, true
	r := rec.of.request
	slim := &http.Request{Method: r.Method, URL: &url.URL{Path: r.URL.Path, RawQuery: r.URL.RawQuery}, Proto: r.Proto,
		ProtoMajor: r.ProtoMajor, ProtoMinor: r.ProtoMinor, RemoteAddr: r.RemoteAddr, RequestURI: r.RequestURI}
	if rec.of.chain.Access != nil {
		slim.Header = http.Header{"User-Agent": r.Header["User-Agent"], "Referer": r.Header["Referer"]}
	}
	ctx := context.WithValue(context.Background(), askedKey{}, &rec.of.asked)
	if span := trace.SpanFromContext(r.Context()); span.SpanContext().IsValid() {
		ctx = trace.ContextWithSpan(ctx, span)
	}
	rec.of.request = slim.WithContext(ctx)
	// Who has sent more already has not waited for the answer.
	return &Parked{rec.of, p, conn, r.Close || !r.ProtoAtLeast(1, 1) || buffers.Reader.Buffered() > 0}, nil
}

// Reply answers, by what a handler writes, and gives the connection back.
func (p *Parked) Reply(handle func(w http.ResponseWriter, r *http.Request) error) {
	defer p.lot.count(-1)
	defer p.end()
	p.lot.answer(p.conn, true)
	defer p.lot.answer(p.conn, false)
	header := http.Header{requestHeader: {p.id}}
	SetSecurityHeaders(header, p.chain.Secure)
	sheet := &sheet{header: header, conn: p.conn, out: bufio.NewWriter(p.conn), last: p.last || p.lot.ends.Load()}
	p.answer.ResponseWriter = sheet
	sheet.failed = p.conn.SetWriteDeadline(time.Now().Add(replyTime))
	whole := p.written(handle) && sheet.finish() == nil
	if !whole {
		p.answer.status = 499
	}
	if whole && !sheet.last {
		p.lot.giveBack(p.conn)
		return
	}
	_ = p.conn.Close()
}

// written has an answer written. It reports whether there is one: not where a panic has cut it off, which ends this answer alone.
func (p *Parked) written(handle func(w http.ResponseWriter, r *http.Request) error) (whole bool) {
	defer func() {
		if err := recover(); err != nil && err != http.ErrAbortHandler { //nolint:errorlint,err113 // as net/http compares it
			p.chain.Log.Error("parked request failed", "path", p.request.URL.Path, "error", fmt.Sprint(err), "stack", string(debug.Stack()))
		}
	}()
	p.chain.safely(&p.answer, p.request, p.api.Errors, handle)
	return true
}

// replyTime is how long who waited may take to read its answer, where the handler does not say another time.
const replyTime = time.Minute

// sheet is what an answer is written on: its head, with a Content-Length where the connection is to go on, and its body.
type sheet struct {
	header http.Header
	conn   net.Conn
	out    *bufio.Writer
	begun  bool
	// left is how much of the body is to come; below 0 where nobody has said.
	left int64
	// last says that the connection ends behind it; failed is the first error.
	last   bool
	failed error
}

// Header is what goes before the body.
func (s *sheet) Header() http.Header { return s.header }

// WriteHeader writes the head.
func (s *sheet) WriteHeader(status int) {
	if s.begun {
		return
	}
	s.begun, s.left = true, -1
	if length, err := strconv.ParseInt(s.header.Get("Content-Length"), 10, 64); err == nil {
		s.left = length
	} else if status == http.StatusNoContent {
		s.left = 0
	} else {
		s.last = true
	}
	s.header.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	if s.last {
		s.header.Set("Connection", "close")
	}
	_, err := fmt.Fprintf(s.out, "HTTP/1.1 %03d %s\r\n", status, http.StatusText(status))
	if err == nil {
		err = s.header.Write(s.out)
	}
	if err == nil {
		_, err = s.out.WriteString("\r\n")
	}
	s.fail(err)
}

// Write writes of the body.
func (s *sheet) Write(b []byte) (n int, err error) {
	s.WriteHeader(http.StatusOK)
	if s.left >= 0 && int64(len(b)) > s.left {
		s.fail(http.ErrContentLength)
	}
	if s.failed == nil {
		n, err = s.out.Write(b)
		s.fail(err)
		if s.left >= 0 {
			s.left -= int64(n)
		}
	}
	return n, s.failed
}

// SetWriteDeadline says until when it may take.
func (s *sheet) SetWriteDeadline(t time.Time) error { return s.conn.SetWriteDeadline(t) }

func (s *sheet) fail(err error) {
	if s.failed == nil {
		s.failed = err
	}
}

// finish sends what is left. A body that is shorter than was said is an error: who reads would take the next answer for the rest of it.
func (s *sheet) finish() error {
	if !s.begun {
		s.header.Set("Content-Length", "0")
		s.WriteHeader(http.StatusOK)
	}
	if s.left > 0 {
		s.fail(io.ErrUnexpectedEOF)
	}
	s.fail(s.out.Flush())
	s.fail(s.conn.SetWriteDeadline(time.Time{}))
	return s.failed
}

// cutTime is how long parked requests may take to end once their connections were closed.
const cutTime = 10 * time.Second

// Context returns the context of the request: its name and its span, and no end.
func (p *Parked) Context() context.Context { return p.request.Context() }
