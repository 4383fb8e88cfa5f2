package backup

import (
	"path/filepath"
	"strings"
	"time"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
	"portolan/internal/engine/timetable"
)

// schedules is the name of the collection.
const schedules = "databaseSchedules"

// registerSchedules declares the collection of backup schedules.
func registerSchedules(r *resource.Registry) {
	r.Collection(resource.Collection{Name: schedules, Called: "schedules", Guard: resource.Administration, NoSearch: true,
		Complete: complete}, &DatabaseBackupSchedule{})
}

// queued is the state that requests a backup now.
const queued = "QUEUED"

// DatabaseBackupSchedule makes backups of the database at set times. PATCH {"state":"QUEUED"} makes one now.
type DatabaseBackupSchedule struct {
	schema.Head `head:"required,nonblank" parents:"databases" unique:"siblings"`
	// State requests a backup now if it is set to QUEUED.
	State string `api:"state,writeOnly" enum:"PENDING|QUEUED|UNKNOWN"`
	// StartDateTime is the time of the first backup; null means that backups are made only on request.
	StartDateTime time.Time `api:"startDateTime"`
	// Interval is the time between backups, a minute or more (ISO 8601); null means that only one is made.
	Interval string `api:"interval,duration"`
	// MaxFileCount is the number of files to keep; the oldest are deleted.
	MaxFileCount int64 `api:"maxFileCount,notNull" min:"2" max:"20" default:"7"`
	// FilePrefix is the prefix of the names of its files; null means the name of the schedule.
	FilePrefix string `api:"filePrefix,nonblank" length:"10"`
	// LocalBackupsEnabled keeps the files on the machine of the manager. If it is false, a file stays there only until it is uploaded.
	LocalBackupsEnabled bool `api:"localBackupsEnabled,put,notNull" default:"true"`
	// RemoteBackupsEnabled uploads the files to remoteHost.
	RemoteBackupsEnabled bool `api:"remoteBackupsEnabled,put,notNull"`
	// RemoteHost is the machine that files are uploaded to, with a port if it is not the default. For S3 it is the address of the service,
	// such as https://s3.eu-central-1.amazonaws.com.
	RemoteHost string `api:"remoteHost,nonblank"`
	// RemoteDirectory is the directory on that machine; it is created if it is missing. Null means the initial directory of the user. For
	// S3 it is the bucket, optionally followed by a slash and a prefix for object names.
	RemoteDirectory string `api:"remoteDirectory,nonblank"`
	// RemoteUser is the name of the account; for S3 the id of an access key.
	RemoteUser string `api:"remoteUser,nonblank" length:"64"`
	// RemotePassword is the password of the account; for S3 the secret of the access key.
	RemotePassword schema.Secret `api:"remotePassword,nonblank" length:"64"`
	// TransferProtocol is the protocol of the upload. FTP is rejected, because it sends the password and the database unencrypted.
	TransferProtocol string `api:"transferProtocol" enum:"FTP|SFTP|S3"`
	// RemoteHostKey is the SSH host key that the machine must show, as a line of ssh-keyscan without the name (ssh-ed25519 AAAA...). Null
	// accepts the key of the first connection, which is then stored here.
	RemoteHostKey string `api:"remoteHostKey,nonblank" length:"4096"`
	// LastRemoteDateTime is the time of the newest backup that was uploaded; null if there is none.
	LastRemoteDateTime time.Time `api:"lastRemoteDateTime,computed"`
	// NextDateTime is the time of the next backup; null if none is scheduled.
	NextDateTime time.Time `api:"nextDateTime,computed"`
	// LastDateTime is the last scheduled time of a backup; null if there was none.
	LastDateTime time.Time `api:"lastDateTime,computed"`

	// isRequested means that the request asks for a backup now.
	isRequested bool
}

// maxName is the length limit of the name of a schedule, in bytes.
const maxName = 10

// BeforeWrite rejects unsupported settings, names that cannot begin a file name, and times that never come.
func (x *DatabaseBackupSchedule) BeforeWrite(c *resource.Change) error {
	if !c.IsRequested() {
		return nil
	}
	x.isRequested = x.State == queued
	if c.SetFields["state"] && x.State != "" && !x.isRequested {
		return problem.Field("InvalidEnumValue", "state", "%s cannot be set; use %s to create a backup now", x.State, queued)
	}
	x.State, x.NextDateTime, x.LastDateTime, x.LastRemoteDateTime = "", time.Time{}, time.Time{}, time.Time{}
	if len(x.Name) > maxName {
		return problem.Field("InvalidStringLength", "name", "has %d bytes, more than %d", len(x.Name), maxName)
	}
	for field, text := range map[string]string{"name": x.Name, "filePrefix": x.FilePrefix} {
		if text != "" && (filepath.Base(text) != text || strings.ContainsAny(text, "/\\") || strings.HasPrefix(text, ".")) {
			return problem.Invalid(field, "%q is not a valid start of a file name", text)
		}
	}
	if err := x.checkRemote(c); err != nil {
		return err
	}
	makes := x.LocalBackupsEnabled || x.RemoteBackupsEnabled
	if x.isRequested && !makes {
		return problem.Field("UnsupportedResourceFieldValue", "state",
			"localBackupsEnabled and remoteBackupsEnabled are false: enable one of them")
	}
	if (x.isRequested || makes) && optionsOf(c.API).Dir == "" {
		return problem.Field("UnsupportedResourceFieldValue", "localBackupsEnabled",
			"the manager has no backup directory: start it with --data or --backup-dir")
	}
	if x.Interval != "" && x.StartDateTime.IsZero() {
		return problem.Missing("startDateTime")
	}
	old, _ := c.Old.(*DatabaseBackupSchedule)
	return x.Times().Check(c.Tx.Now(), timesOf(old))
}

// timesOf returns the times of a schedule; nil for nil.
func timesOf(x *DatabaseBackupSchedule) *timetable.Times {
	if x == nil {
		return nil
	}
	times := x.Times()
	return &times
}

// Times returns the times of the scheduled backups.
func (x *DatabaseBackupSchedule) Times() timetable.Times {
	return timetable.Times{Start: x.StartDateTime, Interval: x.Interval, Enabled: (x.LocalBackupsEnabled || x.RemoteBackupsEnabled) &&
		!x.StartDateTime.IsZero()}
}

// AfterWrite stores the times, and requests a backup if the request asks for one.
func (x *DatabaseBackupSchedule) AfterWrite(c *resource.Change) error {
	old, _ := c.Old.(*DatabaseBackupSchedule)
	if err := x.Times().Note(c, timesOf(old)); err != nil || !x.isRequested {
		return err
	}
	return requestBackup(c.Tx, x.ID)
}

// prefix returns the prefix of the names of its files.
func (x *DatabaseBackupSchedule) prefix() string {
	if x.FilePrefix != "" {
		return x.FilePrefix
	}
	return x.Name
}

// requestBackup records, in a transaction, that a backup by a schedule is requested.
func requestBackup(tx *store.Tx, schedule int64) error {
	tx.Touch(files)
	return tx.Write("INSERT INTO backup_due (schedule, asked) VALUES (?, 1) ON CONFLICT (schedule) DO UPDATE SET asked = backup_due.asked + 1",
		schedule)
}
