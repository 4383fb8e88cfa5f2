package client

import (
	"context"
	"encoding/json"
	"net/http"
)

// BatchChange is one change of a batch, as it would be sent alone.
type BatchChange struct {
	// Method is POST, PUT, PATCH or DELETE.
	Method string `json:"method"`
	// Path is below /api/v2, such as "networks/100007/addresses". $3 as a segment is the id of what the batch's change 3 makes,
	// counted from 0.
	Path string `json:"path"`
	// Headers are those of this change alone, such as If-Match.
	Headers map[string]string `json:"headers,omitempty"`
	// Body is what is sent; {"id":"$3"} in it is what change 3 makes.
	Body any `json:"body,omitempty"`
}

// BatchOptions say how a batch is made; the zero value says nothing.
type BatchOptions struct {
	// DryRun only tries it.
	DryRun bool
	// Comment is kept with it in the history.
	Comment string
	// Key makes it once only, however often it is sent within 24 hours (Idempotency-Key).
	Key string
}

// BatchAnswer is what came of a batch.
type BatchAnswer struct {
	Count int `json:"count"`
	// Transaction is its number in the history; 0 where nothing changed.
	Transaction int64         `json:"transaction"`
	Results     []BatchResult `json:"results"`
	// DryRun says that it was only tried. Created, Changed and Deleted are then how many resources would be.
	DryRun  bool `json:"dryRun,omitempty"`
	Created int  `json:"created,omitempty"`
	Changed int  `json:"changed,omitempty"`
	Deleted int  `json:"deleted,omitempty"`
	// AtLeast says that it was tried in part, because it would change much: there are no results, and the numbers are of that part.
	AtLeast bool `json:"atLeast,omitempty"`
}

// BatchResult is what came of one change.
type BatchResult struct {
	Status   int             `json:"status"`
	Location string          `json:"location"`
	ETag     string          `json:"etag"`
	Ignored  []string        `json:"ignored"`
	Body     json.RawMessage `json:"body"`
}

// Batch makes changes, all of them or none. An *Error names the change that cannot be made, as in "changes[3].name".
func (c *Client) Batch(ctx context.Context, changes []BatchChange, o BatchOptions) (BatchAnswer, error) {
	text, err := json.Marshal(changes)
	if err != nil {
		return BatchAnswer{}, err
	}
	return c.BatchJSON(ctx, text, o)
}

// BatchJSON is Batch of a JSON list, which is sent as it is.
func (c *Client) BatchJSON(ctx context.Context, changes json.RawMessage, o BatchOptions) (answer BatchAnswer, err error) {
	header := map[string]string{}
	for name, value := range map[string]string{"x-bcn-change-control-comment": o.Comment, "Idempotency-Key": o.Key} {
		if value != "" {
			header[name] = value
		}
	}
	body := map[string]json.RawMessage{"changes": changes}
	if !o.DryRun {
		err = c.send(ctx, http.MethodPost, "/api/v2/batch", header, body, &answer)
		return answer, err
	}
	header["x-portolan-dry-run"] = "true"
	var tried struct {
		Resource                  BatchAnswer
		Created, Changed, Deleted int
		AtLeast                   bool
	}
	err = c.send(ctx, http.MethodPost, "/api/v2/batch", header, body, &tried)
	answer = tried.Resource
	answer.DryRun, answer.Created, answer.Changed, answer.Deleted = true, tried.Created, tried.Changed, tried.Deleted
	answer.AtLeast = tried.AtLeast
	return answer, err
}
