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

// manager is the way to the manager's check-in door.
type manager struct {
	base string // https://host:port
	http *http.Client
}

// refusal is an answer of the manager that says no.
type refusal struct {
	Status  int    `json:"status"`
	Code    string `json:"code"`
	Message string `json:"message"`
}

func (r *refusal) Error() string { return fmt.Sprintf("%s (%d %s)", r.Message, r.Status, r.Code) }

// final reports whether asking again cannot help.
func final(err error) bool {
	var r *refusal
	return errors.As(err, &r) && r.Status >= 400 && r.Status < 500 && r.Status != http.StatusTooManyRequests &&
		r.Status != http.StatusRequestTimeout
}

// errForeign is a manager other than the one that made the registration key.
var errForeign = errors.New("the manager at the registration endpoint is not the one that made the registration key: its authority " +
	"has another fingerprint")

// baseOf checks a registration endpoint and gives it without its path.
func baseOf(endpoint string) (string, error) {
	u, err := url.Parse(endpoint)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil {
		return "", fmt.Errorf("registration endpoint %q is not an https URL", endpoint)
	}
	return u.Scheme + "://" + u.Host + strings.TrimSuffix(strings.TrimRight(u.Path, "/"), checkin.EnrolPath), nil
}

// dialer connects to managers. A connection that is silent is asked whether it still is one, and left where it is not.
var dialer = net.Dialer{Timeout: 30 * time.Second, KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second,
	Interval: 5 * time.Second, Count: 3}}

// newManager gives the way to a manager, through the proxy where there is one: what is said stays end to end, and nobody in between is
// trusted. It speaks HTTP/1.1, in which a check-in that waits takes little of a manager; one that is given up takes its connection with it,
// and the next one resumes the session.
func newManager(base string, config *tls.Config, proxy func(*http.Request) (*url.URL, error)) *manager {
	config.ClientSessionCache = tls.NewLRUClientSessionCache(2)
	return &manager{base: base, http: &http.Client{
		Transport: &http.Transport{Proxy: proxy, TLSClientConfig: config, TLSHandshakeTimeout: 10 * time.Second, IdleConnTimeout: 2 * time.Minute,
			DialContext: dialer.DialContext},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// answerTime is how long a manager may take for an answer, beside the time that it is asked to wait.
const answerTime = 30 * time.Second

// pinned trusts the authority with that fingerprint and no other, for the first connection.
func pinned(authority [32]byte) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, ServerName: checkin.ServerName,
		// The chain is verified below, against the authority that the fingerprint names: there is no
		// pool that could hold it before the connection.
		InsecureSkipVerify: true, //nolint:gosec // see VerifyConnection
		VerifyConnection: func(c tls.ConnectionState) error {
			for _, certificate := range c.PeerCertificates {
				if sha256.Sum256(certificate.Raw) != authority {
					continue
				}
				return verify(certificate, c)
			}
			return errForeign
		},
	}
}

// verify checks that a connection is one to a manager of the authority. The times in certificates do not matter: this machine's clock
// may be wrong, and a manager makes its certificate anew whenever it starts.
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

// maxAnswer bounds an answer, in bytes: what is to run is at most 512 KiB, and up to six times as long where it is escaped.
const maxAnswer = 8 << 20

// post sends a request to the check-in door and reads the answer, which may take so much longer than usual.
func (m *manager) post(ctx context.Context, path string, longer time.Duration, request, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, longer+answerTime)
	defer cancel()
	var data bytes.Buffer
	if err := m.exchange(ctx, path, request, &data, maxAnswer); err != nil {
		return err
	}
	if err := json.Unmarshal(data.Bytes(), answer); err != nil {
		return fmt.Errorf("reading the manager's answer: %w", err)
	}
	return nil
}

// stream sends a request to the check-in door, and writes the answer, which may be of any length.
func (m *manager) stream(ctx context.Context, path string, request any, to io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, contentLimit)
	defer cancel()
	return m.exchange(ctx, path, request, to, math.MaxInt64)
}

// exchange sends a request and writes the body of the answer, up to a number of bytes. An answer that says no is a refusal.
func (m *manager) exchange(ctx context.Context, path string, request any, to io.Writer, most int64) error {
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
		return errNothingNew
	}
	if rs.StatusCode != http.StatusOK {
		data, err := io.ReadAll(io.LimitReader(rs.Body, maxAnswer))
		if err != nil {
			return fmt.Errorf("reading the manager's answer: %w", err)
		}
		r := &refusal{Status: rs.StatusCode}
		if json.Unmarshal(data, r) != nil || r.Message == "" {
			r.Code, r.Message = unexpected, http.StatusText(rs.StatusCode)
		}
		r.Status = rs.StatusCode
		return r
	}
	if _, err := io.Copy(to, io.LimitReader(rs.Body, most)); err != nil {
		return fmt.Errorf("reading the manager's answer: %w", err)
	}
	return nil
}

// unexpected is the code of a refusal that is not a manager's, such as one of a proxy.
const unexpected = "Unexpected"

// unwrapURL takes the method and the URL off an error of the HTTP client.
func unwrapURL(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		return wrapped.Err
	}
	return err
}

// status asks the manager's door whether it is there, and gives the HTTP status of its answer.
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
