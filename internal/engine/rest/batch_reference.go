package rest

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"portolan/internal/engine/schema"
)

// How a body names an earlier change: as its id, or that of an object at any depth. A quote inside of a text is escaped, so the
// latter is in no text.
var (
	bodyRef = regexp.MustCompile(`([{,\s]"id"\s*:\s*)"(\$[0-9]{1,5})"`)
	ownRef  = regexp.MustCompile(`^()"(\$[0-9]{1,5})"$`)
)

// refsIn gives how a member of a body may name earlier changes; nil where it holds what is the client's own, such as user-defined fields.
func (a *Server) refsIn(rq *request, name string) *regexp.Regexp {
	if slices.ContainsFunc(a.TargetTypes(rq.Target), func(t *schema.Type) bool {
		f := t.ByName[name]
		return f != nil && (f.Kind == schema.Map || f.Kind == schema.Raw)
	}) {
		return nil
	}
	if name == "id" {
		return ownRef
	}
	return bodyRef
}

// bodyRefs gives the earlier changes that a member of a body names.
func (a *Server) bodyRefs(rq *request, name string, raw json.RawMessage) (refs []int) {
	if form := a.refsIn(rq, name); form != nil {
		for _, match := range form.FindAllSubmatch(raw, -1) {
			refs = append(refs, refOf(string(match[2])))
		}
	}
	return refs
}

// fillBody puts ids in the place of the earlier changes that a member of a body names.
func (a *Server) fillBody(rq *request, name string, raw json.RawMessage, made []int64) json.RawMessage {
	form := a.refsIn(rq, name)
	if form == nil {
		return raw
	}
	return form.ReplaceAllFunc(raw, func(found []byte) []byte {
		match := form.FindSubmatch(found)
		return strconv.AppendInt(slices.Clone(match[1]), made[refOf(string(match[2]))], 10)
	})
}

// refOf reads $3; -1 where it is something else.
func refOf(text string) int {
	digits, ok := strings.CutPrefix(text, "$")
	n, err := strconv.ParseUint(digits, 10, 31)
	if !ok || err != nil {
		return -1
	}
	return int(n) //nolint:gosec // 31 bits
}

// fillPath puts ids in the place of the earlier changes that a path names.
func fillPath(path string, id func(ref int) int64) string {
	segments := strings.Split(path, "/")
	for i, segment := range segments {
		if ref := refOf(segment); ref >= 0 {
			segments[i] = strconv.FormatInt(id(ref), 10)
		}
	}
	return strings.Join(segments, "/")
}
