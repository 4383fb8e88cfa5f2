package telemetry

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"portolan/internal/manager/outbound"
	"portolan/internal/manager/sink"
)

// sendTime is the timeout of a request. maxAnswer is the number of octets of a response that are read.
const (
	sendTime  = 10 * time.Second
	maxAnswer = 4 << 20
)

// receiver is a destination that accepts events.
type receiver struct {
	*sink.Destination
	password, token string
	client          *http.Client
	// agent is the User-Agent header.
	agent string
}

// newReceiver returns the receiver of a destination. It connects only where package outbound allows, and follows no redirects.
func newReceiver(d *sink.Destination, password, token string) (*receiver, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if d.CACertificate != "" {
		text := []byte(d.CACertificate)
		if der, err := base64.StdEncoding.DecodeString(d.CACertificate); err == nil {
			text = der
		}
		if config.RootCAs = x509.NewCertPool(); !config.RootCAs.AppendCertsFromPEM(text) {
			one, err := x509.ParseCertificate(text)
			if err != nil {
				return nil, fmt.Errorf("caCertificate is not a certificate: %w", err)
			}
			config.RootCAs.AddCert(one)
		}
	}
	verify(config, d)
	return &receiver{Destination: d, password: password, token: token, client: &http.Client{Timeout: sendTime,
		Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, DialContext: outbound.Dialer().DialContext, TLSClientConfig: config,
			ForceAttemptHTTP2: true, MaxResponseHeaderBytes: 64 << 10, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}, nil
}

// verify sets how the certificate of the destination is verified: with its name, without it, or not at all.
func verify(config *tls.Config, d *sink.Destination) {
	if d.CertificateVerificationEnabled && d.HostnameVerificationEnabled {
		return
	}
	config.InsecureSkipVerify = true //nolint:gosec // set by the user for this destination; the chain is verified below
	if !d.CertificateVerificationEnabled {
		return
	}
	roots := config.RootCAs
	config.VerifyConnection = func(s tls.ConnectionState) error {
		between := x509.NewCertPool()
		for _, one := range s.PeerCertificates[1:] {
			between.AddCert(one)
		}
		_, err := s.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: between})
		return err
	}
}

// eventTime returns the time of an event in Unix milliseconds; 0 if it has none.
func eventTime(body json.RawMessage) int64 {
	var about struct {
		Time time.Time `json:"time"`
	}
	if json.Unmarshal(body, &about) != nil || about.Time.IsZero() {
		return 0
	}
	return about.Time.UnixMilli()
}

// Paths of the receivers' APIs that are added to a URL without a path.
const (
	splunkPath       = "/services/collector/event"
	splunkHealthPath = "/services/collector/health"
	elasticPath      = "/_bulk"
)

// encode returns the body of a message and its content type.
func (r *receiver) encode(events []waiting) (body []byte, contentType string) {
	switch r.SinkType {
	case "SPLUNK":
		for _, one := range events {
			body = append(body, `{"sourcetype":"portolan:dhcp","time":`...)
			body = strconv.AppendFloat(body, float64(eventTime(one.body))/1000, 'f', 3, 64)
			body = append(append(append(body, `,"event":`...), one.body...), '}')
		}
		return body, "application/json"
	case "ELASTICSEARCH": // the id makes a repeated event a conflict, which is accepted
		for _, one := range events {
			body = fmt.Appendf(body, `{"create":{"_id":"portolan-%d"}}`+"\n", one.id)
			body = fmt.Appendf(body, `{"@timestamp":%d,"dhcp":`, eventTime(one.body))
			body = append(append(body, one.body...), "}\n"...)
		}
		return body, "application/x-ndjson"
	}
	body = append(body, '[')
	for i, one := range events {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, one.body...)
	}
	return append(body, ']'), "application/json"
}

// urlOf returns the URL of the destination with a path; HTTP has the path of its URL.
func (r *receiver) urlOf(path string) string {
	u, err := url.Parse(r.URL)
	if err != nil { // checked when it was stored
		return r.URL
	}
	switch r.SinkType {
	case "SPLUNK":
		if u.Path == "" || u.Path == "/" || path == splunkHealthPath {
			u.Path = path
		}
	case "ELASTICSEARCH":
		u.Path = strings.TrimSuffix(u.Path, "/") + "/" + r.Index + path
	}
	return u.String()
}

// send sends events in one message. rejected is the number of those that the receiver refuses for their content; they are not sent again. A
// 2xx status accepts the message.
func (r *receiver) send(ctx context.Context, events []waiting) (rejected int, err error) {
	body, contentType := r.encode(events)
	path := ""
	switch r.SinkType {
	case "SPLUNK":
		path = splunkPath
	case "ELASTICSEARCH":
		path = elasticPath
	}
	answer, err := r.do(ctx, http.MethodPost, r.urlOf(path), body, contentType)
	if err == nil && r.SinkType == "ELASTICSEARCH" {
		return readBulk(answer)
	}
	return 0, err
}

// checkHealth asks the receiver whether it accepts messages, if the destination says so.
func (r *receiver) checkHealth(ctx context.Context) error {
	if !r.HealthCheckEnabled {
		return nil
	}
	at := r.HealthCheckURL
	switch r.SinkType {
	case "SPLUNK":
		at = r.urlOf(splunkHealthPath)
	case "ELASTICSEARCH":
		at = r.URL
	}
	if at == "" {
		return nil
	}
	if _, err := r.do(ctx, http.MethodGet, at, nil, ""); err != nil {
		return fmt.Errorf("health check: %w", err)
	}
	return nil
}

// do sends a request with the credentials of the destination, and returns the body of a 2xx answer.
func (r *receiver) do(ctx context.Context, method, at string, body []byte, contentType string) ([]byte, error) {
	rq, err := http.NewRequestWithContext(ctx, method, at, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	rq.Header.Set("User-Agent", r.agent)
	if contentType != "" {
		rq.Header.Set("Content-Type", contentType)
	}
	switch {
	case r.SinkType == "ELASTICSEARCH" && r.Username != "":
		rq.SetBasicAuth(r.Username, r.password)
	case r.SinkType == "SPLUNK":
		rq.Header.Set("Authorization", "Splunk "+r.token)
	case r.SinkType == "HTTP" && r.token != "":
		rq.Header.Set("Authorization", "Bearer "+r.token)
	}
	rs, err := r.client.Do(rq)
	if err != nil {
		if about, is := errors.AsType[*url.Error](err); is { // the outer error repeats the URL
			return nil, about.Err
		}
		return nil, err
	}
	defer func() { _ = rs.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(rs.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	if rs.StatusCode < 200 || rs.StatusCode > 299 {
		return nil, fmt.Errorf("the receiver returned %s", rs.Status)
	}
	return answer, nil
}

// readBulk reads the answer of Elasticsearch: the events of a message are accepted one by one. A conflict is an event that was sent before.
func readBulk(answer []byte) (rejected int, err error) {
	var result struct {
		Errors bool `json:"errors"`
		Items  []struct {
			Create struct {
				Status int             `json:"status"`
				Error  json.RawMessage `json:"error"`
			} `json:"create"`
		} `json:"items"`
	}
	if err := json.Unmarshal(answer, &result); err != nil {
		return 0, fmt.Errorf("the answer is not that of a bulk request: %w", err)
	}
	for _, one := range result.Items {
		switch s := one.Create.Status; {
		case s < 300 || s == http.StatusConflict:
		case s == http.StatusTooManyRequests || s >= 500:
			return 0, fmt.Errorf("the receiver returned the status %d for an event: %s", s, one.Create.Error)
		default:
			rejected++
		}
	}
	return rejected, nil
}
