package client

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Webhook sends what changes to a program that listens at a URL.
type Webhook struct {
	ID   int64  `json:"id,omitempty"`
	Type string `json:"type"`
	Name string `json:"name"`
	URL  string `json:"url"`
	// Secret signs what is sent (NewWebhookSecret); it is written and never shown.
	Secret string `json:"secret,omitempty"`
	// Collections are those whose changes are sent, Parent what they lie right below; none and nil: all.
	Collections []string `json:"collections,omitempty"`
	Parent      *int64   `json:"parent,omitempty"`
	Enabled     bool     `json:"enabled"`
	// State is RUNNING, FAILING, STOPPED or DISABLED, Message says why.
	State             string `json:"state,omitempty"`
	Failures          int64  `json:"failures,omitempty"`
	Message           string `json:"message,omitempty"`
	DeliveredDateTime string `json:"deliveredDateTime,omitempty"`
}

// CreateWebhook makes a webhook and gives it as it was made.
func (c *Client) CreateWebhook(ctx context.Context, w Webhook) (made Webhook, err error) {
	w.Type = "Webhook"
	return made, c.Create(ctx, "webhooks", w, &made)
}

// WebhookMessage is what a webhook is sent: some transactions, in order, each once unless an answer was lost.
type WebhookMessage struct {
	Webhook struct {
		ID   int64  `json:"id"`
		Name string `json:"name"`
	} `json:"webhook"`
	Transactions []struct {
		FeedTransaction
		Position string   `json:"position"`
		Changes  []Change `json:"changes"`
		// More says that there are more changes, which GET /transactions/ID/operations has.
		More bool `json:"more"`
	} `json:"transactions"`
}

const secretPrefix = "whsec_"

// NewWebhookSecret makes a secret.
func NewWebhookSecret() string {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // it never fails
	return secretPrefix + base64.StdEncoding.EncodeToString(key)
}

// webhookSkew is how far the time of a message may be from one's own.
const webhookSkew = 5 * time.Minute

// VerifyWebhook says what is wrong with the signature of a message (Standard Webhooks): nil where it was made with the secret over its
// headers and its body, as they came, at about the time now.
func VerifyWebhook(secret string, header http.Header, body []byte, now time.Time) error {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, secretPrefix))
	if err != nil {
		return fmt.Errorf("the secret is no base64: %w", err)
	}
	id, timestamp := header.Get("Webhook-Id"), header.Get("Webhook-Timestamp")
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil {
		return fmt.Errorf("Webhook-Timestamp is no time: %w", err)
	}
	if at := time.Unix(seconds, 0); now.Sub(at).Abs() > webhookSkew {
		return fmt.Errorf("the message is of %s", at.UTC().Format(time.RFC3339))
	}
	sum := hmac.New(sha256.New, key)
	sum.Write([]byte(id + "." + timestamp + "."))
	sum.Write(body)
	for one := range strings.FieldsSeq(header.Get("Webhook-Signature")) {
		given, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(one, "v1,"))
		if err == nil && strings.HasPrefix(one, "v1,") && hmac.Equal(given, sum.Sum(nil)) {
			return nil
		}
	}
	return errors.New("no signature is made with the secret")
}
