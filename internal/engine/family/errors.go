package family

import (
	"encoding/json"
	"math"
	"net/http"
	"strconv"

	"portolan/internal/base/problem"
)

// Errors is the form of a family's errors.
type Errors struct {
	// Body returns the JSON document that an error is answered with.
	Body func(p *problem.Problem) any
	// Challenges returns the values of WWW-Authenticate of an answer 401 (RFC 9110 section 11.6.1).
	Challenges func(r *http.Request) []string
}

// Write answers an error.
func (e Errors) Write(w http.ResponseWriter, r *http.Request, p *problem.Problem) {
	switch {
	case p.RetryAfter > 0:
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(p.RetryAfter.Seconds()))))
	case p.Status == http.StatusServiceUnavailable || p.Status == http.StatusTooManyRequests:
		w.Header().Set("Retry-After", "1")
	}
	if p.Status == http.StatusUnauthorized {
		for _, challenge := range e.Challenges(r) {
			w.Header().Add("WWW-Authenticate", challenge)
		}
	}
	WriteJSON(w, p.Status, e.Body(p))
}

// WriteJSON answers with a JSON document.
func WriteJSON(w http.ResponseWriter, status int, document any) {
	body, err := json.Marshal(document)
	if err != nil { // only our own types come here, and they can be marshalled
		panic(err)
	}
	body = append(body, '\n')
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client may have gone
}

// PlainErrors are the errors of the address API (reference/address-manager-behaviour.md, Errors).
func PlainErrors() Errors {
	return Errors{Body: func(p *problem.Problem) any { return plainBody(p) }, Challenges: basicOrBearer}
}

// BriefErrors are those of the other APIs: they have the message once more as brief, which clients of the published Edge API read
// (reference/edge.md section 1).
func BriefErrors() Errors {
	return Errors{Body: func(p *problem.Problem) any {
		return briefError{plainBody(p), p.Message}
	}, Challenges: bearer}
}

// plainError is an error on the wire.
type plainError struct {
	Status  int      `json:"status"`
	Reason  string   `json:"reason"`
	Code    string   `json:"code"`
	Message string   `json:"message"`
	Fields  []string `json:"fields,omitempty"`
}

type briefError struct {
	plainError
	Brief string `json:"brief"`
}

func plainBody(p *problem.Problem) plainError {
	return plainError{Status: p.Status, Reason: http.StatusText(p.Status), Code: p.Code, Message: p.Message, Fields: p.Fields}
}

// realm is the realm of the challenges.
const realm = "Portolan"

// bearer returns the challenge of an API that accepts only bearer tokens.
func bearer(*http.Request) []string { return []string{`Bearer realm="` + realm + `"`} }

// basicOrBearer returns the challenges of an API that accepts passwords as well. A script in a browser gets no Basic challenge: its page
// has a form, which the browser's password window would cover.
func basicOrBearer(r *http.Request) []string {
	mode := r.Header.Get("Sec-Fetch-Mode")
	if mode != "" && mode != "navigate" {
		return bearer(r)
	}
	return append([]string{`Basic realm="` + realm + `", charset="UTF-8"`}, bearer(r)...)
}
