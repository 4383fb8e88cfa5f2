package server

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"portolan/internal/engine/rest"
	"portolan/internal/manager/identity"
)

// asked is what is known of a request while it is answered. Only the goroutine that answers it writes it.
type asked struct {
	// id names the request in logs, and in the answer; user is who asks, where that is known.
	id, user string
}

type askedKey struct{}

// askedOf is what is known of the request that a context is of; nil where it is of none.
func askedOf(ctx context.Context) *asked {
	a, _ := ctx.Value(askedKey{}).(*asked)
	return a
}

// asks notes who a request is of.
func (a *asked) asks(user string) {
	if a != nil {
		a.user = user
	}
}

// requestHeader is the header that a request is named by, and its answer.
const requestHeader = "X-Request-Id"

var requestName = regexp.MustCompile(`^[A-Za-z0-9._:-]{1,64}$`)

// begin notes in a what a request is named, as whoever sends it does where that is a plain word, or anew; it gives the request with a in
// its context.
func begin(r *http.Request, a *asked) *http.Request {
	a.id = r.Header.Get(requestHeader)
	if a.id == "" || !requestName.MatchString(a.id) {
		var random [8]byte
		_, _ = rand.Read(random[:]) // which never fails
		a.id = hex.EncodeToString(random[:])
	}
	return r.WithContext(context.WithValue(r.Context(), askedKey{}, a))
}

// keptToo is a log that has in a file, too, what goes to another one.
type keptToo struct{ log, file slog.Handler }

// Enabled reports whether the log takes a level.
func (b keptToo) Enabled(ctx context.Context, level slog.Level) bool {
	return b.log.Enabled(ctx, level)
}

// Handle writes a line to both.
func (b keptToo) Handle(ctx context.Context, r slog.Record) error {
	return errors.Join(b.log.Handle(ctx, r.Clone()), b.file.Handle(ctx, r))
}

// WithAttrs is a log of the same kind.
func (b keptToo) WithAttrs(attrs []slog.Attr) slog.Handler {
	return keptToo{b.log.WithAttrs(attrs), b.file.WithAttrs(attrs)}
}

// WithGroup is a log of the same kind.
func (b keptToo) WithGroup(name string) slog.Handler {
	return keptToo{b.log.WithGroup(name), b.file.WithGroup(name)}
}

// maxOwnLog is how long the file of what the manager logs becomes, in bytes, before it is begun anew: it and the one before are kept.
const maxOwnLog = 10 << 20

// The logs that the API shows.
const (
	ownLogName    = "manager.log"
	accessLogName = "access.log"
	auditLogName  = "audit.log"
)

// openOwnLog lets what the manager logs go to a file in its data directory, too, which is its own by then. That there can be none keeps no
// manager from serving.
func (m *Manager) openOwnLog() {
	o := &m.options
	if o.Data == "" {
		return
	}
	path, plain := filepath.Join(o.Data, "logs", ownLogName), o.Log
	j, err := openJournal(path, maxOwnLog, plain)
	if err != nil {
		plain.Warn("what is logged is kept in no file", "file", path, "error", err)
		return
	}
	m.ownLog, o.Log = j, slog.New(keptToo{plain.Handler(), slog.NewJSONHandler(j, &slog.HandlerOptions{Level: lowest})})
	m.log = m.logOf(&m.levels.manager)
}

// Log is where what happens to the manager as a whole goes: that it serves, that it ends.
func (m *Manager) Log() *slog.Logger { return m.options.Log }

// openLogs opens the access log and the audit log.
func (m *Manager) openLogs() (err error) {
	m.log = m.logOf(&m.levels.manager)
	if m.accessLog, err = openJournal(m.options.AccessLog, 0, m.log); err != nil {
		return fmt.Errorf("the access log: %w", err)
	}
	if m.auditLog, err = openJournal(m.options.AuditLog, 0, m.log); err != nil {
		return fmt.Errorf("the audit log: %w", err)
	}
	return nil
}

// lowest is below every level: what is written has passed another log.
const lowest = slog.Level(-100)

// logFiles are the files of each log that the API shows, the oldest first; none where it is not kept.
func (m *Manager) logFiles() map[string][]string {
	return map[string][]string{ownLogName: m.ownLog.files(), accessLogName: m.accessLog.files(), auditLogName: m.auditLog.files()}
}

// files are those that a journal has, the oldest first.
func (j *journal) files() []string {
	switch {
	case j == nil || j.path == "-":
		return nil
	case j.most > 0:
		return []string{j.path + earlier, j.path}
	}
	return []string{j.path}
}

// requests is a log that says of each line which request it is of.
type requests struct{ slog.Handler }

