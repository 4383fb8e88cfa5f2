package backup

import (
	"time"

	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// Figures are counts and times of backups.
type Figures struct {
	// Last is the time of the last backup, without files received from clients; nil if there is none. LastBytes is its size.
	Last      *time.Time `json:"last"`
	LastBytes int64      `json:"lastBytes"`
	// Files is the number of backup files, Schedules the number of schedules that make backups repeatedly.
	Files     int64 `json:"files"`
	Schedules int64 `json:"schedules"`
	// Due is the time since when a scheduled backup is missing; nil if none is.
	Due *time.Time `json:"due"`
	// UploadFault is the reason why backups could not be uploaded to another machine; empty if none failed.
	UploadFault string `json:"uploadFault,omitempty"`
}

// FiguresOf reads the figures.
func FiguresOf(tx *store.Tx, a *resource.API) (f Figures, err error) {
	if err := tx.List(store.Query{From: store.Resources, Where: store.InCollection(files)}, func(row *store.Resource) error {
		o, err := a.Object(row)
		if err != nil {
			return err
		}
		if one, ok := o.(*DatabaseBackupFile); ok {
			if f.Files++; !one.Sent && (f.Last == nil || one.ModificationDateTime.After(*f.Last)) {
				at := one.ModificationDateTime
				f.Last, f.LastBytes = &at, one.Size
			}
		}
		return nil
	}); err != nil {
		return f, err
	}
	return f, tx.List(store.Query{From: store.Resources, Where: store.InCollection(schedules)}, func(row *store.Resource) error {
		o, err := a.Object(row)
		s, ok := o.(*DatabaseBackupSchedule)
		if err != nil || !ok {
			return err
		}
		var fault string
		var made int64
		if err := tx.QueryRow("SELECT coalesce(max(fault), ''), coalesce(max(made), 0) FROM backup_remote WHERE schedule = ?", row.ID).
			Scan(&fault, &made); err != nil {
			return err
		}
		if fault != "" && f.UploadFault == "" {
			f.UploadFault = s.Name + ": " + fault
		}
		if at := time.UnixMilli(made).UTC(); made > 0 && (f.Last == nil || f.Last.Before(at)) { // none is kept here
			f.Last = &at
		}
		if s.StartDateTime.IsZero() || schema.LengthOf(s.Interval) == 0 {
			return nil
		}
		f.Schedules++
		var last int64 // the last scheduled time
		if err := tx.QueryRow("SELECT coalesce(max(last), 0) FROM timetable WHERE schedule = ?", row.ID).Scan(&last); err != nil {
			return err
		}
		if due := time.UnixMilli(last).UTC(); last > 0 && (f.Last == nil || f.Last.Before(due)) && (f.Due == nil || due.Before(*f.Due)) {
			f.Due = &due
		}
		return nil
	})
}
