package apitest

import (
	"bytes"
	"fmt"
	"mime/multipart"
	"net/http"
	"os"
	"testing"
	"time"
)

// Imported posts an import of a file, waits until it has ended, and returns it with its log.
func (c *Client) Imported(info, file string) (made Reply, log string) {
	c.T.Helper()
	body, kind := Form(map[string]string{"fileInfo": `{"state":"QUEUED",` + info + `}`}, file)
	return c.EndedImport(c.Want(201, "POST", "/api/v2/imports", body, kind).Text("id"))
}

// EndedImport waits until an import has ended, and returns it with its log.
func (c *Client) EndedImport(id string) (made Reply, log string) {
	c.T.Helper()
	for deadline := time.Now().Add(Patience); ; time.Sleep(5 * time.Millisecond) {
		made = c.Want(200, "GET", "/api/v2/imports/"+id, "")
		if state := made.Text("state"); state != "QUEUED" && state != "RUNNING" && state != "CANCELLING" {
			return made, c.Want(200, "GET", "/api/v2/imports/"+id+"/logs", "").Text("data.0.contents")
		}
		if time.Now().After(deadline) {
			c.T.Fatalf("the import is still %s", made.Body)
		}
	}
}

// Requested sends a change that needs an approval. It returns the path of the workflow request and the response.
func (c *Client) Requested(method, path, body string, headers ...string) (request string, r Reply) {
	c.T.Helper()
	r = c.Want(http.StatusAccepted, method, path, body, headers...)
	return r.Header.Get("Location"), r
}

// ImportCounts returns the state and the numbers of rows of an import.
func ImportCounts(r Reply) string {
	return fmt.Sprintf("%s: %s rows, %s created, %s updated, %s unchanged, %s refused", r.Text("state"), r.Text("rows"), r.Text("created"),
		r.Text("updated"), r.Text("unchanged"), r.Text("refused"))
}

// OnSQLite skips a test on PostgreSQL and under the race detector, because its result does not depend on either.
func OnSQLite(t *testing.T) {
	t.Helper()
	if UnderRace || os.Getenv(OnPostgres) != "" {
		t.Skip("it runs once, on SQLite and without the race detector")
	}
}

// Eventually waits for a condition. It fails the test if the condition is not met within Patience.
func Eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	EventuallyWithin(t, Patience, what, condition)
}

// EventuallyWithin is Eventually with another limit.
func EventuallyWithin(t *testing.T, long time.Duration, what string, condition func() bool) {
	t.Helper()
	deadline := time.Now().Add(long)
	for !condition() {
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", long, what)
		}
		time.Sleep(5 * time.Millisecond) // the polling interval
	}
}

// Form returns a multipart body with a file, and its Content-Type header.
func Form(parts map[string]string, file string) (body, header string) {
	return FormNamed(parts, "x", file)
}

// FormNamed is Form with the name of the file.
func FormNamed(parts map[string]string, name, file string) (body, header string) {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for name, text := range parts {
		_ = w.WriteField(name, text)
	}
	if file != "" {
		part, _ := w.CreateFormFile("fileData", name)
		_, _ = part.Write([]byte(file))
	}
	_ = w.Close()
	return b.String(), "Content-Type: " + w.FormDataContentType()
}

// Patience is the time limit for waiting in tests. It is long, because only failures reach it: machines are slow, other tests run, and the
// feed of PostgreSQL waits for transactions of other databases on the same server.
const Patience = 3 * time.Minute
