package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"

	"portolan/internal/engine/store"
	"portolan/internal/manager/fleet"
	"portolan/internal/wire/stream"
)

// events returns records of events numbered from first to last, which their reasons name.
func events(first, last int) (records []json.RawMessage) {
	for n := first; n <= last; n++ {
		records = append(records, fmt.Appendf(nil, `{"field":"process","before":"RUNNING","after":"ENDED","reason":"number %d"}`, n))
	}
	return records
}

// reasons returns the reasons of the events of a service point that a field has.
func (m *manager) reasons(id, field string) (all []string) {
	m.T.Helper()
	found, err := m.Fleet.Events(context.Background(), id)
	if err != nil {
		m.T.Fatal(err)
	}
	for _, e := range found {
		if e.Field == field {
			all = append(all, e.Reason)
		}
	}
	return all
}

// TestStream checks that records arrive in order and are applied once, even if they are sent again. Records that a source dropped are
// counted, and another spool starts from the beginning.
func TestStream(t *testing.T) {
	m := startManager(t)
	var applied, lost int64
	var mu sync.Mutex
	m.Fleet.ObserveStream(func(_ string, a int, l int64) { mu.Lock(); defer mu.Unlock(); applied, lost = applied+int64(a), lost+l })
	id, certificate := m.provisioned("one")
	send := func(b stream.Batch, want int64) {
		t.Helper()
		if b.Spool == "" {
			b.Spool = "A"
		}
		b.Kind = stream.Events
		status, a := m.doorPost(stream.Path, b, certificate)
		if status != 200 || a["next"] != float64(want) {
			t.Fatalf("the answer is %d %v, want next %d", status, a, want)
		}
	}
	send(stream.Batch{First: 1, Records: events(1, 3)}, 4)
	send(stream.Batch{First: 1, Records: events(1, 3)}, 4) // the answer was lost
	send(stream.Batch{First: 2, Records: events(2, 5)}, 6) // and it has more meanwhile
	send(stream.Batch{First: 9, Records: events(9, 9)}, 10)
	send(stream.Batch{First: 1, Records: events(1, 1)}, 10)
	send(stream.Batch{Spool: "B", First: 2, Records: events(12, 12)}, 3)
	got := fmt.Sprint(m.reasons(id, "process"))
	if want := "[number 1 number 2 number 3 number 4 number 5 number 9 number 12]"; got != want {
		t.Errorf("the events are %s, want %s", got, want)
	}
	if mu.Lock(); applied != 7 || lost != 3 { // a spool of another name begins where it likes
		t.Errorf("%d were applied and %d lost", applied, lost)
	}
	mu.Unlock()
	refused := func(status int, code string, b stream.Batch) {
		t.Helper()
		if got, a := m.doorPost(stream.Path, b, certificate); got != status || a["code"] != code {
			t.Errorf("%+v: %d %v, want %d %s", b, got, a, status, code)
		}
	}
	refused(400, "InvalidResourceFieldValue", stream.Batch{Kind: "../x", Spool: "A", First: 1, Records: events(1, 1)})
	refused(400, stream.UnknownKind, stream.Batch{Kind: "leases", Spool: "A", First: 1, Records: events(1, 1)})
	refused(400, "InvalidResourceFieldValue", stream.Batch{Kind: stream.Events, Spool: "A", First: 0, Records: events(1, 1)})
	refused(400, "InvalidResourceFieldValue", stream.Batch{Kind: stream.Events, Spool: "A", First: 1})
	for _, wrong := range []string{`{"after":"x"}`, `[]`, `{"field":"a\u0000b"}`, `{"field":"x","at":-1}`} {
		refused(400, stream.InvalidRecord, stream.Batch{Kind: stream.Events, Spool: "A", First: 10,
			Records: append(events(10, 10), json.RawMessage(wrong))})
	}
	refused(400, stream.InvalidRecord, stream.Batch{Kind: stream.Events, Application: "app", Spool: "A", First: 1, Records: events(1, 1)})
	if n := len(m.reasons(id, "process")); n != 7 {
		t.Errorf("what was refused has left %d events", n)
	}
	if status, _ := m.doorPost(stream.Path, stream.Batch{Kind: stream.Events, Spool: "A", First: 10, Records: events(10, 10)},
		nil); status != 401 {
		t.Errorf("without a certificate it is %d", status)
	}
	if err := m.Fleet.Delete(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if status, _ := m.doorPost(stream.Path, stream.Batch{Kind: stream.Events, Spool: "A", First: 10, Records: events(10, 10)},
		certificate); status != 403 &&
		status != 401 && status != 410 {
		t.Errorf("of a service point that was deleted it is %d", status)
	}
}

// TestStreamsTogether checks that concurrent batches of many sources are each applied once, and that a failed one does not delay the
// others.
func TestStreamsTogether(t *testing.T) {
	m := startManager(t)
	m.Fleet.RegisterTaker("odd", fleet.StreamTaker{Decode: func(r json.RawMessage) (any, error) { return r, nil },
		Apply: oddTaker})
	var all sync.WaitGroup
	for i := range 6 {
		id, certificate := m.provisioned(fmt.Sprint("point-", i))
		all.Go(func() {
			for n := 1; n <= 10; n++ {
				for range 2 {
					if status, a := m.doorPost(stream.Path, stream.Batch{Kind: stream.Events, Spool: "A", First: int64(n), Records: events(n, n)},
						certificate); status != 200 {
						t.Errorf("the answer is %d %v", status, a)
					}
				}
				if status, _ := m.doorPost(stream.Path, stream.Batch{Kind: "odd", Spool: "A", First: int64(n), Records: events(n, n)},
					certificate); status != 500 {
					t.Errorf("what cannot be applied is %d", status)
				}
			}
			if got := m.reasons(id, "process"); len(got) != 10 || got[0] != "number 1" || got[9] != "number 10" {
				t.Errorf("the events are %v", got)
			}
		})
	}
	all.Wait()
}

// oddTaker writes, and then fails.
func oddTaker(tx *store.Tx, from fleet.StreamSource, _ []any) error {
	if err := tx.Write("DELETE FROM fleet_event WHERE service_point = ?", from.ServicePoint); err != nil {
		return err
	}
	return errors.New("it is odd")
}
