package serverconfig

import (
	"fmt"
	"slices"
	"strings"

	"portolan/internal/engine/event"
	"portolan/internal/engine/store"
)

// maxPointsPerQuery is the maximum number of service points in one query.
const maxPointsPerQuery = 200

// PointsMoved adds an event, in a transaction, for each server that is one of the given service points. The status or connection of the
// points has changed to after.
func PointsMoved(tx *store.Tx, points []string, _, after string, reasons []string) error {
	for part := range slices.Chunk(points, maxPointsPerQuery) {
		var is store.Any
		for _, id := range part {
			is = append(is, store.Compare{Field: store.Field{Kind: store.Text, Path: []string{"servicePoint"}, Indexed: true}, Op: "eq", Value: id})
		}
		var servers []*store.Resource
		if err := tx.List(store.Query{From: store.Resources, Where: store.All{store.InCollection("servers"), is}}, func(r *store.Resource) error {
			servers = append(servers, r.Clone())
			return nil
		}); err != nil {
			return err
		}
		for _, r := range servers {
			kind, text := "WARNING", fmt.Sprintf("Server %s: its service point is %s", r.Name, after)
			if after == "HEALTHY" || after == "CONNECTED" {
				kind = "INFO"
			}
			if len(reasons) > 0 {
				text += ": " + strings.Join(reasons, "; ")
			}
			if err := event.Add(tx, event.Event{EventType: kind, Category: "SERVER_MONITORING", Subcategory: ServiceDNS, SourceName: r.Name,
				Message: text}, r.ID); err != nil {
				return err
			}
		}
	}
	return nil
}
