package client

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"
)

// ImportOptions are the options of an import (docs/import.md).
type ImportOptions struct {
	// Name is the name of the import. Empty means the name of its file.
	Name string `json:"name,omitempty"`
	// ContentType is text/csv, application/json or application/x-ndjson.
	ContentType string `json:"contentType"`
	// Into is the path that the rows belong below, such as configurations/100007. If it is empty, each row specifies its parent.
	Into string `json:"into,omitempty"`
	// Mode is ROW_BY_ROW, ALL_OR_NOTHING or DRY_RUN. Action is CREATE_OR_UPDATE, CREATE or UPDATE. Empty means the first of each.
	Mode   string `json:"mode,omitempty"`
	Action string `json:"action,omitempty"`
	// Comment is stored with the import in the history.
	Comment string `json:"comment,omitempty"`
	// ResourceType is the type of rows without a type, such as IPv4Address. The columns of a table are then guessed by their headers.
	// Columns are the fields of columns by header; an empty field ignores the column.
	ResourceType string            `json:"resourceType,omitempty"`
	Columns      map[string]string `json:"columns,omitempty"`
	// Headers apply to every row.
	Headers map[string]string `json:"headers,omitempty"`
	// Tag is the path of a tag that the resource of each row receives. Prune deletes the resources in Into that have the tag and are in no
	// row.
	Tag   string `json:"tag,omitempty"`
	Prune bool   `json:"prune,omitempty"`
}

// Import is the status of an import.
type Import struct {
	ID        int64  `json:"id"`
	State     string `json:"state"`
	Message   string `json:"message"`
	Rows      int64  `json:"rows"`
	Created   int64  `json:"created"`
	Updated   int64  `json:"updated"`
	Unchanged int64  `json:"unchanged"`
	Refused   int64  `json:"refused"`
	// Columns are the fields of the columns of the table, by header, if they were guessed or given.
	Columns map[string]string `json:"columns,omitempty"`
	// Deleted is the number of resources that were deleted because they are in no row.
	Deleted int64 `json:"deleted"`
}

// Ended reports whether the import has ended.
func (i *Import) Ended() bool {
	switch i.State {
	case "PENDING", "QUEUED", "RUNNING", "CANCELLING":
		return false
	}
	return true
}

// StartImport uploads a file and starts its import.
func (c *Client) StartImport(ctx context.Context, name string, file io.Reader, o ImportOptions) (*Import, error) {
	one := &Import{}
	return one, c.CreateWithContent(ctx, "imports", name, file, struct {
		ImportOptions
		State string `json:"state"`
	}{o, "QUEUED"}, ChangeOptions{}, one)
}

// Import returns the status of an import.
func (c *Client) Import(ctx context.Context, id int64) (*Import, error) {
	one := &Import{}
	return one, c.Do(ctx, http.MethodGet, fmt.Sprintf(AddressPath+"imports/%d", id), nil, one)
}

// ImportLog returns the log of an import, one line per entry.
func (c *Client) ImportLog(ctx context.Context, id int64) (string, error) {
	var list struct {
		Data []struct {
			Contents string `json:"contents"`
		} `json:"data"`
	}
	if err := c.Do(ctx, http.MethodGet, fmt.Sprintf(AddressPath+"imports/%d/logs", id), nil, &list); err != nil || len(list.Data) == 0 {
		return "", err
	}
	return list.Data[0].Contents, nil
}

// WaitForImport waits until an import has ended. It calls progress with the status while the import runs.
func (c *Client) WaitForImport(ctx context.Context, id int64, progress func(*Import)) (*Import, error) {
	for wait := 50 * time.Millisecond; ; wait = min(wait*2, time.Second) {
		one, err := c.Import(ctx, id)
		if one.ID = id; err != nil || one.Ended() {
			return one, err
		}
		progress(one)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return one, ctx.Err()
		}
	}
}
