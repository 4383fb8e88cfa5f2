package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// ChangesQuery says what of the change feed is wanted.
type ChangesQuery struct {
	// After is the position to begin behind, as a Transaction had it; "start" is everything that is kept, empty is from now on.
	After string
	// Collections are those whose changes are wanted, Parent what they lie right below; none and 0: all.
	Collections []string
	Parent      int64
}

// Change is one change of a transaction.
type Change struct {
	// ID is its number in the history.
	ID int64 `json:"id"`
	// OperationType is ADD, CHANGE or DELETE.
	OperationType string `json:"operationType"`
	ResourceID    int64  `json:"resourceId"`
	ResourceType  string `json:"resourceType"`
	// Name is what the resource is called; empty where that is not told.
	Name        string `json:"name"`
	Collection  string `json:"resourceCollection"`
	Transaction int64  `json:"transaction"`
	// FieldUpdates are the fields that are different, with their values after it and before it.
	FieldUpdates []FieldUpdate `json:"fieldUpdates"`
}

// FieldUpdate is a field that is different, with its values after a change and before it.
type FieldUpdate struct {
	Name          string          `json:"name"`
	Value         json.RawMessage `json:"value"`
	PreviousValue json.RawMessage `json:"previousValue"`
}

// FeedTransaction is a transaction of the change feed, whose changes came before it.
type FeedTransaction struct {
	// Position is where to go on behind it.
	Position string `json:"-"`
	ID       int64  `json:"id"`
	// Operation is what was done, such as ADD_IPV4_NETWORK; Description says it in a sentence.
	Operation        string    `json:"operation"`
	Description      string    `json:"description"`
	Principal        string    `json:"principal"`
	Comment          string    `json:"comment"`
	CreationDateTime time.Time `json:"creationDateTime"`
	// Changes are its changes as far as they are wanted.
	Changes []Change `json:"-"`
}

// Changes follows the change feed, and calls fn for each transaction with changes that are wanted, in order, until fn fails, whose error is
// given, or the context ends. A connection that is lost is made again, and goes on where it was: nothing is left out, nothing comes
// twice. An *Error of 410 says that what was wanted is not kept any more.
func (c *Client) Changes(ctx context.Context, q ChangesQuery, fn func(FeedTransaction) error) error {
	for attempt := 0; ; attempt++ {
		opened, err := c.follow(ctx, &q, fn)
		var refused *Error
		var own *stopped
		switch {
		case errors.As(err, &own):
			return own.error
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.As(err, &refused) && refused.Status < 500 && refused.Status != http.StatusTooManyRequests:
			return err
		}
		if opened {
			attempt = 0
		}
		timer := time.NewTimer(min(time.Second<<min(attempt, 5), 30*time.Second))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
	}
}

// stopped is the error of who was called.
type stopped struct{ error }

// follow follows until the connection is lost; opened says that there was one.
func (c *Client) follow(ctx context.Context, q *ChangesQuery, fn func(FeedTransaction) error) (opened bool, err error) {
	values := url.Values{}
	if q.After != "" {
		values.Set("after", q.After)
	}
	if len(q.Collections) > 0 {
		values.Set("collection", strings.Join(q.Collections, ","))
	}
	if q.Parent != 0 {
		values.Set("parent", strconv.FormatInt(q.Parent, 10))
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	lost := time.AfterFunc(silence, end)
	defer lost.Stop()
	body, err := c.open(ctx, "/api/v2/changes?"+values.Encode(), "text/event-stream")
	if err != nil {
		return false, err
	}
	defer func() { _ = body.Close() }()
	return true, readEvents(bufio.NewReader(body), &feedReader{q: q, fn: fn, lost: lost})
}

// silence is how long a manager may say nothing: it says at least something every quarter of a minute.
const silence = time.Minute

// feedReader takes events.
type feedReader struct {
	q       *ChangesQuery
	fn      func(FeedTransaction) error
	changes []Change
	// lost ends the connection when nothing has come for long.
	lost *time.Timer
}

func (f *feedReader) event(kind, id string, data []byte) error {
	switch kind {
	case "change":
		var one Change
		if err := json.Unmarshal(data, &one); err != nil {
			return fmt.Errorf("reading a change: %w", err)
		}
		f.changes = append(f.changes, one)
	case "transaction":
		t := FeedTransaction{Position: id, Changes: f.changes}
		if err := json.Unmarshal(data, &t); err != nil {
			return fmt.Errorf("reading a transaction: %w", err)
		}
		if err := f.fn(t); err != nil {
			return &stopped{err}
		}
		f.changes, f.q.After = nil, id
	case "position":
		f.q.After = id
	case "error":
		e := &Error{}
		if err := json.Unmarshal(data, e); err != nil {
			return err
		}
		return e
	}
	return nil
}

// readEvents reads Server-Sent Events as this API sends them.
func readEvents(from *bufio.Reader, to *feedReader) error {
	var kind, id string
	var data []byte
	for {
		line, err := from.ReadBytes('\n')
		if err != nil {
			if errors.Is(err, io.EOF) {
				return io.ErrUnexpectedEOF
			}
			return err
		}
		to.lost.Reset(silence)
		name, value, _ := strings.Cut(strings.TrimSuffix(string(line), "\n"), ": ")
		switch name {
		case "event":
			kind = value
		case "id":
			id = value
		case "data":
			data = []byte(value)
		case "":
			if kind != "" {
				if err := to.event(kind, id, data); err != nil {
					return err
				}
			}
			kind, id, data = "", "", nil
		}
	}
}
