package fleet

import (
	"strings"

	"portolan/internal/store"
)

// Fields whose moves are events.
const (
	fieldStatus     = "status"
	fieldConnection = "connectionStatus"
)

// keptEvents is how many events of a service point are kept.
const keptEvents = 200

// moved records that a field of a service point moved.
func (s *Service) moved(tx *store.Tx, id, field, before, after string) error {
	if err := tx.Write("INSERT INTO fleet_event (service_point, at, field, old, new) VALUES (?,?,?,?,?)", id, s.now().UnixMilli(), field,
		before, after); err != nil {
		return err
	}
	return tx.Write("DELETE FROM fleet_event WHERE service_point = ? AND seq <= (SELECT seq FROM fleet_event WHERE service_point = ? "+
		"ORDER BY seq DESC LIMIT 1 OFFSET ?)",
		id, id, keptEvents)
}

// places gives so many placeholders for a list.
func places(n int) string { return strings.TrimSuffix(strings.Repeat("?,", n), ",") }
