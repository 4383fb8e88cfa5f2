package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
)

// changesName is the path element of the change feed.
const changesName = "changes"

// maxFollowers is the maximum number of clients of the change feed.
const maxFollowers = 20_000

// fromStart is the position before all available changes.
const fromStart = "start"

// following is the selection of one client of the change feed.
type following struct {
	after store.Position
	// collections are the collections of the wanted changes, parent the direct parent of the resources; empty and 0: all.
	collections []string
	parent      int64
}

func (f *following) wantsChange(c fedChange) bool {
	return (len(f.collections) == 0 || slices.Contains(f.collections, c.collection)) &&
		(f.parent == 0 || slices.Contains(c.parents[:], f.parent))
}

// changes streams changes as they are committed, by any manager, as Server-Sent Events (WHATWG HTML, 9.2). For each transaction it sends
// its changes, each as an event "change", then an event "transaction". The id of that event is the position to continue from.
func (a *Server) changes(w http.ResponseWriter, r *http.Request, caller resource.Caller) error {
	everything := resource.Target{Root: true, List: true}
	if err := a.allowOnly(w, r, everything, caller, http.MethodGet); err != nil || r.Method == http.MethodOptions {
		return err
	}
	if err := a.maySeeChanges(caller); err != nil {
		return err
	}
	f, err := a.followingOf(r)
	if err != nil {
		return err
	}
	select {
	case a.followers <- struct{}{}:
	default:
		return problem.New(http.StatusServiceUnavailable, "TooManyFollowers",
			"the maximum of %d clients already follow the changes; try again later", maxFollowers)
	}
	s := &feedSender{api: a, ctx: r.Context(), request: r, following: f, checked: time.Now()}
	detached, err := s.start(w)
	switch {
	case err != nil || r.Method == http.MethodHead:
		<-a.followers
	case detached:
		a.following.Go(s.follow)
	default:
		s.follow()
	}
	return err
}

// EndFollowing closes all change feeds.
func (a *Server) EndFollowing() { a.cancelFeeds() }

// WaitForFollowers waits until all change feeds have ended, or until ctx ends. It must not be called before new ones are refused.
func (a *Server) WaitForFollowers(ctx context.Context) error {
	if a.Followers() == 0 { // also if ctx has ended, because other clients may have used up its time
		return nil
	}
	ended := make(chan struct{})
	go func() {
		a.following.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for the change feeds to end: %w", ctx.Err())
	}
}

// Followers returns the number of open change feeds.
func (a *Server) Followers() int { return len(a.followers) }

// wantsAll reports whether the client wants all changes. It then also gets transactions without a change of a resource, such as those
// of the fleet.
func (f following) wantsAll() bool { return len(f.collections) == 0 && f.parent == 0 }

// maySeeChanges returns an error if the caller may not see the exact changes in the history.
func (a *Server) maySeeChanges(caller resource.Caller) error {
	if a.May == nil || a.History == nil {
		return nil
	}
	on := resource.Subject{Collection: a.Collection(operationsName)}
	if _, err := a.May(caller, resource.ActionSee, on); err != nil { // for example, callers that must set a new password first
		return err
	}
	seen, err := a.May(caller, resource.ActionFind, on)
	if err == nil && seen != nil {
		err = problem.Forbidden("AccessDenied", "%s does not have permission to view the changes of transactions", caller.Name)
	}
	return err
}

