package rest

import (
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"hash/fnv"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// media is a media type of answers.
type media int

const (
	asHAL media = iota
	asJSON
	asHTML
	asCSV
	asBytes
)

var mediaTypes = []string{"application/hal+json", "application/json", "text/html", "text/csv", "application/octet-stream"}

func (m media) String() string { return mediaTypes[m] }

// contentType returns the value of the header Content-Type.
func (m media) contentType() string {
	switch m {
	case asHTML:
		return "text/html; charset=utf-8"
	case asCSV:
		return "text/csv; charset=utf-8"
	}
	return mediaTypes[m]
}

// negotiate selects the media type of the answer by the Accept header (RFC 9110 section 12.5.1): the one with the best quality. If
// several are equal, it prefers an exact match to a wildcard, and then the first of offered. Without the header it returns hal+json.
func negotiate(accept []string, offered []media) (media, error) {
	header := strings.Join(accept, ",")
	if strings.TrimSpace(header) == "" {
		return asHAL, nil
	}
	best, bestQ, bestExact := media(-1), 0.0, false
	for _, m := range offered {
		q, exact := quality(header, m.String())
		if q > bestQ || q == bestQ && q > 0 && exact && !bestExact {
			best, bestQ, bestExact = m, q, exact
		}
	}
	if best < 0 {
		names := make([]string, len(offered))
		for i, m := range offered {
			names[i] = m.String()
		}
		return asHAL, problem.New(http.StatusNotAcceptable, "NotAcceptable", "Accept: must be one of %s", strings.Join(names, ", "))
	}
	return best, nil
}

// quality returns the quality that the header assigns to a media type, by its most specific range.
func quality(header, name string) (q float64, exact bool) {
	specific := -1
	for part := range strings.SplitSeq(header, ",") {
		rang, params, err := mime.ParseMediaType(strings.TrimSpace(part))
		if err != nil {
			continue
		}
		rank := -1
		switch {
		case rang == name:
			rank = 2
		case strings.HasSuffix(rang, "/*") && strings.HasPrefix(name, strings.TrimSuffix(rang, "*")):
			rank = 1
		case rang == "*/*":
			rank = 0
		}
		if rank <= specific {
			continue
		}
		value := 1.0
		if text, ok := params["q"]; ok {
			if value, err = strconv.ParseFloat(text, 64); err != nil || value < 0 || value > 1 {
				continue
			}
		}
		specific, q, exact = rank, value, rank == 2
	}
	return q, exact
}

// options are the parsed parameters of a GET request.
type options struct {
	media         media
	limit, offset int64
	total         bool
	condition     store.Expr
	filter        *schema.Node // the source of condition
	order         []store.Order
	// after is the start of the page, from a page link; nil if offset is to be used.
	after  *store.Place
	fields *schema.Projection
	// ignored are the query parameters without a meaning here.
	ignored []string
}

// lightFilter is the maximum weight of a filter that takes only a moment.
const lightFilter = 2

// isPlainPage reports whether a list is a page in stored order: without counting, ordering or embedding, and with at most a very simple
// filter.
func (o *options) isPlainPage() bool {
	return !o.total && o.order == nil && (o.filter == nil || o.filter.Weight() <= lightFilter) &&
		(o.fields == nil || len(o.fields.Embeds) == 0)
}

// itemParameters and listParameters are the query parameters of single resources and of lists.
var (
	itemParameters = []string{"fields"}
	listParameters = []string{"after", "fields", "filter", "limit", "offset", "orderBy", "total"}
)

// unknownParameters returns the query parameters that are not in known, each with a question mark in front.
func unknownParameters(query url.Values, known []string) (names []string) {
	for name := range query {
		if !slices.Contains(known, name) {
			names = append(names, "?"+name)
		}
	}
	return names
}

// Limits of the header that lists ignored parts.
const (
	maxIgnored     = 20 // names
	maxIgnoredName = 64 // bytes of one
)

// Note is listIgnored for other APIs: it lists the members and query parameters of a request that are not in known.
func Note(w http.ResponseWriter, r *http.Request, members map[string]json.RawMessage, known ...string) {
	ignored := unknownParameters(r.URL.Query(), known)
	for name := range members {
		if !slices.Contains(known, name) {
			ignored = append(ignored, name)
		}
	}
	listIgnored(w, ignored)
}

// listIgnored lists the ignored parts of the request in the answer's header (spec.md 2.8): unknown members of the body and headers by their
// names, query parameters with a question mark in front.
func listIgnored(w http.ResponseWriter, ignored []string) {
	if len(ignored) == 0 {
		return
	}
	slices.Sort(ignored)
	more := ""
	if len(ignored) > maxIgnored {
		more = ", +" + strconv.Itoa(len(ignored)-maxIgnored)
		ignored = ignored[:maxIgnored]
	}
	shown := make([]string, len(ignored))
	for i, name := range ignored {
		mark := ""
		if rest, ok := strings.CutPrefix(name, "?"); ok {
			mark, name = "?", rest
		}
		shown[i] = mark + url.PathEscape(name[:min(len(name), maxIgnoredName)])
	}
	w.Header().Set("x-portolan-ignored", strings.Join(shown, ", ")+more)
}

// singleParameter reads the single value of a query parameter.
func singleParameter(query url.Values, name string) (string, bool, error) {
	values := query[name]
	if len(values) == 0 {
		return "", false, nil
	}
	if len(values) > 1 {
		return "", false, problem.Parameter("MultipleQueryParameterValues", name, "is given %d times", len(values))
	}
	return values[0], true, nil
}

func intParameter(query url.Values, name string, low, high, fallback int64) (int64, error) {
	text, ok, err := singleParameter(query, name)
	if err != nil || !ok {
		return fallback, err
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < low || n > high {
		code := map[string]string{"limit": "InvalidLimitParameterValue", "offset": "InvalidOffsetParameterValue"}[name]
		return 0, problem.Parameter(cmp.Or(code, "InvalidQueryParameterValue"), name,
			"must be a whole number from %[2]d to %[3]d, not %[1]q", text, low, high)
	}
	return n, nil
}

// onlyKnownParameters refuses query parameters other than these. It is for unpublished paths: their clients send no unknown parameters on
// purpose, so one is a mistake.
func onlyKnownParameters(query url.Values, known ...string) error {
	for _, name := range slices.Sorted(maps.Keys(query)) {
		if !slices.Contains(known, name) {
			return problem.Query(name, "is not a parameter of this request; use one of %s", strings.Join(known, ", "))
		}
	}
	return nil
}

// parseQuery parses the query string strictly: it refuses parts that Go's own parser would drop.
func parseQuery(r *http.Request) (url.Values, error) {
	if r.URL.RawQuery == "" {
		return nil, nil // callers treat nil as empty
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, problem.BadRequest("InvalidQueryParameterValue", "the query string is malformed")
	}
	return query, nil
}

// MaxOffset is the maximum offset; no list is longer.
const MaxOffset = 1 << 40

// options parses the parameters of a request for a list, or for one resource, of the given types.
func (a *Server) options(r *http.Request, s resource.Scope, list bool) (o options, err error) {
	query, err := parseQuery(r)
	if err != nil {
		return o, err
	}
	offered := []media{asHAL, asJSON, asHTML}
	if list {
		offered = append(offered, asCSV)
	} else if slices.ContainsFunc(s.Types, func(t *schema.Type) bool { return len(a.CollectionOf(t).Content.Types) > 0 }) {
		offered = append(offered, asBytes)
	}
	if o.media, err = negotiate(r.Header.Values("Accept"), offered); err != nil {
		return o, err
	}
	if text, ok, err := singleParameter(query, "fields"); err != nil {
		return o, err
	} else if ok {
		if o.fields, err = a.parseFields(text, s); err != nil {
			return o, err
		}
	}
	if !list {
		o.ignored = unknownParameters(query, itemParameters)
		return o, nil
	}
	o.ignored = unknownParameters(query, listParameters)
	if o.limit, err = intParameter(query, "limit", 1, a.MaxLimit, min(DefaultLimit, a.MaxLimit)); err != nil {
		return o, err
	}
	if o.offset, err = intParameter(query, "offset", 0, MaxOffset, 0); err != nil {
		return o, err
	}
	text, ok, err := singleParameter(query, "total")
	if err != nil {
		return o, err
	}
	if ok && text != "true" && text != "false" {
		return o, problem.Query("total", "must be true or false, not %q", text)
	}
	o.total = text == "true"
	if text, ok, err := singleParameter(query, "filter"); err != nil {
		return o, err
	} else if ok && strings.TrimSpace(text) != "" {
		n, err := schema.ParseFilter(text)
		if err != nil {
			return o, err
		}
		if o.condition, err = s.Bind(n); err != nil {
			return o, err
		}
		o.filter = n
	}
	if text, ok, err := singleParameter(query, "orderBy"); err != nil {
		return o, err
	} else if ok && strings.TrimSpace(text) != "" {
		if o.order, err = s.Order(text); err != nil {
			return o, err
		}
	}
	if text, ok, err := singleParameter(query, "after"); err != nil {
		return o, err
	} else if ok {
		if o.after, err = parsePlace(text, o.offset, listDigest(r.URL.Path, query)); err != nil {
			return o, invalidPlace()
		}
	}
	return o, nil
}

// errForeignPlace reports a place in another list.
var errForeignPlace = errors.New("not a position in this list")

func invalidPlace() error {
	return problem.Parameter("InvalidPaginationParameter", "after", "is not a position in this list; copy it from a next link, or omit it")
}

// placeText is the JSON form of a place in links.
type placeText struct {
	ID int64 `json:"i"`
	// Offset is the offset of the page. If the request has another one, the place is ignored.
	Offset int64 `json:"o"`
	// List is the digest of the list.
	List string  `json:"l"`
	Text *string `json:"t,omitempty"`
	Span []byte  `json:"s,omitempty"`
}

// listDigest identifies a list by its path, filter and order: a place in one list is not valid in another.
func listDigest(path string, query url.Values) string {
	digest := fnv.New32a()
	_, _ = io.WriteString(digest, path+"\x00"+query.Get("filter")+"\x00"+query.Get("orderBy")) // never fails
	return hex.EncodeToString(digest.Sum(nil))
}

// formatPlace encodes a place for a link.
func formatPlace(at store.Place, offset int64, list string) string {
	p := placeText{ID: at.ID, Offset: offset, List: list}
	switch v := at.Value.(type) {
	case string:
		p.Text = &v
	case []byte:
		p.Span = v
	}
	text, err := json.Marshal(p)
	if err != nil { // numbers and strings can always be encoded
		panic(err)
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

// parsePlace decodes a place for a page with an offset; nil if it belongs to another page.
func parsePlace(text string, offset int64, list string) (*store.Place, error) {
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return nil, err
	}
	var p placeText
	if err := json.Unmarshal(data, &p); err != nil {
		return nil, err
	}
	if p.List != list || p.Text != nil && strings.ContainsRune(*p.Text, 0) { // no stored text contains NUL
		return nil, errForeignPlace
	}
	if p.Offset != offset {
		return nil, nil //nolint:nilnil // another page, which is found by its offset
	}
	at := &store.Place{ID: p.ID}
	switch {
	case p.Text != nil:
		at.Value = *p.Text
	case p.Span != nil:
		at.Value = p.Span
	}
	return at, nil
}

// pageLinks returns the links to the previous and the next page (spec.md section 8). There is a previous page if the offset is not 0,
// and more rows follow or the list has more rows than the limit. For an offset after the last row, the previous page is the last page with
// rows. all is the number of rows. It is used only if no rows follow the page.
//
// after is the place of the last row. It lets the next page be found at any distance; if it is empty, the offset is used.
func pageLinks(r *http.Request, o options, more bool, all int64, after string) (prev, next string) {
	var kept []string
	for part := range strings.SplitSeq(r.URL.RawQuery, "&") {
		name, _, _ := strings.Cut(part, "=")
		if plain, err := url.QueryUnescape(name); err == nil {
			name = plain
		}
		if part != "" && !slices.Contains([]string{"after", "limit", "offset"}, name) {
			kept = append(kept, part)
		}
	}
	link := func(offset, limit int64) string {
		return r.URL.EscapedPath() + "?" + strings.Join(append(slices.Clone(kept),
			"offset="+strconv.FormatInt(offset, 10), "limit="+strconv.FormatInt(limit, 10)), "&")
	}
	if begins := min(o.offset, all); o.offset > 0 && (more || all > o.limit) {
		if more {
			begins = o.offset
		}
		from := max(0, begins-o.limit)
		prev = link(from, begins-from)
	}
	if more {
		next = link(o.offset+o.limit, o.limit)
		if after != "" {
			next += "&after=" + after
		}
	}
	return prev, next
}
