package fleet

import (
	"encoding/json"
	"fmt"
	"time"

	"portolan/internal/engine/store"
	"portolan/internal/wire/stream"
)

// counterTaker returns the taker of records of the kind stream.Counters. It stores the last record of each node, so that every manager of
// the database can derive rates from it.
func (s *Service) counterTaker() StreamTaker {
	return StreamTaker{
		Decode: func(text json.RawMessage) (any, error) {
			var all []stream.Counter
			if err := json.Unmarshal(text, &all); err != nil {
				return nil, err
			}
			return all, stream.CheckCounters(all)
		},
		Apply: func(tx *store.Tx, from StreamSource, records []any) error {
			body, err := json.Marshal(records[len(records)-1])
			if err != nil {
				return fmt.Errorf("encode counters: %w", err)
			}
			return tx.Write("INSERT INTO figure_report (service_point, node, at, body) VALUES (?,?,?,?) ON CONFLICT (service_point, node) "+
				"DO UPDATE SET at = excluded.at, body = excluded.body", from.ServicePoint, from.Node, s.now().UnixMilli(), string(body))
		}}
}

// CounterReport is the last state of the counters of a node, and when it arrived.
type CounterReport struct {
	ServicePoint string
	Node         int64
	At           time.Time
	Counters     []stream.Counter
}

// CounterReports calls a function with the report of each node.
func CounterReports(tx *store.Tx, each func(CounterReport) error) error {
	return tx.Each(func(scan func(...any) error) error {
		var r CounterReport
		var at int64
		var body string
		if err := scan(&r.ServicePoint, &r.Node, &at, &body); err != nil {
			return err
		}
		if err := json.Unmarshal([]byte(body), &r.Counters); err != nil {
			return fmt.Errorf("the counters of service point %s: %w", r.ServicePoint, err)
		}
		r.At = time.UnixMilli(at)
		return each(r)
	}, "SELECT service_point, node, at, body FROM figure_report")
}

// Availability calls a function with each service point that has enrolled, and whether it is connected and healthy.
func Availability(tx *store.Tx, each func(id string, available bool) error) error {
	return tx.Each(func(scan func(...any) error) error {
		var id, status string
		var connected int64
		if err := scan(&id, &status, &connected); err != nil {
			return err
		}
		return each(id, status == Healthy && connected != 0)
	}, "SELECT s.id, s.status, p.connected FROM service_point s JOIN presence p ON p.service_point = s.id WHERE p.last_seen > 0")
}
