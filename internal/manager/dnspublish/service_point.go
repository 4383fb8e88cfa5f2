package dnspublish

import (
	"fmt"

	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
	"portolan/internal/manager/serverconfig"
)

// ServicePointOf returns the service point of a server as it was before a change and as it is now; empty where there is none.
func ServicePointOf(c *resource.Change) (before, now string) {
	if old := serverconfig.FieldsOf(c.Old); old != nil {
		before = old.ServicePoint
	}
	if x := serverconfig.FieldsOf(c.New); x != nil {
		now = x.ServicePoint
	}
	return before, now
}

// ServerOfPoint returns the server of a service point of the fleet; nil if there is none.
func ServerOfPoint(tx *store.Tx, servicePoint string) (*store.Resource, error) {
	server, err := serverOfPoint(tx, servicePoint)
	if err != nil {
		return nil, fmt.Errorf("find the server of a service point: %w", err)
	}
	return server, nil
}
