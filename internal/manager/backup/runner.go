package backup

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"portolan/internal/engine/event"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
	"portolan/internal/engine/store/archive"
	"portolan/internal/engine/timetable"
)

// Intervals of the runner.
const (
	pollInterval = time.Second
	leaseLength  = 10 * time.Second
)

// suffix ends the names of backup files, unfinished those of incomplete files.
const (
	suffix     = ".portolan"
	unfinished = archive.Unfinished
)

// Runner makes backups. One manager of a database at a time does so.
type Runner struct {
	api   *resource.API
	log   *slog.Logger
	lease *store.Lease
	clock *timetable.Clock
	// idle caches that there is no work.
	idle *store.Cache[struct{}, bool]
	// write writes a backup.
	write func(ctx context.Context, w io.Writer) error
	// Ended is called after each attempt to make a backup.
	Ended func(whole bool)
	// Uploaded is called after each attempt to upload the backups of a schedule.
	Uploaded func(whole bool)

	// isRecovered means that recoverFiles has succeeded. reported are the files with an error that was logged. Only Run uses the fields
	// from here on.
	isRecovered bool
	reported    []string
	// retrySentAt is the time before which no received backup is saved as a file, because the last attempt failed.
	retrySentAt time.Time
	// failed are the last failed uploads, by schedule.
	failed map[int64]failedUpload
}

// NewRunner returns a Runner that writes backups to the manager's directory. Run starts it.
func NewRunner(a *resource.API, write func(ctx context.Context, w io.Writer) error, log *slog.Logger) *Runner {
	return &Runner{api: a, log: log, write: write, lease: a.Store.NewLease(files, leaseLength), clock: timetable.NewClock(a, schedules),
		idle: store.NewCache[struct{}](a.Store, store.CacheOptions[bool]{Topics: []string{files}}), Ended: func(bool) {}, Uploaded: func(bool) {},
		failed: map[int64]failedUpload{}}
}

// Run works until ctx ends. It returns at once if there is no directory.
func (r *Runner) Run(ctx context.Context) {
	if optionsOf(r.api).Dir == "" {
		return
	}
	r.api.Store.Work(ctx, pollInterval, r.log, files, r.runOnce, r.lease)
}

