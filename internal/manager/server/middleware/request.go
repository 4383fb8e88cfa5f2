package middleware

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"log/slog"
	"net/http"
	"regexp"

	"portolan/internal/engine/resource"
	"portolan/internal/engine/rest"
	"portolan/internal/engine/store"
	"portolan/internal/manager/identity"
)

// requestInfo is a request's name and its user. Only the goroutine that answers the request writes to it.
type requestInfo struct {
	// id names the request in logs and in the answer; user is the name of the caller, empty while it is not known.
	id, user string
}

type requestInfoKey struct{}

// requestInfoOf returns the asked of a request's context; nil for a context of no request.
func requestInfoOf(ctx context.Context) *requestInfo {
	a, _ := ctx.Value(requestInfoKey{}).(*requestInfo)
	return a
}

// NoteUser notes the name of the caller of the request that ctx belongs to, for logs and traces.
func NoteUser(ctx context.Context, user string) {
	if a := requestInfoOf(ctx); a != nil {
		a.user = user
	}
}

// requestHeader is the header that names a request and its answer.
const requestHeader = "X-Request-Id"

var requestName = regexp.MustCompile(`^[A-Za-z0-9._:-]{1,64}$`)

// nameRequest names the request in a, by the header of the client where that is a plain word. It returns the request with a in its context.
func nameRequest(r *http.Request, a *requestInfo) *http.Request {
	a.id = r.Header.Get(requestHeader)
	if a.id == "" || !requestName.MatchString(a.id) {
		var random [8]byte
		_, _ = rand.Read(random[:]) // which never fails
		a.id = hex.EncodeToString(random[:])
	}
	return r.WithContext(context.WithValue(r.Context(), requestInfoKey{}, a))
}

// requests is a log whose lines have the name of their request.
type requests struct{ slog.Handler }

// Handle adds the request.
func (h requests) Handle(ctx context.Context, r slog.Record) error {
	if a := requestInfoOf(ctx); a != nil {
		r.AddAttrs(slog.String("request", a.id))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs is a log of the same kind.
func (h requests) WithAttrs(attrs []slog.Attr) slog.Handler {
	return requests{h.Handler.WithAttrs(attrs)}
}

// WithGroup is a log of the same kind.
func (h requests) WithGroup(name string) slog.Handler { return requests{h.Handler.WithGroup(name)} }

// NamingRequests returns a log whose lines have the name of the request that their context belongs to.
func NamingRequests(log slog.Handler) slog.Handler { return requests{log} }

// Author returns the author of a change that a request asks for, as the history has it, with the comment of the request.
func Author(r *http.Request, caller resource.Caller) (store.Author, error) {
	comment, err := rest.Comment(r)
	caller.Remote, caller.Client = identity.Remote(r), r.UserAgent()
	return caller.Author(comment), err
}
