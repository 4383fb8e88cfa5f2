package backup

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"portolan/internal/base/problem"
	"portolan/internal/engine/event"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
	"portolan/internal/engine/store/archive"
)

// sentTo is where a backup that was sent goes: what check has found out without a transaction, as a directory may hang.
type sentTo struct {
	name, place string
}

// check refuses what is sent and is no whole backup that this portolan can restore, and finds where it goes.
func check(ctx context.Context, c *resource.Content, a *resource.API) (any, error) {
	options := optionsOf(a)
	dir := options.Dir
	switch {
	case dir == "":
		return nil, problem.Conflict("ResourceConflictsWithOther", "the manager on %s has no directory for backups (--backup-dir)",
			a.Manager.Hostname)
	case !plainName.MatchString(c.Name):
		return nil, problem.Invalid("fileData", "%q is no name for a backup: send the file by a name of at most 100 letters, digits, "+
			"dots, dashes and underscores", c.Name)
	}
	select {
	case options.verify <- struct{}{}:
		defer func() { <-options.verify }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if _, err := c.File.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	_, err := archive.Verify(ctx, a.Store.Layout(), c.File)
	if err != nil && ctx.Err() == nil {
		return nil, problem.Invalid("fileData", "%v", err)
	}
	if err != nil {
		return nil, err
	}
	to := sentTo{name: strings.TrimSuffix(c.Name, suffix) + suffix}
	if to.place, err = options.placeOf(); err != nil {
		return nil, err
	}
	if _, err := os.Lstat(filepath.Join(dir, sentFolder, to.name)); err == nil {
		return nil, there(to.name)
	}
	return to, nil
}

// there refuses a name that a backup has.
func there(name string) error {
	return problem.Conflict("ResourceAlreadyExists", "fileData: there is a backup %s already, or one that was deleted is being removed", name)
}

// plainName is what the file of a backup that is sent may be called.
var plainName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)

// sentFolder is the folder for what was sent, in the directory for backups: its files are not of this database, and portolan rehearse of
// the directory is not to take one for its newest backup.
const sentFolder = "sent"

// file is the path of the file in the directory for backups.
func (x *DatabaseBackupFile) file() string {
	if x.Sent {
		return filepath.Join(sentFolder, x.Name)
	}
	return x.Name
}

// BeforeWrite takes the file that was sent: it gets a name that ends as those of all backups.
func (x *DatabaseBackupFile) BeforeWrite(c *resource.Change) error {
	if !c.Requested() || !c.Creates() {
		return nil
	}
	if c.Content == nil {
		return problem.Missing("fileData")
	}
	to, ok := c.Content.Checked.(sentTo)
	if !ok {
		return errors.New("a backup was sent that nobody has looked at")
	}
	x.Name, x.Place = to.name, to.place
	x.Sent, x.Size, x.ModificationDateTime, x.Host = true, c.Content.Size, c.Tx.Now(), c.API.Manager.Hostname
	found, err := c.Tx.ByName(files, x.Parent, x.Name)
	if err != nil {
		return err
	}
	var going bool
	if err := c.Tx.QueryRow("SELECT EXISTS (SELECT 1 FROM backup_gone WHERE place = ? AND name = ?)", x.Place, x.file()).
		Scan(&going); err != nil {
		return err
	}
	if len(found) > 0 || going {
		return there(x.Name)
	}
	return nil
}

// AfterWrite keeps what was sent until it is a file, which it becomes once that is committed.
func (x *DatabaseBackupFile) AfterWrite(c *resource.Change) error {
	if c.Content == nil {
		return nil
	}
	c.Tx.Touch(files)
	number := 0
	return c.Content.Parts(partSize, func(part []byte) error {
		number++
		return c.Tx.Write("INSERT INTO backup_sent (file, number, place, data) VALUES (?, ?, ?, ?)", x.ID, number, x.Place, part)
	})
}

// againAfter is how long after a backup that was sent could not be kept as a file it is tried again.
const againAfter = time.Minute

// keepSent makes what was sent to this manager files of its directory. One that is killed meanwhile does it anew. What cannot be kept is
// said, and tried again later: it holds up nothing else.
func (r *Runner) keepSent(ctx context.Context) error {
	place, err := optionsOf(r.api).placeOf()
	if err != nil || time.Now().Before(r.sentAgain) {
		return nil //nolint:nilerr // as for what is taken away
	}
	var ids []int64
	if err := r.api.Store.View(ctx, func(tx *store.Tx) (err error) {
		ids = nil
		return tx.Each(func(scan func(...any) error) error {
			var id int64
			err := scan(&id)
			ids = append(ids, id)
			return err
		}, "SELECT DISTINCT file FROM backup_sent WHERE place = ?", place)
	}); err != nil || len(ids) == 0 {
		return err
	}
	r.sweepSent()
	for _, id := range ids {
		if err := r.keepOne(ctx, id); err != nil && ctx.Err() == nil {
			r.sentAgain = time.Now().Add(againAfter)
			if err := r.notKept(ctx, id, err); err != nil {
				return err
			}
		}
	}
	return nil
}

