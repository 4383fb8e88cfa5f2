package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"time"

	"portolan/client"
	"portolan/internal/engine/store"
	"portolan/internal/manager/identity"
)

type changesCommand struct {
	dataFlag
	After      string   `help:"Start after this position, from an earlier line. Default: from the beginning." placeholder:"POSITION"`
	Follow     bool     `help:"Follow new transactions until interrupted." short:"f"`
	URL        string   `help:"Follow over the API of the manager at this URL. Default, without --data and --database: the manager of the context." name:"url" placeholder:"URL"`
	Token      string   `help:"A bearer token, over the API. Prefer PORTOLAN_TOKEN." placeholder:"TOKEN"`
	CA         string   `help:"A PEM file with the certificate authority to trust, over the API." name:"ca" type:"existingfile" placeholder:"FILE"`
	Collection []string `help:"Over the API: only changes of resources of these collections." placeholder:"NAME"`
	Parent     int64    `help:"Over the API: only changes of direct children of this resource." placeholder:"ID"`
}

// changeLine is a transaction as a line of JSON. writeChanges appends the array of its changes.
type changeLine struct {
	Position    string          `json:"position"`
	Transaction int64           `json:"transaction"`
	At          time.Time       `json:"at"`
	User        int64           `json:"user"`
	Operation   string          `json:"operation"`
	Body        json.RawMessage `json:"body"`
}

// writeChanges writes a transaction as one line. It writes the changes while it reads them.
func writeChanges(ctx context.Context, st *store.Store, w io.Writer, e store.Entry) error {
	out := bufio.NewWriter(w)
	text, err := json.Marshal(changeLine{e.Position.String(), e.ID, e.At, e.User, e.Operation, e.Body})
	if err != nil {
		return err
	}
	_, _ = out.Write(text[:len(text)-1]) // Flush returns write errors
	_, _ = out.WriteString(`,"changes":[`)
	separator := ""
	if err := st.EachChange(ctx, e, func(c store.EntryChange) error {
		text, err := json.Marshal(c)
		if err != nil {
			return err
		}
		_, _ = out.WriteString(separator)
		separator = ","
		_, err = out.Write(text)
		return err
	}); err != nil {
		return err
	}
	_, _ = out.WriteString("]}\n")
	return out.Flush()
}

// Run prints the change feed: every transaction once, ordered by when it became visible.
func (c *changesCommand) Run(s *session) error {
	if (c.Data != "" || c.Database != "") && c.URL == os.Getenv("PORTOLAN_URL") {
		c.URL = "" // --data and --database override the environment
	}
	if c.URL != "" || c.Data == "" && c.Database == "" {
		return c.followAPI(s)
	}
	if len(c.Collection) > 0 || c.Parent != 0 {
		return usageError{errors.New("--collection and --parent work only over the API: use --url, or sign in with portolan login")}
	}
	after, err := store.ParsePosition(c.After)
	if err != nil {
		return usageError{err}
	}
	return c.open(func(st *store.Store, _ *identity.Service) error {
		write := func(entries []store.Entry) error {
			for _, e := range entries {
				if err := writeChanges(s.ctx, st, s.stdout, e); err != nil {
					return err
				}
				after = e.Position
			}
			return nil
		}
		if c.Follow {
			err := st.Follow(s.ctx, after, write)
			if errors.Is(err, s.ctx.Err()) { // interrupted by the user, which is the normal end
				return nil
			}
			return err
		}
		if err := st.AwaitFeed(s.ctx); err != nil {
			return err
		}
		for {
			entries, err := st.Feed(s.ctx, after, 100)
			if err != nil || len(entries) == 0 {
				return err
			}
			if err := write(entries); err != nil {
				return err
			}
		}
	})
}

// feedLine is a transaction of the API's feed as a line of JSON.
type feedLine struct {
	Position string `json:"position"`
	client.FeedTransaction
	Changes []client.Change `json:"changes"`
}

// followAPI prints the change feed of the API.
func (c *changesCommand) followAPI(s *session) error {
	switch {
	case c.Data != "" || c.Database != "":
		return usageError{errors.New("--url (PORTOLAN_URL) cannot be combined with --data or --database")}
	case !c.Follow:
		return usageError{errors.New("over the API, --follow is required; for past changes, use --data or --database")}
	}
	cl, err := connectFlags{URL: c.URL, Token: c.Token, CA: c.CA}.client()
	if err != nil {
		return err
	}
	after := c.After
	if after == "" {
		after = "start"
	}
	out := json.NewEncoder(s.stdout)
	q := client.ChangesQuery{After: after, Collections: c.Collection, Parent: c.Parent}
	err = cl.Changes(s.ctx, q, func(t client.FeedTransaction) error {
		return out.Encode(feedLine{t.Position, t, append([]client.Change{}, t.Changes...)})
	})
	if errors.Is(err, s.ctx.Err()) { // interrupted by the user, which is the normal end
		return nil
	}
	return err
}
