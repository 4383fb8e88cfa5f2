package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"unicode/utf8"

	"portolan/internal/base/problem"
)

// MaxDepth is the maximum depth of the objects and arrays of a body.
const MaxDepth = 64

// ParseObject parses a JSON object with at most maxParts members and elements, at any depth. It refuses other values and objects that are
// nested too deeply.
func ParseObject(data []byte, maxParts int) (map[string]json.RawMessage, error) {
	bad := func(format string, args ...any) error {
		return problem.BadRequest("InvalidRequestBody", format, args...)
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, problem.BadRequest("EmptyRequestBody", "the body is empty; a JSON object is expected")
	}
	if !utf8.Valid(data) {
		return nil, bad("the body must be UTF-8")
	}
	depth, parts, inString := 0, 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			if depth++; depth > MaxDepth {
				return nil, bad("the body must nest at most %d deep; it is deeper at byte %d", MaxDepth, i)
			}
		case c == '}' || c == ']':
			depth--
		case c == ',':
			if parts++; parts > maxParts {
				return nil, bad("the body must have at most %d members and elements", maxParts)
			}
		}
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(data, &members); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return nil, problem.BadRequest("JsonParseError", "the body is not valid JSON at byte %d: %s", syntax.Offset, syntax.Error())
		}
		return nil, problem.BadRequest("JsonDeserializationError", "the body is not a JSON object")
	}
	if members == nil {
		return nil, problem.BadRequest("EmptyRequestBody", "the body is null; a JSON object is expected")
	}
	return members, nil
}

// Cut returns the first bytes of a text, at most maxBytes of them, without a truncated character.
func Cut(text string, maxBytes int) string {
	return strings.ToValidUTF8(text[:min(len(text), maxBytes)], "")
}
