// Package application is what a service point runs: programs of their own, each in a process that the service point supervises. A
// folder below this one is an application; all/ lists them. It knows nothing of managers, nor of the service point that runs it.
package application

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/netip"
	"time"

	"portolan/internal/base/problem"
	"portolan/internal/wire/checkin"
)

// Application is a running application. Its methods may be called by many at a time.
type Application interface {
	// Configure puts a configuration in force, at first and whenever it changes; where it fails, what was in force stays.
	Configure(configuration json.RawMessage) error
	// Health gives what is wrong, in sentences; nothing where all is well.
	Health() []string
	// Diagnostics gives what an engineer on site wants to know, as a JSON object.
	Diagnostics() any
	// Close ends it.
	Close() error
}

// Contented is an application that serves more than a configuration can say: content, which comes as a stream
// (portolan/internal/wire/zonedata).
type Contented interface {
	// Content names what is served; empty where nothing is.
	Content() string
	// TakeContent serves what one stream or several, one behind the other, lead to. Where a stream fails, what was served before it stays, and
	// where the first one begins at nothing, what was served before all of them.
	TakeContent(streams io.Reader) error
}

// Driving is an application in whose place another program may answer.
type Driving interface {
	// Engine is that program, such as BIND; empty where the application answers itself.
	Engine() string
}

// Engine is what answers for an application that serves content, its own code or another program that it drives: it takes configurations
// and content, says how it is, and may be a Telling. An application has one Engine for each program that can answer in its place; Kind.New
// of the one that was chosen when the service point was started makes it.
type Engine interface {
	Application
	Contented
	Driving
}

// Updated is an application that clients send changes of its content to, on which somebody else decides.
type Updated interface {
	// Updates gives the changes that wait for a decision, once there are some; nothing when ctx ends.
	Updates(ctx context.Context) []Update
	// Decide says what came of some.
	Decide(answers []UpdateAnswer)
}

// Update is a message that changes a zone (RFC 2136).
type Update struct {
	ID int64 `json:"id"`
	// View is the id of the view that the client sees, Zone the name of the zone, absolute and in lower case.
	View int64  `json:"view"`
	Zone string `json:"zone"`
	// Client is who has sent it, Key the name of the key that it is signed with; empty where it is not.
	Client netip.Addr `json:"client"`
	Key    string     `json:"key,omitempty"`
	// Message is the message as it came.
	Message []byte `json:"message"`
	// Deadline is when the client is answered, whatever came of it.
	Deadline time.Time `json:"deadline"`
}

// UpdateAnswer says what came of an Update.
type UpdateAnswer struct {
	ID int64 `json:"id"`
	// Code is the one that the client is answered with (RFC 2136 section 2.2); Changed says that the content is another one.
	Code    int  `json:"code"`
	Changed bool `json:"changed,omitempty"`
}

// Telling is an application with records for the manager (portolan/internal/wire/stream).
type Telling interface {
	// Records returns the records that wait, once there are some; nothing when ctx ends. They stay until they are kept.
	Records(ctx context.Context) []Record
	// Kept says that the service point has the records up to a number on its disk.
	Kept(number int64)
}

// Record is a record of a kind. Number counts those of the application from 1 on, of all kinds together.
type Record struct {
	Number int64           `json:"number"`
	Kind   string          `json:"kind"`
	Data   json.RawMessage `json:"data"`
}

// Kind is an application that there is.
type Kind struct {
	// Name is the name by which it is deployed.
	Name string
	checkin.Program
	// New makes one, which does nothing before it is configured.
	New func(log *slog.Logger) Application
}

// ErrBroken is an application that is of no use any more after it failed to take a configuration: its process ends, and begins anew.
var ErrBroken = errors.New("the application has to begin anew")

// Decode reads a configuration into a struct. A member that there is not is refused: what is stored acts.
func Decode(configuration json.RawMessage, into any) error {
	d := json.NewDecoder(bytes.NewReader(configuration))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err == nil && !errors.Is(d.Decode(&struct{}{}), io.EOF) {
		err = errors.New("something stands behind the object")
	}
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrong):
		return problem.Invalid("configuration."+wrong.Field, "must not be a JSON %s", wrong.Value)
	case err != nil:
		return problem.Invalid("configuration", "%v", err)
	}
	return nil
}

// Status is what a process says of itself at its socket.
type Status struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	PID     int    `json:"pid"`
	// Configured is the SHA-256 of the configuration that is in force; empty before there is one.
	Configured string `json:"configured"`
	// Content names the content that is served; empty where there is none.
	Content string `json:"content,omitempty"`
	// Contented says that the application is a Contented, Updated that it is an Updated.
	Contented bool `json:"contented,omitempty"`
	Updated   bool `json:"updated,omitempty"`
	// Telling says that the application is a Telling.
	Telling bool `json:"telling,omitempty"`
	// Engine is what answers in its place; empty where it does so itself.
	Engine string `json:"engine,omitempty"`
	// Conditions are what is wrong.
	Conditions  []string        `json:"conditions"`
	Diagnostics json.RawMessage `json:"diagnostics"`
}

// Paths of a process's socket: GET of its status, PUT of a configuration and of content, POST to end it.
const (
	StatusPath        = "/status"
	ConfigurationPath = "/configuration"
	ContentPath       = "/content"
	StopPath          = "/stop"
	// UpdatesPath gives, to GET, the updates that wait for a decision, as a list of Update, or 204 where there are none within UpdatesWait;
	// POST takes a list of UpdateAnswer.
	UpdatesPath = "/updates"
	// RecordsPath gives, to GET, the records that wait, as a list of Record, or 204 where there are none within UpdatesWait; POST takes a
	// RecordsKept.
	RecordsPath = "/records"
)

// RecordsKept says that the records up to a number are on the disk of the service point.
type RecordsKept struct {
	Number int64 `json:"number"`
}

// UpdatesWait is how long it is waited for updates.
const UpdatesWait = 20 * time.Second

// Resolves reports whether an upstream with this answer, a response code or why there was none, resolves names: also one that does not tell
// of the root, as where it knows the names of a site alone.
func Resolves(answer string) bool {
	return answer == "NOERROR" || answer == "NXDOMAIN" || answer == "REFUSED"
}

// ResolverDiagnostics are the diagnostics of the Resolver: response codes such as NOERROR, or why there was no answer.
type ResolverDiagnostics struct {
	// BackendResponse is the best answer of an upstream, FrontendResponse the worst of a listener; empty before there was one.
	BackendResponse  string `json:"backendResponse"`
	FrontendResponse string `json:"frontendResponse"`
	// ID is when it began, in Unix milliseconds.
	ID int64 `json:"id"`
	// CertificateExpiration is until when the certificate of its listeners over TLS is good, in Unix milliseconds; 0 where there are none.
	CertificateExpiration int64 `json:"certificateExpiration,omitempty"`
	// Recursion says who looks names up from the root on; empty where the upstreams do.
	Recursion string `json:"recursion,omitempty"`
	// Revision names what a deployment has put in force; Policies are the response policy zones, with how many rules they have.
	Revision string         `json:"revision,omitempty"`
	Policies map[string]int `json:"policies,omitempty"`
	// Upstreams and Listeners are the answers, by address and port.
	Upstreams map[string]string `json:"upstreams"`
	Listeners map[string]string `json:"listeners"`
}
