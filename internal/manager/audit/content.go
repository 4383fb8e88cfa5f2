package audit

import (
	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
)

// contentTransactions is the subcollection of the transactions that changed a resource or its content (Portolan extension).
const contentTransactions = "contentTransactions"

// registerContentTransactions declares the history of containers with their content.
func registerContentTransactions(r *resource.Registry) {
	for _, above := range []string{"blocks", "networks", "ranges", "views", "zones", "servers"} {
		r.Computed(resource.ComputedSub{Below: above, Name: contentTransactions, Items: []string{"transactions"},
			Where: func(_ *store.Tx, _ *resource.API, above *store.Resource) (store.Expr, error) {
				return store.TouchingContent{Resource: above.ID}, nil
			}})
	}
}