// recoverFiles renames files that are listed but were not renamed, for example because the manager was killed. It removes incomplete files
// that are not listed. The lease ensures that no other manager is making files.
func (r *Runner) recoverFiles(ctx context.Context) error {
	left, err := os.ReadDir(optionsOf(r.api).Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, file := range left {
		begun, is := strings.CutSuffix(file.Name(), unfinished)
		if !is {
			continue
		}
		path, name, listed := filepath.Join(optionsOf(r.api).Dir, file.Name()), begun+suffix, false
		if err := r.api.Store.View(ctx, func(tx *store.Tx) (err error) {
			listed, err = tx.Exists(store.Query{From: store.Resources, Where: store.All{store.InCollection(files),
				store.Compare{Field: store.Field{Kind: store.ColumnText, Path: []string{"name"}}, Op: "eq", Value: name}}})
			return err
		}); err != nil {
			return err
		}
		if listed {
			err = errors.Join(err, os.Rename(path, filepath.Join(optionsOf(r.api).Dir, name)))
		} else {
			err = errors.Join(err, os.Remove(path))
		}
	}
	return err
}

// placeFile is a file in the directory for backups with an identifier of the directory.
const placeFile = ".place"

// readPlace returns the identifier of the directory for backups. It creates the directory and the identifier if they are missing.
func (o Options) readPlace() (string, error) {
	dir := o.Dir
	o.place.Lock()
	defer o.place.Unlock()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	path := filepath.Join(dir, placeFile)
	text, err := os.ReadFile(path) //nolint:gosec // the manager's own
	if errors.Is(err, fs.ErrNotExist) {
		text = []byte(rand.Text())
		err = os.WriteFile(path, text, 0o600)
	}
	return string(text), err
}

// runOnce does all pending work.
func (r *Runner) runOnce(ctx context.Context) error {
	due, err := r.clock.IsDue(ctx)
	if err != nil {
		return err
	}
	if idle, known := r.idle.Now(struct{}{}); known && idle && !due {
		return nil
	}
	if err := r.removeDeleted(ctx); err != nil {
		return err
	}
	if err := r.saveSentFiles(ctx); err != nil {
		return err
	}
	if held, err := r.lease.Acquire(ctx); err != nil || !held {
		return err
	}
	defer r.lease.Keep(ctx, r.log)()
	if !r.isRecovered {
		err := r.recoverFiles(ctx)
		if r.isRecovered = err == nil; err != nil && ctx.Err() == nil { // a request for a backup reports it as well
			r.log.Warn("backup directory not readable", "reason", err)
		}
	}
	if due {
		if err := r.lease.Update(ctx, store.Author{}, func(tx *store.Tx) error {
			return r.clock.Turn(&resource.Change{Tx: tx, API: r.api}, func(row *store.Resource, _ timetable.Schedule) error {
				return requestBackup(tx, row.ID)
			})
		}); err != nil {
			return err
		}
	}
	asked, err := r.pendingSchedules(ctx)
	for schedule, times := range asked {
		if err == nil {
			err = r.makeBackup(ctx, schedule, times)
		}
	}
	if err != nil {
		return err
	}
	return r.uploadPending(ctx)
}

// pendingSchedules returns the schedules with a requested backup, and the number of requests of each. It remembers if there are none, and
// no files to remove, to save or to upload.
func (r *Runner) pendingSchedules(ctx context.Context) (ids map[int64]int64, err error) {
	place, err := optionsOf(r.api).readPlace()
	if err != nil { // a request for a backup reports it
		place = ""
	}
	err = r.api.Store.View(ctx, func(tx *store.Tx) error {
		ids = map[int64]int64{}
		left := 0
		if err := tx.QueryRow("SELECT (SELECT count(*) FROM backup_gone WHERE place = ?) + (SELECT count(*) FROM backup_sent WHERE place = ?) + "+
			"(SELECT count(*) FROM backup_remote WHERE place = ? AND pending = 1)", place, place, place).Scan(&left); err != nil {
			return err
		}
		if err := tx.Each(func(scan func(...any) error) error {
			var id, times int64
			err := scan(&id, &times)
			ids[id] = times
			return err
		}, "SELECT schedule, asked FROM backup_due"); err != nil {
			return err
		}
		if len(ids) == 0 && left == 0 {
			r.idle.Put(tx, struct{}{}, true)
		}
		return nil
	})
	return ids, err
}

// removeDeleted removes files of this machine whose backup was deleted.
func (r *Runner) removeDeleted(ctx context.Context) error {
	var names []string
	place, err := optionsOf(r.api).readPlace()
	if err != nil {
		return nil //nolint:nilerr // a directory that cannot be created has no files; a request for a backup reports the error
	}
	if err := r.api.Store.View(ctx, func(tx *store.Tx) error {
		names = nil
		return tx.Each(func(scan func(...any) error) error {
			var name string
			err := scan(&name)
			names = append(names, name)
			return err
		}, "SELECT name FROM backup_gone WHERE place = ?", place)
	}); err != nil || len(names) == 0 {
		return err
	}
	names = slices.DeleteFunc(names, func(name string) bool {
		err := os.Remove(filepath.Join(optionsOf(r.api).Dir, name))
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			return false
		}
		if !slices.Contains(r.reported, name) { // it is retried, and logged once
			r.reported = append(r.reported, name)
			r.log.Warn("deleted backup file not removed", "file", name, "reason", err)
		}
		return true
	})
	if len(names) == 0 {
		return nil
	}
	return r.api.Store.UpdateIn(ctx, store.ExtensionScope(), store.Author{}, func(tx *store.Tx) error {
		tx.Touch(files)
		for _, name := range names {
			if err := tx.Write("DELETE FROM backup_gone WHERE place = ? AND name = ?", place, name); err != nil {
				return err
			}
		}
		return nil
	})
}

