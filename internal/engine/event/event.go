package event

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"time"

	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// eventRows is a view that presents events as resources, so that they are listed and filtered with the same grammar.
const eventRows store.Source = "event_resource"

//go:embed migrations/*/*_event.sql
var eventMigrations embed.FS

// newEventExtension returns the extension that stores events.
func newEventExtension() *store.Extension {
	return &store.Extension{Name: "events", Migrations: eventMigrations, Verify: verify,
		Tables: []store.Table{{Name: "event", Columns: []string{"id", "source", "user_id", "body"}, Key: 1},
			{Name: "event_due", Columns: []string{"event"}, Key: 1, Derived: "events before a backup are not reported again after a restore"}}}
}

// registerEvents declares the collection of events.
func registerEvents(r *resource.Registry) {
	r.Extension(newEventExtension())
	r.Collection(resource.Collection{Name: "events", From: eventRows, Guard: resource.Events, Hidden: true}, &Event{})
}

// Event is a record of something that happened, such as a deployment, an alarm or a job of the manager.
type Event struct {
	schema.Head `head:"readOnly"`
	// EventType is the severity or the outcome of the event.
	EventType string `api:"eventType,readOnly" enum:"INFO|WARNING|ERROR|SUCCESS|FAILED|NOT_DEPLOYED|INVALID|NO_ROLE|RESPONSE_POLICY_ZONES_NOT_DEPLOYED|VALID"`
	// Category is the area of the system that the event belongs to.
	Category string `api:"category,readOnly" enum:"APPLICATION|DATABASE_MAINTENANCE|DATA_CHECKER|DATA_COLLECTION|DDNS_NOTIFICATION|DEPLOYMENT|DEPLOYMENT_DATA_VALIDATION|DHCP_ALERT|DHCP_LEASE_SYNCHRONIZATION|DNSSEC_KEY_EXPIRATION|IP_RECONCILIATION|IP_TEMPLATE|MIGRATION|REPORT_SCHEDULER|SERVER_HIGH_AVAILABILITY|SERVER_MONITORING|SOFTWARE_UPDATE|SSO_MANAGEMENT|SYSTEM_MAINTENANCE|TRUST_RELATIONSHIP|WORKFLOW_REQUEST|ZONE_TEMPLATE"`
	// Subcategory is the service that the event belongs to.
	Subcategory string `api:"subcategory,readOnly" enum:"DNS|DHCPv4|DHCPv6|TFTP"`
	// Source is the resource that the event is about. It is null after that resource was deleted.
	Source schema.Ref `api:"source,readOnly" column:"parent"`
	// SourceName is the name that the resource had when the event occurred.
	SourceName string `api:"sourceName,readOnly,tells"`
	// Message describes the event in one sentence. It is null for callers that cannot see the whole configuration of the source.
	Message string `api:"message,readOnly,tells"`
	// DateTime is the time of the event.
	DateTime time.Time `api:"dateTime,readOnly"`
	// Details contains further data about the event.
	Details json.RawMessage `api:"details,readOnly,tells"`
	// TaskID is the ID of the task that caused the event.
	TaskID string `api:"taskId,readOnly"`
	// Payload is the message that was received.
	Payload string `api:"payload,readOnly,tells"`
	// User is the user whose change caused the event. It is null if the manager caused it.
	User schema.Ref `api:"user,readOnly" column:"configuration" ref:"User"`
}

// Add writes an event about the resource source in the transaction and marks it as pending for Due.
func Add(tx *store.Tx, e Event, source int64) error {
	null := func(text string) *string {
		if text == "" {
			return nil
		}
		return &text
	}
	body, err := json.Marshal(struct {
		UserDefinedFields *string `json:"userDefinedFields"`
		EventType         string  `json:"eventType"`
		Category          string  `json:"category"`
		Subcategory       *string `json:"subcategory"`
		SourceName        *string `json:"sourceName"`
		Message           string  `json:"message"`
		DateTime          string  `json:"dateTime"`
		Details           *string `json:"details"`
		TaskID            *string `json:"taskId"`
		Payload           *string `json:"payload"`
	}{nil, e.EventType, e.Category, null(e.Subcategory), null(e.SourceName), e.Message, tx.Now().UTC().Format(time.RFC3339), nil, nil, nil})
	if err != nil {
		return err
	}
	id, err := tx.NewID()
	if err != nil {
		return err
	}
	if err := tx.Write("INSERT INTO event (id, source, user_id, body) VALUES (?, ?, ?, ?)", id, source, tx.Author().User,
		string(body)); err != nil {
		return fmt.Errorf("write event: %w", err)
	}
	return tx.Write("INSERT INTO event_due (event) VALUES (?)", id)
}

