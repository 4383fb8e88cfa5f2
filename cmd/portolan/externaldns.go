package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"portolan/client"
	"portolan/internal/base/fairlisten"
	"portolan/internal/client/cli"
	"portolan/internal/client/externaldns"
)

type externalDNSCommand struct {
	managerFlags
	Configuration string   `help:"The configuration to manage names in." required:"" placeholder:"NAME"`
	View          string   `help:"The view. Required if the configuration has several." placeholder:"NAME"`
	Domain        []string `help:"The zones to manage, including their subzones. Default: all zones of the view." placeholder:"NAME"`
	Listen        string   `help:"The address for requests of external-dns." default:"127.0.0.1:8888" placeholder:"ADDRESS"`
}

// Run serves external-dns until it is interrupted.
func (c *externalDNSCommand) Run(s *session) error {
	if host, _, err := net.SplitHostPort(c.Listen); err != nil || !net.ParseIP(host).IsLoopback() {
		return usageError{fmt.Errorf("--listen: %q is not a loopback address with a port: any client that can connect can change names",
			c.Listen)}
	}
	cl, err := c.client()
	if err != nil {
		return err
	}
	configuration, view, err := c.viewID(s.ctx, cl)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return err
	}
	p := &externaldns.Provider{Client: cl, Configuration: configuration, View: view, Domains: c.Domain, Log: s.log}
	server := &http.Server{Handler: p.Handler(), ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute, IdleTimeout: time.Minute}
	ended := make(chan error, 1)
	maxConnections := fairlisten.ShareLimit(1, 1024)
	go func() {
		ended <- server.Serve(fairlisten.New(l, fairlisten.Limits{Max: maxConnections, PerNetwork: maxConnections / 4}))
	}()
	s.log.Info("external-dns listener started", "at", "http://"+l.Addr().String(), "view", view)
	select {
	case err = <-ended:
		return err
	case <-s.ctx.Done():
	}
	leaving, done := context.WithTimeout(context.WithoutCancel(s.ctx), 5*time.Second)
	defer done()
	if err := server.Shutdown(leaving); err != nil {
		return err
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// viewID returns the IDs of the view and of its configuration.
func (c *externalDNSCommand) viewID(ctx context.Context, cl *client.Client) (configuration, id int64, err error) {
	filter := fmt.Sprintf("configuration.name:%s", cli.Quoted(c.Configuration))
	if c.View != "" {
		filter += fmt.Sprintf(" and name:%s", cli.Quoted(c.View))
	}
	found := 0
	err = cl.All(ctx, "views", client.Query{Filter: filter, Limit: 10}, func(text json.RawMessage) error {
		var one struct {
			ID            int64
			Configuration struct{ ID int64 }
		}
		err := json.Unmarshal(text, &one)
		configuration, id = one.Configuration.ID, one.ID
		found++
		return err
	})
	switch {
	case err != nil:
		return 0, 0, err
	case found == 0 && c.View == "":
		return 0, 0, fmt.Errorf("no configuration %q with a view exists", c.Configuration)
	case found == 0:
		return 0, 0, fmt.Errorf("view %q does not exist in configuration %q", c.View, c.Configuration)
	case found > 1:
		return 0, 0, usageError{fmt.Errorf("configuration %s has several views: select one with --view", c.Configuration)}
	}
	return configuration, id, nil
}
