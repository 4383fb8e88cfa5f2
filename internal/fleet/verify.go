package fleet

import (
	"encoding/json"
	"fmt"
	"slices"

	"portolan/internal/checkin"
	"portolan/internal/store"
)

// statuses and updateStatuses are the states that a service point may be in (spec.md section 3).
var (
	statuses       = []string{Waiting, Healthy, Unhealthy, Expired}
	updateStatuses = []string{"OK", "UPDATE_QUEUED", "UPDATE_RUNNING", "UPDATE_FAILED"}
)

// Verify checks the fleet's tables in a snapshot and lists what is wrong, in sentences.
func Verify(tx *store.Tx) (faults []string, err error) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	if err := tx.Stream(func(scan func(...any) error) error {
		var id, status, update, report string
		if err := scan(&id, &status, &update, &report); err != nil {
			return err
		}
		if !slices.Contains(statuses, status) {
			fault("service point %s has the status %q, which there is not", id, status)
		}
		if !slices.Contains(updateStatuses, update) {
			fault("service point %s has the update status %q, which there is not", id, update)
		}
		if report != "" && json.Unmarshal([]byte(report), new(checkin.Report)) != nil {
			fault("the report of service point %s cannot be read", id)
		}
		return nil
	}, "SELECT id, status, update_status, report FROM service_point"); err != nil {
		return nil, fmt.Errorf("verifying the fleet: %w", err)
	}
	return faults, nil
}