// Handle adds the request.
func (h requests) Handle(ctx context.Context, r slog.Record) error {
	if a := askedOf(ctx); a != nil {
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

// journal is a file that lines are appended to: the access log, the audit log, or the manager's own. The nil journal takes everything, and
// keeps nothing.
type journal struct {
	path string
	// most is how long the file becomes, in bytes, before it is renamed to path+earlier, and begun anew; 0: whoever wants that does it.
	most int64
	mu   sync.Mutex
	// file, size and failed are guarded by mu; size is how long the file is where most says something, failed that the last line could not
	// be written.
	file   io.WriteCloser
	size   int64
	failed bool
	log    *slog.Logger
}

// openJournal opens a journal; "-" is standard output, "" none.
func openJournal(path string, most int64, log *slog.Logger) (*journal, error) {
	if path == "" {
		return nil, nil
	}
	j := &journal{path: path, most: most, log: log}
	return j, j.reopen()
}

// reopen opens the file anew, as when another program has renamed it.
func (j *journal) reopen() error {
	if j == nil {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.open()
}

// open opens the file; mu is held.
func (j *journal) open() error {
	if j.path == "-" {
		j.file = os.Stdout
		return nil
	}
	mode := fs.FileMode(0o640) // a group may read logs
	if j.most > 0 {            // in the data directory
		mode = 0o600
		if err := os.MkdirAll(filepath.Dir(j.path), 0o700); err != nil {
			return err
		}
	}
	file, err := os.OpenFile(j.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err != nil {
		return errors.Join(err, file.Close())
	}
	if j.file != nil {
		_ = j.file.Close()
	}
	j.file, j.size = file, info.Size()
	return nil
}

// earlier ends the name of what a file was before it was begun anew.
const earlier = ".1"

// turn begins the file anew where it would become longer than it may by so many bytes; mu is held.
func (j *journal) turn(more int) error {
	if j.most == 0 || j.size == 0 || j.size+int64(more) <= j.most {
		return nil
	}
	if there, err := os.Stat(j.path); err == nil && there.Size()+int64(more) <= j.most { // somebody has begun it anew
		return j.open()
	}
	if err := os.Rename(j.path, j.path+earlier); err != nil && !errors.Is(err, fs.ErrNotExist) { // which somebody has removed
		return err
	}
	return j.open()
}

// Write appends a line, as write does; a log is written by it.
func (j *journal) Write(line []byte) (int, error) {
	j.write(line)
	return len(line), nil
}

// write appends a line. What cannot be written is logged, once until it can be again.
func (j *journal) write(line []byte) {
	if j == nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	err := j.turn(len(line))
	n, writing := j.file.Write(line)
	j.size += int64(n)
	if err = errors.Join(err, writing); err != nil && !j.failed {
		j.log.Error("a journal cannot be written", "file", j.path, "error", err)
	}
	j.failed = err != nil
}

func (j *journal) close() {
	if j == nil || j.path == "-" {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	_ = j.file.Close()
}

// accessed appends a request to the access log, in the combined format of web servers, with its time in seconds and its name behind.
func (m *Manager) accessed(r *http.Request, a *asked, rec *recorder, took time.Duration) {
	if m.accessLog == nil {
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
	m.accessLog.write(fmt.Appendf(nil, "%s - %s [%s] %s %d %d %s %s %.6f %s\n", identity.Remote(r), strings.ReplaceAll(user, " ", "_"),
		time.Now().Format("02/Jan/2006:15:04:05 -0700"), quoted(r.Method+" "+withoutSecrets(r)+" "+r.Proto), rec.status, rec.bytes,
		quoted(r.Referer()), quoted(r.UserAgent()), took.Seconds(), a.id))
}

// secretParameter are the names of parameters whose values are not written down.
var secretParameter = regexp.MustCompile(`(?i)(^|[?&;])([^=&;]*(?:token|secret|password|code|state|key|arrived|saml)[^=&;]*)=[^&;]*`)

// withoutSecrets is what a request asks for, its secrets left out.
func withoutSecrets(r *http.Request) string {
	path, query, ok := strings.Cut(r.RequestURI, "?")
	if !ok {
		return path
	}
	return path + "?" + secretParameter.ReplaceAllString(query, "$1$2=-")
}

// auditLine is a line of the audit log.
type auditLine struct {
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

// audited appends to the audit log a request that changes something, whatever came of it. Reading is no affair of it, and check-ins are
// not.
func (m *Manager) audited(door string, r *http.Request, a *asked, rec *recorder) {
	switch {
	case m.auditLog == nil || door != "address" && door != "fleet":
		return
	case r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodOptions:
		return
	}
	m.audit(auditLine{Event: "request", User: a.user, Remote: identity.Remote(r), Client: r.UserAgent(), Request: a.id, Method: r.Method,
		Path: r.URL.Path, Status: rec.status, Transaction: rec.Header().Get(rest.RecordedHeader)})
}

// audit appends a line to the audit log.
func (m *Manager) audit(line auditLine) {
	if m.auditLog == nil {
		return
	}
	line.Time = time.Now().UTC()
	text, err := json.Marshal(line)
	if err != nil { // texts and numbers alone
		panic(err)
	}
	m.auditLog.write(append(text, '\n'))
}

// Reload opens the journals anew, and reads the certificate again.
func (m *Manager) Reload() error {
	errs := []error{m.ownLog.reopen(), m.accessLog.reopen(), m.auditLog.reopen()}
	if m.files != nil {
		errs = append(errs, m.files.again())
	}
	return errors.Join(errs...)
}