// Get returns an event. exists is false if it was deleted.
func Get(tx *store.Tx, id int64) (e Event, exists bool, err error) {
	var body string
	if err := tx.QueryRow("SELECT body FROM event WHERE id = ?", id).Scan(&body); store.IsNotFound(err) {
		return e, false, nil
	} else if err != nil {
		return e, false, err
	}
	var read struct{ EventType, Category, Subcategory, SourceName, Message, DateTime string }
	if err := json.Unmarshal([]byte(body), &read); err != nil {
		return e, false, fmt.Errorf("event %d: %w", id, err)
	}
	e = Event{EventType: read.EventType, Category: read.Category, Subcategory: read.Subcategory, SourceName: read.SourceName,
		Message: read.Message}
	e.ID = id
	e.DateTime, err = time.Parse(time.RFC3339, read.DateTime)
	return e, true, err
}

// ListPending returns the oldest events that are not yet marked by Seen, at most limit of them.
func ListPending(tx *store.Tx, limit int) (all []Event, err error) {
	var ids []int64
	if err := tx.Each(func(scan func(...any) error) error {
		var id int64
		err := scan(&id)
		ids = append(ids, id)
		return err
	}, "SELECT event FROM event_due ORDER BY event LIMIT ?", limit); err != nil {
		return nil, err
	}
	for _, id := range ids {
		e, _, err := Get(tx, id)
		if err != nil {
			return nil, err
		}
		e.ID = id // also if the event was deleted
		all = append(all, e)
	}
	return all, nil
}

// MarkProcessed marks events as processed, so that Due no longer returns them.
func MarkProcessed(tx *store.Tx, all []Event) error {
	for _, e := range all {
		if err := tx.Write("DELETE FROM event_due WHERE event = ?", e.ID); err != nil {
			return err
		}
	}
	return nil
}

// pruneAtOnce is the maximum number of events that one update deletes. It bounds how long other updates wait.
const pruneAtOnce = 2000

// PruneEvents deletes the events older than before, at most pruneAtOnce in one update. It returns the number of deleted events.
func PruneEvents(ctx context.Context, update store.Updater, before time.Time) (pruned int, err error) {
	limit := before.UTC().Format(time.RFC3339)
	for {
		n := int64(0)
		if err := update(ctx, store.Author{}, func(tx *store.Tx) (err error) {
			// IDs rise with time, so the oldest events have the lowest IDs.
			n, err = tx.Exec("DELETE FROM event WHERE id IN (SELECT id FROM (SELECT id, json_extract(body, '$.dateTime') AS at FROM event "+
				"ORDER BY id LIMIT ?) o WHERE at < ?)", pruneAtOnce, limit)
			return err
		}); err != nil {
			return pruned, fmt.Errorf("prune events: %w", err)
		}
		if pruned += int(n); n < pruneAtOnce {
			return pruned, update(ctx, store.Author{}, func(tx *store.Tx) error { // delete pending marks of deleted events
				return tx.Write("DELETE FROM event_due WHERE NOT EXISTS (SELECT 1 FROM event WHERE id = event_due.event)")
			})
		}
	}
}

// verify reports events whose body is not JSON, and events with an ID or a source that was never assigned.
func verify(tx *store.Tx, fault func(format string, args ...any)) error {
	last, err := tx.Mark("resource")
	if err != nil {
		return err
	}
	return tx.Stream(func(scan func(...any) error) error {
		var id, source int64
		var body []byte
		err := scan(&id, &source, &body)
		switch {
		case err != nil:
		case id > last:
			fault("event %d has a number that was never assigned", id)
		case source > last:
			fault("event %d belongs to a resource that never existed", id)
		case !json.Valid(body):
			fault("event %d is not JSON", id)
		}
		return err
	}, "SELECT id, source, body FROM event")
}