// followingOf parses the parameters of a change feed.
func (a *Server) followingOf(r *http.Request) (f following, err error) {
	query, err := parseQuery(r)
	if err != nil {
		return f, err
	}
	if err := onlyKnownParameters(query, "after", "collection", "parent"); err != nil {
		return f, err
	}
	if f.parent, err = intParameter(query, "parent", 1, 1<<62, 0); err != nil {
		return f, err
	}
	for _, text := range query["collection"] {
		for name := range strings.SplitSeq(text, ",") {
			if c := a.Collection(name); c == nil || !c.IsLogged() {
				return f, problem.Query("collection", "must be a collection with a history, not %q", name)
			}
			f.collections = append(f.collections, name)
		}
	}
	after, given, err := singleParameter(query, "after")
	if err != nil {
		return f, err
	}
	if last := r.Header.Get("Last-Event-ID"); last != "" { // browsers send it when they reconnect
		after, given = last, true
	}
	switch {
	case !given:
		f.after, err = a.Store.End(r.Context())
	case after == fromStart:
	default:
		if f.after, err = store.ParsePosition(after); err != nil || after == "" {
			return f, problem.Query("after", "must be the id of an event of the change feed or %s, not %q", fromStart, after)
		}
	}
	if err == nil { // before anything is sent, so that the request can still be refused
		_, err = a.Store.Feed(r.Context(), f.after, 1)
	}
	return f, prunedProblem(err)
}

// prunedProblem returns a 410 problem if a position cannot be followed any more.
func prunedProblem(err error) error {
	if errors.Is(err, store.ErrPruned) || errors.Is(err, store.ErrForeignPosition) {
		return problem.New(http.StatusGone, "PositionGone", "after: %v", err)
	}
	return err
}

// feedLine is the output of a feed: a hijacked connection, or one response (HTTP/2).
type feedLine interface {
	io.WriteCloser
	SetWriteDeadline(t time.Time) error
}

// feedAnswer is a response that is sent in pieces.
type feedAnswer struct {
	http.ResponseWriter
	*http.ResponseController
}

// Write writes and flushes.
func (l feedAnswer) Write(text []byte) (int, error) {
	n, err := l.ResponseWriter.Write(text)
	if err == nil {
		err = l.Flush()
	}
	return n, err
}

// Close does nothing; the server closes the response.
func (feedAnswer) Close() error { return nil }

type feedSender struct {
	following
	api *Server
	ctx context.Context
	// request is the client's request.
	request *http.Request
	line    feedLine
	// checked is the time of the last authorization check, sentTo the last position that was sent.
	checked time.Time
	sentTo  string
}

// start sends the header and the start position. detached says that the connection was hijacked from the HTTP server: a feed then needs
// one small goroutine instead of two with buffers.
func (s *feedSender) start(w http.ResponseWriter) (detached bool, err error) {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("No-Gzip-Compression", "1") // an encoder for each client would use more memory than everything else
	h.Set("X-Accel-Buffering", "no")  // a proxy would buffer events
	if s.request.ProtoMajor == 1 {
		h.Set("Transfer-Encoding", "identity") // the body ends with the connection
	}
	w.WriteHeader(http.StatusOK)
	if s.request.Method == http.MethodHead {
		return false, nil
	}
	control := http.NewResponseController(w)
	s.line = feedAnswer{w, control}
	if err := s.flush([]byte("retry: 2000\n" + s.positionEvent())); err != nil || s.request.ProtoMajor != 1 {
		return false, err
	}
	conn, _, err := control.Hijack()
	if err != nil {
		return false, err
	}
	if err := conn.SetReadDeadline(time.Time{}); err != nil { // the client sends nothing more
		_ = conn.Close() // nothing of ours was written to it
		return false, http.ErrAbortHandler
	}
	s.line, s.ctx = conn, s.api.closing
	// The copy does not keep the buffers and contexts of the connection alive.
	s.request = (&http.Request{Method: s.request.Method, URL: s.request.URL, Header: s.request.Header, Host: s.request.Host,
		RemoteAddr: s.request.RemoteAddr, TLS: s.request.TLS}).WithContext(s.ctx)
	return true, nil
}

