package backup

import (
	"embed"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

//go:embed migrations/*/*.sql
var migrations embed.FS

// files is the name of the collection of backup files, and of the topic that is touched when the runner has work.
const files = "backups"

// registerFiles declares the collection of backup files, and the tables of pending work.
func registerFiles(r *resource.Registry) {
	r.Extension(&store.Extension{Name: files, Migrations: migrations, Tables: []store.Table{
		{Name: "backup_due", Columns: []string{"schedule", "asked"}, Key: 1, Derived: "a restored database owes no backup"},
		{Name: "backup_gone", Columns: []string{"place", "name"}, Key: 2, Derived: "describes files of one machine"},
		{Name: "backup_remote", Columns: []string{"schedule", "place", "pending", "made", "fault"}, Key: 2,
			Derived: "describes files of one machine"},
		{Name: "backup_sent", Columns: []string{"file", "number", "place", "data"}, Key: 2, Derived: "becomes a file of one machine"}}})
	r.Collection(resource.Collection{Name: files, Local: true, Hidden: true, Unlogged: true, NoSearch: true, Guard: resource.Administration,
		Content: resource.Contents{Types: []string{"DatabaseBackupFile"}, Check: checkSent, Open: openFile}}, &DatabaseBackupFile{})
	r.Collection(resource.Collection{Name: "logs"}, &DatabaseLog{})
}

// DatabaseBackupFile is a backup of the database: a file on the machine of the manager that made it or received it. portolan restore reads
// it. It is uploaded and downloaded unchanged (multipart/form-data, application/octet-stream).
type DatabaseBackupFile struct {
	schema.Head `head:"readOnly" parents:"databases"`
	// Size is the size of the file, in bytes.
	Size int64 `api:"size,readOnly"`
	// ModificationDateTime is the time at which it was made or received.
	ModificationDateTime time.Time `api:"modificationDateTime,readOnly"`
	// Host is the machine that has the file.
	Host string `api:"host,readOnly"`
	// Place identifies the directory that has the file.
	Place string `api:"place,readOnly"`
	// Sent means that a client uploaded it to the manager. It does not count as a backup of this database.
	Sent bool `api:"sent,readOnly"`
	// Schedule is the schedule that made it.
	Schedule schema.Ref `api:"schedule,hidden" ref:"DatabaseBackupSchedule" onDelete:"clear"`
}

// DatabaseLog is a log of the database. There are none: all messages are in the manager's log.
type DatabaseLog struct {
	schema.Head `head:"readOnly" parents:"databases" post:"no"`
	// Size is the size of the log, in bytes.
	Size *int64 `api:"size,readOnly"`
	// ModificationDateTime is the time of the last entry.
	ModificationDateTime time.Time `api:"modificationDateTime,readOnly"`
}

// BeforeDelete requests the removal of the file after the commit.
func (x *DatabaseBackupFile) BeforeDelete(c *resource.Change) error {
	c.Tx.Touch(files)
	if err := c.Tx.Write("DELETE FROM backup_sent WHERE file = ?", x.ID); err != nil {
		return err
	}
	return c.Tx.Write("INSERT INTO backup_gone (place, name) VALUES (?, ?) ON CONFLICT DO NOTHING", x.Place, x.relativePath())
}

// partSize is the number of bytes of a file that are read at a time.
const partSize = 1 << 20

// openFile returns the size of a backup file, and a function that reads its parts.
func openFile(row *store.Resource, a *resource.API) (size int64, part func(tx *store.Tx, number int) ([]byte, error), err error) {
	o, err := a.Object(row)
	if err != nil {
		return 0, nil, err
	}
	x := o.(*DatabaseBackupFile)
	// The file stays open until the last part was read, even if it is deleted meanwhile. The os package closes it when it is no longer
	// referenced.
	path := filepath.Join(optionsOf(a).Dir, x.relativePath())
	f, err := os.Open(path)             //nolint:gosec // in the manager's own directory
	if errors.Is(err, fs.ErrNotExist) { // a file is listed a moment before it is renamed
		f, err = os.Open(strings.TrimSuffix(path, suffix) + unfinished) //nolint:gosec // as above
	}
	if errors.Is(err, fs.ErrNotExist) {
		f, err = os.Open(path) //nolint:gosec // as above
	}
	if err != nil || optionsOf(a).Dir == "" {
		return 0, nil, problem.Conflict("ResourceConflictsWithOther",
			"the file %s of the manager on %s is not on %s: request it from that manager, "+
				"or copy it from its backup directory (--backup-dir); an uploaded file appears there after a moment",
			x.Name, x.Host, a.Manager.Hostname)
	}
	info, err := f.Stat()
	if err == nil && info.Size() != x.Size {
		return 0, nil, problem.Conflict("ResourceConflictsWithOther", "the file %s is damaged: it has %d bytes instead of %d",
			x.Name, info.Size(), x.Size)
	}
	if err != nil {
		return 0, nil, err
	}
	return info.Size(), func(_ *store.Tx, number int) ([]byte, error) { return readPart(f, int64(number-1)*partSize) }, nil
}

// readPart reads a part of a file from an offset; it returns nil after the end.
func readPart(f *os.File, from int64) ([]byte, error) {
	part := make([]byte, partSize)
	n, err := f.ReadAt(part, from)
	if n == 0 && errors.Is(err, io.EOF) {
		return nil, nil
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return part[:n], err
}
