package backup

import (
	"context"
	"fmt"
	"time"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// flagSchedule is the name of the schedule created by the command line of a manager.
const flagSchedule = "every"

// firstBackupDelay is the time from the start of a manager to the first backup of a new schedule. It is short, so that there is a backup on
// the first day.
const firstBackupDelay = time.Minute

// ScheduleEvery creates or changes the schedule flagSchedule to make a backup each interval and to keep the given number of files. An
// interval of 0 changes nothing: an existing schedule stays as it is.
func ScheduleEvery(ctx context.Context, a *resource.API, interval time.Duration, keep int64) error {
	if interval == 0 {
		return nil
	}
	if interval < time.Minute {
		return problem.Invalid("backup-every", "must be at least one minute")
	}
	length := fmt.Sprintf("PT%dS", int64(interval/time.Second))
	return a.Store.Update(ctx, store.Author{Name: "command line", Comment: "--backup-every"}, func(tx *store.Tx) error {
		database, err := tx.ReadFirst(store.Query{From: store.Resources, Where: store.InCollection("databases")})
		if err != nil || database == nil {
			return err
		}
		c := &resource.Change{Tx: tx, API: a, Extra: map[string]string{}}
		there, err := tx.ByName(schedules, database.ID, flagSchedule)
		if err != nil {
			return err
		}
		if len(there) == 0 {
			x := &DatabaseBackupSchedule{StartDateTime: tx.Now().Add(firstBackupDelay).UTC().Truncate(time.Second), Interval: length,
				MaxFileCount: keep, LocalBackupsEnabled: true}
			x.Type, x.Name, x.Parent = "DatabaseBackupSchedule", flagSchedule, database.ID
			_, err = c.Create(a.TypeNamed(x.Type), x)
			return err
		}
		o, err := a.Object(there[0])
		if err != nil {
			return err
		}
		if x := o.(*DatabaseBackupSchedule); x.Interval == length && x.MaxFileCount == keep {
			return nil
		}
		_, err = c.Change(there[0], func(o schema.Object) {
			x := o.(*DatabaseBackupSchedule)
			x.Interval, x.MaxFileCount = length, keep
		})
		return err
	})
}
