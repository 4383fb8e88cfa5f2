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

// Parking holds connections whose requests are answered later. The HTTP server has released them: a parked connection has no goroutine
// and no read or write buffer. After the response, Accept returns the connection to the server as if it were new. Its TLS session
// is kept.
type Parking struct {
	address net.Addr
	// counts is called with each change of the number of connections held here.
	counts func(more int)
	// awaitReturn waits until answered connections may return to the server, so that their next requests do not delay others.
	awaitReturn func(context.Context)
	back        chan net.Conn
	// open is canceled by close. No connection returns to the server afterwards.
	open  context.Context
	close context.CancelFunc
	// ends is set when each connection must be closed after its response.
	ends atomic.Bool
	// mu guards the fields below. parked is the number of parked requests without a response. none is closed while parked is 0.
	// answering holds the connections that a response is being written to. answered holds those that wait to return to the server;
	// returning is set while a goroutine returns them. fresh holds returned connections without a new request.
	mu        sync.Mutex
	parked    int
	none      chan struct{}
	answering map[net.Conn]bool
	answered  []net.Conn
	returning bool
	fresh     map[net.Conn]bool
}

// NewParking returns a Parking for connections to the address at. It calls counts with each change of the number of held connections.
// It calls behind to wait until answered connections may return to the server.
func NewParking(at net.Addr, counts func(more int), behind func(context.Context)) *Parking {
	none := make(chan struct{})
	close(none)
	p := &Parking{address: at, counts: counts, awaitReturn: behind, back: make(chan net.Conn), none: none, answering: map[net.Conn]bool{},
		fresh: map[net.Conn]bool{}}
	p.open, p.close = context.WithCancel(context.Background())
	return p
}

// Accept returns the next connection that returns to the server.
func (p *Parking) Accept() (net.Conn, error) {
	select {
	case c := <-p.back:
		return c, nil
	case <-p.open.Done():
		return nil, net.ErrClosed
	}
}

// Close stops the return of connections to the server.
func (p *Parking) Close() error {
	p.close()
	return nil
}

// End prepares for shutdown. From now on each connection is closed after its response. Idle returned connections are closed at once,
// because the server treats them as new and would wait for them.
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

// drop closes a connection that was waiting to return to the server.
func (p *Parking) drop(c net.Conn) {
	_ = c.Close()
	p.counts(-1)
}

// returnConn queues an answered connection for its return to the server. The connection counts as held until it returns.
func (p *Parking) returnConn(c net.Conn) {
	p.counts(1)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answered = append(p.answered, c)
	if !p.returning {
		p.returning = true
		go p.bringBack()
	}
}

// bringBack returns answered connections to the server until none are left.
func (p *Parking) bringBack() {
	for {
		p.awaitReturn(p.open)
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

// StateChanged is the ConnState hook for returned connections.
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

// Addr returns the address of the listener.
func (p *Parking) Addr() net.Addr { return p.address }

// count adds more, which may be negative, to the number of parked requests.
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

// Waiting returns the number of parked requests without a response.
func (p *Parking) Waiting() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.parked
}

// Wait waits until all parked requests are answered. When ctx ends, it closes the connections that a response is being written to.
func (p *Parking) Wait(ctx context.Context) error {
	p.mu.Lock()
	none := p.none
	p.mu.Unlock()
	select {
	case <-none:
	case <-ctx.Done(): // a client does not read its response
		p.mu.Lock()
		for c := range p.answering {
			_ = c.Close()
		}
		p.mu.Unlock()
	}
	select {
	case <-none:
		return nil
	case <-time.After(cutTime): // unexpected: writes to closed connections fail
		return errors.New("parked requests have not ended")
	}
}

// answer records whether a response is being written to a connection.
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
	parking *Parking
	conn    net.Conn
	// last reports whether the connection is closed after the response.
	last bool
}

