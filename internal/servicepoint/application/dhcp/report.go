package dhcp

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"portolan/internal/servicepoint/application"
	"portolan/internal/wire/dhcplease"
)

// reports returns the records of the journal for the manager. A record is returned until the service point has stored it, also after a
// restart: the manager skips records that it has.
type reports struct {
	engine *engine
	id     string

	mu sync.Mutex
	// The following fields are guarded by mu: the position in the journal, the records that are not stored yet with their numbers in the
	// journal, and the number of the last record.
	cursor  *cursor
	pending []pendingRecord
	last    int64
	// seen is the number of the last entry that was read, and previous that of the last one that is a record for the manager.
	seen, previous uint64
}

type pendingRecord struct {
	application.Record
	sequence uint64
}

// maxPending is the maximum number of records in one answer.
const maxPending = 64

// idFile contains the id of the journal.
const idFile = "id"

// journalID returns the random id of the journal in a folder, and creates it at the first start.
func journalID(dir string) (string, error) {
	path := filepath.Join(dir, idFile)
	text, err := os.ReadFile(path) //nolint:gosec // in the folder that the service point provides
	if err == nil && len(text) > 0 {
		return string(text), nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	id := rand.Text()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600) //nolint:gosec // as above
	if err != nil {
		return "", err
	}
	_, err = f.WriteString(id)
	return id, errors.Join(err, f.Sync(), f.Close(), syncFolder(dir))
}

func newReports(e *engine, id string) *reports {
	c := e.journal.cursor()
	e.journal.mu.Lock()
	defer e.journal.mu.Unlock()
	return &reports{engine: e, id: id, cursor: c, seen: e.journal.acked, previous: e.journal.acked}
}

// next waits for records and returns them; none when ctx ends.
func (r *reports) next(ctx context.Context) []application.Record {
	for {
		more := r.engine.journal.wait()
		if all := r.read(); len(all) > 0 {
			return all
		}
		select {
		case <-ctx.Done():
			return nil
		case <-r.engine.stop:
			return nil
		case <-more:
		}
		select { // one answer for the events of a moment
		case <-ctx.Done():
		case <-time.After(gatherTime):
		}
	}
}

// gatherTime is the time that an answer waits for further records.
const gatherTime = 50 * time.Millisecond

// read returns the pending records, and new ones up to maxPending.
func (r *reports) read() (all []application.Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.pending) < maxPending {
		number, entry, ok, err := r.cursor.read()
		if err != nil {
			r.engine.log.Error("read lease journal failed", "error", err)
			break
		}
		if !ok {
			break
		}
		if number != r.seen+1 { // entries are missing: the manager lacks whatever they contained
			r.previous = number - 1
		}
		r.seen = number
		record, wanted, err := r.engine.record(r.id, number, entry)
		if err == nil && wanted {
			record.Previous = r.previous
			err = r.add(record)
		}
		if wanted || err != nil {
			r.previous = number
		}
		if err != nil {
			r.engine.log.Error("lease record dropped", "number", number, "error", err)
		}
	}
	for _, one := range r.pending {
		all = append(all, one.Record)
	}
	return all
}

func (r *reports) add(record dhcplease.Record) error {
	data, err := json.Marshal(record)
	if err != nil {
		return err
	}
	r.last++
	r.pending = append(r.pending, pendingRecord{application.Record{Number: r.last, Kind: dhcplease.Stream, Data: data}, record.Sequence})
	return nil
}

// kept forgets the records up to a number.
func (r *reports) kept(number int64) error {
	r.mu.Lock()
	i := slices.IndexFunc(r.pending, func(p pendingRecord) bool { return p.Number > number })
	if i < 0 {
		i = len(r.pending)
	}
	var sequence uint64
	if i > 0 {
		sequence = r.pending[i-1].sequence
	}
	r.pending = slices.Clone(r.pending[i:])
	r.mu.Unlock()
	if sequence == 0 {
		return nil
	}
	return r.engine.journal.acknowledge(sequence)
}
