package addressapi

import (
	"encoding/json"
	"net/http"
	"time"

	"portolan/internal/base/problem"
	"portolan/internal/engine/family"
	"portolan/internal/engine/published"
	"portolan/internal/engine/rest"
	"portolan/internal/engine/store"
)

// rehearsalPath is the path of the rehearsal of a backup.
const rehearsalPath = published.Base + "/backupRehearsal"

// Rehearsal is the last restore of a backup into a temporary database, which was checked and deleted.
type Rehearsal struct {
	// State is NONE before the first rehearsal of this manager.
	State string `json:"state" enum:"NONE|RUNNING|PASSED|FAILED"`
	// Backup is the id of the backup, Name the name of its file.
	Backup int64  `json:"backup,omitempty"`
	Name   string `json:"name,omitempty"`
	// Rows is the number of restored rows.
	Rows int64 `json:"rows"`
	// Message is the result in words.
	Message            string     `json:"message,omitempty"`
	StartDateTime      *time.Time `json:"startDateTime"`
	CompletionDateTime *time.Time `json:"completionDateTime"`
}

// rehearsalDeclaration declares the rehearsal of backups.
func (a *API) rehearsalDeclaration() family.Path {
	access := family.Access{Schemes: schemes, Admit: a.admit}
	return family.Path{Pattern: rehearsalPath, Operations: []family.Operation{{
		Method: http.MethodGet, ID: "getBackupRehearsal", Summary: "The last rehearsal of a backup (Portolan extension)", Access: access,
		Description: "The rehearsal that this manager runs, or its last one. Administrators only.",
		Success:     family.Success{Status: http.StatusOK, Description: "The rehearsal.", Schema: family.Ref("BackupRehearsal")},
		Problems:    []int{403}, Handle: a.showRehearsal,
	}, {
		Method: http.MethodPost, ID: "startBackupRehearsal", Summary: "Rehearse the restore of a backup (Portolan extension)", Access: access,
		Description: "Restores the backup into a temporary database on the manager's machine, checks the data, and deletes it. The database " +
			"in use does not change. One rehearsal runs at a time. Administrators only.",
		Body: &family.Body{Within: rest.ReportBody, Schema: family.Object(family.Schema{"backup": family.Schema{"type": "integer",
			"format": "int64"}}, "backup"), Example: family.Schema{"backup": 100123}},
		Success:  family.Success{Status: http.StatusAccepted, Description: "It is started.", Schema: family.Ref("BackupRehearsal")},
		Problems: []int{403, 404, 409}, Handle: a.startRehearsal,
	}}}
}

// mustAdministrate rejects callers that are not administrators.
func mustAdministrate(r *family.Request, changes bool) error {
	switch caller := callerOf(r); {
	case !caller.Administrator:
		return problem.Forbidden("AccessDenied", "%s may not rehearse backups: only administrators can", caller.Name)
	case changes && caller.ReadOnly:
		return problem.Forbidden("ReadOnlySession", "this session or token may only read")
	}
	return nil
}

func (a *API) showRehearsal(w http.ResponseWriter, r *family.Request) error {
	if err := mustAdministrate(r, false); err != nil {
		return err
	}
	family.WriteJSON(w, http.StatusOK, a.Rehearsal())
	return nil
}

func (a *API) startRehearsal(w http.ResponseWriter, r *family.Request) error {
	if err := mustAdministrate(r, true); err != nil {
		return err
	}
	var id int64
	if raw, ok := r.Members["backup"]; !ok {
		return family.Missing("backup")
	} else if json.Unmarshal(raw, &id) != nil || id <= 0 {
		return problem.Invalid("backup", "must be the id of a backup")
	}
	var row *store.Resource
	if err := a.Address.Store.View(r.Context(), func(tx *store.Tx) error {
		found, err := tx.Get(id)
		if store.IsNotFound(err) || err == nil && found.Collection != "backups" {
			return problem.NotFound("backups/%d does not exist", id)
		}
		if err == nil {
			row = found.Clone()
		}
		return err
	}); err != nil {
		return err
	}
	if err := a.Rehearse(row); err != nil {
		return err
	}
	family.WriteJSON(w, http.StatusAccepted, a.Rehearsal())
	return nil
}
