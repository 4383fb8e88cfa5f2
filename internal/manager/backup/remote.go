package backup

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"portolan/internal/base/problem"
	"portolan/internal/engine/event"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
	"portolan/internal/engine/timetable"
	"portolan/internal/manager/remote"
)

// uploadRetryInterval is the time between attempts to upload files after one has failed.
const uploadRetryInterval = 5 * time.Minute

// checkRemote returns an error if files cannot be uploaded with the settings of a schedule. A new host deletes the host key.
func (x *DatabaseBackupSchedule) checkRemote(c *resource.Change) error {
	if old, ok := c.Old.(*DatabaseBackupSchedule); ok && old.RemoteHost != x.RemoteHost && !c.SetFields["remoteHostKey"] {
		x.RemoteHostKey = ""
	}
	if x.TransferProtocol != "" && x.TransferProtocol != remote.SFTP && x.TransferProtocol != remote.S3 {
		return problem.Field("UnsupportedResourceFieldValue", "transferProtocol",
			"%s sends the password and the database unencrypted: use %s or %s", x.TransferProtocol, remote.SFTP, remote.S3)
	}
	if x.RemoteHostKey != "" {
		if x.TransferProtocol == remote.S3 {
			return problem.Field("UnsupportedResourceFieldValue", "remoteHostKey", "%s does not use host keys: it is secured by TLS", remote.S3)
		}
		var err error
		if x.RemoteHostKey, err = remote.HostKey(x.RemoteHostKey); err != nil {
			return problem.Invalid("remoteHostKey", "%v: use the type and the key, as in a line of ssh-keyscan", err)
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
	return x.checkAlone(c)
}

// checkAlone rejects a second schedule whose files have the same prefix in the same directory: each would remove the oldest files of both.
func (x *DatabaseBackupSchedule) checkAlone(c *resource.Change) error {
	return c.Each(store.InCollection(schedules), func(row *store.Resource, o schema.Object) error {
		other, ok := o.(*DatabaseBackupSchedule)
		if !ok || row.ID == x.ID || !other.RemoteBackupsEnabled || other.prefix() != x.prefix() || other.RemoteHost != x.RemoteHost ||
			other.RemoteDirectory != x.RemoteDirectory {
			return nil
		}
		return problem.Conflict("ResourceConflictsWithOther", "filePrefix: the schedule %s (%d) uploads files with the prefix %s to the same "+
			"directory: use another filePrefix or remoteDirectory", problem.Describe(row.ID, row.Name), row.ID, x.prefix())
	})
}

// checkAddress returns an error if the protocol cannot reach the host or the directory.
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

// BeforeDelete removes the pending uploads of the schedule.
func (x *DatabaseBackupSchedule) BeforeDelete(c *resource.Change) error {
	return c.Tx.Write("DELETE FROM backup_remote WHERE schedule = ?", x.ID)
}

// complete adds the times of schedules, and the time of the newest uploaded file.
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
	}, "SELECT schedule, max(made) FROM backup_remote WHERE made > 0 GROUP BY schedule"); err != nil {
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

// An upload may take minUploadTime, and one second more for each uploadRate bytes. Backups and other uploads wait for it.
const (
	minUploadTime = 2 * time.Minute
	uploadRate    = 256 << 10
)

// timeout returns the maximum duration of an upload.
func (u upload) timeout() time.Duration {
	size := int64(0)
	for _, f := range u.files {
		size += f.Size
	}
	return minUploadTime + time.Duration(size/uploadRate)*time.Second
}

// requestUpload records, in the transaction that lists a new file of a directory, that files of the schedule must be uploaded from there.
func requestUpload(tx *store.Tx, schedule int64, place string) error {
	return tx.Write("INSERT INTO backup_remote (schedule, place, pending) VALUES (?, ?, 1) "+
		"ON CONFLICT (schedule, place) DO UPDATE SET pending = 1", schedule, place)
}

// uploadPending uploads the pending files of this machine. A schedule whose upload failed is retried after uploadRetryInterval, and at once
// with another target.
func (r *Runner) uploadPending(ctx context.Context) error {
	place, err := optionsOf(r.api).readPlace()
	if err != nil {
		return nil //nolint:nilerr // as in removeDeleted
	}
	var due []int64
	if err := r.api.Store.View(ctx, func(tx *store.Tx) error {
		due = nil
		return tx.Each(func(scan func(...any) error) error {
			var id int64
			err := scan(&id)
			due = append(due, id)
			return err
		}, "SELECT schedule FROM backup_remote WHERE place = ? AND pending = 1 ORDER BY schedule", place)
	}); err != nil {
		return err
	}
	for _, id := range due {
		if waits, err := r.isUploadPaused(ctx, id); err != nil || waits {
			if err != nil {
				return err
			}
			continue
		}
		delete(r.failed, id)
		if err := r.uploadSchedule(ctx, id, place); err != nil {
			return err
		}
	}
	return nil
}

// failedUpload is a failed upload: the time of the next attempt, and its target.
type failedUpload struct {
	retryAt time.Time
	to      remote.Target
}

// isUploadPaused reports whether an upload has failed and is not yet retried. Another target is tried at once.
func (r *Runner) isUploadPaused(ctx context.Context, id int64) (waits bool, err error) {
	failed, ok := r.failed[id]
	if !ok || !time.Now().Before(failed.retryAt) {
		return false, nil
	}
	err = r.api.Store.View(ctx, func(tx *store.Tx) error {
		waits = false
		x, err := r.scheduleOf(tx, id)
		if err != nil || x == nil {
			return err
		}
		to, err := r.targetOf(tx, x)
		waits = to == failed.to
		return err
	})
	return waits, err
}

// upload is a schedule with files to upload.
type upload struct {
	schedule *DatabaseBackupSchedule
	to       remote.Target
	place    string
	files    []*DatabaseBackupFile // the files of the place, oldest first
}

// uploadOf reads a schedule and its files. The schedule is nil if it was deleted or no longer uploads files.
func (r *Runner) uploadOf(ctx context.Context, id int64, place string) (u upload, err error) {
	err = r.api.Store.View(ctx, func(tx *store.Tx) error {
		u = upload{place: place}
		x, err := r.scheduleOf(tx, id)
		if err != nil || x == nil || !x.RemoteBackupsEnabled {
			return err
		}
		if u.to, err = r.targetOf(tx, x); err != nil {
			return err
		}
		u.schedule = x
		return r.eachFile(tx, id, func(_ *store.Resource, f *DatabaseBackupFile) error {
			if f.Place == place {
				u.files = append(u.files, f)
			}
			return nil
		})
	})
	return u, err
}

// scheduleOf reads a schedule; nil if it was deleted.
func (r *Runner) scheduleOf(tx *store.Tx, id int64) (*DatabaseBackupSchedule, error) {
	row, err := tx.Get(id)
	if store.IsNotFound(err) {
		return nil, nil // there is none
	}
	if err != nil {
		return nil, err
	}
	o, err := r.api.Object(row)
	x, _ := o.(*DatabaseBackupSchedule)
	return x, err
}

// targetOf returns the upload target of a schedule.
func (r *Runner) targetOf(tx *store.Tx, x *DatabaseBackupSchedule) (remote.Target, error) {
	secrets, err := r.api.Secrets(tx, x)
	return remote.Target{Host: x.RemoteHost, Directory: x.RemoteDirectory, User: x.RemoteUser, Password: secrets["remotePassword"],
		HostKey: x.RemoteHostKey}, err
}

// eachFile calls give for the files made by a schedule, oldest first.
func (r *Runner) eachFile(tx *store.Tx, schedule int64, give func(*store.Resource, *DatabaseBackupFile) error) error {
	var rows []*store.Resource
	if err := tx.List(store.Query{From: store.Resources, Where: store.All{store.InCollection(files),
		store.LinksTo{Targets: []int64{schedule}, Field: "schedule"}}}, func(row *store.Resource) error {
		rows = append(rows, row.Clone())
		return nil
	}); err != nil {
		return err
	}
	slices.SortFunc(rows, func(a, b *store.Resource) int { return cmp.Compare(a.ID, b.ID) })
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

// uploadSchedule uploads the files of a schedule and writes the result.
func (r *Runner) uploadSchedule(ctx context.Context, id int64, place string) error {
	u, err := r.uploadOf(ctx, id, place)
	if err != nil {
		return err
	}
	if u.schedule == nil {
		return r.lease.UpdateIn(ctx, store.ExtensionScope(), store.Author{}, func(tx *store.Tx) error {
			return tx.Write("UPDATE backup_remote SET pending = 0, fault = '' WHERE schedule = ?", id)
		})
	}
	within, end := context.WithTimeout(ctx, u.timeout())
	result := r.uploadFiles(within, u)
	if within.Err() != nil {
		result.failure = fmt.Errorf("stopped after %s: %w", u.timeout(), result.failure)
	}
	end()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	r.Uploaded(result.failure == nil)
	if result.failure != nil {
		r.failed[id] = failedUpload{time.Now().Add(uploadRetryInterval), u.to}
		r.log.Warn("backup upload failed", "schedule", u.schedule.Name, "host", u.to.Host, "error", result.failure)
	}
	return r.lease.Update(ctx, store.Author{}, func(tx *store.Tx) error {
		return r.saveUploadResult(&resource.Change{Tx: tx, API: r.api, Extra: map[string]string{}}, u, result)
	})
}

// uploadResult is the result of an upload: the names of the uploaded files, the host key of the machine, and the error. whole means that
// the machine has all files.
type uploadResult struct {
	names   []string
	hostKey string
	whole   bool
	failure error
}

// uploadFiles uploads the files that the other machine lacks, and removes the oldest ones there beyond MaxFileCount.
func (r *Runner) uploadFiles(ctx context.Context, u upload) (result uploadResult) {
	var there remote.Dir
	if there, result.hostKey, result.failure = remote.Dial(ctx, u.schedule.TransferProtocol, u.to); result.failure != nil {
		return result
	}
	defer func() { _ = there.Close() }() // all results were acknowledged before
	var sizes map[string]int64
	if sizes, result.failure = there.List(ctx); result.failure != nil {
		return result
	}
	for _, file := range slices.Backward(u.files) { // the newest first
		if size, ok := sizes[file.Name]; ok && size == file.Size {
			continue
		}
		if err := r.uploadFile(ctx, there, file); err != nil {
			result.failure = errors.Join(result.failure, fmt.Errorf("%s: %w", file.Name, err))
			if errors.Is(err, fs.ErrNotExist) && ctx.Err() == nil { // the file is missing here: the others are still uploaded
				continue
			}
			return result
		}
		sizes[file.Name], result.names = file.Size, append(result.names, file.Name)
	}
	if result.failure != nil {
		return result
	}
	result.whole = true
	if err := removeOldest(ctx, there, u.schedule, slices.Sorted(maps.Keys(sizes))); err != nil {
		result.failure = fmt.Errorf("all files were uploaded, but %w", err)
	}
	return result
}

// uploadFile uploads a file of this machine.
func (r *Runner) uploadFile(ctx context.Context, there remote.Dir, file *DatabaseBackupFile) error {
	f, err := os.Open(filepath.Join(optionsOf(r.api).Dir, file.relativePath())) //nolint:gosec // in the manager's own directory
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // opened for reading only
	return there.Put(ctx, file.Name, f, file.Size)
}

// removeOldest removes the oldest files of a schedule beyond MaxFileCount, and incomplete files of failed attempts. names are sorted.
func removeOldest(ctx context.Context, there remote.Dir, x *DatabaseBackupSchedule, names []string) error {
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
				return fmt.Errorf("%s cannot be removed: %w", name, err)
			}
		}
	}
	return nil
}

