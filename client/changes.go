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

// ChangesQuery selects transactions of the change feed.
type ChangesQuery struct {
	// After is the position of the last transaction received, from FeedTransaction. "start" means all transactions still stored, empty means
	// new transactions only.
	After string
	// Collections and Parent select the changes: the collections, and the direct parent of the resources. Empty and 0 select all.
	Collections []string
	Parent      int64
}

// Change is one change of a transaction.
type Change struct {
	// ID is the ID of the change in the history.
	ID int64 `json:"id"`
	// OperationType is ADD, CHANGE or DELETE.
	OperationType string `json:"operationType"`
	ResourceID    int64  `json:"resourceId"`
	ResourceType  string `json:"resourceType"`
	// Name is the name of the resource. It is empty if the feed does not contain it.
	Name        string `json:"name"`
	Collection  string `json:"resourceCollection"`
	Transaction int64  `json:"transaction"`
	// FieldUpdates are the fields that changed, with their values after and before the change.
	FieldUpdates []FieldUpdate `json:"fieldUpdates"`
}

// FieldUpdate is a field that changed, with its values after and before the change.
type FieldUpdate struct {
	Name          string          `json:"name"`
	Value         json.RawMessage `json:"value"`
	PreviousValue json.RawMessage `json:"previousValue"`
}

// FeedTransaction is a transaction of the change feed. The feed sends its changes first.
type FeedTransaction struct {
	// Position is the value of ChangesQuery.After to continue after this transaction.
	Position string `json:"-"`
	ID       int64  `json:"id"`
	// Operation is the kind of transaction, such as ADD_IPV4_NETWORK. Description is a sentence about it.
	Operation        string    `json:"operation"`
	Description      string    `json:"description"`
	Principal        string    `json:"principal"`
	Comment          string    `json:"comment"`
	CreationDateTime time.Time `json:"creationDateTime"`
	// Changes are the changes that the query selects.
	Changes []Change `json:"-"`
}

// Changes follows the change feed and calls fn for each transaction with selected changes, in order. It returns the error of fn, or the
// error of the context. A lost connection is opened again and continues at the last position, so each transaction is delivered exactly
// once. An *Error with status 410 reports that the requested position is no longer stored.
func (c *Client) Changes(ctx context.Context, q ChangesQuery, fn func(FeedTransaction) error) error {
	for attempt := 0; ; attempt++ {
		opened, err := c.follow(ctx, &q, fn)
		var refused *Error
		var fromCallback *callbackError
		switch {
		case errors.As(err, &fromCallback):
			return fromCallback.error
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

// callbackError is an error that the callback returned.
type callbackError struct{ error }

// follow reads the feed until the connection is lost. opened reports that the connection was established.
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
	watchdog := time.AfterFunc(maxSilence, end)
	defer watchdog.Stop()
	body, err := c.open(ctx, AddressPath+"changes?"+values.Encode(), "text/event-stream")
	if err != nil {
		return false, err
	}
	defer func() { _ = body.Close() }()
	return true, readEvents(bufio.NewReader(body), &feedReader{q: q, fn: fn, watchdog: watchdog})
}

// maxSilence is the time without data after which the connection counts as lost. The manager sends data at least every 15 seconds.
const maxSilence = time.Minute

// feedReader collects the events of the feed into transactions.
type feedReader struct {
	q       *ChangesQuery
	fn      func(FeedTransaction) error
	changes []Change
	// watchdog closes the connection after a time without data.
	watchdog *time.Timer
}

func (f *feedReader) event(kind, id string, data []byte) error {
	switch kind {
	case "change":
		var one Change
		if err := json.Unmarshal(data, &one); err != nil {
			return fmt.Errorf("read a change: %w", err)
		}
		f.changes = append(f.changes, one)
	case "transaction":
		t := FeedTransaction{Position: id, Changes: f.changes}
		if err := json.Unmarshal(data, &t); err != nil {
			return fmt.Errorf("read a transaction: %w", err)
		}
		if err := f.fn(t); err != nil {
			return &callbackError{err}
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

// readEvents reads Server-Sent Events in the format of this API.
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
		to.watchdog.Reset(maxSilence)
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
