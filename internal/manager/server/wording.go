package server

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strconv"
	"strings"

	"portolan/internal/base/problem"
	"portolan/internal/engine/store"
	"portolan/internal/manager/secrets"
)

// wording is a problem on the wire (reference/address-manager-behaviour.md, Errors); the fleet door
// words it the same way.
type wording struct {
	Status  int      `json:"status"`
	Reason  string   `json:"reason"`
	Code    string   `json:"code"`
	Message string   `json:"message"`
	Fields  []string `json:"fields,omitempty"`
	// Brief is the message again, outside of the address API: clients of the published Edge API read it (reference/edge.md).
	Brief string `json:"brief,omitempty"`
}

// fail answers an error. What is no problem of the client's becomes a 500 with an id that the log
// has with the cause; nothing of the cause is shown.
func (m *Manager) fail(w http.ResponseWriter, r *http.Request, err error) {
	err = store.Unavailable(err)
	p, ok := problem.As(err)
	switch {
	case ok && p.Status < 500:
	case ok:
		m.log.WarnContext(r.Context(), "refused", "status", p.Status, "path", r.URL.Path, "error", err)
	case errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		p = problem.New(http.StatusServiceUnavailable, "Cancelled", "the request was cancelled")
	default:
		id := secrets.New()[:12]
		if a := askedOf(r.Context()); a != nil {
			id = a.id
		}
		m.log.ErrorContext(r.Context(), "internal error", "id", id, "method", r.Method, "path", r.URL.Path, "error", err)
		p = problem.New(http.StatusInternalServerError, "InternalError", "something went wrong here; the log has it as %s", id)
	}
	switch {
	case p.RetryAfter > 0:
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(p.RetryAfter.Seconds()))))
	case p.Status == http.StatusServiceUnavailable || p.Status == http.StatusTooManyRequests:
		w.Header().Set("Retry-After", "1")
	}
	if p.Status == http.StatusUnauthorized {
		// A script in a browser has a page that asks for the password: the browser's own window would stand before it.
		// The fleet API takes bearer tokens alone (RFC 9110 section 11.6.1).
		mode := r.Header.Get("Sec-Fetch-Mode")
		if strings.HasPrefix(r.URL.Path, "/api/v2") && (mode == "" || mode == "navigate") {
			w.Header().Add("WWW-Authenticate", `Basic realm="Portolan", charset="UTF-8"`)
		}
		w.Header().Add("WWW-Authenticate", `Bearer realm="Portolan"`)
	}
	worded := wording{Status: p.Status, Reason: http.StatusText(p.Status), Code: p.Code, Message: p.Message, Fields: p.Fields}
	if !strings.HasPrefix(r.URL.Path, "/api/v2") {
		worded.Brief = p.Message
	}
	writeJSON(w, p.Status, worded)
}

// writeJSON answers with a JSON document.
func writeJSON(w http.ResponseWriter, status int, document any) {
	body, err := json.Marshal(document)
	if err != nil { // only our own types come here, and they can be marshalled
		panic(err)
	}
	body = append(body, '\n')
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client's going is the client's affair
}
