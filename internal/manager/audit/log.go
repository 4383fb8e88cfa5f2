package audit

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"time"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// logs is the name of the collection of the manager's logs; its path is logs.
const logs = "systemLogs"

// registerLogs declares the collection of the manager's logs.
func registerLogs(r *resource.Registry) {
	r.Collection(resource.Collection{Name: logs, At: "logs", Unlogged: true, Fleeting: true, NoSearch: true, Guard: resource.Logs,
		Complete: func(_ *store.Tx, rows []*store.Resource) error {
			return completeLogs(resource.Provided[Options](r.Provisions()), rows)
		},
		Content: resource.Contents{Types: []string{"SystemLog"}, Open: openLog}}, &SystemLog{})
}

// SystemLog is a log of the manager that answers: what it logs, and the access log and the audit log where it keeps them. It is fetched as
// it is (application/octet-stream).
type SystemLog struct {
	schema.Head `head:"readOnly" post:"no" parents:""`
	// Size is how long it is, in bytes; null where the manager does not keep it.
	Size *int64 `api:"size,computed"`
	// ModificationDateTime is when it was last written.
	ModificationDateTime time.Time `api:"modificationDateTime,readOnly,computed"`
}

// KeepLogs lists the logs that a manager may have. It is no seed: those are not made again in a database that is there.
func KeepLogs(ctx context.Context, a *resource.API) error {
	missing := func(tx *store.Tx) (names []string, err error) {
		for _, name := range slices.Sorted(maps.Keys(resource.Provided[Options](a.Provisions).Logs)) {
			found, err := tx.ByName(logs, 0, name)
			if err != nil {
				return nil, err
			}
			if len(found) == 0 {
				names = append(names, name)
			}
		}
		return names, nil
	}
	var names []string
	if err := a.Store.View(ctx, func(tx *store.Tx) (err error) {
		names, err = missing(tx)
		return err
	}); err != nil || len(names) == 0 {
		return err
	}
	return a.Store.Update(ctx, store.Author{}, func(tx *store.Tx) error {
		names, err := missing(tx) // another manager may have listed them meanwhile
		for _, name := range names {
			t := a.TypeNamed("SystemLog")
			o := t.New()
			schema.HeadOf(o).Name = name
			c := &resource.Change{Tx: tx, API: a}
			if _, err := c.Following().Create(t, o); err != nil {
				return err
			}
		}
		return err
	})
}

// completeLogs says how long each log is, and when it was last written.
func completeLogs(o Options, rows []*store.Resource) error {
	for _, r := range rows {
		var size int64
		var last time.Time
		for _, path := range o.Logs[r.Name] {
			info, err := os.Stat(path)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return err
			}
			size, last = size+info.Size(), info.ModTime()
		}
		if last.IsZero() { // it is kept in no file, or somebody has removed it
			continue
		}
		at, err := json.Marshal(last.UTC().Truncate(time.Millisecond))
		if err == nil {
			r.Body, err = store.Rewritten(r.Body, map[string][]byte{"size": strconv.AppendInt(nil, size, 10), "modificationDateTime": at})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// openLog gives how long a log is by now, and what reads it up to there, whatever is written, or begun anew, meanwhile.
func openLog(row *store.Resource, a *resource.API) (size int64, part func(tx *store.Tx, number int) ([]byte, error), err error) {
	paths := resource.Provided[Options](a.Provisions).Logs[row.Name]
	if len(paths) == 0 {
		return 0, nil, problem.Conflict("ResourceConflictsWithOther", "%s is not kept by the manager on %s: say where it is to be "+
			"(--access-log, --audit-log, --data)", problem.About(row.ID, row.Name), a.Manager.Hostname)
	}
	var files []*io.SectionReader
	var newer fs.FileInfo
	for _, path := range slices.Backward(paths) { // so that nothing is left out where the log is begun anew in between
		// os closes it when nothing refers to it any more.
		f, err := os.Open(path) //nolint:gosec // the manager's own
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return 0, nil, err
		}
		info, err := f.Stat()
		if err != nil {
			return 0, nil, err
		}
		if newer != nil && os.SameFile(info, newer) {
			continue
		}
		newer = info
		size += info.Size()
		files = append([]*io.SectionReader{io.NewSectionReader(f, 0, info.Size())}, files...)
	}
	return size, func(_ *store.Tx, number int) ([]byte, error) { return readFiles(files, int64(number-1)*logPart) }, nil
}

// logPart is how much of a log is sent at a time, in bytes.
const logPart = 1 << 20

// readFiles reads a part of files that follow each other from a place on; nil behind the end of the last.
func readFiles(files []*io.SectionReader, from int64) (part []byte, err error) {
	for _, f := range files {
		if from >= f.Size() {
			from -= f.Size()
			continue
		}
		more := make([]byte, min(f.Size()-from, int64(logPart-len(part))))
		n, err := f.ReadAt(more, from)
		if part, from = append(part, more[:n]...), 0; err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		if len(part) == logPart {
			break
		}
	}
	return part, nil
}
