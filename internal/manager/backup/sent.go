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

// sentTo is the name and place of a received backup. checkSent determines them outside of a transaction, because a directory may hang.
type sentTo struct {
	name, place string
}

// checkSent rejects a received file unless it is a complete backup that this version of portolan can restore. It returns a sentTo.
func checkSent(ctx context.Context, c *resource.Content, a *resource.API) (any, error) {
	options := optionsOf(a)
	dir := options.Dir
	switch {
	case dir == "":
		return nil, problem.Conflict("ResourceConflictsWithOther", "the manager on %s has no backup directory (--backup-dir)",
			a.Manager.Hostname)
	case !sentName.MatchString(c.Name):
		return nil, problem.Invalid("fileData", "%q is not a valid backup name: use at most 100 letters, digits, "+
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
	if to.place, err = options.readPlace(); err != nil {
		return nil, err
	}
	if _, err := os.Lstat(filepath.Join(dir, sentFolder, to.name)); err == nil {
		return nil, errExists(to.name)
	}
	return to, nil
}

// errExists returns the error for a name that a backup already has.
func errExists(name string) error {
	return problem.Conflict("ResourceAlreadyExists", "fileData: backup %s already exists, or its deletion is not finished", name)
}

// sentName matches the allowed names of received backups.
var sentName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)

// sentFolder is the folder for received backups in the directory for backups. It is separate, because they are not of this database:
// portolan rehearse must not use one as the newest backup.
const sentFolder = "sent"

// relativePath returns the path of the file in the directory for backups.
func (x *DatabaseBackupFile) relativePath() string {
	if x.Sent {
		return filepath.Join(sentFolder, x.Name)
	}
	return x.Name
}

// BeforeWrite sets the fields of a received backup. Its name gets the suffix of backups.
func (x *DatabaseBackupFile) BeforeWrite(c *resource.Change) error {
	if !c.IsRequested() || !c.IsCreation() {
		return nil
	}
	if c.Content == nil {
		return problem.Missing("fileData")
	}
	to, ok := c.Content.Checked.(sentTo)
	if !ok {
		return errors.New("the uploaded backup was not checked")
	}
	x.Name, x.Place = to.name, to.place
	x.Sent, x.Size, x.ModificationDateTime, x.Host = true, c.Content.Size, c.Tx.Now(), c.API.Manager.Hostname
	found, err := c.Tx.ByName(files, x.Parent, x.Name)
	if err != nil {
		return err
	}
	var going bool
	if err := c.Tx.QueryRow("SELECT EXISTS (SELECT 1 FROM backup_gone WHERE place = ? AND name = ?)", x.Place, x.relativePath()).
		Scan(&going); err != nil {
		return err
	}
	if len(found) > 0 || going {
		return errExists(x.Name)
	}
	return nil
}

// AfterWrite stores the received data in the database. The runner saves it as a file after the commit.
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

// sentRetryInterval is the time between attempts to save a received backup as a file after one has failed.
const sentRetryInterval = time.Minute

// saveSentFiles saves the backups received by this manager as files in its directory. A manager that was killed meanwhile starts again.
// Failures are reported and retried later, so that they do not block other work.
func (r *Runner) saveSentFiles(ctx context.Context) error {
	place, err := optionsOf(r.api).readPlace()
	if err != nil || time.Now().Before(r.retrySentAt) {
		return nil //nolint:nilerr // as in removeDeleted
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
	r.removePartialFiles()
	for _, id := range ids {
		if err := r.saveSentFile(ctx, id); err != nil && ctx.Err() == nil {
			r.retrySentAt = time.Now().Add(sentRetryInterval)
			if err := r.reportNotSaved(ctx, id, err); err != nil {
				return err
			}
		}
	}
	return nil
}

// reportNotSaved reports once that a received backup cannot be saved as a file.
func (r *Runner) reportNotSaved(ctx context.Context, id int64, reason error) error {
	name := filepath.Join(sentFolder, strconv.FormatInt(id, 10))
	if slices.Contains(r.reported, name) {
		return nil
	}
	r.reported = append(r.reported, name)
	r.log.Error("sent backup not saved as a file", "id", id, "error", reason)
	return r.api.Store.Update(ctx, store.Author{}, func(tx *store.Tx) error {
		return event.Add(tx, event.Event{EventType: "FAILED", Category: "DATABASE_MAINTENANCE", SourceName: name,
			Message: fmt.Sprintf("A backup that was uploaded to %s could not be saved as a file and will be retried: %v", r.api.Manager.Hostname,
				reason)}, id)
	})
}

// partialPattern is the pattern (filepath.Match) of the names of files being written. The names are hidden, so that these files are not
// treated as backups.
const partialPattern = ".sent-*"

// removePartialFiles removes files that a killed manager has left incomplete. If another manager of the same directory was writing one, it
// writes it again.
func (r *Runner) removePartialFiles() {
	left, err := filepath.Glob(filepath.Join(optionsOf(r.api).Dir, sentFolder, partialPattern))
	for _, path := range left {
		err = errors.Join(err, os.Remove(path))
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.log.Warn("backup directory not readable", "reason", err)
	}
}

// saveSentFile saves a received backup as a file. It does nothing if the backup was deleted meanwhile.
func (r *Runner) saveSentFile(ctx context.Context, id int64) error {
	if err := os.MkdirAll(filepath.Join(optionsOf(r.api).Dir, sentFolder), 0o700); err != nil {
		return err
	}
	begun := filepath.Join(optionsOf(r.api).Dir, sentFolder, strings.ReplaceAll(partialPattern, "*", rand.Text()))
	x, err := r.writeSent(ctx, id, begun)
	if err == nil && x != nil {
		err = os.Rename(begun, filepath.Join(optionsOf(r.api).Dir, x.relativePath()))
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
		if err != nil || n == 0 { // it was deleted and its file will be removed, or another manager has reported it
			return err
		}
		return event.Add(tx, event.Event{EventType: "SUCCESS", Category: "DATABASE_MAINTENANCE", SourceName: x.Name,
			Message: fmt.Sprintf("The backup %s was uploaded to %s: %d bytes", x.Name, r.api.Manager.Hostname, x.Size)}, id)
	})
}

// writeSent writes a received backup to a file, from one snapshot, and syncs it. It returns nil if the backup no longer exists.
func (r *Runner) writeSent(ctx context.Context, id int64, path string) (x *DatabaseBackupFile, err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // in the manager's own directory
	if err != nil {
		return nil, err
	}
	err = r.api.Store.View(ctx, func(tx *store.Tx) error {
		x = nil
		if err := errors.Join(f.Truncate(0), seekStart(f)); err != nil { // if the transaction is repeated
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
		if one, ok := o.(*DatabaseBackupFile); ok && one.Size == size { // otherwise another manager has saved it
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
