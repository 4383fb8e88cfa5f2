package rest

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"portolan/internal/engine/schema"
)

// A body refers to an earlier change in a member id, at any depth. Quotes inside of strings are escaped, so bodyRef matches no text in a
// string.
var (
	bodyRef = regexp.MustCompile(`([{,\s]"id"\s*:\s*)"(\$[0-9]{1,5})"`)
	ownRef  = regexp.MustCompile(`^()"(\$[0-9]{1,5})"$`)
)

// referencePattern returns the pattern of references in a member of a body; nil for members with free values, such as user-defined
// fields.
func (a *Server) referencePattern(rq *request, name string) *regexp.Regexp {
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

// bodyReferences returns the indexes of the changes that a member of a body refers to.
func (a *Server) bodyReferences(rq *request, name string, raw json.RawMessage) (refs []int) {
	if form := a.referencePattern(rq, name); form != nil {
		for _, match := range form.FindAllSubmatch(raw, -1) {
			refs = append(refs, parseReference(string(match[2])))
		}
	}
	return refs
}

// fillBody replaces the references in a member of a body by ids.
func (a *Server) fillBody(rq *request, name string, raw json.RawMessage, made []int64) json.RawMessage {
	form := a.referencePattern(rq, name)
	if form == nil {
		return raw
	}
	return form.ReplaceAllFunc(raw, func(found []byte) []byte {
		match := form.FindSubmatch(found)
		return strconv.AppendInt(slices.Clone(match[1]), made[parseReference(string(match[2]))], 10)
	})
}

// parseReference parses a reference such as $3; -1 for other texts.
func parseReference(text string) int {
	digits, ok := strings.CutPrefix(text, "$")
	n, err := strconv.ParseUint(digits, 10, 31)
	if !ok || err != nil {
		return -1
	}
	return int(n) //nolint:gosec // 31 bits
}

// fillPath replaces the references in a path by ids.
func fillPath(path string, id func(ref int) int64) string {
	segments := strings.Split(path, "/")
	for i, segment := range segments {
		if ref := parseReference(segment); ref >= 0 {
			segments[i] = strconv.FormatInt(id(ref), 10)
		}
	}
	return strings.Join(segments, "/")
}
