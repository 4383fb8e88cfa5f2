package main

import (
	"errors"
	"fmt"
	"os"

	"portolan/internal/base/plural"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
	"portolan/internal/manager/history"
	"portolan/internal/manager/identity"
	"portolan/internal/manager/model"
	"portolan/internal/manager/secrets"
)

type checkCommand struct {
	dataFlag
	Heads string `help:"A file of signed history heads stored elsewhere (serve --history-heads). The check compares the history with them." type:"existingfile" placeholder:"FILE"`
	Key   string `help:"With --heads: the public key that verifies them, in hexadecimal." placeholder:"HEX"`
}

// Run verifies the data and returns an error if there are faults.
func (c *checkCommand) Run(s *session) error {
	if c.Key != "" && c.Heads == "" {
		return usageError{errors.New("--key requires --heads")}
	}
	return c.openAs(store.Options{ReadOnly: true}, func(st *store.Store, _ *identity.Service) error {
		api := model.NewAPI(st)
		return st.View(s.ctx, func(tx *store.Tx) error {
			faults, err := api.Verify(tx)
			if err != nil {
				return err
			}
			lines, err := c.history(tx, api.Sealer, func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) })
			if store.IsDamage(err) {
				faults = append(faults, fmt.Sprintf("the history was not checked, because the database is damaged: %v", err))
			} else if err != nil {
				return err
			}
			for _, f := range faults {
				fmt.Fprintln(s.stdout, f)
			}
			for _, text := range lines {
				fmt.Fprintln(s.stderr, text)
			}
			if len(faults) > 0 {
				return errors.New(plural.Count(len(faults), "fault") + " found")
			}
			_, err = fmt.Fprintln(s.stdout, "no faults found")
			return err
		})
	})
}

// history compares the history with chain heads that were stored elsewhere, and its signing keys with the master key. It returns lines that
// describe the scope of the check.
func (c *checkCommand) history(tx *store.Tx, sealer resource.Sealer, fault func(string, ...any)) (lines []string,
	err error) {
	last, err := tx.LastLink()
	if err != nil {
		return nil, err
	}
	pending, err := tx.CountUnlinked()
	if err != nil {
		return nil, err
	}
	begins, err := tx.ChainStart()
	if err != nil {
		return nil, err
	}
	lines = append(lines, fmt.Sprintf("history: %d transactions chained, %d of them kept, %d to be chained", last.Place, last.Place-begins,
		pending))
	keys, err := c.keys()
	if err != nil {
		return nil, err
	}
	if err = secrets.VerifyMasterKeys(tx); err == nil {
		err = history.VerifyKey(tx, sealer, fault)
	}
	switch {
	case err != nil && len(keys) == 0:
		lines = append(lines, "secrets were not decrypted, and signatures were checked only against the stored keys: --master-key was not given")
	case err != nil:
		fault("secrets cannot be decrypted: %v", err)
	}
	if c.Heads == "" {
		return lines, nil
	}
	f, err := os.Open(c.Heads)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	n, older, err := history.Compare(tx, f, c.Key, fault)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Heads, err)
	}
	if n == 0 {
		return nil, fmt.Errorf("%s contains no head of the history: the history was not compared", c.Heads)
	}
	return append(lines, fmt.Sprintf("compared with %d heads of %s; %d more heads are older than the oldest transaction",
		n-older, c.Heads, older)), nil
}
