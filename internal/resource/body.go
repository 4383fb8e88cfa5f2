package resource

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"
	"unicode/utf8"

	"portolan/internal/problem"
)

// MaxDepth is how deep the objects and arrays of a body may nest.
const MaxDepth = 64

// Bounds are those of a request's body.
type Bounds struct {
	// Bytes is how long it may be, Members how many members and elements it may have, at any depth.
	Bytes   int64
	Members int
	// Time is how long it may take to come; 0 leaves that to the server.
	Time time.Duration
}

// Bounds of bodies: of changes by somebody who is known, of a sign-in or the like by somebody who is not, and
// of a service point's report.
var (
	AnyBody    = Bounds{Bytes: 10 << 20, Members: 200_000}
	SmallBody  = Bounds{Bytes: 16 << 10, Members: 100, Time: 10 * time.Second}
	ReportBody = Bounds{Bytes: 256 << 10, Members: 20_000, Time: 30 * time.Second}
)

// ReadBody reads a request's JSON object within the bounds. It refuses what is no object, holds
// a member twice, or nests too deeply.
func ReadBody(w http.ResponseWriter, r *http.Request, within Bounds) (map[string]json.RawMessage, []byte, error) {
	if within.Time > 0 {
		// Where the connection has no deadlines of its own, as in some tests, the server's hold.
		if err := http.NewResponseController(w).SetReadDeadline(time.Now().Add(within.Time)); err != nil &&
			!errors.Is(err, http.ErrNotSupported) {
			return nil, nil, err
		}
	}
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, within.Bytes))
	if err != nil {
		var large *http.MaxBytesError
		if errors.As(err, &large) {
			return nil, nil, problem.New(http.StatusRequestEntityTooLarge, "RequestTooLarge", "the body is larger than %s", size(within.Bytes))
		}
		return nil, nil, problem.BadRequest("InvalidRequestBody", "the body could not be read whole")
	}
	members, err := parseObject(data, within.Members)
	return members, data, err
}

// size words a number of bytes.
func size(n int64) string {
	if n >= 1<<20 {
		return strconv.FormatInt(n>>20, 10) + " MiB"
	}
	return strconv.FormatInt(n>>10, 10) + " KiB"
}

func parseObject(data []byte, most int) (map[string]json.RawMessage, error) {
	bad := func(format string, args ...any) error {
		return problem.BadRequest("InvalidRequestBody", format, args...)
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, bad("the body is empty; a JSON object is expected")
	}
	if !utf8.Valid(data) {
		return nil, bad("the body is not UTF-8")
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
				return nil, bad("the body nests deeper than %d at byte %d", MaxDepth, i)
			}
		case c == '}' || c == ']':
			depth--
		case c == ',':
			if parts++; parts > most {
				return nil, bad("the body has more than %d members and elements", most)
			}
		}
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(data, &members); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return nil, bad("the body is not valid JSON at byte %d: %s", syntax.Offset, syntax.Error())
		}
		return nil, bad("the body is not a JSON object")
	}
	if members == nil {
		return nil, bad("the body is null; a JSON object is expected")
	}
	return members, nil
}
