package client

import (
	"context"
	"encoding/json"
	"net/http"
)

// BatchChange is one change of a batch, in the form of a single request.
type BatchChange struct {
	// Method is POST, PUT, PATCH or DELETE.
	Method string `json:"method"`
	// Path is below /api/v2, such as "networks/100007/addresses". A segment $3 is replaced by the ID of the resource that change 3 creates,
	// counted from 0.
	Path string `json:"path"`
	// Headers are the headers of this change only, such as If-Match.
	Headers map[string]string `json:"headers,omitempty"`
	// Body is the request body. {"id":"$3"} in it refers to the resource that change 3 creates.
	Body any `json:"body,omitempty"`
}

// BatchOptions are the options of a batch. The zero value sets none.
type BatchOptions struct {
	// DryRun tries the batch without committing it.
	DryRun bool
	// Comment is stored with the batch in the history.
	Comment string
	// Key is the Idempotency-Key: requests with the same key within 24 hours are executed once.
	Key string
}

// BatchAnswer is the result of a batch.
type BatchAnswer struct {
	Count int `json:"count"`
	// Transaction is the ID of the transaction in the history; 0 if nothing changed.
	Transaction int64         `json:"transaction"`
	Results     []BatchResult `json:"results"`
	// DryRun reports a dry run. Created, Changed and Deleted are then the numbers of resources that the batch would affect.
	DryRun  bool `json:"dryRun,omitempty"`
	Created int  `json:"created,omitempty"`
	Changed int  `json:"changed,omitempty"`
	Deleted int  `json:"deleted,omitempty"`
	// AtLeast reports that a large change was tried only in part: Results is empty, and the counts cover that part.
	AtLeast bool `json:"atLeast,omitempty"`
}

// BatchResult is the result of one change.
type BatchResult struct {
	Status   int             `json:"status"`
	Location string          `json:"location"`
	ETag     string          `json:"etag"`
	Ignored  []string        `json:"ignored"`
	Body     json.RawMessage `json:"body"`
}

// Batch executes changes, all of them or none. An *Error names the change that is rejected, as in "changes[3].name".
func (c *Client) Batch(ctx context.Context, changes []BatchChange, o BatchOptions) (BatchAnswer, error) {
	text, err := json.Marshal(changes)
	if err != nil {
		return BatchAnswer{}, err
	}
	return c.BatchJSON(ctx, text, o)
}

// BatchJSON executes a batch given as a JSON list, which is sent unchanged.
func (c *Client) BatchJSON(ctx context.Context, changes json.RawMessage, o BatchOptions) (answer BatchAnswer, err error) {
	header := map[string]string{}
	for name, value := range map[string]string{"x-bcn-change-control-comment": o.Comment, "Idempotency-Key": o.Key} {
		if value != "" {
			header[name] = value
		}
	}
	body := map[string]json.RawMessage{"changes": changes}
	if !o.DryRun {
		err = c.send(ctx, http.MethodPost, AddressPath+"batch", header, body, &answer)
		return answer, err
	}
	header["x-portolan-dry-run"] = "true"
	var tried struct {
		Resource                  BatchAnswer
		Created, Changed, Deleted int
		AtLeast                   bool
	}
	err = c.send(ctx, http.MethodPost, AddressPath+"batch", header, body, &tried)
	answer = tried.Resource
	answer.DryRun, answer.Created, answer.Changed, answer.Deleted = true, tried.Created, tried.Changed, tried.Deleted
	answer.AtLeast = tried.AtLeast
	return answer, err
}
