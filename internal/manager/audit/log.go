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

// logs is the name of the collection of the manager's logs; its path in the API is logs.
const logs = "systemLogs"

// registerLogs declares the collection of the manager's logs.
func registerLogs(r *resource.Registry) {
	r.Collection(resource.Collection{Name: logs, At: "logs", Unlogged: true, Fleeting: true, NoSearch: true, Guard: resource.Logs,
		Complete: func(_ *store.Tx, rows []*store.Resource) error {
			return completeLogs(resource.Provided[Options](r.Provisions()), rows)
		},
		Content: resource.Contents{Types: []string{"SystemLog"}, Open: openLog}}, &SystemLog{})
}

// SystemLog is a log of the manager that answers the request: its own log, or the access log or audit log if these are written to files.
// Its content is downloaded as application/octet-stream.
type SystemLog struct {
	schema.Head `head:"readOnly" post:"no" parents:""`
	// Size is the size of the log in bytes; null if the manager does not write it to a file.
	Size *int64 `api:"size,computed"`
	// ModificationDateTime is the time of the last write.
	ModificationDateTime time.Time `api:"modificationDateTime,readOnly,computed"`
}

// KeepLogs creates the resources of logs that do not exist yet. It is not a seed, because seeds do not run again in an existing database.
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
		names, err := missing(tx) // another manager may have created them meanwhile
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

// completeLogs fills in the size and the last write of each log.
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
		if last.IsZero() { // not written to a file, or the file was removed
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

// openLog returns the current size of a log and a function that reads its parts up to that size. Later writes or a rotation do not change
// the result.
func openLog(row *store.Resource, a *resource.API) (size int64, part func(tx *store.Tx, number int) ([]byte, error), err error) {
	paths := resource.Provided[Options](a.Provisions).Logs[row.Name]
	if len(paths) == 0 {
		return 0, nil, problem.Conflict("ResourceConflictsWithOther", "the manager on %[2]s does not keep %[1]s: set one of its flags "+
			"(--access-log, --audit-log, --data)", problem.Describe(row.ID, row.Name), a.Manager.Hostname)
	}
	var files []*io.SectionReader
	var newer fs.FileInfo
	for _, path := range slices.Backward(paths) { // newest first, so that a rotation meanwhile loses nothing
		// The file is closed when it is garbage collected.
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
	return size, func(_ *store.Tx, number int) ([]byte, error) { return readFiles(files, int64(number-1)*logPartSize) }, nil
}

// logPartSize is the size of the parts that a log is sent in, in bytes.
const logPartSize = 1 << 20

// readFiles reads up to logPartSize bytes at an offset of the concatenated files. It returns nil after the end of the last file.
func readFiles(files []*io.SectionReader, from int64) (part []byte, err error) {
	for _, f := range files {
		if from >= f.Size() {
			from -= f.Size()
			continue
		}
		more := make([]byte, min(f.Size()-from, int64(logPartSize-len(part))))
		n, err := f.ReadAt(more, from)
		if part, from = append(part, more[:n]...), 0; err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		if len(part) == logPartSize {
			break
		}
	}
	return part, nil
}
