// Package application defines the applications of a service point. Each application runs in a process of its own, which the service point
// supervises. Each folder below this one contains an application; package all lists them. The package depends on neither the manager nor
// the agent.
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

// Application is a running application. Its methods are safe for concurrent use.
type Application interface {
	// Configure applies a configuration. After an error the previous configuration remains in use.
	Configure(configuration json.RawMessage) error
	// Health returns the error conditions as sentences; none if the application is healthy.
	Health() []string
	// Diagnostics returns diagnostic data, which is encoded as a JSON object.
	Diagnostics() any
	// Close stops the application.
	Close() error
}

// ContentServer is an application that serves content in addition to its configuration. Content arrives as a stream
// (portolan/internal/wire/zonedata).
type ContentServer interface {
	// Content returns the revision of the content in use; empty if there is none.
	Content() string
	// ApplyContent applies one stream or several consecutive ones. After an error the content before the failed stream remains in use. If the
	// first stream begins at nothing, the content before all streams remains in use.
	ApplyContent(streams io.Reader) error
}

// Delegating is an application that can delegate its answers to another program.
type Delegating interface {
	// Engine returns the name of that program, such as BIND; empty if the application answers itself.
	Engine() string
}

// Engine answers for an application that serves content: with its own code, or with another program that it controls. It can also
// implement RecordSource. An application has one Engine for each such program; Kind.New creates the one that was selected when the
// service point started.
type Engine interface {
	Application
	ContentServer
	Delegating
}

// UpdateReceiver is an application that receives dynamic updates from clients, on which the manager decides.
type UpdateReceiver interface {
	// Updates waits for updates that need a decision and returns them; none when ctx ends.
	Updates(ctx context.Context) []Update
	// Decide delivers the decisions on updates.
	Decide(answers []UpdateAnswer)
}

// Update is a dynamic update message (RFC 2136).
type Update struct {
	ID int64 `json:"id"`
	// View is the id of the client's view. Zone is the name of the zone, absolute and in lower case.
	View int64  `json:"view"`
	Zone string `json:"zone"`
	// Client is the address of the sender. Key is the name of the key that signed the message; empty if it is not signed.
	Client netip.Addr `json:"client"`
	Key    string     `json:"key,omitempty"`
	// Message is the message in wire format.
	Message []byte `json:"message"`
	// Deadline is the time when the application answers the client even without a decision.
	Deadline time.Time `json:"deadline"`
}

// UpdateAnswer is the decision on an Update.
type UpdateAnswer struct {
	ID int64 `json:"id"`
	// Code is the response code for the client (RFC 2136 section 2.2). Changed reports that the content changed.
	Code    int  `json:"code"`
	Changed bool `json:"changed,omitempty"`
}

// RecordSource is an application with records for the manager (portolan/internal/wire/stream).
type RecordSource interface {
	// Records waits for pending records and returns them; none when ctx ends. They stay pending until Acknowledge is called with their
	// number or a higher one.
	Records(ctx context.Context) []Record
	// Acknowledge reports that the service point has stored the records up to a number on its disk.
	Acknowledge(number int64)
}

// Record is a record of a kind. Number counts all records of the application from 1, across all kinds. Lost is the number of records of the
// kind that the application dropped before this one.
type Record struct {
	Number int64           `json:"number"`
	Kind   string          `json:"kind"`
	Data   json.RawMessage `json:"data"`
	Lost   int64           `json:"lost,omitempty"`
}

// Kind describes an application that can be deployed.
type Kind struct {
	// Name is the name of the application in deployments.
	Name string
	checkin.Program
	// New creates the application. It is idle before its first configuration.
	New func(log *slog.Logger) Application
}

// ErrBroken reports an application that is unusable after it failed to apply a configuration or content. Its process ends and is started
// again.
var ErrBroken = errors.New("the application must be restarted")

// Decode decodes a configuration into a struct. It rejects unknown members, so that every stored member has an effect.
func Decode(configuration json.RawMessage, into any) error {
	d := json.NewDecoder(bytes.NewReader(configuration))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err == nil && !errors.Is(d.Decode(&struct{}{}), io.EOF) {
		err = errors.New("unexpected data after the JSON object")
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

// Status is the status of a process, served at its socket.
type Status struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	PID     int    `json:"pid"`
	// Configured is the SHA-256 of the configuration in use; empty before the first one.
	Configured string `json:"configured"`
	// Content is the revision of the content in use; empty if there is none.
	Content string `json:"content,omitempty"`
	// ServesContent reports that the application implements ContentServer, ReceivesUpdates that it implements UpdateReceiver.
	ServesContent   bool `json:"contented,omitempty"`
	ReceivesUpdates bool `json:"updated,omitempty"`
	// SendsRecords reports that the application implements RecordSource.
	SendsRecords bool `json:"telling,omitempty"`
	// Engine names the program that answers in place of the application; empty if it answers itself.
	Engine string `json:"engine,omitempty"`
	// Conditions are the error conditions.
	Conditions  []string        `json:"conditions"`
	Diagnostics json.RawMessage `json:"diagnostics"`
}

// Paths of the process's socket: GET for the status, PUT for a configuration and content, POST to stop the process.
const (
	StatusPath        = "/status"
	ConfigurationPath = "/configuration"
	ContentPath       = "/content"
	StopPath          = "/stop"
	// UpdatesPath returns to GET the updates that need a decision, as a list of Update, or 204 if none arrive within UpdatesWait. POST
	// accepts a list of UpdateAnswer.
	UpdatesPath = "/updates"
	// RecordsPath returns to GET the pending records, as a list of Record, or 204 if none arrive within UpdatesWait. POST accepts a
	// RecordsKept.
	RecordsPath = "/records"
)

// RecordsKept acknowledges the records up to a number, which are on the disk of the service point.
type RecordsKept struct {
	Number int64 `json:"number"`
}

// UpdatesWait is the maximum time that a request waits for updates or records.
const UpdatesWait = 20 * time.Second

// Resolves reports whether an upstream with this answer resolves names. answer is a response code or the reason for a missing answer.
// REFUSED and NXDOMAIN count as well, because a server that knows only local names returns them for the root.
func Resolves(answer string) bool {
	return answer == "NOERROR" || answer == "NXDOMAIN" || answer == "REFUSED"
}

// ResolverDiagnostics are the diagnostics of the resolver. Answers are response codes such as NOERROR, or the reason for a missing
// answer.
type ResolverDiagnostics struct {
	// BackendResponse is the best answer of an upstream. FrontendResponse is the worst answer of a listener. Both are empty before the first
	// answer.
	BackendResponse  string `json:"backendResponse"`
	FrontendResponse string `json:"frontendResponse"`
	// ID is the start time in Unix milliseconds.
	ID int64 `json:"id"`
	// CertificateExpiration is the expiry time of the TLS certificate in Unix milliseconds; 0 without TLS listeners.
	CertificateExpiration int64 `json:"certificateExpiration,omitempty"`
	// Recursion names the program that resolves names from the root; empty if the upstreams do.
	Recursion string `json:"recursion,omitempty"`
	// Revision is the revision of the deployed content. Policies are the response policy zones with their numbers of rules.
	Revision string         `json:"revision,omitempty"`
	Policies map[string]int `json:"policies,omitempty"`
	// Answers counts the answers since the start by response code.
	Answers map[string]int64 `json:"answers"`
	// Upstreams and Listeners contain the answers by address and port.
	Upstreams map[string]string `json:"upstreams"`
	Listeners map[string]string `json:"listeners"`
}
