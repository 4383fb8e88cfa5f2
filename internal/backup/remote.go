package backup

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"portolan/internal/event"
	"portolan/internal/problem"
	"portolan/internal/remote"
	"portolan/internal/resource"
	"portolan/internal/schema"
	"portolan/internal/store"
	"portolan/internal/timetable"
)

// remoteAgainAfter is the time between attempts to send files after one has failed.
const remoteAgainAfter = 5 * time.Minute

// checkRemote refuses settings of a schedule by which no file can be sent. A key of another host does not stay.
func (x *DatabaseBackupSchedule) checkRemote(c *resource.Change) error {
	if old, ok := c.Old.(*DatabaseBackupSchedule); ok && old.RemoteHost != x.RemoteHost && !c.Given["remoteHostKey"] {
		x.RemoteHostKey = ""
	}
	if x.TransferProtocol != "" && x.TransferProtocol != remote.SFTP && x.TransferProtocol != remote.S3 {
		return problem.Field("UnsupportedResourceFieldValue", "transferProtocol",
			"%s sends the password and the database unencrypted: use %s or %s", x.TransferProtocol, remote.SFTP, remote.S3)
	}
	if x.RemoteHostKey != "" {
		if x.TransferProtocol == remote.S3 {
			return problem.Field("UnsupportedResourceFieldValue", "remoteHostKey", "%s has no host keys: it is secured by TLS", remote.S3)
		}
		var err error
		if x.RemoteHostKey, err = remote.HostKey(x.RemoteHostKey); err != nil {
			return problem.Invalid("remoteHostKey", "%v: give the type and the key, as in a line of ssh-keyscan", err)
		}
	}
	if err := x.checkAddress(); err != nil {
		return err
	}
	if !x.RemoteBackupsEnabled {
		return nil
	}
	for _, need := range []struct {
		field string
		given bool
	}{{"transferProtocol", x.TransferProtocol != ""}, {"remoteHost", x.RemoteHost != ""}, {"remoteUser", x.RemoteUser != ""},
		{"remotePassword", x.RemotePassword.Set()}, {"remoteDirectory", x.RemoteDirectory != "" || x.TransferProtocol != remote.S3}} {
		if !need.given {
			return problem.Missing(need.field)
		}
	}
	return nil
}

// checkAddress refuses a host and a directory that the protocol cannot reach.
func (x *DatabaseBackupSchedule) checkAddress() error {
	if x.TransferProtocol == "" {
		return nil
	}
	if x.RemoteHost != "" {
		if err := remote.CheckHost(x.TransferProtocol, x.RemoteHost); err != nil {
			return problem.Invalid("remoteHost", "%v", err)
		}
	}
	if x.RemoteDirectory != "" {
		if err := remote.CheckDirectory(x.TransferProtocol, x.RemoteDirectory); err != nil {
			return problem.Invalid("remoteDirectory", "%v", err)
		}
	}
	return nil
}

// BeforeDelete forgets what is still to be sent.
func (x *DatabaseBackupSchedule) BeforeDelete(c *resource.Change) error {
	return c.Tx.Write("DELETE FROM backup_remote WHERE schedule = ?", x.ID)
}

// complete shows when schedules are due, and when the newest file was made that was sent.
func complete(tx *store.Tx, rows []*store.Resource) error {
	if err := timetable.Complete(tx, rows); err != nil {
		return err
	}
	made := map[int64]int64{}
	if err := tx.Each(func(scan func(...any) error) error {
		var id, at int64
		err := scan(&id, &at)
		made[id] = at
		return err
	}, "SELECT schedule, made FROM backup_remote WHERE made > 0"); err != nil {
		return err
	}
	for _, row := range rows {
		text := []byte("null")
		if at := made[row.ID]; at > 0 {
			text = []byte(`"` + time.UnixMilli(at).UTC().Format(time.RFC3339) + `"`)
		}
		var err error
		if row.Body, err = store.Rewritten(row.Body, map[string][]byte{"lastRemoteDateTime": text}); err != nil {
			return err
		}
	}
	return nil
}

// wantSent notes, in the transaction that lists a new file of a directory, that files of the schedule are to be sent.
func wantSent(tx *store.Tx, schedule int64, place string) error {
	return tx.Write("INSERT INTO backup_remote (schedule, place) VALUES (?, ?) ON CONFLICT (schedule) DO UPDATE SET place = excluded.place",
		schedule, place)
}

