package telemetry

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"

	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
	"portolan/internal/manager/serverconfig"
)

//go:embed migrations/*/*.sql
var migrations embed.FS

// topic is touched when an event is added.
const topic = "telemetry"

// Register declares the table of events.
func Register(r *resource.Registry) {
	r.Extension(&store.Extension{Name: topic, Migrations: migrations, Tables: []store.Table{{Name: "telemetry_event",
		Columns: []string{"id", "service", "body"}, Key: 1}}})
}

// Activity adds the events of a DHCP server in a transaction. It is nil if nothing is sent.
type Activity struct {
	tx      *store.Tx
	service int64
	v4, v6  bool
}

// ActivityOf returns the activity of a server; nil if its DHCPActivityService is disabled.
func ActivityOf(tx *store.Tx, a *resource.API, server int64) (*Activity, error) {
	row, err := tx.ReadFirst(store.Query{From: store.Resources, Where: store.All{store.InCollection("services"),
		store.HasParent(server),
		store.Compare{Field: store.Field{Kind: store.ColumnText, Path: []string{"type"}}, Op: "eq", Value: "DHCPActivityService"}}})
	if err != nil || row == nil {
		return nil, err
	}
	o, err := a.Object(row)
	if err != nil {
		return nil, err
	}
	x, ok := o.(*serverconfig.DHCPActivityService)
	if !ok || !x.Enabled {
		return nil, nil
	}
	return &Activity{tx, row.ID, x.DHCPv4Enabled, x.DHCPv6Enabled}, nil
}

// Wants reports whether events of an address family are sent.
func (x *Activity) Wants(v6 bool) bool { return x != nil && (v6 && x.v6 || !v6 && x.v4) }

// Add adds an event, which is encoded as JSON.
func (x *Activity) Add(event any) error {
	text, err := json.Marshal(event)
	if err != nil {
		return err
	}
	id, err := x.tx.NewID()
	if err != nil {
		return err
	}
	x.tx.Touch(topic)
	return x.tx.Write("INSERT INTO telemetry_event (id, service, body) VALUES (?, ?, ?)", id, x.service, string(text))
}

// waiting is an event that is not sent yet.
type waiting struct {
	id   int64
	body json.RawMessage
}

// batch is the events for one message, with their destination.
type batch struct {
	service, server int64
	name            string // of the server
	receiver        *receiver
	events          []waiting
	// most is the maximum number of waiting events.
	most int64
}

// servicesWaiting returns the services that have events. Each is one seek in an index.
func servicesWaiting(tx *store.Tx) (all []int64, err error) {
	for after := int64(0); ; {
		var next int64
		if err := tx.QueryRow("SELECT coalesce(min(service), 0) FROM telemetry_event WHERE service > ?", after).Scan(&next); err != nil ||
			next == 0 {
			return all, err
		}
		all, after = append(all, next), next
	}
}

// maxBatch and maxBatchSize limit the events of one message, in number and octets.
const (
	maxBatch     = 1000
	maxBatchSize = 1 << 20
)

// read returns the oldest events of a service; ok is false if they are not to be sent any more.
func read(tx *store.Tx, a *resource.API, service int64) (b batch, ok bool, err error) {
	row, err := tx.Get(service)
	if store.IsNotFound(err) {
		return b, false, nil
	}
	if err != nil {
		return b, false, err
	}
	row = row.Clone()
	o, err := a.Object(row)
	if err != nil {
		return b, false, err
	}
	x, is := o.(*serverconfig.DHCPActivityService)
	if !is || !x.Enabled || x.Destination == nil {
		return b, false, nil
	}
	secrets, err := a.Secrets(tx, o)
	if err != nil {
		return b, false, err
	}
	server, err := tx.Get(schema.HeadOf(o).Parent)
	if err != nil {
		return b, false, err
	}
	b = batch{service: service, server: server.ID, name: server.Name, most: x.MaximumBufferedEvents}
	if b.receiver, err = newReceiver(x.Destination, secrets["destination.password"], secrets["destination.token"]); err != nil {
		return b, false, err
	}
	size := 0
	err = tx.Each(func(scan func(...any) error) error {
		var one waiting
		var text string
		if err := scan(&one.id, &text); err != nil {
			return err
		}
		if size += len(text); size > maxBatchSize && len(b.events) > 0 {
			return errEnough
		}
		one.body = json.RawMessage(text)
		b.events = append(b.events, one)
		return nil
	}, "SELECT id, body FROM telemetry_event WHERE service = ? ORDER BY id LIMIT ?", service, maxBatch)
	if errors.Is(err, errEnough) {
		err = nil
	}
	if err != nil {
		err = fmt.Errorf("read events of service %d: %w", service, err)
	}
	return b, true, err
}

// errEnough ends a loop over rows.
var errEnough = errors.New("enough")

// remove deletes sent events.
func remove(tx *store.Tx, events []waiting) error {
	ids := make([]byte, 0, 16*len(events))
	for i, one := range events {
		if i > 0 {
			ids = append(ids, ',')
		}
		ids = fmt.Appendf(ids, "%d", one.id)
	}
	return tx.Write("DELETE FROM telemetry_event WHERE id IN (" + string(ids) + ")")
}

// drop deletes the oldest events of a service that are more than most, at most limit of them, and returns their number.
func drop(tx *store.Tx, service, most, limit int64) (dropped int64, err error) {
	var n int64
	if err := tx.QueryRow("SELECT count(*) FROM telemetry_event WHERE service = ?", service).Scan(&n); err != nil || n <= most {
		return 0, err
	}
	return tx.Exec("DELETE FROM telemetry_event WHERE id IN (SELECT id FROM telemetry_event WHERE service = ? ORDER BY id LIMIT ?)", service,
		min(n-most, limit))
}
