// Package stream defines how a service point sends records to its manager: in order, each applied once, in batches that the manager
// acknowledges. The source keeps its records in a spool, numbered from 1, until they are acknowledged. After a lost connection, a restart,
// or a change to another manager of the same database, it continues after the last acknowledgement.
package stream

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"portolan/internal/base/problem"
)

// Path is the path to which a service point posts a Batch, with its check-in certificate. The response is an Answer.
const Path = "/stream/v1"

// Limits of a batch: records, octets of one record, octets of all records.
const (
	MaxRecords = 1000
	MaxRecord  = 64 << 10
	MaxBatch   = 512 << 10
)

// Batch is a list of consecutive records of one kind.
type Batch struct {
	// Application is the id of the application that the records come from; empty for the agent itself.
	Application string `json:"application,omitempty"`
	// Kind is the kind of the records, such as Events.
	Kind string `json:"kind"`
	// Spool identifies the spool that numbers the records. Each spool starts at 1.
	Spool string `json:"spool"`
	// First is the number of the first record. A gap after the previous record means that the source has dropped the records between them.
	First   int64             `json:"first"`
	Records []json.RawMessage `json:"records"`
}

// Answer acknowledges a batch.
type Answer struct {
	// Next is the number of the next record that the manager expects. All records before it are applied, and the source may delete them.
	Next int64 `json:"next"`
	// WaitMillis is the time that the source must wait before it sends more, because the manager is overloaded.
	WaitMillis int64 `json:"waitMillis,omitempty"`
}

// ErrTooLong reports a record with more than MaxRecord octets.
var ErrTooLong = fmt.Errorf("the record has more than %d octets", MaxRecord)

// InvalidRecord is the error code for a batch with a record that can never be applied. The source drops that record.
const InvalidRecord = "InvalidRecord"

// names is the pattern of kinds, spools and applications.
var names = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// IsName reports whether a text is valid as a kind, a spool or an application: 1 to 64 letters, digits, hyphens and underscores.
func IsName(text string) bool { return names.MatchString(text) }

// UnknownKind is the error code for a kind that the manager does not know. The source keeps the records.
const UnknownKind = "UnknownStreamKind"

// Check validates the limits and names of a batch. The returned problem names the field.
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

// Leases is the kind of the records about DHCP leases (portolan/internal/wire/dhcplease). None of them is dropped: while the spool is full,
// they stay in the journal of the application.
const Leases = "dhcp-leases"

// IsLossy reports whether the oldest records of a kind are dropped when the spool is full.
func IsLossy(kind string) bool { return kind != Leases }

// Events is the kind of records that are an Event.
const Events = "events"

// Event is a change at a service point. Events are sent as records, so that changes while the manager is not connected are not lost. The
// manager lists it with the status changes of the service point.
type Event struct {
	// At is the time of the event, in Unix milliseconds by the clock of the service point.
	At int64 `json:"at"`
	// Application is the name and the id of the application, separated by a slash; empty for an event of the agent. Field is the changed
	// field, Before and After are its values, and Reason is the reason of the change.
	Application string `json:"application,omitempty"`
	Field       string `json:"field"`
	Before      string `json:"before"`
	After       string `json:"after"`
	Reason      string `json:"reason,omitempty"`
}

// Limits of the texts of an event, in octets.
const (
	MaxName   = 200
	MaxReason = 1000
)

// Check returns an error if a text of the event is too long or contains a NUL, or if Field is empty.
func (e Event) Check() error {
	for field, text := range map[string]string{"application": e.Application, "field": e.Field, "before": e.Before, "after": e.After} {
		if len(text) > MaxName {
			return problem.Invalid(field, "has %d octets, more than %d", len(text), MaxName)
		}
		if strings.ContainsRune(text+e.Reason, 0) {
			return problem.Invalid(field, "or the reason contains a NUL character")
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
