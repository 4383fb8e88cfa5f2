package resource

import (
	"cmp"
	"encoding/json"
	"strings"

	"portolan/internal/base/space"
	"portolan/internal/engine/store"
)

// describeRow returns a resource for an error: its type, followed by its absolute name, range or address and its own name, as far as it has
// them.
func describeRow(r *store.Resource) string {
	var body struct{ AbsoluteName string }
	_ = json.Unmarshal(r.Body, &body) // a body without the member leaves it empty
	place := body.AbsoluteName
	if place == "" && len(r.Low) > 0 {
		span := space.Range{Low: store.KeyAddr(r.Low), High: store.KeyAddr(r.High)}
		place = span.String()
		if span.Low == span.High {
			place = span.Low.String()
		}
	}
	parts := []string{r.Type}
	if place != "" {
		parts = append(parts, place)
	}
	if r.Name != "" && !strings.HasPrefix(place, r.Name) {
		parts = append(parts, r.Name)
	}
	return strings.Join(parts, " ")
}

// shownOf returns the row that describes a change of the history: after it, or before a deletion.
func shownOf(u undone) *store.Resource { return cmp.Or(u.after, u.before) }
