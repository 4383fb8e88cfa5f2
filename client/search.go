package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
)

// Found is what a search found, best first.
type Found struct {
	Count int `json:"count"`
	// More says that there may be more than the limit, Complete that every text was looked at.
	More     bool  `json:"more"`
	Complete bool  `json:"complete"`
	Hits     []Hit `json:"data"`
}

// Hit is a resource that was found, why, and what it lies in, from the outside.
type Hit struct {
	// Match is id, address, key, name, refers, around, within, begins or contains.
	Match string `json:"match"`
	Path  []Head `json:"path"`
	// Resource is the resource as GET answers it.
	Resource json.RawMessage `json:"resource"`
}

// Head is what is shown of a resource where another one names it.
type Head struct {
	ID   int64  `json:"id"`
	Type string `json:"type"`
	Name string `json:"name"`
	// Range, AbsoluteName and Address are those of what has one; empty elsewhere.
	Range        string `json:"range,omitempty"`
	AbsoluteName string `json:"absoluteName,omitempty"`
	Address      string `json:"address,omitempty"`
}

// Label is what a person calls it: its name, its absolute name, its range or its address.
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

// Search finds resources by a text: an id, an address, a prefix, a hardware address, a name or a part of one. limit is the most hits,
// at most 100; 0 means 20.
func (c *Client) Search(ctx context.Context, text string, limit int) (found Found, err error) {
	query := "?q=" + url.QueryEscape(text)
	if limit > 0 {
		query += "&limit=" + strconv.Itoa(limit)
	}
	err = c.Do(ctx, http.MethodGet, "/api/v2/search"+query, nil, &found)
	return found, err
}
