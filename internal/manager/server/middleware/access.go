package middleware

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"portolan/internal/engine/rest"
	"portolan/internal/manager/identity"
)

// logAccess appends a request to the access log, in the combined log format, with the seconds that it took and its name at the end.
func (c *Chain) logAccess(r *http.Request, a *requestInfo, rec *recorder, took time.Duration) {
	if c.Access == nil {
		return
	}
	user := a.user
	if user == "" {
		user = "-"
	}
	quoted := func(text string) string {
		if text == "" {
			return `"-"`
		}
		return strconv.QuoteToASCII(text)
	}
	c.Access.Append(fmt.Appendf(nil, "%s - %s [%s] %s %d %d %s %s %.6f %s\n", identity.Remote(r), strings.ReplaceAll(user, " ", "_"),
		time.Now().Format("02/Jan/2006:15:04:05 -0700"), quoted(r.Method+" "+withoutSecrets(r)+" "+r.Proto), rec.status, rec.bytes,
		quoted(r.Referer()), quoted(r.UserAgent()), took.Seconds(), a.id))
}

// secretParameter matches the names of parameters whose values are not logged.
var secretParameter = regexp.MustCompile(`(?i)(^|[?&;])([^=&;]*(?:token|secret|password|code|state|key|arrived|saml)[^=&;]*)=[^&;]*`)

// withoutSecrets returns the request target without its secrets.
func withoutSecrets(r *http.Request) string {
	path, query, ok := strings.Cut(r.RequestURI, "?")
	if !ok {
		return path
	}
	return path + "?" + secretParameter.ReplaceAllString(query, "$1$2=-")
}

// AuditLine is a line of the audit log (docs/monitor.md).
type AuditLine struct {
	Time    time.Time `json:"time"`
	Event   string    `json:"event"`
	Result  string    `json:"result,omitempty"`
	User    string    `json:"user"`
	Remote  string    `json:"remote"`
	Client  string    `json:"client,omitempty"`
	Request string    `json:"request,omitempty"`
	Method  string    `json:"method,omitempty"`
	Path    string    `json:"path,omitempty"`
	Status  int       `json:"status,omitempty"`
	// Transaction is its number in the history, where something was changed there.
	Transaction string `json:"transaction,omitempty"`
}

// audited appends a request to the audit log, whatever its answer. It leaves out requests that only read, and those of APIs that are not
// audited.
func (c *Chain) audited(audited bool, r *http.Request, a *requestInfo, rec *recorder) {
	switch {
	case c.Audit == nil || !audited:
		return
	case r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodOptions:
		return
	}
	c.Record(AuditLine{Event: "request", User: a.user, Remote: identity.Remote(r), Client: r.UserAgent(), Request: a.id, Method: r.Method,
		Path: r.URL.Path, Status: rec.status, Transaction: rec.Header().Get(rest.RecordedHeader)})
}

// Record appends a line to the audit log, with the time.
func (c *Chain) Record(line AuditLine) {
	if c.Audit == nil {
		return
	}
	line.Time = time.Now().UTC()
	text, err := json.Marshal(line)
	if err != nil { // texts and numbers alone
		panic(err)
	}
	c.Audit.Append(append(text, '\n'))
}
