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

// registerSchedules declares the collection of schedules of backups.
func registerSchedules(r *resource.Registry) {
	r.Collection(resource.Collection{Name: schedules, Called: "schedules", Guard: resource.Administration, NoSearch: true,
		Complete: complete}, &DatabaseBackupSchedule{})
}

// queued is the state by which a backup is asked for now.
const queued = "QUEUED"

// DatabaseBackupSchedule makes backups of the database at set times. PATCH {"state":"QUEUED"} makes one now.
type DatabaseBackupSchedule struct {
	schema.Head `head:"required,nonblank" parents:"databases" unique:"siblings"`
	// State asks for a backup now where it is QUEUED.
	State string `api:"state,writeOnly" enum:"PENDING|QUEUED|UNKNOWN"`
	// StartDateTime is when it is due first; null means never: backups are made when somebody asks.
	StartDateTime time.Time `api:"startDateTime"`
	// Interval is how often it is due from then on, a minute or more (ISO 8601); null means once.
	Interval string `api:"interval,duration"`
	// MaxFileCount is how many of its files are kept; the oldest go.
	MaxFileCount int64 `api:"maxFileCount,notNull" min:"2" max:"20" default:"7"`
	// FilePrefix is what the names of its files begin with; null is the name of the schedule.
	FilePrefix string `api:"filePrefix,nonblank" length:"10"`
	// LocalBackupsEnabled says whether files are kept on the machine of the manager. Where it is false, a file lies there until it was sent.
	LocalBackupsEnabled bool `api:"localBackupsEnabled,put,notNull" default:"true"`
	// RemoteBackupsEnabled says whether files are sent to RemoteHost.
	RemoteBackupsEnabled bool `api:"remoteBackupsEnabled,put,notNull"`
	// RemoteHost is the machine that files are sent to, with a port where it is not the usual one. For S3 it is the address of the service,
	// such as https://s3.eu-central-1.amazonaws.com.
	RemoteHost string `api:"remoteHost,nonblank"`
	// RemoteDirectory is the directory there, which is made where it is missing; null is the one that the user starts in. For S3 it is the
	// bucket, and after a slash what the names of objects begin with.
	RemoteDirectory string `api:"remoteDirectory,nonblank"`
	// RemoteUser is the name of the account there; for S3 the id of an access key.
	RemoteUser string `api:"remoteUser,nonblank" length:"64"`
	// RemotePassword is the password of the account; for S3 the secret of the access key.
	RemotePassword schema.Secret `api:"remotePassword,nonblank" length:"64"`
	// TransferProtocol is how files are sent. FTP is refused: it sends password and database unencrypted.
	TransferProtocol string `api:"transferProtocol" enum:"FTP|SFTP|S3"`
	// RemoteHostKey is the key that the machine has to show by SFTP, as a line of ssh-keyscan without the name (ssh-ed25519 AAAA...). Null
	// takes the key of the first connection, which is kept here.
	RemoteHostKey string `api:"remoteHostKey,nonblank" length:"4096"`
	// LastRemoteDateTime is when the newest file was made that was sent; null where none was.
	LastRemoteDateTime time.Time `api:"lastRemoteDateTime,computed"`
	// NextDateTime is when it is due next; null where it is not.
	NextDateTime time.Time `api:"nextDateTime,computed"`
	// LastDateTime is when it was last due; null where it never was.
	LastDateTime time.Time `api:"lastDateTime,computed"`

	// now says that a backup was asked for.
	now bool
}

// longestName is how long the name of a schedule is at the most, in bytes.
const longestName = 10

// BeforeWrite refuses what is not done, names that make no file, and times that never come.
func (x *DatabaseBackupSchedule) BeforeWrite(c *resource.Change) error {
	if !c.Requested() {
		return nil
	}
	x.now = x.State == queued
	if c.Given["state"] && x.State != "" && !x.now {
		return problem.Field("InvalidEnumValue", "state", "%s is not set: %s makes a backup now", x.State, queued)
	}
	x.State, x.NextDateTime, x.LastDateTime, x.LastRemoteDateTime = "", time.Time{}, time.Time{}, time.Time{}
	if len(x.Name) > longestName {
		return problem.Field("InvalidStringLength", "name", "has %d bytes, more than %d", len(x.Name), longestName)
	}
	for field, text := range map[string]string{"name": x.Name, "filePrefix": x.FilePrefix} {
		if text != "" && (filepath.Base(text) != text || strings.ContainsAny(text, "/\\") || strings.HasPrefix(text, ".")) {
			return problem.Invalid(field, "%q cannot begin the name of a file", text)
		}
	}
	if err := x.checkRemote(c); err != nil {
		return err
	}
	makes := x.LocalBackupsEnabled || x.RemoteBackupsEnabled
	if x.now && !makes {
		return problem.Field("UnsupportedResourceFieldValue", "state",
			"localBackupsEnabled and remoteBackupsEnabled are false: no file would be made")
	}
	if (x.now || makes) && optionsOf(c.API).Dir == "" {
		return problem.Field("UnsupportedResourceFieldValue", "localBackupsEnabled",
			"the manager has no directory for backups: start it with --data or --backup-dir")
	}
	if x.Interval != "" && x.StartDateTime.IsZero() {
		return problem.Missing("startDateTime")
	}
	old, _ := c.Old.(*DatabaseBackupSchedule)
	return x.Times().Check(c.Tx.Now(), timesOf(old))
}

// timesOf gives when a schedule is due; nil where there is none.
func timesOf(x *DatabaseBackupSchedule) *timetable.Times {
	if x == nil {
		return nil
	}
	times := x.Times()
	return &times
}

// Times are when it is due.
func (x *DatabaseBackupSchedule) Times() timetable.Times {
	return timetable.Times{Start: x.StartDateTime, Interval: x.Interval, Enabled: (x.LocalBackupsEnabled || x.RemoteBackupsEnabled) &&
		!x.StartDateTime.IsZero()}
}

// AfterWrite asks for a backup where the request does.
func (x *DatabaseBackupSchedule) AfterWrite(c *resource.Change) error {
	old, _ := c.Old.(*DatabaseBackupSchedule)
	if err := x.Times().Note(c, timesOf(old)); err != nil || !x.now {
		return err
	}
	return ask(c.Tx, x.ID)
}

// prefix is what the names of its files begin with.
func (x *DatabaseBackupSchedule) prefix() string {
	if x.FilePrefix != "" {
		return x.FilePrefix
	}
	return x.Name
}

// ask notes, in a transaction, that a backup is to be made by a schedule.
func ask(tx *store.Tx, schedule int64) error {
	tx.Touch(files)
	return tx.Write("INSERT INTO backup_due (schedule, asked) VALUES (?, 1) ON CONFLICT (schedule) DO UPDATE SET asked = backup_due.asked + 1",
		schedule)
}