// notKept says of a backup that was sent that it cannot be kept as a file, once.
func (r *Runner) notKept(ctx context.Context, id int64, reason error) error {
	name := filepath.Join(sentFolder, strconv.FormatInt(id, 10))
	if slices.Contains(r.stuck, name) {
		return nil
	}
	r.stuck = append(r.stuck, name)
	r.log.Error("a backup that was sent cannot be kept as a file", "id", id, "error", reason)
	return r.api.Store.Update(ctx, store.Author{}, func(tx *store.Tx) error {
		return event.Add(tx, event.Event{EventType: "FAILED", Category: "DATABASE_MAINTENANCE", SourceName: name,
			Message: fmt.Sprintf("A backup that was sent to %s cannot be kept as a file, and is tried again: %v", r.api.Manager.Hostname,
				reason)}, id)
	})
}

// begunSent is what files are called that are being written, in the pattern of filepath.Match: hidden, and not for backups to be found.
const begunSent = ".sent-*"

// sweepSent removes what is left of those that were being written when a manager was killed. Another manager of the same directory whose
// file goes writes it anew.
func (r *Runner) sweepSent() {
	left, err := filepath.Glob(filepath.Join(optionsOf(r.api).Dir, sentFolder, begunSent))
	for _, path := range left {
		err = errors.Join(err, os.Remove(path))
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.log.Warn("the directory for backups cannot be looked at", "reason", err)
	}
}

// keepOne makes a backup that was sent a file. Where it was deleted meanwhile there is nothing to keep.
func (r *Runner) keepOne(ctx context.Context, id int64) error {
	if err := os.MkdirAll(filepath.Join(optionsOf(r.api).Dir, sentFolder), 0o700); err != nil {
		return err
	}
	begun := filepath.Join(optionsOf(r.api).Dir, sentFolder, strings.ReplaceAll(begunSent, "*", rand.Text()))
	x, err := r.writeSent(ctx, id, begun)
	if err == nil && x != nil {
		err = os.Rename(begun, filepath.Join(optionsOf(r.api).Dir, x.file()))
	}
	if err != nil || x == nil {
		return errors.Join(err, os.RemoveAll(begun))
	}
	if err := syncDir(filepath.Dir(begun)); err != nil {
		return err
	}
	return r.api.Store.Update(ctx, store.Author{}, func(tx *store.Tx) error {
		tx.Touch(files)
		n, err := tx.Exec("DELETE FROM backup_sent WHERE file = ?", id)
		if err != nil || n == 0 { // it was deleted, and its file is about to go; or another manager has told of it
			return err
		}
		return event.Add(tx, event.Event{EventType: "SUCCESS", Category: "DATABASE_MAINTENANCE", SourceName: x.Name,
			Message: fmt.Sprintf("The backup %s was sent to %s: %d bytes", x.Name, r.api.Manager.Hostname, x.Size)}, id)
	})
}

// writeSent writes what was sent into a file, out of one snapshot, and has it on the disk; nil where there is nothing any more.
func (r *Runner) writeSent(ctx context.Context, id int64, path string) (x *DatabaseBackupFile, err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // in the manager's own directory
	if err != nil {
		return nil, err
	}
	err = r.api.Store.View(ctx, func(tx *store.Tx) error {
		x = nil
		if err := errors.Join(f.Truncate(0), seekStart(f)); err != nil { // where it is done again
			return err
		}
		row, err := tx.Get(id)
		if store.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		o, err := r.api.Object(row)
		if err != nil {
			return err
		}
		size := int64(0)
		for number := 1; ; number++ {
			var part []byte
			err := tx.QueryRow("SELECT data FROM backup_sent WHERE file = ? AND number = ?", id, number).Scan(&part)
			if errors.Is(err, sql.ErrNoRows) {
				break
			}
			if err != nil {
				return err
			}
			n, err := f.Write(part)
			if size += int64(n); err != nil {
				return err
			}
		}
		if one, ok := o.(*DatabaseBackupFile); ok && one.Size == size { // else another manager has made it a file
			x = one
		}
		return nil
	})
	if err == nil && x != nil {
		err = f.Sync()
	}
	return x, errors.Join(err, f.Close())
}

func seekStart(f *os.File) error {
	_, err := f.Seek(0, io.SeekStart)
	return err
}
