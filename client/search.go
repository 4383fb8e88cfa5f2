package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
)

// Found is the result of a search, best match first.
type Found struct {
	Count int `json:"count"`
	// More reports that there may be more hits than the limit. Complete reports that all texts were searched.
	More     bool  `json:"more"`
	Complete bool  `json:"complete"`
	Hits     []Hit `json:"data"`
}

// Hit is a resource that was found, the kind of match, and its ancestors, outermost first.
type Hit struct {
	// Match is id, address, key, name, refers, around, within, begins or contains.
	Match string `json:"match"`
	Path  []Head `json:"path"`
	// Resource is the resource in the form that GET returns.
	Resource json.RawMessage `json:"resource"`
}

// Head is the short form of a resource in a reference to it.
type Head struct {
	ID   int64  `json:"id"`
	Type string `json:"type"`
	Name string `json:"name"`
	// Range, AbsoluteName and Address are empty for resources without such a field.
	Range        string `json:"range,omitempty"`
	AbsoluteName string `json:"absoluteName,omitempty"`
	Address      string `json:"address,omitempty"`
}

// Label returns a name for display: the absolute name, address or range with the name in brackets, or the name alone.
func (h Head) Label() string {
	for _, text := range []string{h.AbsoluteName, h.Address, h.Range} {
		if text != "" && h.Name != "" && text != h.Name {
			return text + " (" + h.Name + ")"
		}
		if text != "" {
			return text
		}
	}
	return h.Name
}

// Search finds resources by a text: an ID, an address, a prefix, a hardware address, a name or a part of a name. limit is the maximum
// number of hits, at most 100; 0 means 20.
func (c *Client) Search(ctx context.Context, text string, limit int) (found Found, err error) {
	query := "?q=" + url.QueryEscape(text)
	if limit > 0 {
		query += "&limit=" + strconv.Itoa(limit)
	}
	err = c.Do(ctx, http.MethodGet, AddressPath+"search"+query, nil, &found)
	return found, err
}
