package backup

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"portolan/internal/event"
	"portolan/internal/problem"
	"portolan/internal/resource"
	"portolan/internal/store"
	"portolan/internal/store/archive"
)

// check refuses what is sent and is no whole backup that this portolan can restore.
func check(c *resource.Content, a *resource.API) error {
	if _, err := c.File.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if _, err := archive.Verify(a.Store.Layout(), c.File); err != nil {
		return problem.Invalid("fileData", "%v", err)
	}
	return nil
}

// plainName is what the file of a backup that is sent may be called.
var plainName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)

// BeforeWrite takes the file that was sent: it gets a name that ends as those of all backups.
func (x *DatabaseBackupFile) BeforeWrite(c *resource.Change) (err error) {
	if !c.Requested() || !c.Creates() {
		return nil
	}
	dir := c.API.Manager.Backups
	switch {
	case c.Content == nil:
		return problem.Missing("fileData")
	case dir == "":
		return problem.Conflict("ResourceConflictsWithOther", "the manager on %s has no directory for backups (--backup-dir)",
			c.API.Manager.Hostname)
	case !plainName.MatchString(c.Content.Name):
		return problem.Invalid("fileData", "%q is no name for a backup: send the file by a name of at most 100 letters, digits, "+
			"dots, dashes and underscores", c.Content.Name)
	}
	x.Name = strings.TrimSuffix(c.Content.Name, suffix) + suffix
	found, err := c.Tx.ByName(files, x.Parent, x.Name)
	if err != nil {
		return err
	}
	_, there := os.Lstat(filepath.Join(dir, x.Name))
	if len(found) > 0 || !errors.Is(there, fs.ErrNotExist) {
		return problem.Conflict("ResourceAlreadyExists", "fileData: there is a backup %s already", x.Name)
	}
	x.Sent, x.Size, x.ModificationDateTime, x.Host = true, c.Content.Size, c.Tx.Now(), c.API.Manager.Hostname
	x.Place, err = placeOf(dir)
	return err
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
		return c.Tx.Write("INSERT INTO backup_sent (place, name, number, data) VALUES (?, ?, ?, ?)", x.Place, x.Name, number, part)
	})
}

// keepSent makes what was sent to this manager files of its directory. One that is killed meanwhile does it anew.
func (r *Runner) keepSent(ctx context.Context) error {
	place, err := r.known()
	if err != nil {
		return nil //nolint:nilerr // nothing was sent to a directory that cannot be made
	}
	var names []string
	if err := r.api.Store.View(ctx, func(tx *store.Tx) error {
		names = nil
		return tx.Each(func(scan func(...any) error) error {
			var name string
			err := scan(&name)
			names = append(names, name)
			return err
		}, "SELECT DISTINCT name FROM backup_sent WHERE place = ?", place)
	}); err != nil {
		return err
	}
	for _, name := range names {
		size, err := r.writeSent(ctx, place, name)
		if err != nil {
			return fmt.Errorf("a backup that was sent, %s, cannot be kept as a file: %w", name, err)
		}
		if err := r.api.Store.Update(ctx, store.Author{}, func(tx *store.Tx) error {
			tx.Touch(files)
			if err := tx.Write("DELETE FROM backup_sent WHERE place = ? AND name = ?", place, name); err != nil {
				return err
			}
			return event.Add(tx, event.Event{EventType: "SUCCESS", Category: "DATABASE_MAINTENANCE", SourceName: name,
				Message: fmt.Sprintf("The backup %s was sent to %s: %d bytes", name, r.api.Manager.Hostname, size)}, 0)
		}); err != nil {
			return err
		}
	}
	return nil
}

// writeSent writes the file of a backup that was sent, which has its name once it is whole and on the disk.
func (r *Runner) writeSent(ctx context.Context, place, name string) (size int64, err error) {
	path := filepath.Join(r.api.Manager.Backups, name)
	begun := filepath.Join(r.api.Manager.Backups, "."+name+".sent")         // a name that nobody takes for a backup
	f, err := os.OpenFile(begun, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600) //nolint:gosec // in the manager's own directory
	if err != nil {
		return 0, err
	}
	for number := 1; err == nil; number++ {
		var part []byte
		if err = r.api.Store.View(ctx, func(tx *store.Tx) error {
			err := tx.QueryRow("SELECT data FROM backup_sent WHERE place = ? AND name = ? AND number = ?", place, name, number).Scan(&part)
			if errors.Is(err, sql.ErrNoRows) {
				part, err = nil, nil
			}
			return err
		}); err != nil || part == nil {
			break
		}
		var n int
		n, err = f.Write(part)
		size += int64(n)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(begun, path)
	}
	if err == nil {
		err = syncDir(r.api.Manager.Backups)
	}
	if err != nil {
		return 0, errors.Join(err, os.RemoveAll(begun))
	}
	return size, nil
}
