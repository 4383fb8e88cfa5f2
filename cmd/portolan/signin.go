package main

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"portolan/internal/engine/store"
	"portolan/internal/manager/identity"
)

type signInCommand struct {
	dataFlag
	User string `help:"The user to sign in." default:"admin" placeholder:"NAME"`
	URL  string `help:"The URL at which browsers reach the manager." default:"http://127.0.0.1:8080" env:"PORTOLAN_URL" placeholder:"URL"`
}

// Run prints a link.
func (c *signInCommand) Run(s *session) error {
	at, err := url.Parse(c.URL)
	if err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" {
		return usageError{errors.New("--url must be the URL of a manager, such as https://portolan.example.net")}
	}
	return c.open(func(_ *store.Store, users *identity.Service) error {
		code, err := users.NewLink(s.ctx, c.User)
		if err == nil {
			_, err = fmt.Fprintln(s.stdout, signInLink(strings.TrimRight(c.URL, "/"), code))
		}
		return err
	})
}

// signInLink returns a link to the console that signs a user in. The code follows the #, because browsers do not send that part.
func signInLink(manager, code string) string { return manager + "/#sign-in=" + code }
