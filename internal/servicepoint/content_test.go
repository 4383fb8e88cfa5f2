package servicepoint

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"portolan/internal/wire/zonedata"
)

// taker is an application that accepts content except for some revisions.
type taker struct {
	refuses map[string]bool
	serves  string
	given   int
}

func (a *taker) RoundTrip(rq *http.Request) (*http.Response, error) {
	text, err := io.ReadAll(rq.Body)
	if err != nil {
		return nil, err
	}
	a.given++
	const to = `"to":"`
	last, _, _ := strings.Cut(string(text[strings.LastIndex(string(text), to)+len(to):]), `"`)
	rs := &http.Response{StatusCode: http.StatusNoContent, Body: io.NopCloser(strings.NewReader("")), Request: rq}
	if a.refuses[last] {
		rs.StatusCode, rs.Body = http.StatusBadRequest, io.NopCloser(strings.NewReader("it cannot be read"))
		return rs, nil
	}
	a.serves = last
	return rs, nil
}

// revision returns the name of a revision.
func revision(n int64) string {
	return zonedata.Revision{Number: n, Hash: zonedata.Total(nil, map[string]string{})}.String()
}

// streamOf returns a function that writes a stream from one revision, 0 for nothing, to another one.
func streamOf(from, to int64) func(io.Writer) error {
	return func(out io.Writer) error {
		h := zonedata.Header{To: revision(to)}
		if from != 0 {
			h.From = revision(from)
		}
		return zonedata.NewWriter(out, h).Close()
	}
}

// TestFullContentIsRequested checks when the full content is requested again: too many or too large streams after the first one of the last
// chain, with the spread of a service point.
func TestFullContentIsRequested(t *testing.T) {
	const first = 100_000_000
	streams := func(older, number int, size int64) []storedStream {
		all := make([]storedStream, 0, older+number+1)
		all = append(all, storedStream{size: 1, whole: true})
		all = append(all, slices.Repeat([]storedStream{{size: first}}, older)...)
		all = append(all, storedStream{size: first, whole: true})
		return append(all, slices.Repeat([]storedStream{{size: size}}, number)...)
	}
	for _, one := range []struct {
		what          string
		older, number int
		size          int64
		spread        float64
		want          bool
	}{
		{"few streams", 0, 10, 1000, 0, false},
		{"many streams", 0, 30_000, 1, 0, true},
		{"many streams, delayed", 0, 30_000, 1, 0.99, false},
		{"large streams", 0, 3, 20_000_000, 0, true},
		{"large streams, delayed", 0, 3, 20_000_000, 0.99, false},
		{"larger streams, delayed", 0, 4, 20_000_000, 0.99, true},
		{"an older chain with many streams", 50_000, 1, 1, 0, false},
	} {
		c := &contents{spread: one.spread, listed: true, streams: streams(one.older, one.number, one.size)}
		for i := range c.streams {
			c.streams[i].name = "1_" + revision(1)
		}
		if _, full, err := c.lastRevision(); err != nil || full != one.want {
			t.Errorf("%s: %t (%v)", one.what, full, err)
		}
	}
}

// TestContentStaysUntilAnotherIsServed checks that content stays on the disk until newer content is in use. After a crash or a refusal it
// is sent again.
func TestContentStaysUntilAnotherIsServed(t *testing.T) {
	c := contentsOf(t.TempDir(), "application")
	app := &taker{refuses: map[string]bool{}}
	p := &process{log: slog.New(slog.DiscardHandler), contentHTTP: &http.Client{Transport: app}}
	files := func(want string) {
		t.Helper()
		entries, err := os.ReadDir(c.dir)
		var numbers, listed []string
		for _, e := range entries {
			numbers = append(numbers, fmt.Sprint(revisionNumber(t, e.Name())))
		}
		for _, one := range c.streams {
			listed = append(listed, fmt.Sprint(revisionNumber(t, one.name)))
		}
		if !slices.Equal(numbers, listed) {
			t.Errorf("on the disk are %v, listed %v", numbers, listed)
		}
		if got := strings.Join(numbers, " "); got != want || err != nil {
			t.Errorf("on the disk is %q, want %q; %v", got, want, err)
		}
	}
	add := func(from, to int64) {
		t.Helper()
		if _, err := c.add(streamOf(from, to)); err != nil {
			t.Fatal(err)
		}
	}
	add(0, 1)
	add(1, 2)
	if err := p.catchUp(t.Context(), c); err != nil || app.serves != revision(2) {
		t.Fatal(app.serves, err)
	}
	add(0, 3) // the process is killed here
	files("1 2 3")
	app.refuses[revision(3)] = true
	if err := p.catchUp(t.Context(), c); err != nil || app.serves != revision(2) {
		t.Errorf("it serves %s, not what it did before: %v", app.serves, err)
	}
	files("1 2")
	add(0, 4)
	if err := p.catchUp(t.Context(), c); err != nil || app.serves != revision(4) {
		t.Error(app.serves, err)
	}
	files("4")
	app.refuses[revision(4)] = true
	if err := p.catchUp(t.Context(), c); err == nil {
		t.Error("nothing was refused")
	}
	files("4") // the only file
	if _, err := c.add(streamOf(1, 5)); err == nil {
		t.Error("what begins at another revision is kept")
	}
	if err := os.WriteFile(filepath.Join(c.dir, incompletePrefix+"x"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := c.removeIncomplete(); err != nil {
		t.Fatal(err)
	}
	files("4")
}

func revisionNumber(t *testing.T, name string) int64 {
	t.Helper()
	r, err := zonedata.ParseRevision(revisionOf(name))
	if err != nil {
		t.Fatal(err)
	}
	return r.Number
}
