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

// Times of the work on backups.
const (
	lookEvery   = time.Second
	leaseLength = 10 * time.Second
)

// suffix ends the names of backup files, unfinished those that are not whole yet.
const (
	suffix     = ".portolan"
	unfinished = archive.Unfinished
)

// Runner makes backups: of all managers of a database one at a time.
type Runner struct {
	api   *resource.API
	log   *slog.Logger
	lease *store.Lease
	clock *timetable.Clock
	// idle is remembered where nothing is to be done.
	idle *store.Cache[struct{}, bool]
	// write writes a backup.
	write func(ctx context.Context, w io.Writer) error
	// Ended is told of each backup that was tried.
	Ended func(whole bool)
	// Uploaded is told of each attempt to upload the backups of a schedule to another machine.
	Uploaded func(whole bool)

	// What follows is Run's own: whether what was left in the directory was seen to, and the files that cannot be removed.
	settled bool
	stuck   []string
	// sentAgain is before when no backup that was sent is made a file, as the last one could not be.
	sentAgain time.Time
	// failed are the last uploads by schedules, where they have failed.
	failed map[int64]failedUpload
}

// NewRunner makes what makes backups, as files in the manager's directory for them. Run runs it.
func NewRunner(a *resource.API, write func(ctx context.Context, w io.Writer) error, log *slog.Logger) *Runner {
	return &Runner{api: a, log: log, write: write, lease: a.Store.NewLease(files, leaseLength), clock: timetable.NewClock(a, schedules),
		idle: store.NewCache[struct{}](a.Store, store.CacheOptions[bool]{Topics: []string{files}}), Ended: func(bool) {}, Uploaded: func(bool) {},
		failed: map[int64]failedUpload{}}
}

// Run works until ctx ends. Without a directory there is nothing to do.
func (r *Runner) Run(ctx context.Context) {
	if optionsOf(r.api).Dir == "" {
		return
	}
	r.api.Store.Work(ctx, lookEvery, r.log, files, r.look, r.lease)
}

// settle gives files their names that are listed and were not renamed, as where the manager was killed, and removes what is not listed of
// those that were begun. Nobody else makes any meanwhile: the lease is held.
func (r *Runner) settle(ctx context.Context) error {
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

// placeFile names the file of the directory for backups that says which directory it is.
const placeFile = ".place"

// placeOf returns the name of the directory for backups, which is made where it is missing.
func (o Options) placeOf() (string, error) {
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

// look does what there is to do.
func (r *Runner) look(ctx context.Context) error {
	due, err := r.clock.Due(ctx)
	if err != nil {
		return err
	}
	if idle, known := r.idle.Now(struct{}{}); known && idle && !due {
		return nil
	}
	if err := r.takeAway(ctx); err != nil {
		return err
	}
	if err := r.keepSent(ctx); err != nil {
		return err
	}
	if held, err := r.lease.Take(ctx); err != nil || !held {
		return err
	}
	defer r.lease.Keep(ctx, r.log)()
	if !r.settled {
		err := r.settle(ctx)
		if r.settled = err == nil; err != nil && ctx.Err() == nil { // whoever wants a backup is told
			r.log.Warn("the directory for backups cannot be looked at", "reason", err)
		}
	}
	if due {
		if err := r.lease.Update(ctx, store.Author{}, func(tx *store.Tx) error {
			return r.clock.Turn(&resource.Change{Tx: tx, API: r.api}, func(row *store.Resource, _ timetable.Schedule) error {
				return ask(tx, row.ID)
			})
		}); err != nil {
			return err
		}
	}
	asked, err := r.asked(ctx)
	for schedule, times := range asked {
		if err == nil {
			err = r.make(ctx, schedule, times)
		}
	}
	if err != nil {
		return err
	}
	return r.uploadDue(ctx)
}

// asked gives the schedules by which a backup is to be made now, with how often that was asked, and remembers where there are none, nor
// files to take away, to write or to upload.
func (r *Runner) asked(ctx context.Context) (ids map[int64]int64, err error) {
	place, err := optionsOf(r.api).placeOf()
	if err != nil { // whoever wants a backup is told
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

// takeAway removes the files of this machine that were deleted.
func (r *Runner) takeAway(ctx context.Context) error {
	var names []string
	place, err := optionsOf(r.api).placeOf()
	if err != nil {
		return nil //nolint:nilerr // a directory that cannot be made has no files; whoever wants a backup is told
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
		if !slices.Contains(r.stuck, name) { // it is tried again, and said once
			r.stuck = append(r.stuck, name)
			r.log.Warn("a backup file that was deleted cannot be removed", "file", name, "reason", err)
		}
		return true
	})
	if len(names) == 0 {
		return nil
	}
	return r.api.Store.UpdateIn(ctx, store.OwnTables(), store.Author{}, func(tx *store.Tx) error {
		tx.Touch(files)
		for _, name := range names {
			if err := tx.Write("DELETE FROM backup_gone WHERE place = ? AND name = ?", place, name); err != nil {
				return err
			}
		}
		return nil
	})
}

// make makes a backup by a schedule, and forgets that it was asked for, so many times, also where it could not be made: that is an event.
func (r *Runner) make(ctx context.Context, schedule, asked int64) error {
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
		r.settled = false // a file has its name once it is listed
		made, failure = r.writeFile(ctx, x)
		if ctx.Err() != nil { // the next manager makes it
			return ctx.Err()
		}
		r.Ended(failure == nil)
	}
	if failure != nil {
		r.log.Error("a backup could not be made", "schedule", x.Name, "error", failure)
	}
	err := r.lease.Update(ctx, store.Author{}, func(tx *store.Tx) error {
		tx.Touch(files)
		if err := tx.Write("DELETE FROM backup_due WHERE schedule = ? AND asked = ?", schedule, asked); err != nil || x == nil {
			return err
		}
		if _, err := tx.Head(schedule); store.IsNotFound(err) { // it was deleted meanwhile: nobody wants the file
			return nil
		} else if err != nil {
			return err
		}
		if failure != nil {
			return event.Add(tx, event.Event{EventType: "FAILED", Category: "DATABASE_MAINTENANCE", SourceName: x.Name,
				Message: fmt.Sprintf("The backup by the schedule %s could not be made: %v", x.Name, failure)}, schedule)
		}
		return r.note(&resource.Change{Tx: tx, API: r.api}, x, *made)
	})
	if made == nil || failure != nil {
		return err
	}
	if err == nil {
		err = r.settle(ctx)
		r.settled = err == nil
	}
	return err
}

// writeFile writes a backup, on the disk by another name than the one that it has once it is listed.
func (r *Runner) writeFile(ctx context.Context, x *DatabaseBackupSchedule) (*DatabaseBackupFile, error) {
	place, err := optionsOf(r.api).placeOf()
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

// syncDir has the names in a directory on the disk.
func syncDir(dir string) error {
	d, err := os.Open(dir) //nolint:gosec // the manager's own
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// note lists a file that was made, and lets the oldest ones of its schedule go.
func (r *Runner) note(c *resource.Change, x *DatabaseBackupSchedule, made DatabaseBackupFile) error {
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
		if err := wantUpload(c.Tx, x.ID, made.Place); err != nil {
			return err
		}
	}
	return event.Add(c.Tx, event.Event{EventType: "SUCCESS", Category: "DATABASE_MAINTENANCE", SourceName: x.Name,
		Message: fmt.Sprintf("The backup %s was made on %s: %d bytes", made.Name, made.Host, made.Size)}, x.ID)
}
