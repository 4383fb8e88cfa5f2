package telemetry

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
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
	if d.SinkType == "KAFKA" { // of an earlier schema; new ones are refused
		return nil, errors.New("KAFKA is not supported")
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	roots, err := d.Authorities()
	if err != nil {
		return nil, err
	}
	config.RootCAs = roots
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
	config.InsecureSkipVerify = true //nolint:gosec // set by the user for this destination; VerifyConnection verifies the chain
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
	case "ELASTICSEARCH": // the id makes a repeated event a conflict, which is accepted; the hash differs between databases with equal ids
		for _, one := range events {
			sum := sha256.Sum256(fmt.Appendf(nil, "%d %s", one.id, one.body))
			body = fmt.Appendf(body, `{"create":{"_id":"%x"}}`+"\n", sum[:16])
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
		u = u.JoinPath(url.PathEscape(r.Index), path)
		u.RawQuery = "filter_path=errors,items.*.status,items.*.error.type"
	}
	return u.String()
}

// send sends events in one message. rejected are those that the receiver refuses for their content; they are not sent again. A 2xx
// status accepts the message.
func (r *receiver) send(ctx context.Context, events []waiting) (rejected []waiting, err error) {
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
		return readBulk(answer, events)
	}
	return nil, err
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
	case r.SinkType == "HTTP" && r.token != "" && r.isOwn(rq.URL): // not a health check elsewhere
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
		return nil, &statusError{rs.StatusCode}
	}
	return answer, nil
}

// isOwn reports whether a URL has the host of the destination.
func (r *receiver) isOwn(u *url.URL) bool {
	own, err := url.Parse(r.URL)
	return err == nil && own.Scheme == u.Scheme && own.Host == u.Host
}

// statusError is the status of an answer that does not accept a message. Texts of the receiver are not shown: they can be long, and can
// contain data of clients.
type statusError struct{ code int }

func (e *statusError) Error() string {
	return strings.TrimSpace(fmt.Sprintf("the receiver returned %d %s", e.code, http.StatusText(e.code)))
}

// readBulk reads the answer of Elasticsearch: the events of a message are accepted one by one. A conflict is an event that was sent before.
// An event with the status 400 is rejected for its content; any other status is a failure of the message.
func readBulk(answer []byte, events []waiting) (rejected []waiting, err error) {
	var result struct {
		Items []struct {
			Create struct {
				Status int `json:"status"`
				Error  struct {
					Type string `json:"type"`
				} `json:"error"`
			} `json:"create"`
		} `json:"items"`
	}
	if err := json.Unmarshal(answer, &result); err != nil {
		return nil, fmt.Errorf("the answer is not that of a bulk request: %w", err)
	}
	if len(result.Items) != len(events) {
		return nil, fmt.Errorf("the answer has %d items for %d events: check that the URL is that of Elasticsearch", len(result.Items),
			len(events))
	}
	for i, one := range result.Items {
		switch status := one.Create.Status; {
		case status >= 200 && status < 300 || status == http.StatusConflict:
		case status == http.StatusBadRequest:
			rejected = append(rejected, events[i])
		default:
			return nil, fmt.Errorf("the receiver returned the status %d for an event (%.100s)", status, one.Create.Error.Type)
		}
	}
	return rejected, nil
}
