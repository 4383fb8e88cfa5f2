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

// changesName is the name of the change feed, below the API's path.
const changesName = "changes"

// maxFollowers is how many may follow the changes.
const maxFollowers = 20_000

// fromStart is the position before everything that is kept.
const fromStart = "start"

// following is what one follower wants.
type following struct {
	after store.Position
	// collections are those whose changes he wants, parent what they lie right below; empty and 0: all.
	collections []string
	parent      int64
}

func (f *following) wants(c fedChange) bool {
	return (len(f.collections) == 0 || slices.Contains(f.collections, c.collection)) &&
		(f.parent == 0 || slices.Contains(c.parents[:], f.parent))
}

// changes sends what changes, as it is committed, by whichever manager: Server-Sent Events (WHATWG HTML, 9.2). First the changes of
// a transaction, each an event "change", then the transaction, an event "transaction" whose id is the position to go on behind.
func (a *Server) changes(w http.ResponseWriter, r *http.Request, caller resource.Caller) error {
	everything := resource.Target{Root: true, List: true}
	if err := a.only(w, r, everything, caller, http.MethodGet); err != nil || r.Method == http.MethodOptions {
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
		return problem.New(http.StatusServiceUnavailable, "TooManyFollowers", "%d clients follow the changes already", maxFollowers)
	}
	s := &feedSender{api: a, ctx: r.Context(), request: r, following: f, said: time.Now()}
	detached, err := s.begin(w)
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

// EndFollowing lets those go who follow the changes.
func (a *Server) EndFollowing() { a.letGo() }

// WaitForFollowers waits until they have gone, once nobody can begin to follow, or ctx ends.
func (a *Server) WaitForFollowers(ctx context.Context) error {
	if a.Followers() == 0 { // also where ctx has ended: other clients may have taken its time
		return nil
	}
	gone := make(chan struct{})
	go func() {
		a.following.Wait()
		close(gone)
	}()
	select {
	case <-gone:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for who follows the changes: %w", ctx.Err())
	}
}

// Followers counts who follows the changes.
func (a *Server) Followers() int { return len(a.followers) }

// everything reports whether all changes are wanted: transactions without a change of a resource, such as those of the fleet, too.
func (f following) everything() bool { return len(f.collections) == 0 && f.parent == 0 }

// maySeeChanges asks whether the caller may see what exactly the history changed.
func (a *Server) maySeeChanges(caller resource.Caller) error {
	if a.May == nil || a.History == nil {
		return nil
	}
	on := resource.Subject{Collection: a.Collection(operationsName)}
	if _, err := a.May(caller, resource.ActionSee, on); err != nil { // who must set a new password first
		return err
	}
	seen, err := a.May(caller, resource.ActionFind, on)
	if err == nil && seen != nil {
		err = problem.Forbidden("AccessDenied", "%s does not see what transactions changed", caller.Name)
	}
	return err
}

// followingOf reads what is wanted.
func (a *Server) followingOf(r *http.Request) (f following, err error) {
	query, err := parseQuery(r)
	if err != nil {
		return f, err
	}
	if err := knownAlone(query, "after", "collection", "parent"); err != nil {
		return f, err
	}
	if f.parent, err = whole(query, "parent", 1, 1<<62, 0); err != nil {
		return f, err
	}
	for _, text := range query["collection"] {
		for name := range strings.SplitSeq(text, ",") {
			if c := a.Collection(name); c == nil || !c.Logged() {
				return f, problem.Query("collection", "%q is no collection with a history", name)
			}
			f.collections = append(f.collections, name)
		}
	}
	after, given, err := one(query, "after")
	if err != nil {
		return f, err
	}
	if last := r.Header.Get("Last-Event-ID"); last != "" { // which a browser sends when it comes again
		after, given = last, true
	}
	switch {
	case !given:
		f.after, err = a.Store.End(r.Context())
	case after == fromStart:
	default:
		if f.after, err = store.ParsePosition(after); err != nil || after == "" {
			return f, problem.Query("after", "%q is no position in a change feed: give the id of an event, or %s", after, fromStart)
		}
	}
	if err == nil { // before anything is sent, so that it can be refused
		_, err = a.Store.Feed(r.Context(), f.after, 1)
	}
	return f, gone(err)
}

// gone words what cannot be followed any more.
func gone(err error) error {
	if errors.Is(err, store.ErrPruned) || errors.Is(err, store.ErrForeignPosition) {
		return problem.New(http.StatusGone, "PositionGone", "after: %v", err)
	}
	return err
}

// feedLine is where events go: a connection that is the client's alone, or one of the answers on it (HTTP/2).
type feedLine interface {
	io.WriteCloser
	SetWriteDeadline(t time.Time) error
}

// feedAnswer is an answer that goes on.
type feedAnswer struct {
	http.ResponseWriter
	*http.ResponseController
}

// Write writes and sends.
func (l feedAnswer) Write(text []byte) (int, error) {
	n, err := l.ResponseWriter.Write(text)
	if err == nil {
		err = l.Flush()
	}
	return n, err
}

// Close is for what serves to do.
func (feedAnswer) Close() error { return nil }

// feedSender sends events to one client.
type feedSender struct {
	following
	api *Server
	ctx context.Context
	// request says who asks.
	request *http.Request
	line    feedLine
	// said is when who asks was last asked for, sentTo the position that was last sent.
	said   time.Time
	sentTo string
}

// begin sends the header and where the feed begins. detached says that the connection has nothing else to do, and was taken from what
// serves: a follower is then one small goroutine, not two with their buffers.
func (s *feedSender) begin(w http.ResponseWriter) (detached bool, err error) {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("No-Gzip-Compression", "1") // an encoder for each follower would take more than all else
	h.Set("X-Accel-Buffering", "no")  // a proxy would keep events
	if s.request.ProtoMajor == 1 {
		h.Set("Transfer-Encoding", "identity") // up to the end of the connection
	}
	w.WriteHeader(http.StatusOK)
	if s.request.Method == http.MethodHead {
		return false, nil
	}
	control := http.NewResponseController(w)
	s.line = feedAnswer{w, control}
	if err := s.flush([]byte("retry: 2000\n" + s.place())); err != nil || s.request.ProtoMajor != 1 {
		return false, err
	}
	conn, _, err := control.Hijack()
	if err != nil {
		return false, err
	}
	if err := conn.SetReadDeadline(time.Time{}); err != nil { // it asks nothing more
		_ = conn.Close() // nothing of ours is in it
		return false, http.ErrAbortHandler
	}
	s.line, s.ctx = conn, s.api.closing
	// Without what belongs to the connection: its buffers, the context of its answers.
	s.request = (&http.Request{Method: s.request.Method, URL: s.request.URL, Header: s.request.Header, Host: s.request.Host,
		RemoteAddr: s.request.RemoteAddr, TLS: s.request.TLS}).WithContext(s.ctx)
	return true, nil
}

// follow sends what comes until the client, its rights or the manager ends it.
func (s *feedSender) follow() {
	defer func() {
		<-s.api.followers
		if p := recover(); p != nil { // nobody above this one would stop it
			s.api.Log.Error("panic", "error", p, "stack", string(debug.Stack()))
		}
	}()
	ctx, end := context.WithCancel(s.ctx)
	defer end()
	defer context.AfterFunc(s.api.closing, func() {
		end()
		_ = s.line.Close() // whatever is written to it now is cut short
	})()
	defer func() { _ = s.line.Close() }() // what it was sent is all that it is told
	if err := s.api.Store.FollowTogether(ctx, s.after, s.api.Beat, s.send); ctx.Err() == nil {
		s.fail(err)
	}
}

// place is the event that says where to go on.
func (s *feedSender) place() string {
	if s.sentTo = fromStart; s.after != (store.Position{}) {
		s.sentTo = s.after.String()
	}
	return "id: " + s.sentTo + "\nevent: position\ndata: {}\n\n"
}

// flush sends text; a client that does not read is cut off.
func (s *feedSender) flush(text []byte) error {
	if err := s.line.SetWriteDeadline(time.Now().Add(s.api.WriteTime)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	_, err := s.line.Write(text)
	return err
}

// send sends transactions; without any, that there are none.
func (s *feedSender) send(entries []store.Entry) error {
	if time.Since(s.said) >= s.api.Beat {
		s.said = time.Now()
		if s.api.Still != nil {
			caller, err := s.api.Still(s.request)
			if err == nil {
				err = s.api.maySeeChanges(caller)
			}
			if err != nil { // a token that was revoked, a session that has ended
				return err
			}
		}
	}
	if len(entries) == 0 {
		return s.beat()
	}
	out := feedBuffers.Get().(*bytes.Buffer) //nolint:errcheck // nothing else is in it
	defer feedBuffers.Put(out)
	out.Reset()
	for _, e := range entries {
		if err := s.entry(out, e); err != nil {
			return err
		}
		s.after = e.Position
		if err := s.full(out); err != nil {
			return err
		}
	}
	if out.Len() == 0 {
		return nil
	}
	return s.flush(out.Bytes())
}

// feedBuffers are what is sent is put together in: few at a time, of however many followers.
var feedBuffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// full sends what has gathered, where that is much.
func (s *feedSender) full(out *bytes.Buffer) error {
	if out.Len() < flushAt {
		return nil
	}
	defer out.Reset()
	return s.flush(out.Bytes())
}

// beat says that the connection lives, and where to go on where nothing that was wanted has come.
func (s *feedSender) beat() error {
	if s.after != (store.Position{}) && s.after.String() != s.sentTo {
		return s.flush([]byte(s.place()))
	}
	return s.flush([]byte(":\n\n"))
}

// fail says why the feed ends.
func (s *feedSender) fail(err error) {
	p, ok := problem.As(gone(err))
	if !ok {
		return // the connection is cut, and the client comes again
	}
	if text, err := json.Marshal(map[string]any{"status": p.Status, "code": p.Code, "message": p.Message}); err == nil {
		_ = s.flush([]byte("event: error\ndata: " + string(text) + "\n\n")) // who has gone needs no reason
	}
}

// entry writes the changes of a transaction that are wanted and, if there were any, the transaction.
func (s *feedSender) entry(out *bytes.Buffer, e store.Entry) error {
	sent := e.Noted() && s.everything()
	add := func(c fedChange) error {
		if !s.wants(c) {
			return nil
		}
		sent = true
		out.WriteString("event: change\ndata: ")
		out.Write(c.text)
		out.WriteString("\n\n")
		return s.full(out)
	}
	said, err := s.api.wordChanges(s.ctx, e, add)
	if sent && err == nil {
		s.sentTo = said.position
		out.Write(said.end)
	}
	return err
}
