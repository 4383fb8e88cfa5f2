package middleware

import (
	"context"
	"errors"
	"net/http"

	"portolan/internal/base/problem"
	"portolan/internal/engine/family"
	"portolan/internal/engine/store"
	"portolan/internal/manager/secrets"
)

// fail writes an error response in the format of the API. An internal error becomes a 500 with the request ID. Its cause is logged
// with this ID and is not part of the response.
func (c *Chain) fail(w http.ResponseWriter, r *http.Request, form family.Errors, err error) {
	err = store.Unavailable(err)
	p, ok := problem.As(err)
	switch {
	case ok && p.Status < 500:
	case ok:
		c.Log.WarnContext(r.Context(), "request refused", "status", p.Status, "path", r.URL.Path, "error", err)
	case errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		p = problem.New(http.StatusServiceUnavailable, "Cancelled", "the request was cancelled")
	default:
		id := secrets.New()[:12]
		if a := requestInfoOf(r.Context()); a != nil {
			id = a.id
		}
		c.Log.ErrorContext(r.Context(), "internal error", "id", id, "method", r.Method, "path", r.URL.Path, "error", err)
		p = problem.New(http.StatusInternalServerError, "InternalError", "internal error; the log of the manager has the cause with the id %s",
			id)
	}
	form.Write(w, r, p)
}