// saveUploadResult writes the result of an upload. It stores the host key of the first connection, deletes files that are not kept locally,
// and adds events for uploaded files and for the first failure. If the settings were changed meanwhile, the upload stays pending.
func (r *Runner) saveUploadResult(c *resource.Change, u upload, result uploadResult) error {
	id := u.schedule.ID
	now, err := r.scheduleOf(c.Tx, id)
	if err != nil || now == nil {
		return err
	}
	to, err := r.targetOf(c.Tx, now)
	if err != nil || to != u.to || now.TransferProtocol != u.schedule.TransferProtocol {
		return err
	}
	if result.hostKey != "" && now.RemoteHostKey == "" {
		row, err := c.Tx.Get(id)
		if err != nil {
			return err
		}
		if _, err := c.Following().Change(row, func(o schema.Object) { o.(*DatabaseBackupSchedule).RemoteHostKey = result.hostKey }); err != nil {
			return err
		}
	}
	if result.whole {
		if err := r.saveCompleteUpload(c, u, now); err != nil {
			return err
		}
	}
	if len(result.names) > 0 {
		if err := event.Add(c.Tx, event.Event{EventType: "SUCCESS", Category: "DATABASE_MAINTENANCE", SourceName: now.Name,
			Message: fmt.Sprintf("Backups by the schedule %s were uploaded to %s: %s", now.Name, now.RemoteHost,
				strings.Join(result.names, ", "))}, id); err != nil {
			return err
		}
	}
	if result.failure == nil {
		return c.Tx.Write("UPDATE backup_remote SET pending = 0, fault = '' WHERE schedule = ? AND place = ?", id, u.place)
	}
	var fault string
	if err := c.Tx.QueryRow("SELECT fault FROM backup_remote WHERE schedule = ? AND place = ?", id, u.place).Scan(&fault); err != nil {
		return err
	}
	if err := c.Tx.Write("UPDATE backup_remote SET fault = ? WHERE schedule = ? AND place = ?", result.failure.Error(), id,
		u.place); err != nil || fault != "" {
		return err
	}
	return event.Add(c.Tx, event.Event{EventType: "FAILED", Category: "DATABASE_MAINTENANCE", SourceName: now.Name,
		Message: fmt.Sprintf("The upload of backups by the schedule %s to %s failed and will be retried: %v", now.Name, now.RemoteHost,
			result.failure)}, id)
}

