package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"portolan/internal/base/plural"
	"portolan/internal/engine/store"
	"portolan/internal/engine/store/archive"
	"portolan/internal/manager/model"
)

type rehearseCommand struct {
	masterFlag
	Backup string        `arg:"" help:"The backup, or a directory: its newest backup is used." type:"path"`
	Dir    string        `help:"A directory with enough space for the restored data. Default: the system's directory for temporary files." type:"existingdir" placeholder:"DIR"`
	MaxAge time.Duration `help:"Fail if the backup is older than this, such as 26h. 0 accepts any age." name:"max-age" placeholder:"DURATION"`
}

// Run restores a backup into a temporary directory, checks the data, and deletes the directory.
func (c *rehearseCommand) Run(s *session) (err error) {
	if c.MaxAge < 0 {
		return usageError{fmt.Errorf("--max-age: %s is negative", c.MaxAge)}
	}
	if _, err := c.keys(); err != nil { // before the restore, which may take long
		return usageError{err}
	}
	// SIGHUP, unless it is ignored (nohup), and SIGPIPE end the command after it has deleted the directory.
	ends := []os.Signal{syscall.SIGPIPE}
	if !signal.Ignored(syscall.SIGHUP) {
		ends = append(ends, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(s.ctx, ends...)
	defer stop()
	s.ctx = ctx
	name, passed, err := archive.Newest(c.Backup)
	for _, one := range passed {
		fmt.Fprintln(s.stderr, "passed over:", one)
	}
	if err != nil {
		return err
	}
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	dir, err := os.MkdirTemp(c.Dir, "portolan-rehearsal-")
	if errors.Is(err, syscall.ENOSPC) {
		return fmt.Errorf("%s: not enough disk space (%w): set --dir to a directory with more space", name, err)
	}
	if err != nil {
		return err
	}
	defer func() {
		if e := os.RemoveAll(dir); err == nil {
			err = e
		}
	}()
	start, data := time.Now(), filepath.Join(dir, "data")
	sum, err := archive.Restore(s.ctx, store.Options{Layout: model.Layout(), Dir: data, Exclusive: true}, f, s.rowCounter("read"))
	if store.NoRoom(err) {
		return fmt.Errorf("%s: not enough disk space in %s: set --dir to a directory with more space", name, filepath.Dir(dir))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if _, err := fmt.Fprintf(s.stdout, "%s: restored %s, as of %s\n", name, plural.Count(sum.Rows(), "row"),
		sum.Created.Format(time.RFC3339)); err != nil {
		return err
	}
	check := checkCommand{dataFlag: dataFlag{Data: data, masterFlag: c.masterFlag}}
	if err := check.Run(s); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if age := time.Since(sum.Created); c.MaxAge > 0 && age > c.MaxAge {
		return fmt.Errorf("%s is %s old, more than %s: check why no newer backup exists (portolan status)",
			name, age.Round(time.Second), c.MaxAge)
	}
	_, err = fmt.Fprintf(s.stdout, "the restore took %s; the restored data was deleted\n", time.Since(start).Round(10*time.Millisecond))
	return err
}
