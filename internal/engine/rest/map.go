package rest

import (
	"fmt"
	"math"
	"math/bits"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"

	"portolan/internal/base/problem"
	"portolan/internal/base/space"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// The number of cells of a map; it must be a power of two.
const (
	minCells = 256
	maxCells = 1 << 16
)

// Each cell of a map is one character of mapLetters. Its index is the kind of the cell times mapLevels, plus its level: 0 for an empty
// cell, the highest for a full one. outside is the character of a cell that is not part of the resource.
const (
	mapLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	mapLevels  = 16
	outside    = '.'
)

// spaceMap serves the utilization map of a resource.
func (a *Server) spaceMap(w http.ResponseWriter, r *http.Request, t resource.Target, caller resource.Caller) error {
	form, query, err := a.parseReportRequest(w, r, t, caller, "cells", "prefix")
	if err != nil || r.Method == http.MethodOptions {
		return err
	}
	cells, err := intParameter(query, "cells", 0, math.MaxInt32, minCells)
	if err != nil {
		return err
	}
	if cells < minCells || cells > maxCells || bits.OnesCount64(uint64(cells)) != 1 {
		return problem.Query("cells", "must be a power of two from %[2]d to %[3]d, not %[1]d", cells, minCells, maxCells)
	}
	part, err := partOf(query)
	if err != nil {
		return err
	}
	var m *resource.SpaceMap
	if err := a.longRead(r.Context(), caller, false, func(tx *store.Tx) error {
		row, err := a.locateFullyVisible(tx, t, caller)
		if err == nil {
			err = checkOverlap(row, part)
		}
		if err == nil {
			m, err = t.Collection.Map(tx, row, part, int(cells))
		}
		return err
	}); err != nil {
		return err
	}
	above := fmt.Sprintf("%s/%s/%d", a.Base, t.Collection.Name, t.ID)
	send(w, r, http.StatusOK, form, mapText(m, form, above))
	return nil
}

// partOf returns the prefix of the requested map; the zero Prefix if the request names none.
func partOf(query url.Values) (part netip.Prefix, err error) {
	text, given, err := singleParameter(query, "prefix")
	if err != nil || !given {
		return part, err
	}
	if part, err = netip.ParsePrefix(text); err != nil || part.Masked() != part {
		return part, problem.Query("prefix", "must be a prefix, such as 10.3.0.0/16, not %q", text)
	}
	return part, nil
}

// checkOverlap refuses a prefix that does not overlap the resource.
func checkOverlap(row *store.Resource, part netip.Prefix) error {
	if !part.IsValid() {
		return nil
	}
	low, high := store.KeyAddr(row.Low), store.KeyAddr(row.High)
	if _, ok := (space.Range{Low: low, High: high}).Intersect(space.FromPrefix(part)); !ok {
		return problem.Query("prefix", "%s is outside %s", part, space.Range{Low: low, High: high})
	}
	return nil
}

// mapText encodes a map.
func mapText(m *resource.SpaceMap, form media, above string) []byte {
	b := make([]byte, 0, m.Count+512)
	b = schema.AppendString(append(b, `{"range":`...), m.Range.String())
	b = schema.AppendString(append(b, `,"prefix":`...), m.Whole.String())
	b = strconv.AppendInt(append(b, `,"cells":`...), int64(m.Count), 10)
	b = strconv.AppendInt(append(b, `,"cellLength":`...), int64(m.Length), 10)
	b = strconv.AppendInt(append(b, `,"levels":`...), mapLevels, 10)
	b = append(b, `,"kinds":[`...)
	for i, kind := range m.Kinds {
		if i > 0 {
			b = append(b, ',')
		}
		b = schema.AppendString(b, kind)
	}
	b = append(b, `],"map":"`...)
	for i := range m.Count {
		if c := m.Cell(i); c.Outside {
			b = append(b, outside)
		} else {
			b = append(b, mapLetters[int(c.Kind)*mapLevels+level(c.Full)])
		}
	}
	b = append(b, '"')
	if form == asHAL {
		b = append(b, `,"_links":{"self":{"href":"`+above+"/"+resource.MapName+`"},"up":{"href":"`+above+`"}}`...)
	}
	return append(b, '}')
}

// level returns the level of a share. Only an empty cell has the lowest level, and only a full cell the highest.
func level(full float64) int {
	switch {
	case full <= 0:
		return 0
	case full >= 1:
		return mapLevels - 1
	}
	return 1 + min(mapLevels-3, int(full*(mapLevels-2)))
}