// saveCompleteUpload records that the other machine has all files of a schedule, and deletes those that are not kept locally.
func (r *Runner) saveCompleteUpload(c *resource.Change, u upload, now *DatabaseBackupSchedule) error {
	made := int64(0)
	if len(u.files) > 0 {
		made = u.files[len(u.files)-1].ModificationDateTime.UnixMilli()
	}
	if err := c.Tx.Write("UPDATE backup_remote SET made = CASE WHEN made < ? THEN ? ELSE made END WHERE schedule = ? AND place = ?",
		made, made, now.ID, u.place); err != nil || now.LocalBackupsEnabled {
		return err
	}
	there := map[int64]bool{}
	for _, f := range u.files {
		there[f.ID] = true
	}
	return r.eachFile(c.Tx, now.ID, func(row *store.Resource, _ *DatabaseBackupFile) error {
		if !there[row.ID] {
			return nil
		}
		return c.Following().Delete(row)
	})
}

// LastBackup returns the time of the newest backup that is listed or was uploaded to another machine; the zero time if there is none.
func LastBackup(tx *store.Tx) (last time.Time, err error) {
	var made int64 // Unix milliseconds
	if err := tx.QueryRow("SELECT coalesce(max(made), 0) FROM backup_remote").Scan(&made); err != nil {
		return last, err
	}
	if made > 0 {
		last = time.UnixMilli(made).UTC()
	}
	return last, tx.List(store.Query{From: store.Resources, Where: store.InCollection(files)}, func(r *store.Resource) error {
		var body struct {
			ModificationDateTime time.Time `json:"modificationDateTime"`
			Sent                 bool      `json:"sent"`
		}
		if err := json.Unmarshal(r.Body, &body); err != nil {
			return err
		}
		if !body.Sent && body.ModificationDateTime.After(last) {
			last = body.ModificationDateTime.UTC()
		}
		return nil
	})
}
