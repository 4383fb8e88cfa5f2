package webhook

import (
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

//go:embed migrations/*/*.sql
var migrations embed.FS

// collectionName is the name of the collection, and of the topic that is touched when a webhook or its state changes.
const collectionName = "webhooks"

// registerWebhooks declares the collection of webhooks, a Portolan extension, and the table of their states.
func registerWebhooks(r *resource.Registry) {
	r.Extension(&store.Extension{Name: collectionName, Migrations: migrations, Verify: verify, Tables: []store.Table{{Name: "webhook",
		Columns: []string{"id", "version", "secret", "position", "delivered", "failures", "stopped", "message"}, Key: 1}}})
	r.Collection(resource.Collection{Name: collectionName, Unpublished: true, Hidden: true, Secret: true, Guard: resource.Administration,
		Parents: []string{""}, Complete: complete}, &Webhook{})
	r.Seed(sealSecrets)
}

// The states of a webhook.
const (
	running  = "RUNNING"
	failing  = "FAILING"
	stopped  = "STOPPED"
	disabled = "DISABLED"
)

// Webhook sends changes to a program that listens at a URL.
type Webhook struct {
	schema.Head `head:"required,nonblank" unique:"all"`
	// URL is the address of the program: https or http, without a user and a password.
	URL string `api:"url,required,nonblank" length:"2000" example:"https://hooks.example.net/portolan"`
	// Secret signs the messages: whsec_ and 24 to 64 bytes in base64 (Standard Webhooks). It can be written but not read.
	Secret string `api:"secret,writeOnly,post,nonblank" example:"whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="`
	// Collections are the collections whose changes are sent; empty means all.
	Collections []string `api:"collections,notNull" example:"addresses"`
	// Parent is the id of a resource. Only changes of its children are sent; null means all changes.
	Parent *int64 `api:"parent" min:"1"`
	// Enabled turns sending on. Changes made while it is false are sent when it is true again.
	Enabled bool `api:"enabled,notNull" default:"true"`
	// State is RUNNING, FAILING, STOPPED or DISABLED. FAILING means that a message is not accepted and is sent again. STOPPED means that
	// changes would be lost, so that enabled has to be set again.
	State string `api:"state,computed" enum:"RUNNING|FAILING|STOPPED|DISABLED"`
	// Failures is the number of consecutive failed attempts.
	Failures int64 `api:"failures,computed"`
	// Message is the reason why it fails or was stopped.
	Message string `api:"message,computed"`
	// DeliveredDateTime is the time of the last accepted message; null if there is none.
	DeliveredDateTime time.Time `api:"deliveredDateTime,computed"`

	secret string
}

// BeforeWrite rejects a URL, a secret or settings that cannot work, and moves the secret out of the row.
func (x *Webhook) BeforeWrite(c *resource.Change) error {
	u, err := url.Parse(x.URL)
	switch {
	case err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "":
		return problem.Invalid("url", "must be a URL with https or http and a host, not %q", x.URL)
	case u.User != nil:
		return problem.Invalid("url",
			"must not contain a user or password, which would be visible to all readers of webhooks; requests are signed instead")
	case u.Fragment != "":
		return problem.Invalid("url", "must not contain a fragment, which is never sent")
	}
	for _, name := range x.Collections {
		if named := c.API.Collection(name); named == nil || !named.IsLogged() {
			return problem.Invalid("collections", "%q is not a collection with a history", name)
		}
	}
	if x.Parent != nil && c.SetFields["parent"] {
		if _, err := c.Tx.Head(*x.Parent); store.IsNotFound(err) {
			return resource.NotFoundInlined("parent", "resource %d does not exist", *x.Parent)
		} else if err != nil {
			return err
		}
	}
	if c.IsCreation() {
		n, err := c.Tx.Count(store.Query{From: store.Resources, Where: store.InCollection(collectionName)})
		if err != nil {
			return err
		}
		if n >= maxWebhooks {
			return problem.Conflict("TooManyWebhooks", "%d webhooks already exist, which is the maximum: delete one first", n)
		}
	}
	if x.secret, x.Secret = x.Secret, ""; x.secret == "" {
		return nil
	}
	_, err = decodeSecret(x.secret)
	return err
}

// secretPrefix is the prefix of secrets (Standard Webhooks, "Signature scheme").
const secretPrefix = "whsec_"

// decodeSecret returns the bytes of a secret.
func decodeSecret(secret string) ([]byte, error) {
	encoded, ok := strings.CutPrefix(secret, secretPrefix)
	bytes, err := base64.StdEncoding.DecodeString(encoded)
	if !ok || err != nil || len(bytes) < 24 || len(bytes) > 64 {
		return nil, problem.Invalid("secret", "must be %s and 24 to 64 bytes in base64", secretPrefix)
	}
	return bytes, nil
}

// AfterWrite stores the secret. A new webhook, and one that is enabled after it was stopped, starts with the changes made from now on.
func (x *Webhook) AfterWrite(c *resource.Change) error {
	c.Tx.Touch(collectionName)
	now, err := c.Tx.End()
	if err != nil {
		return err
	}
	if x.secret != "" {
		if x.secret, err = c.API.Sealer.Seal(c.Tx, sealPurpose(x.ID), x.secret); err != nil {
			return err
		}
	}
	if c.IsCreation() {
		return c.Tx.Write("INSERT INTO webhook (id, version, secret, position) VALUES (?, 1, ?, ?)", x.ID, x.secret, now.String())
	}
	if err := c.Tx.Write("UPDATE webhook SET version = version + 1 WHERE id = ?", x.ID); err != nil {
		return err
	}
	if x.secret != "" {
		if err := c.Tx.Write("UPDATE webhook SET secret = ? WHERE id = ?", x.secret, x.ID); err != nil {
			return err
		}
	}
	if c.SetFields["enabled"] && x.Enabled {
		return c.Tx.Write("UPDATE webhook SET position = ?, stopped = 0, failures = 0, message = '' WHERE id = ? AND stopped <> 0", now.String(),
			x.ID)
	}
	return nil
}

// sealPurpose returns the purpose that the secret of a webhook is encrypted with.
func sealPurpose(id int64) string { return fmt.Sprintf("webhook %d", id) }

// sealSecrets encrypts secrets that an earlier release has stored in plain form.
func sealSecrets(c *resource.Change) error {
	plain := map[int64]string{}
	if err := c.Tx.Each(func(scan func(...any) error) error {
		var id int64
		var secret string
		err := scan(&id, &secret)
		if strings.HasPrefix(secret, secretPrefix) {
			plain[id] = secret
		}
		return err
	}, "SELECT id, secret FROM webhook"); err != nil {
		return err
	}
	for id, secret := range plain {
		sealed, err := c.API.Sealer.Seal(c.Tx, sealPurpose(id), secret)
		if err != nil {
			return err
		}
		if err := c.Tx.Write("UPDATE webhook SET secret = ? WHERE id = ?", sealed, id); err != nil {
			return err
		}
	}
	return nil
}

// BeforeDelete deletes the stored state of the webhook.
func (x *Webhook) BeforeDelete(c *resource.Change) error {
	c.Tx.Touch(collectionName)
	return c.Tx.Write("DELETE FROM webhook WHERE id = ?", x.ID)
}

// record is the stored state of a webhook.
type record struct {
	version   int64
	secret    string
	position  string
	delivered int64
	failures  int64
	stopped   bool
	message   string
}

// readRecords reads the stored state of one webhook or, for 0, of all of them.
func readRecords(tx *store.Tx, id int64) (map[int64]record, error) {
	all := map[int64]record{}
	err := tx.Each(func(scan func(...any) error) error {
		var id, halted int64
		var k record
		if err := scan(&id, &k.version, &k.secret, &k.position, &k.delivered, &k.failures, &halted, &k.message); err != nil {
			return err
		}
		k.stopped = halted != 0
		all[id] = k
		return nil
	}, "SELECT id, version, secret, position, delivered, failures, stopped, message FROM webhook WHERE id = ? OR ? = 0", id, id)
	return all, err
}

// complete adds the state to webhooks.
func complete(tx *store.Tx, rows []*store.Resource) error {
	all, err := readRecords(tx, 0)
	if err != nil {
		return err
	}
	for _, r := range rows {
		o, err := webhookType.Object(r)
		if err != nil {
			return err
		}
		k := all[r.ID]
		state, delivered := running, []byte("null")
		switch {
		case k.stopped:
			state = stopped
		case !o.(*Webhook).Enabled:
			state = disabled
		case k.failures > 0:
			state = failing
		}
		if k.delivered > 0 {
			delivered = schema.AppendString(nil, time.UnixMilli(k.delivered).UTC().Format(time.RFC3339))
		}
		message := []byte("null")
		if k.message != "" {
			message = schema.AppendString(nil, k.message)
		}
		failures, err := json.Marshal(k.failures)
		if err != nil {
			return err
		}
		if r.Body, err = store.Rewritten(r.Body, map[string][]byte{"state": schema.AppendString(nil, state), "failures": failures,
			"message": message, "deliveredDateTime": delivered}); err != nil {
			return err
		}
	}
	return nil
}

var webhookType = schema.Declare(&Webhook{})

// verify reports webhooks without a stored state, and stored states without a webhook.
func verify(tx *store.Tx, fault func(format string, args ...any)) error {
	if err := tx.ReportFaults(fault, "the state of webhook %d is missing%s",
		"SELECT r.id, '' FROM resource r LEFT JOIN webhook w ON w.id = r.id WHERE r.collection = '"+collectionName+
			"' AND w.id IS NULL"); err != nil {
		return err
	}
	return tx.ReportFaults(fault, "webhook %d does not exist, but has a stored state%s",
		"SELECT w.id, '' FROM webhook w LEFT JOIN resource r ON r.id = w.id AND r.collection = '"+collectionName+"' WHERE r.id IS NULL")
}

// maxWebhooks is the number of webhooks. Each has a connection and a goroutine of its own.
const maxWebhooks = 1000

// hook is an active webhook with its settings.
type hook struct {
	id          int64
	name        string
	url         string
	key         []byte
	collections []string
	parent      int64
	version     int64
}

// hooks returns the active webhooks.
func hooks(tx *store.Tx, sealer resource.Sealer) (all []hook, err error) {
	keeps, err := readRecords(tx, 0)
	if err != nil || len(keeps) == 0 {
		return nil, err
	}
	rows, err := tx.ListSome(store.InCollection(collectionName), 2*maxWebhooks)
	if err != nil {
		return nil, err
	}
	for _, r := range rows {
		o, err := webhookType.Object(r)
		if err != nil {
			return nil, err
		}
		x, k := o.(*Webhook), keeps[r.ID]
		if k.stopped || !x.Enabled {
			continue
		}
		plain, err := sealer.Open(tx, sealPurpose(r.ID), k.secret)
		if err != nil {
			return nil, err
		}
		secret, err := decodeSecret(plain)
		if err != nil {
			return nil, err
		}
		h := hook{id: r.ID, name: x.Name, url: x.URL, key: secret, collections: slices.Clone(x.Collections), version: k.version}
		if x.Parent != nil {
			h.parent = *x.Parent
		}
		all = append(all, h)
	}
	return all, nil
}
