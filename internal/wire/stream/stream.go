// Package stream is how records come up from a service point to its manager: in order, each applied once, in batches that the manager
// acknowledges. The source keeps its records in a spool, numbered from 1, until they are acknowledged, and goes on behind the last
// acknowledgement after a cut, a restart, or with another manager of the same database.
package stream

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"portolan/internal/base/problem"
)

// Path is where a service point posts a Batch, with its check-in certificate. The answer is an Answer.
const Path = "/stream/v1"

// Bounds of a batch: records, octets of one record, octets of all of them.
const (
	MaxRecords = 1000
	MaxRecord  = 64 << 10
	MaxBatch   = 512 << 10
)

// Batch is some records of one kind, one behind the other.
type Batch struct {
	// Application is the id of the application that they come from; empty for the agent itself.
	Application string `json:"application,omitempty"`
	// Kind says what the records are, such as Events.
	Kind string `json:"kind"`
	// Spool names the spool that numbers the records; another spool begins at 1 again.
	Spool string `json:"spool"`
	// First is the number of the first record. A gap to the record before means that the source gave up what lies between.
	First   int64             `json:"first"`
	Records []json.RawMessage `json:"records"`
}

// Answer acknowledges a batch.
type Answer struct {
	// Next is the number of the record that the manager expects next: all before it are applied, and their source may forget them.
	Next int64 `json:"next"`
	// WaitMillis is how long the source is to wait before it sends more: the manager is behind.
	WaitMillis int64 `json:"waitMillis,omitempty"`
}

// ErrTooLong is the error of a record with more than MaxRecord octets.
var ErrTooLong = fmt.Errorf("the record has more than %d octets", MaxRecord)

// InvalidRecord is the code of the refusal of a batch with a record that can never be applied: its source gives that one up.
const InvalidRecord = "InvalidRecord"

// names are those of kinds, spools and applications.
var names = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// IsName reports whether a text can be a kind, or name a spool or an application: letters, digits, dashes and underscores, 1 to 64.
func IsName(text string) bool { return names.MatchString(text) }

// UnknownKind is the code of the refusal of a kind that a manager does not know: its source keeps the records.
const UnknownKind = "UnknownStreamKind"

// Check refuses a batch that is out of bounds; the problem names the field.
func (b Batch) Check() error {
	size := 0
	for i, r := range b.Records {
		if size += len(r); len(r) > MaxRecord {
			return problem.Invalid(fmt.Sprintf("records[%d]", i), "has %d octets, more than %d", len(r), MaxRecord)
		}
	}
	switch {
	case !names.MatchString(b.Kind):
		return problem.Invalid("kind", "%q must match %s", b.Kind, names)
	case !names.MatchString(b.Spool):
		return problem.Invalid("spool", "%q must match %s", b.Spool, names)
	case b.Application != "" && !names.MatchString(b.Application):
		return problem.Invalid("application", "%q must match %s", b.Application, names)
	case b.First < 1:
		return problem.Invalid("first", "must be at least 1")
	case len(b.Records) == 0 || len(b.Records) > MaxRecords:
		return problem.Invalid("records", "needs 1 to %d", MaxRecords)
	case size > MaxBatch:
		return problem.Invalid("records", "have %d octets together, more than %d", size, MaxBatch)
	}
	return nil
}

// Events is the kind of records that are an Event.
const Events = "events"

// Event is something that happened at a service point while nobody may have looked: the manager lists it with the moves of the service
// point.
type Event struct {
	// At is when, in Unix milliseconds by the clock of the service point.
	At int64 `json:"at"`
	// Application is the name and the id of the application, with a slash between them; empty where the event is the agent's. Field is what
	// moved, Before and After are its values, and Reason says why.
	Application string `json:"application,omitempty"`
	Field       string `json:"field"`
	Before      string `json:"before"`
	After       string `json:"after"`
	Reason      string `json:"reason,omitempty"`
}

// Bounds of the texts of an event, in octets.
const (
	MaxName   = 200
	MaxReason = 1000
)

// Check refuses an event whose texts are too long, or that names no field.
func (e Event) Check() error {
	for field, text := range map[string]string{"application": e.Application, "field": e.Field, "before": e.Before, "after": e.After} {
		if len(text) > MaxName {
			return problem.Invalid(field, "has %d octets, more than %d", len(text), MaxName)
		}
		if strings.ContainsRune(text+e.Reason, 0) {
			return problem.Invalid(field, "or the reason holds a NUL")
		}
	}
	switch {
	case e.Field == "":
		return problem.Invalid("field", "is empty")
	case len(e.Reason) > MaxReason:
		return problem.Invalid("reason", "has %d octets, more than %d", len(e.Reason), MaxReason)
	case e.At < 0:
		return problem.Invalid("at", "must not be negative")
	}
	return nil
}
