package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"

	"portolan/client"
)

type searchCommand struct {
	managerFlags
	Limit int    `help:"The maximum number of results, up to 100." default:"20"`
	Text  string `arg:"" help:"An id, an address, a prefix, a hardware address, a name or a part of one."`
}

// Run prints the resources that a text may refer to, best match first.
func (c *searchCommand) Run(s *session) error {
	if c.Limit < 1 || c.Limit > 100 {
		return usageError{errors.New("--limit: must be from 1 to 100")}
	}
	cl, err := c.client()
	if err != nil {
		return err
	}
	found, err := cl.Search(s.ctx, c.Text, c.Limit)
	if err != nil {
		return err
	}
	if c.JSON {
		return json.NewEncoder(s.stdout).Encode(found)
	}
	w := tabwriter.NewWriter(s.stdout, 0, 4, 2, ' ', 0)
	for _, h := range found.Hits {
		var one client.Head
		if err := json.Unmarshal(h.Resource, &one); err != nil {
			return err
		}
		path := make([]string, len(h.Path))
		for i, above := range h.Path {
			path[i] = above.Label()
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\n", one.ID, one.Type, one.Label(), h.Match, strings.Join(path, " > "))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	switch {
	case found.Count == 0 && found.Complete:
		_, err = fmt.Fprintln(s.stderr, "no results")
	case !found.Complete:
		_, err = fmt.Fprintln(s.stderr, "the search reached its time limit: use a longer search text")
	case found.More:
		_, err = fmt.Fprintf(s.stderr, "showing the first %d results; there may be more\n", found.Count)
	}
	return err
}