// sendDue sends the files of this machine that are to be sent. A schedule whose files could not be sent is tried again after
// remoteAgainAfter; the first failure, and the success after it, are events.
func (r *Runner) sendDue(ctx context.Context) error {
	place, err := placeOf(r.api.Manager.Backups)
	if err != nil {
		return nil //nolint:nilerr // as for what is taken away
	}
	var due []int64
	if err := r.api.Store.View(ctx, func(tx *store.Tx) error {
		due = nil
		return tx.Each(func(scan func(...any) error) error {
			var id int64
			err := scan(&id)
			due = append(due, id)
			return err
		}, "SELECT schedule FROM backup_remote WHERE place = ? ORDER BY schedule", place)
	}); err != nil {
		return err
	}
	for _, id := range due {
		if time.Now().Before(r.remoteAgain[id]) {
			continue
		}
		delete(r.remoteAgain, id)
		if err := r.send(ctx, id, place); err != nil {
			return err
		}
	}
	return nil
}

// sending is a schedule whose files are to be sent.
type sending struct {
	schedule *DatabaseBackupSchedule
	to       remote.Target
	files    []*DatabaseBackupFile // those of this machine, oldest first
}

// sendingOf reads a schedule and its files; without a schedule where nothing is to be sent any more.
func (r *Runner) sendingOf(ctx context.Context, id int64, place string) (s sending, err error) {
	err = r.api.Store.View(ctx, func(tx *store.Tx) error {
		s = sending{}
		row, err := tx.Get(id)
		if store.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		o, err := r.api.Object(row)
		x, ok := o.(*DatabaseBackupSchedule)
		if err != nil || !ok || !x.RemoteBackupsEnabled {
			return err
		}
		secrets, err := r.api.Secrets(tx, x)
		if err != nil {
			return err
		}
		s.schedule = x
		s.to = remote.Target{Host: x.RemoteHost, Directory: x.RemoteDirectory, User: x.RemoteUser, Password: secrets["remotePassword"],
			HostKey: x.RemoteHostKey}
		return r.eachFile(tx, id, func(_ *store.Resource, f *DatabaseBackupFile) error {
			if f.Place == place {
				s.files = append(s.files, f)
			}
			return nil
		})
	})
	return s, err
}

// eachFile gives the files that were made by a schedule, oldest first.
func (r *Runner) eachFile(tx *store.Tx, schedule int64, give func(*store.Resource, *DatabaseBackupFile) error) error {
	var rows []*store.Resource
	if err := tx.List(store.Query{From: store.Resources, Where: store.All{store.InCollection(files),
		store.LinksTo{Targets: []int64{schedule}, Field: "schedule"}}}, func(row *store.Resource) error {
		rows = append(rows, row.Clone())
		return nil
	}); err != nil {
		return err
	}
	slices.SortFunc(rows, func(a, b *store.Resource) int { return int(a.ID - b.ID) })
	for _, row := range rows {
		o, err := r.api.Object(row)
		if err != nil {
			return err
		}
		if f, ok := o.(*DatabaseBackupFile); ok {
			if err := give(row, f); err != nil {
				return err
			}
		}
	}
	return nil
}

// send sends the files of a schedule, and notes how that went.
func (r *Runner) send(ctx context.Context, id int64, place string) error {
	s, err := r.sendingOf(ctx, id, place)
	if err != nil {
		return err
	}
	if s.schedule == nil {
		return r.lease.UpdateIn(ctx, store.OwnTables(), store.Author{}, func(tx *store.Tx) error {
			return tx.Write("UPDATE backup_remote SET place = '', fault = '' WHERE schedule = ?", id)
		})
	}
	sent, hostKey, failure := r.sendFiles(ctx, s)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	r.Sent(failure == nil)
	if failure != nil {
		r.remoteAgain[id] = time.Now().Add(remoteAgainAfter)
		r.log.Warn("backups could not be sent", "schedule", s.schedule.Name, "host", s.to.Host, "error", failure)
	}
	return r.lease.Update(ctx, store.Author{}, func(tx *store.Tx) error {
		return r.noteSent(&resource.Change{Tx: tx, API: r.api, Extra: map[string]string{}}, s, sent, hostKey, failure)
	})
}

// sendFiles sends the files that are not there yet, and removes the oldest ones there beyond MaxFileCount. It gives the names of those that
// were sent, and the key that the machine has shown.
func (r *Runner) sendFiles(ctx context.Context, s sending) (sent []string, hostKey string, err error) {
	there, hostKey, err := remote.Dial(ctx, s.schedule.TransferProtocol, s.to)
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = there.Close() }() // what matters was answered before
	names, err := there.List(ctx)
	if err != nil {
		return nil, hostKey, err
	}
	for _, file := range s.files {
		if size, ok := names[file.Name]; ok && size == file.Size {
			continue
		}
		if err := r.sendFile(ctx, there, file); err != nil {
			return sent, hostKey, fmt.Errorf("%s: %w", file.Name, err)
		}
		names[file.Name], sent = file.Size, append(sent, file.Name)
	}
	return sent, hostKey, tidy(ctx, there, s.schedule, slices.Sorted(maps.Keys(names)))
}