// Park takes the connection of a request from its server (HTTP/1.1, RFC 9112): its handler returns nil then, and calls reply once. Of the
// request is kept what logs say of it, and of its context what it is called and its span: there may be very many. The answer has the
// headers that every answer has, and those that are set then.
func (p *Parking) Park(w http.ResponseWriter) (*Parked, error) {
	rec, ok := w.(*recorder)
	if !ok || rec.status != 0 {
		return nil, errors.New("the response has already started")
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
	ctx := context.WithValue(context.Background(), requestInfoKey{}, &rec.of.requestInfo)
	if span := trace.SpanFromContext(r.Context()); span.SpanContext().IsValid() {
		ctx = trace.ContextWithSpan(ctx, span)
	}
	rec.of.request = slim.WithContext(ctx)
	// A client that has sent more data did not wait for the response.
	return &Parked{rec.of, p, conn, r.Close || !r.ProtoAtLeast(1, 1) || buffers.Reader.Buffered() > 0}, nil
}

// Reply writes the response of handle. It then returns the connection to the server or closes it.
func (p *Parked) Reply(handle func(w http.ResponseWriter, r *http.Request) error) {
	defer p.parking.count(-1)
	defer p.end()
	p.parking.answer(p.conn, true)
	defer p.parking.answer(p.conn, false)
	header := http.Header{requestHeader: {p.id}}
	SetSecurityHeaders(header, p.chain.Secure)
	sheet := &sheet{header: header, conn: p.conn, out: bufio.NewWriter(p.conn), last: p.last || p.parking.ends.Load()}
	p.answer.ResponseWriter = sheet
	sheet.failed = p.conn.SetWriteDeadline(time.Now().Add(replyTime))
	whole := p.runHandler(handle) && sheet.finish() == nil
	if !whole {
		p.answer.status = 499
	}
	if whole && !sheet.last {
		p.parking.returnConn(p.conn)
		return
	}
	_ = p.conn.Close()
}

// runHandler runs the handler. It reports false after a panic, which aborts only this response.
func (p *Parked) runHandler(handle func(w http.ResponseWriter, r *http.Request) error) (whole bool) {
	defer func() {
		if err := recover(); err != nil && err != http.ErrAbortHandler { //nolint:errorlint,err113 // as net/http compares it
			p.chain.Log.Error("parked request failed", "path", p.request.URL.Path, "error", fmt.Sprint(err), "stack", string(debug.Stack()))
		}
	}()
	p.chain.safely(&p.answer, p.request, p.api.Errors, handle)
	return true
}

// replyTime is the write timeout of a response unless the handler sets another one.
const replyTime = time.Minute

// sheet is the http.ResponseWriter of a parked request. A response without a Content-Length closes the connection.
type sheet struct {
	header  http.Header
	conn    net.Conn
	out     *bufio.Writer
	isBegun bool
	// left is the number of body bytes still to write; negative if the length is unknown.
	left int64
	// last reports whether the connection is closed after the response; failed is the first error.
	last   bool
	failed error
}

// Header returns the response headers.
func (s *sheet) Header() http.Header { return s.header }

// WriteHeader writes the status line and the headers.
func (s *sheet) WriteHeader(status int) {
	if s.isBegun {
		return
	}
	s.isBegun, s.left = true, -1
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

// Write writes part of the body.
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

// SetWriteDeadline sets the write deadline of the connection.
func (s *sheet) SetWriteDeadline(t time.Time) error { return s.conn.SetWriteDeadline(t) }

func (s *sheet) fail(err error) {
	if s.failed == nil {
		s.failed = err
	}
}

// finish flushes the response. A body shorter than its Content-Length is an error: the client would read the next response as its rest.
func (s *sheet) finish() error {
	if !s.isBegun {
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

// cutTime is the time limit for parked requests to end after their connections are closed.
const cutTime = 10 * time.Second

// Context returns the context of the request. It carries the request ID and the trace span, and has no deadline.
func (p *Parked) Context() context.Context { return p.request.Context() }
