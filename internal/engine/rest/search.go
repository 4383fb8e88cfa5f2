package rest

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// searchName is the path element of the search.
const searchName = "search"

// Limits of a search: the default and the maximum number of hits, the maximum length of the text in characters, and the time limit for
// finding parts of texts.
const (
	defaultHits = 20
	maxHits     = 100
	maxSearched = 255
	searchTime  = 500 * time.Millisecond
)

// search serves the search for a text; the best matches come first.
func (a *Server) search(w http.ResponseWriter, r *http.Request, caller resource.Caller) error {
	everything := resource.Target{Root: true, List: true}
	if err := a.allowOnly(w, r, everything, caller, http.MethodGet); err != nil || r.Method == http.MethodOptions {
		return err
	}
	form, err := negotiate(r.Header.Values("Accept"), []media{asHAL, asJSON})
	if err != nil {
		return err
	}
	text, limit, err := searchOptions(r)
	if err != nil {
		return err
	}
	found := &resource.Search{API: a.API, Caller: caller, Text: text, Limit: limit}
	var body []byte
	render := func(tx *store.Tx) (err error) {
		body, err = a.encodeHits(tx, form, found)
		return err
	}
	if err := a.find(r.Context(), caller, found, render); err != nil {
		return err
	}
	send(w, r, http.StatusOK, form, body)
	return nil
}

// find executes a search and renders the hits. If finding parts of texts exceeds its time limit, the hits until then are rendered.
func (a *Server) find(ctx context.Context, caller resource.Caller, found *resource.Search, render func(*store.Tx) error) error {
	bounded, end := context.WithCancel(ctx)
	defer end()
	exact := false
	err := a.longRead(bounded, caller, true, func(tx *store.Tx) error {
		if !exact {
			if err := found.Exact(tx); err != nil {
				return err
			}
			exact = true
		}
		timer := time.AfterFunc(searchTime, end)
		err := found.FindText(tx)
		timer.Stop()
		if err != nil {
			return err
		}
		return render(tx)
	})
	if err != nil && exact && ctx.Err() == nil && bounded.Err() != nil {
		found.Complete = false
		return a.Store.View(ctx, render)
	}
	return err
}

// searchOptions parses the text and the number of hits.
func searchOptions(r *http.Request) (text string, limit int, err error) {
	query, err := parseQuery(r)
	if err != nil {
		return "", 0, err
	}
	if err := onlyKnownParameters(query, "limit", "q"); err != nil {
		return "", 0, err
	}
	n, err := intParameter(query, "limit", 1, maxHits, defaultHits)
	if err != nil {
		return "", 0, err
	}
	if text, _, err = singleParameter(query, "q"); err != nil {
		return "", 0, err
	}
	switch text = strings.TrimSpace(text); {
	case text == "":
		return "", 0, problem.Query("q", "give a text to search for")
	case !utf8.ValidString(text):
		return "", 0, problem.Query("q", "must be UTF-8")
	case utf8.RuneCountInString(text) > maxSearched:
		return "", 0, problem.Query("q", "must have at most %d characters", maxSearched)
	}
	return text, int(n), nil
}

// encodeHits encodes the hits.
func (a *Server) encodeHits(tx *store.Tx, form media, found *resource.Search) ([]byte, error) {
	rd := a.renderer(tx, form, found.Caller)
	rows := make([]*store.Resource, len(found.Hits))
	for i, h := range found.Hits {
		rows[i] = h.Row.Clone() // completing modifies the row
		rd.neededHeads = append(rd.neededHeads, h.Row.Parent)
	}
	if err := rd.prepare(rows); err != nil {
		return nil, err
	}
	if err := rd.loadAbove(rows); err != nil {
		return nil, err
	}
	b := append([]byte(`{"count":`), strconv.Itoa(len(rows))...)
	b = strconv.AppendBool(append(b, `,"more":`...), found.More)
	b = strconv.AppendBool(append(b, `,"complete":`...), found.Complete)
	b = append(b, `,"data":[`...)
	for i, row := range rows {
		if i > 0 {
			b = append(b, ',')
		}
		b = schema.AppendString(append(b, `{"match":`...), found.Hits[i].Match.String())
		b = rd.appendPath(append(b, `,"path":`...), row)
		var err error
		if b, err = rd.append(append(b, `,"resource":`...), row, nil); err != nil {
			return nil, err
		}
		b = append(b, '}')
	}
	b = append(b, ']')
	if rd.links {
		b = append(b, `,"_links":{"self":{"href":`...)
		b = schema.AppendString(b, a.Base+"/"+searchName+"?q="+url.QueryEscape(found.Text)+"&limit="+strconv.Itoa(found.Limit))
		b = append(b, `}}`...)
	}
	return append(b, '}'), nil
}
