package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"portolan/internal/archive"
	"portolan/internal/identity"
	"portolan/internal/store"
)

type backupCommand struct {
	dataFlag
	File string `arg:"" help:"The file to write; it must not be there yet." type:"path"`
}

// Run writes a backup. The file takes its name when it is whole and on disk.
func (c *backupCommand) Run(s *session) error {
	return c.open(func(st *store.Store, _ *identity.Service) error {
		if _, err := os.Stat(c.File); err == nil {
			return fmt.Errorf("%s is there already", c.File)
		}
		f, err := os.CreateTemp(filepath.Dir(c.File), filepath.Base(c.File)+".*")
		if err != nil {
			return err
		}
		defer func() { _ = os.Remove(f.Name()) }()
		sum, err := archive.Write(s.ctx, st, f, versionText(), s.progress("written"))
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
		_, err = fmt.Fprintf(s.stdout, "%s holds %d rows, as of %s\n", c.File, sum.Rows(), sum.Created.Format(time.RFC3339))
		return err
	})
}

type restoreCommand struct {
	target
	File string `arg:"" help:"The backup." type:"existingfile"`
}

// Run writes a backup into an empty target.
func (c *restoreCommand) Run(s *session) error {
	f, err := os.Open(c.File)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	return c.fill(func(st *store.Store) error {
		sum, err := archive.Read(s.ctx, st, f, s.progress("read"))
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(s.stdout, "restored %d rows, as of %s\n", sum.Rows(), sum.Created.Format(time.RFC3339))
		return err
	})
}

// target is where data is restored to.
type target struct {
	Data     string `help:"The new data directory." type:"path" placeholder:"DIR"`
	Database string `help:"The URL of an empty PostgreSQL database." placeholder:"postgres://..."`
}

func (t target) fill(fn func(*store.Store) error) error {
	if (t.Data == "") == (t.Database == "") {
		return usageError{errors.New("one of --data and --database is needed")}
	}
	st, err := store.Open(store.Options{Dir: t.Data, Database: t.Database, Exclusive: true})
	if err != nil {
		return err
	}
	err = fn(st)
	if e := st.Close(); err == nil {
		err = e
	}
	return err
}

type migrateCommand struct {
	From string `help:"A data directory, or the URL of a PostgreSQL. No manager may change it meanwhile: stop them." required:"" placeholder:"DIR|URL"`
	To   string `help:"A new data directory, or the URL of an empty PostgreSQL." required:"" placeholder:"DIR|URL"`
}

// Run carries everything from one database to another: what the backup writes, the restore reads.
func (c *migrateCommand) Run(s *session) error {
	var from dataFlag
	var to target
	from.Data, from.Database = place(c.From)
	to.Data, to.Database = place(c.To)
	return from.open(func(source *store.Store, _ *identity.Service) error {
		return to.fill(func(st *store.Store) error {
			ctx, cancel := context.WithCancel(s.ctx)
			defer cancel()
			r, w := io.Pipe()
			var written archive.Summary
			done := make(chan error, 1)
			go func() {
				var err error
				written, err = archive.Write(ctx, source, w, versionText(), func(int64) {})
				w.CloseWithError(err)
				done <- err
			}()
			read, err := archive.Read(ctx, st, r, s.progress("migrated"))
			_ = r.CloseWithError(err)
			if e := <-done; err == nil {
				err = e
			}
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(s.stdout, "migrated %d rows; counts and hash are the same on both sides (%d)\n", read.Rows(), written.Rows())
			return err
		})
	})
}

// place tells a URL from a directory.
func place(text string) (dir, url string) {
	if strings.HasPrefix(text, "postgres://") || strings.HasPrefix(text, "postgresql://") {
		return "", text
	}
	return text, ""
}

// progress prints how many rows it has come to, once a second at the most.
func (s *session) progress(word string) func(rows int64) {
	last := time.Now()
	return func(rows int64) {
		if time.Since(last) >= time.Second {
			last = time.Now()
			fmt.Fprintf(s.stderr, "%d rows %s\n", rows, word)
		}
	}
}
