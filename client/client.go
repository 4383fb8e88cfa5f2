// Package client is a Go client for Portolan's three APIs: the address API, the fleet API, and the diagnostics of a service point. The
// command line and the tests use it.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// AddressPath is the path of the address API. Paths of resources begin with it.
const AddressPath = "/api/v2/"

// FleetPath is the path of the fleet API. Paths of its collections begin with it.
const FleetPath = "/user/api/v1/"

// Client sends requests to one manager, or to one service point for its diagnostics.
type Client struct {
	// Base is the manager's URL, such as http://127.0.0.1:8080.
	Base string
	// Token is a bearer token. Without a token, User and Password are sent as Basic credentials.
	Token          string
	User, Password string
	// Agent is the value of the header User-Agent. Empty means Go's default.
	Agent string
	// HTTP is the HTTP client; nil means http.DefaultClient.
	HTTP *http.Client
}

// Error is an error response of the API.
type Error struct {
	Status  int      `json:"status"`
	Reason  string   `json:"reason"`
	Code    string   `json:"code"`
	Message string   `json:"message"`
	Fields  []string `json:"fields"`
}

// Error returns the message, the status and the code.
func (e *Error) Error() string { return fmt.Sprintf("%s (%d %s)", e.Message, e.Status, e.Code) }

// Do sends a request below Base. body is sent as JSON unless it is nil. The JSON response is decoded into answer unless that is nil. A
// status of 400 or above is returned as an *Error.
func (c *Client) Do(ctx context.Context, method, path string, body, answer any) error {
	return c.send(ctx, method, path, nil, body, answer)
}

// send is Do with headers.
func (c *Client) send(ctx context.Context, method, path string, header map[string]string, body, answer any) error {
	rs, err := c.ask(ctx, method, path, header, body)
	if err != nil {
		return err
	}
	defer func() { _ = rs.Body.Close() }()
	data, err := io.ReadAll(rs.Body)
	if err != nil {
		return fmt.Errorf("read the answer of %s %s: %w", method, path, err)
	}
	if rs.StatusCode >= 400 {
		return refusal(rs, data)
	}
	if answer == nil || len(data) == 0 {
		return nil
	}
	if err := json.Unmarshal(data, answer); err != nil {
		return fmt.Errorf("read the answer of %s %s: %w", method, path, err)
	}
	return nil
}

// refusal returns the *Error of an error response.
func refusal(rs *http.Response, data []byte) error {
	e := &Error{}
	if json.Unmarshal(data, e) != nil || e.Message == "" {
		e.Message = "the response is not an error of the Portolan API"
	}
	e.Status, e.Reason = rs.StatusCode, http.StatusText(rs.StatusCode)
	return e
}

// ask sends a request. body is encoded as JSON unless it is a reader. The caller closes the body of the response.
func (c *Client) ask(ctx context.Context, method, path string, header map[string]string, body any) (*http.Response, error) {
	reader, given := body.(io.Reader)
	if body != nil && !given {
		data, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("encode the request: %w", err)
		}
		reader = bytes.NewReader(data)
	}
	rq, err := http.NewRequestWithContext(ctx, method, strings.TrimRight(c.Base, "/")+path, reader)
	if err != nil {
		return nil, err
	}
	if body != nil {
		rq.Header.Set("Content-Type", "application/json")
	}
	if c.Agent != "" {
		rq.Header.Set("User-Agent", c.Agent)
	}
	for name, value := range header {
		rq.Header.Set(name, value)
	}
	switch {
	case c.Token != "":
		rq.Header.Set("Authorization", "Bearer "+c.Token)
	case c.User != "":
		rq.SetBasicAuth(c.User, c.Password)
	}
	h := c.HTTP
	if h == nil {
		h = http.DefaultClient
	}
	return h.Do(rq)
}

// open requests a response that is not JSON or does not end. The caller closes it.
func (c *Client) open(ctx context.Context, path, accept string) (io.ReadCloser, error) {
	rs, err := c.ask(ctx, http.MethodGet, path, map[string]string{"Accept": accept}, nil)
	if err != nil {
		return nil, err
	}
	if rs.StatusCode < 400 {
		return rs.Body, nil
	}
	defer func() { _ = rs.Body.Close() }()
	data, err := io.ReadAll(rs.Body)
	if err != nil {
		return nil, err
	}
	return nil, refusal(rs, data)
}

// Page is a page of a collection of the address API.
type Page struct {
	Count      int64             `json:"count"`
	TotalCount *int64            `json:"totalCount"`
	Data       []json.RawMessage `json:"data"`
	Links      map[string]Link   `json:"_links"`
}

// Link is a link to a resource.
type Link struct {
	Href string `json:"href"`
}

// Query selects, sorts and limits a list of the address API.
type Query struct {
	Filter, OrderBy, Fields string
	Limit, Offset           int64
	Total                   bool
}

func (q Query) encode() string {
	values := url.Values{}
	for name, text := range map[string]string{"filter": q.Filter, "orderBy": q.OrderBy, "fields": q.Fields} {
		if text != "" {
			values.Set(name, text)
		}
	}
	if q.Limit > 0 {
		values.Set("limit", strconv.FormatInt(q.Limit, 10))
	}
	if q.Offset > 0 {
		values.Set("offset", strconv.FormatInt(q.Offset, 10))
	}
	if q.Total {
		values.Set("total", "true")
	}
	if len(values) == 0 {
		return ""
	}
	return "?" + values.Encode()
}

// List reads a page of a collection, such as "networks" or "networks/100007/addresses".
func (c *Client) List(ctx context.Context, collection string, q Query) (p Page, err error) {
	err = c.Do(ctx, http.MethodGet, AddressPath+collection+q.encode(), nil, &p)
	return p, err
}

// IDs returns the IDs of the resources of a collection that match a filter, at most limit of them.
func (c *Client) IDs(ctx context.Context, collection, filter string, limit int) (ids []int64, err error) {
	page, err := c.List(ctx, collection, Query{Limit: int64(limit), Fields: "id", Filter: filter})
	for _, text := range page.Data {
		var one Head
		if err := json.Unmarshal(text, &one); err != nil {
			return nil, fmt.Errorf("read %s: %w", collection, err)
		}
		ids = append(ids, one.ID)
	}
	return ids, err
}

// All calls fn for every resource of a collection. It reads page after page.
func (c *Client) All(ctx context.Context, collection string, q Query, fn func(json.RawMessage) error) error {
	path := AddressPath + collection + q.encode()
	for path != "" {
		var p Page
		if err := c.Do(ctx, http.MethodGet, path, nil, &p); err != nil {
			return err
		}
		for _, one := range p.Data {
			if err := fn(one); err != nil {
				return err
			}
		}
		path = p.Links["next"].Href
	}
	return nil
}

// Get reads one resource of the address API, such as "networks/100007".
func (c *Client) Get(ctx context.Context, resource string, answer any) error {
	return c.Do(ctx, http.MethodGet, AddressPath+resource, nil, answer)
}

// Create creates a resource in a collection of the address API.
func (c *Client) Create(ctx context.Context, collection string, body, answer any) error {
	return c.Do(ctx, http.MethodPost, AddressPath+collection, body, answer)
}

// Change changes fields of a resource of the address API.
func (c *Client) Change(ctx context.Context, resource string, body, answer any) error {
	return c.Do(ctx, http.MethodPatch, AddressPath+resource, body, answer)
}

// Delete deletes a resource of the address API.
func (c *Client) Delete(ctx context.Context, resource string) error {
	return c.Do(ctx, http.MethodDelete, AddressPath+resource, nil, nil)
}
