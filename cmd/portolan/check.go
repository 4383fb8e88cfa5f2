package main

import (
	"fmt"

	"portolan/internal/access"
	"portolan/internal/server"
	"portolan/internal/store"
)

type checkCommand struct{ dataFlag }

// Run verifies the data and fails where something is wrong.
func (c *checkCommand) Run(s *session) error {
	return c.openAs(store.Options{ReadOnly: true}, func(st *store.Store, users *access.Service) error {
		api := server.NewAPI(st)
		return st.View(s.ctx, func(tx *store.Tx) error {
			faults, err := api.Verify(tx)
			if err != nil {
				return err
			}
			for _, f := range faults {
				fmt.Fprintln(s.stdout, f)
			}
			if len(faults) > 0 {
				return fmt.Errorf("%d faults", len(faults))
			}
			_, err = fmt.Fprintln(s.stdout, "nothing is wrong")
			return err
		})
	})
}