// makeBackup makes a backup by a schedule and deletes the given number of requests. If the backup fails, the requests are deleted as well,
// and an event reports it.
func (r *Runner) makeBackup(ctx context.Context, schedule, asked int64) error {
	var x *DatabaseBackupSchedule
	if err := r.api.Store.View(ctx, func(tx *store.Tx) error {
		x = nil
		row, err := tx.Get(schedule)
		if store.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		o, err := r.api.Object(row)
		x, _ = o.(*DatabaseBackupSchedule)
		return err
	}); err != nil {
		return err
	}
	var made *DatabaseBackupFile
	var failure error
	if x != nil {
		r.isRecovered = false // the file is renamed after it is listed
		made, failure = r.writeFile(ctx, x)
		if ctx.Err() != nil { // the next manager makes it
			return ctx.Err()
		}
		r.Ended(failure == nil)
	}
	if failure != nil {
		r.log.Error("backup failed", "schedule", x.Name, "error", failure)
	}
	err := r.lease.Update(ctx, store.Author{}, func(tx *store.Tx) error {
		tx.Touch(files)
		if err := tx.Write("DELETE FROM backup_due WHERE schedule = ? AND asked = ?", schedule, asked); err != nil || x == nil {
			return err
		}
		if _, err := tx.Head(schedule); store.IsNotFound(err) { // deleted in the meantime: the file is not needed
			return nil
		} else if err != nil {
			return err
		}
		if failure != nil {
			return event.Add(tx, event.Event{EventType: "FAILED", Category: "DATABASE_MAINTENANCE", SourceName: x.Name,
				Message: fmt.Sprintf("The backup by the schedule %s failed: %v", x.Name, failure)}, schedule)
		}
		return r.saveBackup(&resource.Change{Tx: tx, API: r.api}, x, *made)
	})
	if made == nil || failure != nil {
		return err
	}
	if err == nil {
		err = r.recoverFiles(ctx)
		r.isRecovered = err == nil
	}
	return err
}

// writeFile writes a backup under a temporary name. It is renamed after it is listed.
func (r *Runner) writeFile(ctx context.Context, x *DatabaseBackupSchedule) (*DatabaseBackupFile, error) {
	place, err := optionsOf(r.api).readPlace()
	if err != nil {
		return nil, err
	}
	dir, now := optionsOf(r.api).Dir, r.api.Store.Now()
	name := x.prefix() + "-" + now.UTC().Format("20060102T150405.000Z")
	path := filepath.Join(dir, name+unfinished)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // as above
	if err != nil {
		return nil, err
	}
	err = r.write(ctx, f)
	if err == nil {
		err = f.Sync()
	}
	size, seeking := f.Seek(0, io.SeekCurrent)
	if err = cmp.Or(err, seeking, f.Close()); err == nil {
		err = syncDir(dir)
	}
	if err != nil {
		return nil, errors.Join(err, os.Remove(path))
	}
	made := &DatabaseBackupFile{Size: size, ModificationDateTime: now, Host: r.api.Manager.Hostname, Place: place,
		Schedule: schema.Ref{ID: x.ID}}
	made.Type, made.Name, made.Parent = "DatabaseBackupFile", name+suffix, x.Parent
	return made, nil
}

// syncDir writes the names in a directory to disk.
func syncDir(dir string) error {
	d, err := os.Open(dir) //nolint:gosec // the manager's own
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// saveBackup lists a new file, and deletes the oldest files of its schedule.
func (r *Runner) saveBackup(c *resource.Change, x *DatabaseBackupSchedule, made DatabaseBackupFile) error {
	if _, err := c.Following().Create(c.API.TypeNamed(made.Type), &made); err != nil {
		return err
	}
	var there []*store.Resource
	if err := r.eachFile(c.Tx, x.ID, func(row *store.Resource, _ *DatabaseBackupFile) error {
		there = append(there, row)
		return nil
	}); err != nil {
		return err
	}
	for i := 0; i < len(there)-int(x.MaxFileCount); i++ {
		if err := c.Following().Delete(there[i]); err != nil {
			return err
		}
	}
	if x.RemoteBackupsEnabled {
		if err := requestUpload(c.Tx, x.ID, made.Place); err != nil {
			return err
		}
	}
	return event.Add(c.Tx, event.Event{EventType: "SUCCESS", Category: "DATABASE_MAINTENANCE", SourceName: x.Name,
		Message: fmt.Sprintf("The backup %s was created on %s: %d bytes", made.Name, made.Host, made.Size)}, x.ID)
}
