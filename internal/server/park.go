package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// parking is where connections stand whose request is answered later. Their server has let go of them: they have no goroutine, and no
// buffer of what is read and written. With their answers they come back to the server by Accept, as if they were new; what TLS has agreed
// on stays.
type parking struct {
	at net.Addr
	// counts is told how many more stand here.
	counts func(more int)
	back   chan net.Conn
	closed chan struct{}
	once   sync.Once
	// mu guards parked, how many requests were parked and are not answered yet; none is closed when that is none.
	mu     sync.Mutex
	parked int
	none   chan struct{}
}

func newParking(at net.Addr, counts func(more int)) *parking {
	none := make(chan struct{})
	close(none)
	return &parking{at: at, counts: counts, back: make(chan net.Conn), closed: make(chan struct{}), none: none}
}

// Accept gives a connection that comes back.
func (p *parking) Accept() (net.Conn, error) {
	select {
	case c := <-p.back:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close lets no connection come back any more.
func (p *parking) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

// Addr is that of the door.
func (p *parking) Addr() net.Addr { return p.at }

// count counts a request more that is parked, or one less.
func (p *parking) count(more int) {
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

// wait waits until all that was parked is answered, or ctx ends.
func (p *parking) wait(ctx context.Context) error {
	p.mu.Lock()
	none := p.none
	p.mu.Unlock()
	select {
	case <-none:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for check-ins: %w", ctx.Err())
	}
}

// parked is a request that is answered later.
type parked struct {
	*passing
	lot    *parking
	conn   net.Conn
	header http.Header
	// last says that the connection ends with the answer.
	last bool
}

// park takes the connection of a request from its server (HTTP/1.1, RFC 9112): its handler returns nil then, and calls reply once. What
// the request was is kept but for its body, which was read.
func (p *parking) park(w http.ResponseWriter) (*parked, error) {
	rec, ok := w.(*recorder)
	if !ok || rec.status != 0 {
		return nil, errors.New("this answer has begun")
	}
	header := rec.Header()
	conn, buffers, err := http.NewResponseController(rec.ResponseWriter).Hijack()
	if err != nil {
		return nil, err
	}
	p.count(1)
	rec.ResponseWriter, rec.parked = nil, true
	r := rec.of.request
	slim := &http.Request{Method: r.Method, URL: r.URL, Proto: r.Proto, ProtoMajor: r.ProtoMajor, ProtoMinor: r.ProtoMinor, Header: r.Header,
		Host: r.Host, RemoteAddr: r.RemoteAddr, RequestURI: r.RequestURI}
	rec.of.request = slim.WithContext(context.WithoutCancel(r.Context()))
	// Who has sent more already has not waited for the answer.
	return &parked{rec.of, p, conn, header, r.Close || !r.ProtoAtLeast(1, 1) || buffers.Reader.Buffered() > 0}, nil
}

// reply answers, by what a handler writes, and gives the connection back.
func (p *parked) reply(handle func(w http.ResponseWriter, r *http.Request) error) {
	defer p.end()
	page := &page{header: p.header}
	p.answer.ResponseWriter = page
	whole := p.written(handle)
	if !whole {
		p.answer.status = 499
	}
	select {
	case <-p.lot.closed:
		p.last = true
	default:
	}
	whole = whole && page.send(p.conn, p.last) == nil
	p.lot.count(-1)
	if whole && !p.last {
		select {
		case p.lot.back <- p.conn:
			return
		case <-p.lot.closed:
		}
	}
	_ = p.conn.Close()
}

// written has an answer written. It reports whether there is one: not where a panic has cut it off.
func (p *parked) written(handle func(w http.ResponseWriter, r *http.Request) error) (whole bool) {
	defer func() {
		if err := recover(); err != nil && err != http.ErrAbortHandler { //nolint:errorlint,err113 // as net/http compares it
			panic(err)
		}
	}()
	p.manager.safely(p.answer, p.request, handle)
	return true
}

// page is an answer as it is written, before it is sent.
type page struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header is what goes before the body.
func (p *page) Header() http.Header { return p.header }

// WriteHeader notes the status.
func (p *page) WriteHeader(status int) { p.status = status }

// Write adds to the body.
func (p *page) Write(b []byte) (int, error) { return p.body.Write(b) }

// replyTime is how long who waited may take to read its answer.
const replyTime = time.Minute

// send sends an answer, at once and as a whole.
func (p *page) send(to net.Conn, last bool) error {
	p.header.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	rs := http.Response{StatusCode: p.status, ProtoMajor: 1, ProtoMinor: 1, Header: p.header, ContentLength: int64(p.body.Len()),
		Body: io.NopCloser(&p.body), Close: last}
	var text bytes.Buffer
	if err := rs.Write(&text); err != nil {
		return err
	}
	if err := to.SetWriteDeadline(time.Now().Add(replyTime)); err != nil {
		return err
	}
	if _, err := to.Write(text.Bytes()); err != nil {
		return err
	}
	return to.SetWriteDeadline(time.Time{})
}
