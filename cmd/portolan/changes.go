package main

import (
	"encoding/json"
	"errors"
	"time"

	"portolan/internal/identity"
	"portolan/internal/store"
)

type changesCommand struct {
	dataFlag
	After  string `help:"Begin behind this position, as a line before gave it; without it, at the beginning." placeholder:"POSITION"`
	Follow bool   `help:"Go on with what is committed from now on, until interrupted." short:"f"`
}

// changeLine is a transaction as a line of JSON.
type changeLine struct {
	Position    string              `json:"position"`
	Transaction int64               `json:"transaction"`
	At          time.Time           `json:"at"`
	User        int64               `json:"user"`
	Operation   string              `json:"operation"`
	Body        json.RawMessage     `json:"body"`
	Changes     []store.EntryChange `json:"changes"`
}

// Run prints the change feed: every transaction once, in the order in which they became visible.
func (c *changesCommand) Run(s *session) error {
	after, err := store.ParsePosition(c.After)
	if err != nil {
		return usageError{err}
	}
	out := json.NewEncoder(s.stdout)
	out.SetEscapeHTML(false)
	write := func(entries []store.Entry) error {
		for _, e := range entries {
			if err := out.Encode(changeLine{e.Position.String(), e.ID, e.At, e.User, e.Operation, e.Body, e.Changes}); err != nil {
				return err
			}
			after = e.Position
		}
		return nil
	}
	return c.open(func(st *store.Store, _ *identity.Service) error {
		if c.Follow {
			err := st.Follow(s.ctx, after, write)
			if errors.Is(err, s.ctx.Err()) { // interrupted, as it must be to end
				return nil
			}
			return err
		}
		if err := st.Settled(s.ctx); err != nil {
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