// follow sends changes until the client disconnects, loses its rights, or the manager stops.
func (s *feedSender) follow() {
	defer func() {
		<-s.api.followers
		if p := recover(); p != nil { // this goroutine has no other handler for a panic
			s.api.Log.Error("panic", "error", p, "stack", string(debug.Stack()))
		}
	}()
	ctx, end := context.WithCancel(s.ctx)
	defer end()
	defer context.AfterFunc(s.api.closing, func() {
		end()
		_ = s.line.Close() // interrupts a blocked write
	})()
	defer func() { _ = s.line.Close() }() // the end of the connection is the only notice to the client
	if err := s.api.Store.FollowTogether(ctx, s.after, s.api.Beat, s.send); ctx.Err() == nil {
		s.sendError(err)
	}
}

// positionEvent returns the event with the position to continue from.
func (s *feedSender) positionEvent() string {
	if s.sentTo = fromStart; s.after != (store.Position{}) {
		s.sentTo = s.after.String()
	}
	return "id: " + s.sentTo + "\nevent: position\ndata: {}\n\n"
}

// flush sends text. It returns an error if the client does not read within WriteTime.
func (s *feedSender) flush(text []byte) error {
	if err := s.line.SetWriteDeadline(time.Now().Add(s.api.WriteTime)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	_, err := s.line.Write(text)
	return err
}

// send sends transactions; without any, a heartbeat. Every Beat it checks that the client is still authorized.
func (s *feedSender) send(entries []store.Entry) error {
	if time.Since(s.checked) >= s.api.Beat {
		s.checked = time.Now()
		if s.api.CurrentCaller != nil {
			caller, err := s.api.CurrentCaller(s.request)
			if err == nil {
				err = s.api.maySeeChanges(caller)
			}
			if err != nil { // a token was revoked, or a session has ended
				return err
			}
		}
	}
	if len(entries) == 0 {
		return s.heartbeat()
	}
	out := feedBuffers.Get().(*bytes.Buffer) //nolint:errcheck // nothing else is in it
	defer feedBuffers.Put(out)
	out.Reset()
	for _, e := range entries {
		if err := s.writeEntry(out, e); err != nil {
			return err
		}
		s.after = e.Position
		if err := s.flushIfLarge(out); err != nil {
			return err
		}
	}
	if out.Len() == 0 {
		return nil
	}
	return s.flush(out.Bytes())
}

// feedBuffers are buffers for output. Only a few are in use at a time, whatever the number of clients.
var feedBuffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// flushIfLarge sends the buffer if it is large.
func (s *feedSender) flushIfLarge(out *bytes.Buffer) error {
	if out.Len() < flushAt {
		return nil
	}
	defer out.Reset()
	return s.flush(out.Bytes())
}

// heartbeat sends a heartbeat, or the current position if it has changed.
func (s *feedSender) heartbeat() error {
	if s.after != (store.Position{}) && s.after.String() != s.sentTo {
		return s.flush([]byte(s.positionEvent()))
	}
	return s.flush([]byte(":\n\n"))
}

// sendError sends the reason for the end of the feed.
func (s *feedSender) sendError(err error) {
	p, ok := problem.As(prunedProblem(err))
	if !ok {
		return // the connection is closed, and the client reconnects
	}
	if text, err := json.Marshal(map[string]any{"status": p.Status, "code": p.Code, "message": p.Message}); err == nil {
		_ = s.flush([]byte("event: error\ndata: " + string(text) + "\n\n")) // the client may have disconnected
	}
}

// writeEntry writes the selected changes of a transaction and, if there are any, the transaction.
func (s *feedSender) writeEntry(out *bytes.Buffer, e store.Entry) error {
	sent := e.IsNoted() && s.wantsAll()
	add := func(c fedChange) error {
		if !s.wantsChange(c) {
			return nil
		}
		sent = true
		out.WriteString("event: change\ndata: ")
		out.Write(c.text)
		out.WriteString("\n\n")
		return s.flushIfLarge(out)
	}
	encoded, err := s.api.eachChange(s.ctx, e, add)
	if sent && err == nil {
		s.sentTo = encoded.position
		out.Write(encoded.end)
	}
	return err
}
