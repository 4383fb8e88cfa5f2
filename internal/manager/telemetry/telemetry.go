package telemetry

import (
	"database/sql"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

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
		Columns: []string{"id", "service", "at", "body"}, Key: 1}}})
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
	return x.tx.Write("INSERT INTO telemetry_event (id, service, at, body) VALUES (?, ?, ?, ?)", id, x.service, x.tx.Now().UnixMilli(),
		string(text))
}

// waiting is an event that is not sent yet.
type waiting struct {
	id   int64
	body json.RawMessage
}

// batch contains the oldest events of a service, with their destination.
type batch struct {
	service, server int64
	name            string // of the server
	receiver        *receiver
	events          []waiting
	// wrong is the error of a destination that cannot be used.
	wrong error
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
	maxBatchSize = 512 << 10
)

// serviceOf returns an enabled service with a destination; nil if its events are not to be sent any more.
func serviceOf(tx *store.Tx, a *resource.API, service int64) (*serverconfig.DHCPActivityService, error) {
	row, err := tx.Get(service)
	if store.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	o, err := a.Object(row.Clone())
	if err != nil {
		return nil, err
	}
	x, is := o.(*serverconfig.DHCPActivityService)
	if !is || !x.Enabled || x.Destination == nil {
		return nil, nil
	}
	return x, nil
}

// read returns the oldest events of a service, at most limit.
func read(tx *store.Tx, a *resource.API, x *serverconfig.DHCPActivityService, limit int) (b batch, err error) {
	head := schema.HeadOf(x)
	server, err := tx.Get(head.Parent)
	if err != nil {
		return b, err
	}
	b = batch{service: head.ID, server: server.ID, name: server.Name}
	secrets, wrong := a.Secrets(tx, x)
	if wrong == nil {
		b.receiver, wrong = newReceiver(x.Destination, secrets["destination.password"], secrets["destination.token"])
	}
	b.wrong = wrong
	size := 0
	err = tx.Each(func(scan func(...any) error) error {
		var one waiting
		var text string
		if err := scan(&one.id, &text); err != nil {
			return err
		}
		if size += len(text); size > maxBatchSize && len(b.events) > 0 {
			return errBatchFull
		}
		one.body = json.RawMessage(text)
		b.events = append(b.events, one)
		return nil
	}, "SELECT id, body FROM telemetry_event WHERE service = ? ORDER BY at, id LIMIT ?", b.service, limit)
	if errors.Is(err, errBatchFull) {
		err = nil
	}
	if err != nil {
		err = fmt.Errorf("read events of service %d: %w", b.service, err)
	}
	return b, err
}

// errBatchFull ends a loop over rows.
var errBatchFull = errors.New("the batch is full")

// remove deletes sent events.
func remove(tx *store.Tx, events []waiting) error {
	ids := make([]byte, 0, 16*len(events))
	for i, one := range events {
		if i > 0 {
			ids = append(ids, ',')
		}
		ids = strconv.AppendInt(ids, one.id, 10)
	}
	return tx.Write("DELETE FROM telemetry_event WHERE id IN (" + string(ids) + ")")
}

// position is the place of an event in the order of a service.
type position struct{ at, id int64 }

// excess returns the last of the events of a service that are more than a maximum; there is false if there are none.
func excess(tx *store.Tx, service, maximum int64) (last position, there bool, err error) {
	err = tx.QueryRow("SELECT at, id FROM telemetry_event WHERE service = ? ORDER BY at DESC, id DESC LIMIT 1 OFFSET ?", service, maximum).
		Scan(&last.at, &last.id)
	if errors.Is(err, sql.ErrNoRows) {
		return last, false, nil
	}
	return last, err == nil, err
}

// drop deletes the oldest events of a service up to a position, at most limit of them, and returns their number.
func drop(tx *store.Tx, service int64, to position, limit int64) (dropped int64, err error) {
	return tx.Exec("DELETE FROM telemetry_event WHERE id IN (SELECT id FROM telemetry_event WHERE service = ?"+
		" AND (at < ? OR at = ? AND id <= ?) ORDER BY at, id LIMIT ?)", service, to.at, to.at, to.id, limit)
}
