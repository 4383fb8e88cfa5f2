package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"portolan/internal/base/plural"
	"portolan/internal/engine/store"
	"portolan/internal/engine/store/archive"
	"portolan/internal/manager/identity"
	"portolan/internal/manager/model"
)

type backupCommand struct {
	dataFlag
	File string `arg:"" help:"The file to write. It must not exist." type:"path"`
}

// Run writes a backup. The file gets its name when it is complete and on disk.
func (c *backupCommand) Run(s *session) error {
	return c.openAs(store.Options{ReadOnly: true}, func(st *store.Store, _ *identity.Service) error {
		if _, err := os.Stat(c.File); err == nil {
			return fmt.Errorf("%s already exists", c.File)
		}
		f, err := os.CreateTemp(filepath.Dir(c.File), filepath.Base(c.File)+".*"+archive.Unfinished)
		if err != nil {
			return err
		}
		defer func() { _ = os.Remove(f.Name()) }()
		sum, err := archive.Write(s.ctx, st, f, versionText(), s.rowCounter("written"))
		if err == nil {
			err = f.Sync()
		}
		if e := f.Close(); err == nil {
			err = e
		}
		if err == nil {
			err = os.Rename(f.Name(), c.File)
		}
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(s.stdout, "%s holds %s, as of %s\n", c.File, plural.Count(sum.Rows(), "row"), sum.Created.Format(time.RFC3339))
		return err
	})
}

type restoreCommand struct {
	target
	File string `arg:"" help:"The backup." type:"existingfile"`
}

// Run restores a backup into an empty target.
func (c *restoreCommand) Run(s *session) error {
	f, err := os.Open(c.File)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	o, err := c.options()
	if err != nil {
		return err
	}
	sum, err := archive.Restore(s.ctx, o, f, s.rowCounter("read"))
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(s.stdout, "restored %s, as of %s\n", plural.Count(sum.Rows(), "row"), sum.Created.Format(time.RFC3339))
	return err
}

// target is the new data directory or database of a restore.
type target struct {
	Data     string `help:"The new data directory." type:"path" placeholder:"DIR"`
	Database string `help:"The URL of an empty PostgreSQL database." placeholder:"postgres://..."`
}

// options returns the options of a store to restore into.
func (t target) options() (store.Options, error) {
	if (t.Data == "") == (t.Database == "") {
		return store.Options{}, usageError{errors.New("--data or --database is required")}
	}
	return store.Options{Layout: model.Layout(), Dir: t.Data, Database: t.Database, Exclusive: t.Data != ""}, nil
}

type migrateCommand struct {
	From string `help:"A data directory, or the URL of a PostgreSQL database. Stop all managers that use it first." required:"" placeholder:"DIR|URL"`
	To   string `help:"A new data directory, or the URL of an empty PostgreSQL database." required:"" placeholder:"DIR|URL"`
}

// Run copies everything from one database to another. An interrupted copy continues where it stopped.
func (c *migrateCommand) Run(s *session) error {
	var from dataFlag
	var to target
	from.Data, from.Database = splitLocation(c.From)
	to.Data, to.Database = splitLocation(c.To)
	o, err := to.options()
	if err != nil {
		return err
	}
	o.Filling = true
	return from.openAs(store.Options{Alone: true}, func(source *store.Store, _ *identity.Service) error {
		st, err := store.Open(o)
		if err != nil {
			return err
		}
		bar := s.bar("rows")
		counts, err := store.Carry(s.ctx, source, st, bar.show)
		bar.finish()
		if e := st.Close(); err == nil {
			err = e
		}
		if err != nil {
			return err
		}
		rows := int64(0)
		for _, n := range counts {
			rows += n
		}
		_, err = fmt.Fprintf(s.stdout, "migrated %s; counts and hash are the same on both sides\n", plural.Count(rows, "row"))
		return err
	})
}

// splitLocation returns a text as a database URL or as a directory.
func splitLocation(text string) (dir, url string) {
	if strings.HasPrefix(text, "postgres://") || strings.HasPrefix(text, "postgresql://") {
		return "", text
	}
	return text, ""
}
