package client

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"
)

// ImportOptions say what an import does (docs/import.md).
type ImportOptions struct {
	// Name is what the import is called; empty: as its file.
	Name string `json:"name,omitempty"`
	// ContentType is text/csv, application/json or application/x-ndjson.
	ContentType string `json:"contentType"`
	// Into is what the rows belong below, such as configurations/100007; empty: each says it itself.
	Into string `json:"into,omitempty"`
	// Mode is ROW_BY_ROW, ALL_OR_NOTHING or DRY_RUN; Action is CREATE_OR_UPDATE, CREATE or UPDATE; empty: the first.
	Mode   string `json:"mode,omitempty"`
	Action string `json:"action,omitempty"`
	// Comment is what the history says of it.
	Comment string `json:"comment,omitempty"`
	// Headers hold for every row.
	Headers map[string]string `json:"headers,omitempty"`
	// Tag is the path of a tag that the resource of each row gets. Prune deletes what has it, lies in Into, and is in no row.
	Tag   string `json:"tag,omitempty"`
	Prune bool   `json:"prune,omitempty"`
}

// Import is how an import is.
type Import struct {
	ID        int64  `json:"id"`
	State     string `json:"state"`
	Message   string `json:"message"`
	Rows      int64  `json:"rows"`
	Created   int64  `json:"created"`
	Updated   int64  `json:"updated"`
	Unchanged int64  `json:"unchanged"`
	Refused   int64  `json:"refused"`
	// Deleted is how many resources were deleted that are in no row.
	Deleted int64 `json:"deleted"`
}

// Ended reports whether it has ended.
func (i *Import) Ended() bool {
	switch i.State {
	case "PENDING", "QUEUED", "RUNNING", "CANCELLING":
		return false
	}
	return true
}

// StartImport sends a file and starts its import.
func (c *Client) StartImport(ctx context.Context, name string, file io.Reader, o ImportOptions) (*Import, error) {
	one := &Import{}
	return one, c.CreateWithContent(ctx, "imports", name, file, struct {
		ImportOptions
		State string `json:"state"`
	}{o, "QUEUED"}, ChangeOptions{}, one)
}

// Import gives how an import is.
func (c *Client) Import(ctx context.Context, id int64) (*Import, error) {
	one := &Import{}
	return one, c.Do(ctx, http.MethodGet, fmt.Sprintf("/api/v2/imports/%d", id), nil, one)
}

// ImportLog gives what is to be said of an import, a line each.
func (c *Client) ImportLog(ctx context.Context, id int64) (string, error) {
	var list struct {
		Data []struct {
			Contents string `json:"contents"`
		} `json:"data"`
	}
	if err := c.Do(ctx, http.MethodGet, fmt.Sprintf("/api/v2/imports/%d/logs", id), nil, &list); err != nil || len(list.Data) == 0 {
		return "", err
	}
	return list.Data[0].Contents, nil
}

// WaitForImport waits until an import has ended, and tells meanwhile how it is.
func (c *Client) WaitForImport(ctx context.Context, id int64, tell func(*Import)) (*Import, error) {
	for wait := 50 * time.Millisecond; ; wait = min(wait*2, time.Second) {
		one, err := c.Import(ctx, id)
		if one.ID = id; err != nil || one.Ended() {
			return one, err
		}
		tell(one)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return one, ctx.Err()
		}
	}
}
