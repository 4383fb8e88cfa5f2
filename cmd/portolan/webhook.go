package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"text/tabwriter"
	"time"

	"portolan/client"
	"portolan/internal/base/fairlisten"
)

type webhookCommand struct {
	List   webhookList   `cmd:"" example:"portolan webhook list" help:"List the webhooks and their state."`
	Create webhookCreate `cmd:"" example:"portolan webhook create cmdb https://cmdb.example.net/hook" help:"Send changes to a URL, and print the secret that signs them."`
	Delete webhookDelete `cmd:"" example:"portolan webhook delete 100123" help:"Delete a webhook."`
	Listen webhookListen `cmd:"" example:"PORTOLAN_SECRET=whsec_... portolan webhook listen --listen 127.0.0.1:9000" help:"Receive messages of a webhook, verify their signature and print them, for a test."`
}

type webhookList struct{ managerFlags }

// Run lists the webhooks.
func (c *webhookList) Run(s *session) error {
	cl, err := c.client()
	if err != nil {
		return err
	}
	all := []client.Webhook{}
	if err := cl.All(s.ctx, "webhooks", client.Query{OrderBy: "name", Limit: 1000}, func(text json.RawMessage) error {
		var one client.Webhook
		err := json.Unmarshal(text, &one)
		all = append(all, one)
		return err
	}); err != nil {
		return err
	}
	if c.JSON {
		return json.NewEncoder(s.stdout).Encode(all) //nolint:gosec // the manager does not return secrets
	}
	w := tabwriter.NewWriter(s.stdout, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tSTATE\tLAST TAKEN\tURL\tID\tMESSAGE")
	for _, one := range all {
		taken := one.DeliveredDateTime
		if taken == "" {
			taken = "never"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%s\n", one.Name, one.State, taken, one.URL, one.ID, one.Message)
	}
	return w.Flush()
}

type webhookCreate struct {
	managerFlags
	Name       string   `arg:"" help:"The name, unique among the webhooks."`
	Target     string   `arg:"" help:"The URL to send to: https or http."`
	Collection []string `help:"Only changes of resources of these collections." placeholder:"NAME"`
	Parent     int64    `help:"Only changes of direct children of this resource." placeholder:"ID"`
}

// Run creates a webhook with a new secret.
func (c *webhookCreate) Run(s *session) error {
	cl, err := c.client()
	if err != nil {
		return err
	}
	w := client.Webhook{Name: c.Name, URL: c.Target, Secret: client.NewWebhookSecret(), Collections: c.Collection, Enabled: true}
	if c.Parent != 0 {
		w.Parent = &c.Parent
	}
	made, err := cl.CreateWebhook(s.ctx, w)
	if err != nil {
		return err
	}
	if made.Secret = w.Secret; c.JSON {
		return json.NewEncoder(s.stdout).Encode(made) //nolint:gosec // the secret is shown once
	}
	_, err = fmt.Fprintf(s.stdout, "webhook %d was created. This secret signs its messages and is shown only once:\n\n  %s\n",
		made.ID, made.Secret)
	return err
}

type webhookDelete struct {
	managerFlags
	ID int64 `arg:"" help:"The id."`
}

// Run deletes a webhook.
func (c *webhookDelete) Run(s *session) error {
	cl, err := c.client()
	if err != nil {
		return err
	}
	return cl.Delete(s.ctx, "webhooks/"+strconv.FormatInt(c.ID, 10))
}

type webhookListen struct {
	Listen string `help:"The address to listen on." default:"127.0.0.1:9080" placeholder:"ADDRESS"`
	Secret string `help:"The webhook's secret. Prefer PORTOLAN_SECRET." required:"" placeholder:"SECRET"`
}

// maxMessage is the maximum size of a message, in bytes.
const maxMessage = 32 << 20

// maxMessages is the maximum number of concurrent messages. Each is held in memory until its signature is checked.
const maxMessages = 16

// Run receives messages until it is interrupted.
func (c *webhookListen) Run(s *session) error {
	l, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return err
	}
	out, mu := json.NewEncoder(s.stdout), sync.Mutex{} // requests may be concurrent
	server := &http.Server{ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxMessage))
			var m client.WebhookMessage
			if err == nil {
				err = client.VerifyWebhook(c.Secret, r.Header, body, time.Now())
			}
			if err == nil {
				err = json.Unmarshal(body, &m)
			}
			if err != nil {
				s.log.Warn("webhook message rejected", "error", err)
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			for _, one := range m.Transactions {
				if err := out.Encode(one); err != nil {
					http.Error(w, err.Error(), http.StatusInternalServerError)
					return
				}
			}
		})}
	s.log.Info("listening", "address", l.Addr().String())
	ended := make(chan error, 1)
	go func() {
		ended <- server.Serve(fairlisten.New(l, fairlisten.Limits{Max: maxMessages, PerNetwork: maxMessages / 2}))
	}()
	select {
	case err := <-ended:
		return err
	case <-s.ctx.Done():
	}
	within, end := context.WithTimeout(context.WithoutCancel(s.ctx), 10*time.Second)
	defer end()
	if err := server.Shutdown(within); err != nil {
		return err
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
