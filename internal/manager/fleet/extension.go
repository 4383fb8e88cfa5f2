package fleet

import (
	"embed"
	"encoding/json"
	"slices"

	"portolan/internal/engine/store"
	"portolan/internal/wire/checkin"
)

// statuses and updateStatuses are the possible states of a service point (spec.md section 3).
var (
	statuses       = []string{Waiting, Healthy, Unhealthy, Expired}
	updateStatuses = []string{checkin.UpdateOK, checkin.UpdateQueued, checkin.UpdateRunning, checkin.UpdateFailed}
)

//go:embed migrations/*/*.sql
var migrations embed.FS

// Extension describes the fleet's tables in a database.
func Extension() *store.Extension {
	return &store.Extension{Name: "fleet", Migrations: migrations, Verify: verify, Tables: []store.Table{
		{Name: "secret", Columns: []string{"name", "value"}, Key: 1},
		// The column revision is left out: it counts anew in another database.
		{Name: "service_point", Columns: []string{"id", "name", "description", "variant", "status", "update_status", "version",
			"target_version", "key_hash", "key_expires", "key_public", "desired", "created", "generation", "acknowledged", "update_asked",
			"update_reason", "platform", "base_version", "logs_asked", "ntp_servers", "anycast", "node_count", "several"}, Key: 1,
			Earlier: []store.Earlier{{Before: 8, Columns: []string{"id", "name", "description", "variant", "status", "update_status", "version",
				"target_version", "key_hash", "key_expires", "key_public", "certificates", "last_seen", "report", "desired", "created"}},
				{Before: 9, Columns: []string{"id", "name", "description", "variant", "status", "update_status", "version", "target_version",
					"key_hash", "key_expires", "key_public", "desired", "created", "generation", "acknowledged"}}}},
		{Name: "node", Columns: []string{"service_point", "number", "key_public", "generation", "acknowledged", "last_seen", "connected",
			"sequence",
			"digest", "body"}, Key: 2},
		{Name: "label", Columns: []string{"service_point", "name", "value"}, Key: 2},
		{Name: "rollout", Columns: []string{"id", "created", "version", "plan", "status", "reason", "wave", "excused"}, Key: 1},
		rolloutMembers,
		{Name: "wanted_log", Columns: []string{"id", "service_point", "application", "bytes", "asked", "answered", "problem", "body"}, Key: 1,
			Derived: "belongs to a request that waits at a manager of this database"},
		{Name: "fleet_change", Columns: []string{"n"}, Derived: "each database counts its own"},
		{Name: "presence", Columns: []string{"service_point", "last_seen", "connected"}, Key: 1},
		{Name: "application", Columns: []string{"id", "service_point", "name", "version", "target_version", "status", "update_status",
			"conditions", "configuration", "generation", "created", "deleted", "title", "anycast", "limits"}, Key: 1,
			Earlier: []store.Earlier{{Before: 9,
				Columns: []string{"id", "service_point", "name", "version", "target_version", "status", "update_status", "conditions",
					"configuration", "generation", "created", "deleted"}}}},
		{Name: "lineage", Columns: []string{"service_point", "node", "process", "body"}, Key: 2},
		{Name: "stream", Columns: []string{"service_point", "node", "application", "kind", "spool", "next", "lost"}, Key: 4},
		{Name: "figure_report", Columns: []string{"service_point", "node", "at", "body"}, Key: 2,
			Derived: "service points report it every minute"},
		{Name: "deleted_service_point", Columns: []string{"id"}, Key: 1},
		{Name: "spent_key", Columns: []string{"key_hash", "until"}, Key: 1},
		{Name: "report", Columns: []string{"service_point", "sequence", "digest", "body"}, Key: 1},
		{Name: "fleet_event", Columns: []string{"service_point", "at", "field", "old", "new", "reason", "seq"},
			Earlier: []store.Earlier{{Before: 8, Columns: []string{"service_point", "at", "field", "old", "new", "seq"}}}}}}
}

// verify checks the fleet's tables in a snapshot and reports errors to fault.
func verify(tx *store.Tx, fault func(format string, args ...any)) error {
	if err := verifyRollouts(tx, fault); err != nil {
		return err
	}
	return tx.Stream(func(scan func(...any) error) error {
		var id, status, update, report string
		if err := scan(&id, &status, &update, &report); err != nil {
			return err
		}
		if !slices.Contains(statuses, status) {
			fault("service point %s has the unknown status %q", id, status)
		}
		if !slices.Contains(updateStatuses, update) {
			fault("service point %s has the unknown update status %q", id, update)
		}
		if report != "" && json.Unmarshal([]byte(report), new(checkin.Report)) != nil {
			fault("the report of service point %s cannot be read", id)
		}
		return nil
	}, "SELECT s.id, s.status, s.update_status, coalesce(r.body, '') FROM service_point s LEFT JOIN report r ON r.service_point = s.id")
}
