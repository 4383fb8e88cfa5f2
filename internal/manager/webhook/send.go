package webhook

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"portolan/internal/engine/schema"
	"portolan/internal/manager/outbound"
)

// newClient returns a client that follows no redirects, and connects only where package outbound allows.
func newClient() *http.Client {
	return &http.Client{
		Timeout: sendTime,
		Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, DialContext: outbound.Dialer().DialContext,
			TLSClientConfig:   &tls.Config{MinVersion: tls.VersionTLS12},
			ForceAttemptHTTP2: true, IdleConnTimeout: time.Minute, MaxResponseHeaderBytes: 64 << 10},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// maxAnswer is the number of bytes of a response body that are read. Reading it allows the connection to be reused.
const maxAnswer = 64 << 10

// post sends a message once, signed according to Standard Webhooks: HMAC-SHA256 over the id, the time and the body. A response with a 2xx
// status accepts the message.
func (w *worker) post(ctx context.Context, m *message) error {
	body := append([]byte(`{"webhook":{"id":`), strconv.FormatInt(w.id, 10)...)
	body = append(schema.AppendString(append(body, `,"name":`...), w.name), `},"transactions":[`...)
	body = append(append(body, m.text.Bytes()...), "]}"...)
	rq, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	id, now := strconv.FormatInt(w.id, 10)+"_"+m.last.String(), strconv.FormatInt(time.Now().Unix(), 10)
	for name, value := range map[string]string{"Content-Type": "application/json", "User-Agent": w.agent, "Webhook-Id": id,
		"Webhook-Timestamp": now, "Webhook-Signature": "v1," + signature(w.key, id, now, body)} {
		rq.Header.Set(name, value)
	}
	rs, err := w.client.Do(rq)
	if err != nil {
		var about *url.Error
		if errors.As(err, &about) { // the outer error repeats the URL
			return about.Err
		}
		return err
	}
	defer func() { _ = rs.Body.Close() }()
	if _, err := io.Copy(io.Discard, io.LimitReader(rs.Body, maxAnswer)); err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	if rs.StatusCode < 200 || rs.StatusCode > 299 {
		return fmt.Errorf("the receiver returned %s", rs.Status)
	}
	return nil
}

// signature returns the signature of a message in base64.
func signature(key []byte, id, timestamp string, body []byte) string {
	sum := hmac.New(sha256.New, key)
	sum.Write([]byte(id + "." + timestamp + "."))
	sum.Write(body)
	return base64.StdEncoding.EncodeToString(sum.Sum(nil))
}
