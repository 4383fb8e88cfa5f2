package rest

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// counts answers with the numbers of resources below a resource, by kind (Collection.Counts).
func (a *Server) counts(w http.ResponseWriter, r *http.Request, t resource.Target, caller resource.Caller) error {
	form, _, err := a.parseReportRequest(w, r, t, caller)
	if err != nil || r.Method == http.MethodOptions {
		return err
	}
	var numbers map[string]int64
	if err := a.Store.View(r.Context(), func(tx *store.Tx) error {
		row, err := a.locateFullyVisible(tx, t, caller)
		if err == nil {
			numbers, err = t.Collection.Counts.Of(tx, row)
		}
		return err
	}); err != nil {
		return err
	}
	above := fmt.Sprintf("%s/%s/%d", a.Base, t.Collection.Name, t.ID)
	send(w, r, http.StatusOK, form, countsText(numbers, form, above, t.Collection.Counts.Name))
	return nil
}

// locateFullyVisible returns the resource of a request about everything below it. It refuses callers that do not see everything below it.
func (a *Server) locateFullyVisible(tx *store.Tx, t resource.Target, caller resource.Caller) (*store.Resource, error) {
	row, err := a.Locate(tx, t, caller)
	if err != nil || !caller.Limited() {
		return row, err
	}
	whole, err := caller.Rights.Whole(tx, []int64{row.ID})
	if err == nil && !whole[row.ID] {
		err = problem.Forbidden("AccessDenied", "%s does not have permission to view everything below %s %d", caller.Name, row.Type, row.ID)
	}
	return row, err
}

// countsText encodes numbers by kind.
func countsText(numbers map[string]int64, form media, above, name string) []byte {
	total := int64(0)
	for _, n := range numbers {
		total += n
	}
	b := strconv.AppendInt([]byte(`{"totalCount":`), total, 10)
	b = append(b, `,"counts":{`...)
	for i, kind := range slices.Sorted(maps.Keys(numbers)) {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(append(schema.AppendString(b, kind), ':'), numbers[kind], 10)
	}
	b = append(b, '}')
	if form == asHAL {
		b = append(b, `,"_links":{"self":{"href":"`+above+"/"+name+`"},"up":{"href":"`+above+`"}}`...)
	}
	return append(b, '}')
}