// sendFile sends a file of this machine.
func (r *Runner) sendFile(ctx context.Context, there remote.Dir, file *DatabaseBackupFile) error {
	f, err := os.Open(filepath.Join(r.api.Manager.Backups, file.file())) //nolint:gosec // in the manager's own directory
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it is read alone
	return there.Put(ctx, file.Name, f, file.Size)
}

// tidy removes the oldest files of a schedule beyond MaxFileCount, and parts that an attempt has left. names are sorted.
func tidy(ctx context.Context, there remote.Dir, x *DatabaseBackupSchedule, names []string) error {
	own := regexp.MustCompile(`^` + regexp.QuoteMeta(x.prefix()) + `-\d{8}T\d{6}\.\d{3}Z` + regexp.QuoteMeta(suffix) + `(` +
		regexp.QuoteMeta(remote.Part) + `)?$`)
	names = slices.DeleteFunc(names, func(name string) bool { return !own.MatchString(name) })
	whole := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return strings.HasSuffix(name, remote.Part) })
	oldest := map[string]bool{}
	for i := range max(0, len(whole)-int(x.MaxFileCount)) {
		oldest[whole[i]] = true
	}
	for _, name := range names {
		if oldest[name] || strings.HasSuffix(name, remote.Part) {
			if err := there.Remove(ctx, name); err != nil {
				return fmt.Errorf("removing %s: %w", name, err)
			}
		}
	}
	return nil
}

// noteSent notes how sending the files of a schedule went: the key of the machine on the first connection, files that are not kept here,
// and the event.
func (r *Runner) noteSent(c *resource.Change, s sending, sent []string, hostKey string, failure error) error {
	id := s.schedule.ID
	row, err := c.Tx.Get(id)
	if store.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	o, err := r.api.Object(row)
	now, ok := o.(*DatabaseBackupSchedule)
	if err != nil || !ok || now.RemoteHost != s.schedule.RemoteHost || now.TransferProtocol != s.schedule.TransferProtocol {
		return err // it was changed meanwhile: place is still set, and it is sent anew
	}
	if hostKey != "" && now.RemoteHostKey == "" && s.to.HostKey == "" {
		if _, err := c.Following().Change(row, func(o schema.Object) { o.(*DatabaseBackupSchedule).RemoteHostKey = hostKey }); err != nil {
			return err
		}
	}
	e := event.Event{EventType: "SUCCESS", Category: "DATABASE_MAINTENANCE", SourceName: now.Name}
	var fault string
	if err := c.Tx.QueryRow("SELECT coalesce(max(fault), '') FROM backup_remote WHERE schedule = ?", id).Scan(&fault); err != nil {
		return err
	}
	if failure != nil {
		if fault == failure.Error() {
			return nil
		}
		e.EventType = "FAILED"
		e.Message = fmt.Sprintf("Backups by the schedule %s could not be sent to %s, which is tried again: %v", now.Name, now.RemoteHost, failure)
		if err := c.Tx.Write("UPDATE backup_remote SET fault = ? WHERE schedule = ?", failure.Error(), id); err != nil {
			return err
		}
		return event.Add(c.Tx, e, id)
	}
	return r.noteAllSent(c, s, sent, e)
}

// noteAllSent notes that all files of a schedule are on the other machine.
func (r *Runner) noteAllSent(c *resource.Change, s sending, sent []string, e event.Event) error {
	id, made := s.schedule.ID, int64(0)
	if len(s.files) > 0 {
		made = s.files[len(s.files)-1].ModificationDateTime.UnixMilli()
	}
	if err := c.Tx.Write("UPDATE backup_remote SET place = '', fault = '', made = CASE WHEN made < ? THEN ? ELSE made END WHERE schedule = ?",
		made, made, id); err != nil {
		return err
	}
	if !s.schedule.LocalBackupsEnabled {
		there := map[int64]bool{}
		for _, f := range s.files {
			there[f.ID] = true
		}
		if err := r.eachFile(c.Tx, id, func(row *store.Resource, _ *DatabaseBackupFile) error {
			if !there[row.ID] {
				return nil
			}
			return c.Following().Delete(row)
		}); err != nil {
			return err
		}
	}
	if len(sent) == 0 {
		return nil
	}
	e.Message = fmt.Sprintf("Backups by the schedule %s were sent to %s: %s", s.schedule.Name, s.schedule.RemoteHost, strings.Join(sent, ", "))
	return event.Add(c.Tx, e, id)
}
