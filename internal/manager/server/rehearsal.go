package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"portolan/internal/base/problem"
	"portolan/internal/engine/store"
	"portolan/internal/engine/store/archive"
	"portolan/internal/manager/backup"
	"portolan/internal/manager/model"
	"portolan/internal/manager/secrets"
	"portolan/internal/manager/server/addressapi"
)

// rehearsals runs the rehearsals of backups, one at a time, and keeps the last result.
type rehearsals struct {
	mu   sync.Mutex
	last addressapi.Rehearsal
	// wanted has the path of the backup to rehearse.
	wanted chan string
}

// rehearsalDir is the beginning of the names of temporary directories.
const rehearsalDir = "rehearsal-"

// rehearsal returns the running or the last rehearsal.
func (m *Manager) rehearsal() addressapi.Rehearsal {
	m.rehearsals.mu.Lock()
	defer m.rehearsals.mu.Unlock()
	if m.rehearsals.last.State == "" {
		return addressapi.Rehearsal{State: "NONE"}
	}
	return m.rehearsals.last
}

// rehearse starts the rehearsal of a backup. It ends with the manager.
func (m *Manager) rehearse(row *store.Resource) error {
	path, err := backup.Path(m.Address, row)
	if err != nil {
		return err
	}
	r := &m.rehearsals
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last.State == "RUNNING" {
		return problem.Conflict("ResourceConflictsWithOther", "the rehearsal of %s is still running: wait until it ends", r.last.Name)
	}
	now := time.Now().UTC()
	r.last = addressapi.Rehearsal{State: "RUNNING", Backup: row.ID, Name: row.Name, StartDateTime: &now}
	r.wanted <- path // it has room: no other one is running
	return nil
}

// runRehearsals runs the requested rehearsals until ctx ends.
func (m *Manager) runRehearsals(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case path := <-m.rehearsals.wanted:
			rows, created, err := m.restoreAndCheck(ctx, path)
			m.endRehearsal(rows, created, err)
		}
	}
}

// endRehearsal keeps the result of the running rehearsal.
func (m *Manager) endRehearsal(rows int64, created time.Time, err error) {
	r := &m.rehearsals
	r.mu.Lock()
	defer r.mu.Unlock()
	end := time.Now().UTC()
	r.last.Rows, r.last.CompletionDateTime = rows, &end
	if err != nil {
		r.last.State, r.last.Message = "FAILED", err.Error()
		m.log.Warn("backup rehearsal failed", "backup", r.last.Name, "error", err)
		return
	}
	r.last.State = "PASSED"
	r.last.Message = fmt.Sprintf("restored %d rows, as of %s; no faults found; took %s", rows, created.UTC().Format(time.DateTime),
		end.Sub(*r.last.StartDateTime).Round(10*time.Millisecond))
}

// restoreAndCheck restores a backup into a temporary directory beside the data, verifies the restored data, and deletes it.
func (m *Manager) restoreAndCheck(ctx context.Context, path string) (rows int64, created time.Time, err error) {
	left, err := filepath.Glob(filepath.Join(m.options.Data, rehearsalDir+"*")) // of a manager that was killed
	if err != nil {
		return 0, created, err
	}
	for _, one := range left {
		if err := os.RemoveAll(one); err != nil {
			return 0, created, err
		}
	}
	dir, err := os.MkdirTemp(m.options.Data, rehearsalDir)
	if err != nil {
		return 0, created, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	f, err := os.Open(path) //nolint:gosec // in the manager's own directory
	if err != nil {
		return 0, created, err
	}
	defer func() { _ = f.Close() }() // opened for reading only
	data := filepath.Join(dir, "data")
	sum, err := archive.Restore(ctx, store.Options{Layout: model.Layout(), Dir: data, Exclusive: true}, f, func(int64) {})
	if err != nil {
		return 0, created, err
	}
	restored, err := store.Open(store.Options{Layout: model.Layout(), Dir: data, ReadOnly: true, Readers: 1, ListReaders: 1})
	if err != nil {
		return 0, created, err
	}
	defer func() { err = errors.Join(err, restored.Close()) }()
	secrets.FromStore(restored).KnowMasterKeys(m.options.MasterKeys)
	return sum.Rows(), sum.Created, restored.View(ctx, func(tx *store.Tx) error {
		faults, err := model.NewAPI(restored).Verify(tx)
		if err == nil && len(faults) > 0 {
			err = fmt.Errorf("%d faults, the first: %s", len(faults), faults[0])
		}
		return err
	})
}
