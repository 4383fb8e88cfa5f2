package servicepoint

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
	"math"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"portolan/internal/wire/checkin"
)

// manager is the client of the manager's check-in endpoint.
type manager struct {
	base string // https://host:port
	http *http.Client
}

// refusal is an error answer of the manager.
type refusal struct {
	Status  int    `json:"status"`
	Code    string `json:"code"`
	Message string `json:"message"`
}

func (r *refusal) Error() string { return fmt.Sprintf("%s (%d %s)", r.Message, r.Status, r.Code) }

// isPermanent reports whether a retry cannot succeed.
func isPermanent(err error) bool {
	var r *refusal
	return errors.As(err, &r) && r.Status >= 400 && r.Status < 500 && r.Status != http.StatusTooManyRequests &&
		r.Status != http.StatusRequestTimeout
}

// errWrongManager reports a manager that did not issue the registration key.
var errWrongManager = errors.New("another manager created the registration key: the authority of the manager at the registration " +
	"endpoint has another fingerprint")

// baseURL returns a registration endpoint without its path. It returns an error if the endpoint is not an https URL.
func baseURL(endpoint string) (string, error) {
	u, err := url.Parse(endpoint)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil {
		return "", fmt.Errorf("registration endpoint %q is not an https URL", endpoint)
	}
	return u.Scheme + "://" + u.Host + strings.TrimSuffix(strings.TrimRight(u.Path, "/"), checkin.EnrolPath), nil
}

// dialer connects to managers. Keep-alive probes close a dead connection after 25 s of silence.
var dialer = net.Dialer{Timeout: 30 * time.Second, KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second,
	Interval: 5 * time.Second, Count: 3}}

// newManager returns the client of a manager, through the proxy if there is one. TLS is end to end, so the proxy does not have to be
// trusted. The client uses HTTP/1.1, because a waiting check-in then costs the manager little memory. A canceled check-in closes its
// connection; the next one resumes the TLS session.
func newManager(base string, config *tls.Config, proxy func(*http.Request) (*url.URL, error)) *manager {
	config.ClientSessionCache = tls.NewLRUClientSessionCache(2)
	return &manager{base: base, http: &http.Client{
		Transport: &http.Transport{Proxy: proxy, TLSClientConfig: config, TLSHandshakeTimeout: 10 * time.Second, IdleConnTimeout: 2 * time.Minute,
			DialContext: dialer.DialContext},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// answerLimit is the time limit for an answer, in addition to the wait time in the request.
const answerLimit = 30 * time.Second

// pinnedConfig returns the TLS configuration of the first connection: it trusts only the authority with this SHA-256 fingerprint.
func pinnedConfig(authority [32]byte) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, ServerName: checkin.ServerName,
		// VerifyConnection verifies the chain against the authority with the fingerprint. A root pool cannot contain that authority before the
		// connection.
		InsecureSkipVerify: true, //nolint:gosec // see VerifyConnection
		VerifyConnection: func(c tls.ConnectionState) error {
			for _, certificate := range c.PeerCertificates {
				if sha256.Sum256(certificate.Raw) != authority {
					continue
				}
				return verify(certificate, c)
			}
			return errWrongManager
		},
	}
}

// verify checks that the peer is a manager of the authority. It ignores the validity times of certificates, because this machine's clock
// may be wrong and a manager creates a new certificate at each start.
func verify(authority *x509.Certificate, c tls.ConnectionState) error {
	pool := x509.NewCertPool()
	pool.AddCert(authority)
	at := c.PeerCertificates[0].NotBefore
	if at.Before(authority.NotBefore) {
		at = authority.NotBefore
	}
	_, err := c.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: pool, DNSName: checkin.ServerName, CurrentTime: at})
	return err
}

// maxAnswer is the maximum size of an answer in bytes. A desired state has at most 512 KiB, and JSON escapes can make it six times as
// long.
const maxAnswer = 8 << 20

// post sends a request to the check-in endpoint and decodes the answer. longer extends the time limit.
func (m *manager) post(ctx context.Context, path string, longer time.Duration, request, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, longer+answerLimit)
	defer cancel()
	var data bytes.Buffer
	if err := m.exchange(ctx, path, request, &data, maxAnswer); err != nil {
		return err
	}
	if err := json.Unmarshal(data.Bytes(), answer); err != nil {
		return fmt.Errorf("read the manager's answer: %w", err)
	}
	return nil
}

// stream sends a request to the check-in endpoint and writes the answer, which has no size limit.
func (m *manager) stream(ctx context.Context, path string, request any, to io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, contentLimit)
	defer cancel()
	return m.exchange(ctx, path, request, to, math.MaxInt64)
}

// exchange sends a request and writes at most limit bytes of the answer's body. It returns a *refusal for an error answer, and
// errNoNewContent for 204.
func (m *manager) exchange(ctx context.Context, path string, request any, to io.Writer, limit int64) error {
	body, err := json.Marshal(request)
	if err != nil {
		return err
	}
	rq, err := http.NewRequestWithContext(ctx, http.MethodPost, m.base+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	rq.Header.Set("Content-Type", "application/json")
	rs, err := m.http.Do(rq)
	if err != nil {
		return unwrapURL(err)
	}
	defer func() { _ = rs.Body.Close() }()
	if rs.StatusCode == http.StatusNoContent {
		return errNoNewContent
	}
	if rs.StatusCode != http.StatusOK {
		data, err := io.ReadAll(io.LimitReader(rs.Body, maxAnswer))
		if err != nil {
			return fmt.Errorf("read the manager's answer: %w", err)
		}
		r := &refusal{Status: rs.StatusCode}
		if json.Unmarshal(data, r) != nil || r.Message == "" {
			r.Code, r.Message = unexpected, http.StatusText(rs.StatusCode)
		}
		r.Status = rs.StatusCode
		return r
	}
	if _, err := io.Copy(to, io.LimitReader(rs.Body, limit)); err != nil {
		return fmt.Errorf("read the manager's answer: %w", err)
	}
	return nil
}

// unexpected is the code of an error answer that does not come from a manager, for example from a proxy.
const unexpected = "Unexpected"

// unwrapURL removes the method and the URL from an error of the HTTP client.
func unwrapURL(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		return wrapped.Err
	}
	return err
}

// status requests the health of the check-in endpoint and returns the HTTP status of the answer.
func (m *manager) status(ctx context.Context) (int, error) {
	rq, err := http.NewRequestWithContext(ctx, http.MethodGet, m.base+checkin.HealthPath, nil)
	if err != nil {
		return 0, err
	}
	rs, err := m.http.Do(rq)
	if err != nil {
		return 0, unwrapURL(err)
	}
	_, err = io.Copy(io.Discard, io.LimitReader(rs.Body, maxAnswer))
	_ = rs.Body.Close()
	return rs.StatusCode, err
}
