package application

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"portolan/internal/wire/stream"
)

// Outbox keeps the records of an application in memory until the service point has stored them on its disk. An application embeds it to
// implement RecordSource. The zero value is ready for use. Its methods are safe for concurrent use.
type Outbox struct {
	mu sync.Mutex
	// The following fields are guarded by mu: the pending records, the number of the last record, the number of the last record that Records
	// has returned, the numbers of dropped records that no pending record reports, by kind, and a channel that is closed when a record is
	// added.
	pending  []Record
	last     int64
	returned int64
	dropped  map[string]int64
	more     chan struct{}
}

// maxPending is the maximum number of pending records; the oldest are dropped beyond it. maxBatch is the maximum number of records in
// one answer.
const (
	maxPending = 1000
	maxBatch   = 64
)

// Add adds a record. It returns an error if the record cannot be encoded as JSON, is longer than stream.MaxRecord, or has an invalid
// kind.
func (o *Outbox) Add(kind string, record any) error {
	if !stream.IsName(kind) {
		return fmt.Errorf("%q is not the name of a kind", kind)
	}
	data, err := json.Marshal(record)
	if err != nil {
		return err
	}
	if len(data) > stream.MaxRecord {
		return stream.ErrTooLong
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.last++
	o.pending = append(o.pending, Record{Number: o.last, Kind: kind, Data: data, Lost: o.dropped[kind]})
	delete(o.dropped, kind)
	if len(o.pending) > maxPending {
		o.drop()
	}
	if o.more != nil {
		close(o.more)
		o.more = nil
	}
	return nil
}

// drop drops the oldest record that Records has not returned: a returned one may be on the disk already. The next record of its kind
// reports it as lost. The caller holds mu.
func (o *Outbox) drop() {
	at := slices.IndexFunc(o.pending, func(r Record) bool { return r.Number > o.returned })
	oldest := o.pending[at]
	o.pending = slices.Concat(o.pending[:at], o.pending[at+1:])
	lost := oldest.Lost + 1
	if i := slices.IndexFunc(o.pending[at:], func(r Record) bool { return r.Kind == oldest.Kind }); i >= 0 {
		o.pending[at+i].Lost += lost
		return
	}
	if o.dropped == nil {
		o.dropped = map[string]int64{}
	}
	o.dropped[oldest.Kind] += lost
}

// Records implements RecordSource.
func (o *Outbox) Records(ctx context.Context) []Record {
	for {
		o.mu.Lock()
		if len(o.pending) > 0 {
			defer o.mu.Unlock()
			batch := slices.Clone(o.pending[:min(len(o.pending), maxBatch)])
			o.returned = max(o.returned, batch[len(batch)-1].Number)
			return batch
		}
		if o.more == nil {
			o.more = make(chan struct{})
		}
		more := o.more
		o.mu.Unlock()
		select {
		case <-ctx.Done():
			return nil
		case <-more:
		}
	}
}

// Acknowledge implements RecordSource.
func (o *Outbox) Acknowledge(number int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.pending = slices.DeleteFunc(o.pending, func(r Record) bool { return r.Number <= number })
}
