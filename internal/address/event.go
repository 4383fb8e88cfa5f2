package address

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"portolan/internal/resource"
	"portolan/internal/store"
)

// registerEvents declares the collection of events.
func registerEvents(r *registry) {
	r.Collection(resource.Collection{Name: "events", From: store.Events, Hidden: true}, &Event{})
}

// Event is something that happened.
type Event struct {
	resource.Head `head:"readOnly"`
	// EventType says how grave it is.
	EventType string `api:"eventType,readOnly" enum:"INFO|WARNING|ERROR|SUCCESS|FAILED|NOT_DEPLOYED|INVALID|NO_ROLE|RESPONSE_POLICY_ZONES_NOT_DEPLOYED|VALID"`
	// Category is what it belongs to.
	Category string `api:"category,readOnly" enum:"APPLICATION|DATABASE_MAINTENANCE|DATA_CHECKER|DATA_COLLECTION|DDNS_NOTIFICATION|DEPLOYMENT|DEPLOYMENT_DATA_VALIDATION|DHCP_ALERT|DHCP_LEASE_SYNCHRONIZATION|DNSSEC_KEY_EXPIRATION|IP_RECONCILIATION|IP_TEMPLATE|MIGRATION|REPORT_SCHEDULER|SERVER_HIGH_AVAILABILITY|SERVER_MONITORING|SOFTWARE_UPDATE|SSO_MANAGEMENT|SYSTEM_MAINTENANCE|TRUST_RELATIONSHIP|WORKFLOW_REQUEST|ZONE_TEMPLATE"`
	// Subcategory is the service that it belongs to.
	Subcategory string `api:"subcategory,readOnly" enum:"DNS|DHCPv4|DHCPv6|TFTP"`
	// Source is the resource that it happened to; null once that is gone.
	Source resource.Ref `api:"source,readOnly" column:"parent"`
	// SourceName is what the resource was called.
	SourceName string `api:"sourceName,readOnly"`
	// Message says it in a sentence.
	Message string `api:"message,readOnly"`
	// DateTime is when it happened.
	DateTime time.Time `api:"dateTime,readOnly"`
	// Details are more of it.
	Details json.RawMessage `api:"details,readOnly"`
	// TaskID is the task that it came of.
	TaskID string `api:"taskId,readOnly"`
	// Payload is what was received.
	Payload string `api:"payload,readOnly"`
	// User is whose change it came of; null for the manager itself.
	User resource.Ref `api:"user,readOnly" column:"configuration" ref:"User"`
}

// addEvent keeps an event of the transaction.
func addEvent(tx *store.Tx, e Event, source int64) error {
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
	return tx.AddEvent(source, tx.Author().User, body)
}

// maxShown is how much of a text that anybody may send stands in an event, in bytes.
const maxShown = 64

// GuessingEvent keeps the event that somebody guesses passwords: the name that was tried, and from where.
func GuessingEvent(tx *store.Tx, name, remote string, failures int) error {
	users, err := tx.ByName("users", 0, name)
	if err != nil {
		return err
	}
	source := int64(0)
	if len(users) > 0 {
		source = users[0].ID
	}
	if len(name) > maxShown {
		name = strings.ToValidUTF8(name[:maxShown], "") + "…"
	}
	return addEvent(tx, Event{EventType: "WARNING", Category: "APPLICATION", SourceName: remote,
		Message: fmt.Sprintf("%d wrong sign-ins in a row as %q from %s: further ones have to wait", failures, name, remote)}, source)
}
