package main

import (
	"fmt"
	"os"

	"portolan/internal/address"
	"portolan/internal/identity"
	"portolan/internal/server"
	"portolan/internal/store"
)

type importCommand struct {
	Addresses importAddresses `cmd:"" help:"Make the addresses of a CSV file with the columns address, name and state, in the networks they lie in."`
}

type importAddresses struct {
	dataFlag
	Configuration string `help:"The name of the configuration." required:"" placeholder:"NAME"`
	File          string `arg:"" help:"The file." type:"existingfile"`
}

// Run imports all addresses of the file, or none.
func (c *importAddresses) Run(s *session) error {
	f, err := os.Open(c.File)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	lines, err := address.ReadAddresses(f)
	if err != nil {
		return fmt.Errorf("%s: %w", c.File, err)
	}
	return c.open(func(st *store.Store, users *identity.Service) error {
		api := address.New(st, users, server.DefaultMaxLimit, versionText())
		bar := s.bar()
		total := int64(len(lines))
		err := address.ImportAddresses(s.ctx, api, c.Configuration, lines, func(done int64) { bar.show("imported", done, total) })
		bar.end()
		if err != nil {
			return fmt.Errorf("%s: %w", c.File, err)
		}
		_, err = fmt.Fprintf(s.stdout, "imported %d addresses\n", total)
		return err
	})
}
