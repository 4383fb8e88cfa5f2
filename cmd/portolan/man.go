package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/alecthomas/kong"

	"portolan/internal/client/cli"
)

type manCommand struct {
	Dir string `arg:"" help:"The directory." type:"path"`
}

// Run writes man pages and completion scripts into a directory, for packages.
func (c *manCommand) Run(_ *session, app *kong.Kong) error {
	return cli.WritePages(app.Model, versionText(), c.Dir)
}

type readyCommand struct {
	URL string `help:"The manager's URL. It must be https if the manager listens beyond loopback." default:"https://127.0.0.1:8080" name:"url" env:"PORTOLAN_READY_URL" placeholder:"URL"`
}

// Help returns examples.
func (readyCommand) Help() string {
	return `Use it as the health check of a container. On loopback the certificate is not verified.

Examples:

  portolan ready --url http://127.0.0.1:8080`
}

// Run succeeds if the manager is ready.
func (c *readyCommand) Run(s *session) error {
	at, err := url.Parse(c.URL)
	if err != nil || at.Host == "" {
		return usageError{errors.New("--url must be the URL of a manager")}
	}
	ip := net.ParseIP(at.Hostname())
	local := at.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
	ctx, end := context.WithTimeout(s.ctx, 5*time.Second)
	defer end()
	h := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12,
		InsecureSkipVerify: local}}} //nolint:gosec // only for connections to this machine
	rq, err := http.NewRequestWithContext(ctx, http.MethodGet, at.JoinPath("readyz").String(), http.NoBody)
	if err != nil {
		return err
	}
	rs, err := h.Do(rq)
	if err != nil {
		return err
	}
	_ = rs.Body.Close()
	if rs.StatusCode != http.StatusOK {
		return fmt.Errorf("the manager at %s is not ready: status %d", c.URL, rs.StatusCode)
	}
	_, err = fmt.Fprintln(s.stdout, "ready")
	return err
}
