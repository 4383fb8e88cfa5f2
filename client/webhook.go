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

// Webhook sends changes to a program that listens at a URL.
type Webhook struct {
	ID   int64  `json:"id,omitempty"`
	Type string `json:"type"`
	Name string `json:"name"`
	URL  string `json:"url"`
	// Secret signs the messages (NewWebhookSecret). The API never returns it.
	Secret string `json:"secret,omitempty"`
	// Collections and Parent select the changes: the collections, and the direct parent of the resources. Empty and nil select all.
	Collections []string `json:"collections,omitempty"`
	Parent      *int64   `json:"parent,omitempty"`
	Enabled     bool     `json:"enabled"`
	// State is RUNNING, FAILING, STOPPED or DISABLED. Message is the reason.
	State             string `json:"state,omitempty"`
	Failures          int64  `json:"failures,omitempty"`
	Message           string `json:"message,omitempty"`
	DeliveredDateTime string `json:"deliveredDateTime,omitempty"`
}

// CreateWebhook creates a webhook and returns it.
func (c *Client) CreateWebhook(ctx context.Context, w Webhook) (made Webhook, err error) {
	w.Type = "Webhook"
	return made, c.Create(ctx, "webhooks", w, &made)
}

// WebhookMessage is the body of a message: transactions in order. A transaction is sent again if the response to it was lost.
type WebhookMessage struct {
	Webhook struct {
		ID   int64  `json:"id"`
		Name string `json:"name"`
	} `json:"webhook"`
	Transactions []struct {
		FeedTransaction
		Position string   `json:"position"`
		Changes  []Change `json:"changes"`
		// More reports that there are more changes, which GET /transactions/ID/operations returns.
		More bool `json:"more"`
	} `json:"transactions"`
}

const secretPrefix = "whsec_"

// NewWebhookSecret creates a random secret.
func NewWebhookSecret() string {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // it never fails
	return secretPrefix + base64.StdEncoding.EncodeToString(key)
}

// webhookSkew is the maximum difference between the time of a message and the local time.
const webhookSkew = 5 * time.Minute

// VerifyWebhook verifies the signature of a message (Standard Webhooks). It returns nil if the secret signed exactly these headers and this
// body, and the timestamp of the message is within 5 minutes of now.
func VerifyWebhook(secret string, header http.Header, body []byte, now time.Time) error {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, secretPrefix))
	if err != nil {
		return fmt.Errorf("the secret is not valid base64: %w", err)
	}
	id, timestamp := header.Get("Webhook-Id"), header.Get("Webhook-Timestamp")
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil {
		return fmt.Errorf("Webhook-Timestamp is not a time: %w", err)
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
