package rest

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"portolan/internal/base/problem"
	"portolan/internal/engine/schema"
)

// Bounds are the limits of a request's body.
type Bounds struct {
	// Bytes is the maximum length, Members the maximum number of members and elements, at any depth.
	Bytes   int64
	Members int
	// Time is the maximum time for reading the body; 0 means the server's own limit.
	Time time.Duration
}

// Limits of bodies: StandardBody of changes by authenticated callers, SmallBody of sign-ins and similar requests without authentication,
// ReportBody of a service point's report, StreamBody of a batch of its records.
var (
	StandardBody = Bounds{Bytes: 10 << 20, Members: 200_000}
	SmallBody    = Bounds{Bytes: 16 << 10, Members: 100, Time: 10 * time.Second}
	ReportBody   = Bounds{Bytes: 256 << 10, Members: 20_000, Time: 30 * time.Second}
	StreamBody   = Bounds{Bytes: 1 << 20, Members: 100_000, Time: 30 * time.Second}
)

// ReadBody reads a request's JSON object within the limits. It refuses bodies that are not an object, have a duplicate member, or nest
// too deeply.
func ReadBody(w http.ResponseWriter, r *http.Request, within Bounds) (map[string]json.RawMessage, []byte, error) {
	data, err := readBytes(w, r, within)
	if err != nil {
		return nil, nil, err
	}
	members, err := schema.ParseObject(data, within.Members)
	return members, data, err
}

func readBytes(w http.ResponseWriter, r *http.Request, within Bounds) ([]byte, error) {
	if within.Time > 0 {
		// Connections without deadlines, as in some tests, have the server's limit.
		if err := http.NewResponseController(w).SetReadDeadline(time.Now().Add(within.Time)); err != nil &&
			!errors.Is(err, http.ErrNotSupported) {
			return nil, err
		}
	}
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, within.Bytes))
	if err != nil {
		var large *http.MaxBytesError
		if errors.As(err, &large) {
			return nil, problem.New(http.StatusRequestEntityTooLarge, "RequestTooLarge", "the body is larger than %s", size(within.Bytes))
		}
		return nil, problem.BadRequest("InvalidRequestBody", "the body could not be read completely; send it again")
	}
	return data, nil
}

// size formats a number of bytes.
func size(n int64) string {
	if n >= 1<<20 {
		return strconv.FormatInt(n>>20, 10) + " MiB"
	}
	return strconv.FormatInt(n>>10, 10) + " KiB"
}
