package apitest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
)

// Client sends the requests of a test, as an administrator unless a request sets another caller.
type Client struct {
	T *testing.T
	// Token is the bearer token of the administrator.
	Token string
	// Base returns the URL before the path of a request. Send sends a request.
	Base func() string
	Send func(*http.Request) (*http.Response, error)
	// Data is the API that Verify checks.
	Data *resource.API
	// Observe is called with each request and its answer; it may be nil.
	Observe func(method, path, body string, r Reply)
}

// Reply is a response with its body read.
type Reply struct {
	*http.Response
	Body []byte
}

// Shows fails the test where fields of the reply, by their dotted paths, have other values.
func (r Reply) Shows(t testing.TB, fields map[string]string) {
	t.Helper()
	for field, want := range fields {
		if got := r.Text(field); got != want {
			t.Errorf("%s is %q, want %q", field, got, want)
		}
	}
}

// Names reports whether an error names a field, or a member of it.
func (r Reply) Names(field string) bool {
	list, _ := r.Get("fields").([]any)
	return slices.ContainsFunc(list, func(one any) bool {
		text := fmt.Sprint(one)
		return text == field || strings.HasPrefix(text, field+".") || strings.HasPrefix(text, field+"[")
	})
}

// Get returns the member of the body at a dotted path, whose numbers are array indexes; nil if it does not exist.
func (r Reply) Get(path string) any {
	var v any
	d := json.NewDecoder(bytes.NewReader(r.Body))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return nil
	}
	for step := range strings.SplitSeq(path, ".") {
		switch x := v.(type) {
		case map[string]any:
			v = x[step]
		case []any:
			var i int
			if _, err := fmt.Sscan(step, &i); err != nil || i >= len(x) {
				return nil
			}
			v = x[i]
		default:
			return nil
		}
	}
	return v
}

// Text returns Get as text; empty if the member does not exist.
func (r Reply) Text(path string) string {
	v := r.Get(path)
	if v == nil {
		return ""
	}
	return fmt.Sprint(v)
}

// Count returns the number of resources of a page; -1 if the body is not a page.
func (r Reply) Count() int {
	n, err := strconv.Atoi(r.Text("count"))
	if err != nil {
		return -1
	}
	return n
}

// Do sends a request. Headers are "Name: value" lines; the header "Authorization:" sends none.
func (c *Client) Do(method, path, body string, headers ...string) Reply {
	c.T.Helper()
	rq, err := http.NewRequest(method, c.Base()+path, strings.NewReader(body))
	if err != nil {
		c.T.Fatal(err)
	}
	rq.Header.Set("Authorization", "Bearer "+c.Token)
	if body != "" {
		rq.Header.Set("Content-Type", "application/json")
	}
	seen := map[string]bool{}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ":")
		if !seen[name] {
			rq.Header.Del(name)
		}
		seen[name] = true
		if value = strings.TrimSpace(value); value != "" {
			rq.Header.Add(name, value)
		}
	}
	rs, err := c.Send(rq)
	if err != nil {
		c.T.Fatal(err)
	}
	defer func() { _ = rs.Body.Close() }()
	data, err := io.ReadAll(rs.Body)
	if err != nil {
		c.T.Fatal(err)
	}
	r := Reply{rs, data}
	if c.Observe != nil {
		c.Observe(method, path, body, r)
	}
	return r
}

// Want sends a request and fails the test if the response has another status.
func (c *Client) Want(status int, method, path, body string, headers ...string) Reply {
	c.T.Helper()
	r := c.Do(method, path, body, headers...)
	if r.StatusCode != status {
		c.T.Fatalf("%s %s answers %d, want %d: %s", method, path, r.StatusCode, status, r.Body)
	}
	return r
}

// ID creates a resource and returns its id.
func (c *Client) ID(path, body string, headers ...string) string {
	c.T.Helper()
	return c.Want(http.StatusCreated, http.MethodPost, path, body, headers...).Text("id")
}

// Refused sends a request that must fail with the status and code, with a message that contains naming, and without a change.
func (c *Client) Refused(status int, code, naming, method, path, body string, headers ...string) {
	c.T.Helper()
	before := c.Do(http.MethodGet, "/api/v2/transactions?limit=1&total=true", "").Text("totalCount")
	r := c.Do(method, path, body, headers...)
	if r.StatusCode != status || r.Text("code") != code || !strings.Contains(r.Text("message"), naming) {
		c.T.Errorf("%s %s %s\n answers %d %s\n want %d %s naming %q", method, path, body[:min(len(body), 300)], r.StatusCode, r.Body, status,
			code, naming)
	}
	if r.StatusCode >= 400 && (r.Text("reason") == "" || r.Text("status") != fmt.Sprint(r.StatusCode) ||
		r.Header.Get("Content-Type") != "application/json") {
		c.T.Errorf("%s %s: the form of the error is wrong: %s %s", method, path, r.Header.Get("Content-Type"), r.Body)
	}
	if after := c.Do(http.MethodGet, "/api/v2/transactions?limit=1&total=true", "").Text("totalCount"); after != before {
		c.T.Errorf("%s %s: the refused request left a transaction", method, path)
	}
}

// Basics creates a configuration with a view, a zone, a block and a network.
func (c *Client) Basics() (configuration, view, zone, block, network string) {
	c.T.Helper()
	configuration = c.ID("/api/v2/configurations", `{"name":"main"}`)
	view = c.ID("/api/v2/configurations/"+configuration+"/views", `{"name":"internal"}`)
	zone = c.ID("/api/v2/views/"+view+"/zones", `{"type":"Zone","absoluteName":"example.com"}`)
	block = c.ID("/api/v2/configurations/"+configuration+"/blocks", `{"type":"IPv4Block","range":"10.0.0.0/8"}`)
	network = c.ID("/api/v2/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"10.0.0.0/24","name":"office"}`)
	return configuration, view, zone, block, network
}

// Filter returns the query parameter of a filter.
func Filter(text string) string { return "filter=" + url.QueryEscape(text) }

// None fails the test if a page has resources.
func (r Reply) None(t *testing.T) {
	t.Helper()
	if r.Count() != 0 {
		t.Errorf("the page is not empty: %s", r.Body)
	}
}

// Verify fails the test if an invariant of the data is violated.
func (c *Client) Verify() {
	c.T.Helper()
	if err := c.Data.Store.View(c.T.Context(), func(tx *store.Tx) error {
		faults, err := c.Data.Verify(tx)
		for _, f := range faults {
			c.T.Error(f)
		}
		return err
	}); err != nil {
		c.T.Fatal(err)
	}
}

// MergePatch is the content type header of a PATCH (RFC 7396).
const MergePatch = "Content-Type: application/merge-patch+json"

// BasicAuth returns the Authorization header for a user with a password or a session token.
func BasicAuth(user, secret string) string {
	return "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+secret))
}

// Number returns an ID as a number. The test ends if the text is not a number.
func Number(t testing.TB, text string) (n int64) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &n); err != nil {
		t.Fatal(err)
	}
	return n
}
