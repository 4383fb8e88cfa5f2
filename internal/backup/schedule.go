package backup

import (
	"path/filepath"
	"strings"
	"time"

	"portolan/internal/problem"
	"portolan/internal/resource"
	"portolan/internal/schema"
	"portolan/internal/store"
	"portolan/internal/timetable"
)

// schedules is the name of the collection.
const schedules = "databaseSchedules"

// registerSchedules declares the collection of schedules of backups.
func registerSchedules(r *resource.Registry) {
	r.Collection(resource.Collection{Name: schedules, Called: "schedules", Guard: resource.Administration, NoSearch: true,
		Complete: timetable.Complete}, &DatabaseBackupSchedule{})
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
	// LocalBackupsEnabled says whether files are made on the machine of the manager.
	LocalBackupsEnabled bool `api:"localBackupsEnabled,put,notNull" default:"true"`
	// RemoteBackupsEnabled asks that files are sent elsewhere, which is done by what copies the directory of backups.
	RemoteBackupsEnabled bool `api:"remoteBackupsEnabled,put,notNull"`
	// RemoteHost is where they would be sent to.
	RemoteHost string `api:"remoteHost,nonblank"`
	// RemoteDirectory is the directory there.
	RemoteDirectory string `api:"remoteDirectory,nonblank"`
	// RemoteUser is who signs in there.
	RemoteUser string `api:"remoteUser,nonblank" length:"64"`
	// RemotePassword is the password for it.
	RemotePassword string `api:"remotePassword,writeOnly,nonblank" length:"64"`
	// TransferProtocol is how they would be sent.
	TransferProtocol string `api:"transferProtocol" enum:"FTP|SFTP"`
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
	x.State, x.NextDateTime, x.LastDateTime = "", time.Time{}, time.Time{}
	if len(x.Name) > longestName {
		return problem.Field("InvalidStringLength", "name", "has %d bytes, more than %d", len(x.Name), longestName)
	}
	for field, text := range map[string]string{"name": x.Name, "filePrefix": x.FilePrefix} {
		if text != "" && (filepath.Base(text) != text || strings.ContainsAny(text, "/\\") || strings.HasPrefix(text, ".")) {
			return problem.Invalid(field, "%q cannot begin the name of a file", text)
		}
	}
	for field, given := range map[string]bool{"remoteBackupsEnabled": x.RemoteBackupsEnabled, "remoteHost": x.RemoteHost != "",
		"remoteDirectory": x.RemoteDirectory != "", "remoteUser": x.RemoteUser != "", "remotePassword": x.RemotePassword != "",
		"transferProtocol": x.TransferProtocol != ""} {
		if given {
			return problem.Field("UnsupportedResourceFieldValue", field,
				"backups are not sent elsewhere: let what copies files take them from the directory of backups")
		}
	}
	if x.now && !x.LocalBackupsEnabled {
		return problem.Field("UnsupportedResourceFieldValue", "state", "localBackupsEnabled is false: no file would be made")
	}
	if (x.now || x.LocalBackupsEnabled) && c.API.Manager.Backups == "" {
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
	return timetable.Times{Start: x.StartDateTime, Interval: x.Interval, Enabled: x.LocalBackupsEnabled && !x.StartDateTime.IsZero()}
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
