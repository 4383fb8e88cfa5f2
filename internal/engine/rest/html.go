package rest

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"html"
	"strconv"
	"strings"

	"portolan/internal/engine/schema"
)

// The HTML pages are for users with a browser: the same data, with links.

const htmlHead = `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>%TITLE%</title><style>` + htmlStyle + `</style></head><body><nav><a href="%BASE%">everything</a> · <a href="/api/docs">API</a></nav><h1>%TITLE%</h1>
`

const htmlStyle = `
body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:80rem;padding:0 1rem;color:#1b2733;background:#fff}
a{color:#0b5cad}h1{font-size:1.3rem}table{border-collapse:collapse;width:100%}td,th,h1,li{overflow-wrap:anywhere}
th,td{text-align:left;vertical-align:top;padding:.35rem .6rem;border-bottom:1px solid #dde3e9}
th{font-weight:600;background:#f4f6f8}code{font:13px ui-monospace,monospace}nav{margin:1rem 0}
@media(prefers-color-scheme:dark){body{background:#11171d;color:#d9e2ea}a{color:#6db3ff}th{background:#1b242d}th,td{border-color:#2b3742}}
`

// StyleHash returns the hash of the pages' style, as a Content-Security-Policy names it.
func StyleHash() string {
	sum := sha256.Sum256([]byte(htmlStyle))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

func pageHead(title, base string) string {
	return strings.NewReplacer("%TITLE%", html.EscapeString(title), "%BASE%", html.EscapeString(base)).Replace(htmlHead)
}

// htmlRows writes a list as a table. types returns the types of its resources, by name.
type htmlRows struct {
	path, base string
	types      func(name string) *schema.Type
}

func (h htmlRows) writeHead(b []byte) []byte {
	b = append(b, pageHead(h.path, h.base)...)
	return append(b, "<table><thead><tr><th>id</th><th>type</th><th>name</th><th>fields</th></tr></thead><tbody>\n"...)
}

func (h htmlRows) row(b []byte, object []byte, _ bool) ([]byte, error) {
	all, err := schema.ReadMembers(object)
	if err != nil {
		return b, err
	}
	cells := map[string]json.RawMessage{}
	for _, m := range all {
		cells[m.Name] = m.Raw
	}
	b = append(b, "<tr><td>"...)
	if link := href(cells["_links"], "self"); h.isBelow(link) {
		b = append(b, anchor(link, string(cells["id"]))...)
	} else {
		b = append(b, html.EscapeString(string(cells["id"]))...)
	}
	b = append(b, "</td><td>"...)
	b = append(b, html.EscapeString(text(cells["type"]))...)
	b = append(b, "</td><td>"...)
	b = append(b, html.EscapeString(text(cells["name"]))...)
	b = append(b, "</td><td>"...)
	for _, m := range all {
		switch m.Name {
		case "id", "type", "name", "_links", "_embedded":
			continue
		}
		if string(m.Raw) == "null" {
			continue
		}
		b = append(b, "<code>"...)
		b = append(b, html.EscapeString(m.Name)...)
		b = append(b, "</code> "...)
		b = append(b, h.value(text(cells["type"]), m.Name, m.Raw)...)
		b = append(b, "; "...)
	}
	return append(b, "</td></tr>\n"...), nil
}

func (h htmlRows) end(b []byte, f footer) []byte {
	b = append(b, "</tbody></table><p>"...)
	b = strconv.AppendInt(b, f.count, 10)
	b = append(b, " resources"...)
	if f.total != "" {
		b = append(b, " of "...)
		b = append(b, f.total...)
	}
	b = append(b, "</p><nav>"...)
	if f.prev != "" {
		b = append(b, anchor(f.prev, "previous page")...)
		b = append(b, ' ')
	}
	if f.next != "" {
		b = append(b, anchor(f.next, "next page")...)
	}
	return append(b, "</nav></body></html>\n"...)
}

// writeResource writes one resource as a page.
func (h htmlRows) writeResource(b []byte, object []byte) ([]byte, error) {
	all, err := schema.ReadMembers(object)
	if err != nil {
		return nil, err
	}
	kind := ""
	for _, m := range all {
		if m.Name == "type" {
			kind = text(m.Raw)
		}
	}
	b = append(b, pageHead(h.path, h.base)...)
	b = append(b, "<table><tbody>\n"...)
	for _, m := range all {
		b = append(b, "<tr><th>"...)
		b = append(b, html.EscapeString(m.Name)...)
		b = append(b, "</th><td>"...)
		if m.Name == "_links" {
			links, err := schema.ReadMembers(m.Raw)
			if err != nil {
				return nil, err
			}
			for _, l := range links {
				if link := href(m.Raw, l.Name); h.isBelow(link) {
					b = append(b, anchor(link, l.Name)...)
					b = append(b, ' ')
				}
			}
		} else {
			b = append(b, h.value(kind, m.Name, m.Raw)...)
		}
		b = append(b, "</td></tr>\n"...)
	}
	return append(b, "</tbody></table></body></html>\n"...), nil
}

func anchor(link, words string) string {
	return `<a href="` + html.EscapeString(link) + `">` + html.EscapeString(words) + `</a>`
}

func text(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

// href returns a link of a _links object by its name.
func href(links json.RawMessage, name string) string {
	var all map[string]struct {
		Href string `json:"href"`
	}
	if json.Unmarshal(links, &all) != nil {
		return ""
	}
	return all[name].Href
}

// isBelow reports whether a link is a path below the base.
func (h htmlRows) isBelow(link string) bool {
	return link == h.base || strings.HasPrefix(link, h.base+"/")
}

// value writes the value of a member. An inlined reference becomes a link to its target, if the type declares the member as a reference;
// the free members of clients may look like one.
func (h htmlRows) value(kind, member string, raw json.RawMessage) string {
	var ref struct {
		ID    json.Number     `json:"id"`
		Type  string          `json:"type"`
		Name  string          `json:"name"`
		Links json.RawMessage `json:"_links"`
	}
	if t := h.types(kind); t != nil && t.ByName[member] != nil && t.ByName[member].Kind == schema.Reference &&
		json.Unmarshal(raw, &ref) == nil &&
		ref.Links != nil {
		words := ref.Name
		if words == "" {
			words = ref.Type + " " + ref.ID.String()
		}
		if link := href(ref.Links, "self"); h.isBelow(link) {
			return anchor(link, words)
		}
	}
	if s := text(raw); s != "" {
		return html.EscapeString(s)
	}
	return "<code>" + html.EscapeString(string(raw)) + "</code>"
}
