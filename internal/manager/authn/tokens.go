package authn

import (
	"context"
	"crypto"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"portolan/internal/manager/outbound"

	"github.com/coreos/go-oidc/v3/oidc"
)

// Tokens verifies tokens that an authorization server has issued, either locally (JSON Web Tokens, RFC 9068) or by asking the server (RFC
// 7662).
type Tokens struct {
	// Issuer is the required issuer, Audience the required audience of tokens.
	Issuer, Audience string
	// Certificates have the keys that verify tokens; empty means the keys that the issuer publishes (OpenID Connect Discovery 1.0).
	Certificates string
	// IntrospectionURL is the token introspection endpoint; if it is empty, tokens are verified locally. ClientID and ClientSecret are the
	// manager's credentials there; browsers are sent to the issuer with the same ClientID. InForm sends the credentials in the form instead
	// of as Basic credentials. UserInfoURL is the user info endpoint; it may be empty.
	IntrospectionURL, UserInfoURL, ClientID, ClientSecret string
	InForm                                                bool
	// UserClaim, GroupClaim and EmailClaim are the claims with the user's name, groups and mail address.
	UserClaim, GroupClaim, EmailClaim string
	// Trusted are the CA certificates for the server's certificates, in PEM; empty means those that the system trusts.
	Trusted string
	Now     func() time.Time

	once   sync.Once
	client *http.Client
	failed error
	mu     sync.Mutex
	keys   oidc.KeySet // found by discovery; guarded by mu
	// provider is the cached discovery document, asked the time when it was fetched; guarded by mu.
	provider *oidc.Provider
	asked    time.Time
}

// maxClockSkew is the allowed difference between clocks.
const maxClockSkew = time.Minute

// maxAnswer is the maximum size of an authorization server's answer, in bytes.
const maxAnswer = 1 << 20

// algorithms are the accepted signature algorithms. Shared secrets and unsigned tokens are not accepted.
var algorithms = []string{oidc.RS256, oidc.RS384, oidc.RS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.PS256, oidc.PS384, oidc.PS512,
	oidc.EdDSA}

// Verify returns the user of a token and until when the token is valid. It returns ErrWrong if the token is not valid, and ErrUnavailable
// if the server cannot be asked.
func (t *Tokens) Verify(ctx context.Context, token string) (id Identity, until time.Time, err error) {
	if t.once.Do(t.prepare); t.failed != nil {
		return id, until, unavailable("%w", t.failed)
	}
	ctx, end := withAskTime(ctx)
	defer end()
	ctx = oidc.ClientContext(ctx, t.client)
	var claims map[string]json.RawMessage
	if t.IntrospectionURL != "" {
		claims, until, err = t.introspect(ctx, token)
	} else {
		claims, until, err = t.verify(ctx, token)
	}
	if err != nil {
		return id, until, err
	}
	if id = t.identity(claims); id.Name == "" {
		return id, until, ErrWrong
	}
	return id, until, nil
}

// identity returns the user in claims.
func (t *Tokens) identity(claims map[string]json.RawMessage) Identity {
	return Identity{Name: textOf(claims[t.UserClaim]), Email: textOf(claims[t.EmailClaim]), Groups: textsOf(claims[t.GroupClaim])}
}

// verifier returns the verifier of the issuer's tokens for an audience.
func (t *Tokens) verifier(audience string, keys oidc.KeySet) *oidc.IDTokenVerifier {
	return oidc.NewVerifier(t.Issuer, keys, &oidc.Config{ClientID: audience, SupportedSigningAlgs: algorithms,
		Now: func() time.Time { return t.Now().Add(-maxClockSkew) }})
}

// prepare creates the HTTP client. It does not follow redirects, which could point to internal addresses.
func (t *Tokens) prepare() {
	config, err := tlsConfig("", t.Trusted)
	if err != nil {
		t.failed = err
		return
	}
	t.client = newHTTPClient(&http.Transport{TLSClientConfig: config, DisableCompression: true, MaxIdleConns: 4, IdleConnTimeout: time.Minute,
		ForceAttemptHTTP2: true})
	t.client.Transport = bounded{t.client.Transport}
}

// newHTTPClient returns an HTTP client that connects only to allowed addresses, does not follow redirects, and has the timeout AskTime.
func newHTTPClient(t *http.Transport) *http.Client {
	t.DialContext, t.TLSHandshakeTimeout = outbound.Dialer().DialContext, AskTime
	return &http.Client{Timeout: AskTime, Transport: t,
		CheckRedirect: func(*http.Request, []*http.Request) error { return errors.New("redirects are not followed") }}
}

// bounded limits the size of answers to maxAnswer.
type bounded struct{ http.RoundTripper }

// RoundTrip sends a request and limits the answer.
func (b bounded) RoundTrip(rq *http.Request) (*http.Response, error) {
	rs, err := b.RoundTripper.RoundTrip(rq)
	if err == nil {
		rs.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(rs.Body, maxAnswer), rs.Body}
	}
	return rs, err
}

// verify verifies a token with the keys of its issuer.
func (t *Tokens) verify(ctx context.Context, token string) (claims map[string]json.RawMessage, until time.Time, err error) {
	keys, err := t.keySet(ctx)
	if err != nil {
		return nil, until, err
	}
	known, err := t.verifier(t.Audience, keys).Verify(ctx, token)
	switch {
	case err != nil && strings.Contains(err.Error(), "fetching keys"): // go-oidc has no error type for it
		return nil, until, unavailable("%w", err)
	case err != nil:
		return nil, until, fmt.Errorf("%w: %w", ErrWrong, err)
	}
	if err = known.Claims(&claims); err == nil && claims["nonce"] != nil { // an ID token of a browser sign-in is not an API token
		err = ErrWrong
	}
	return claims, known.Expiry.Add(maxClockSkew), err
}

// keySet returns the keys that verify tokens. Keys from discovery are fetched again when a token names an unknown key.
func (t *Tokens) keySet(ctx context.Context) (oidc.KeySet, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.keys != nil {
		return t.keys, nil
	}
	if t.Certificates != "" {
		all, err := ParseCertificates(t.Certificates)
		if err != nil {
			return nil, unavailable("the certificate that signs tokens cannot be read: %w", err)
		}
		static := &oidc.StaticKeySet{}
		for _, c := range all {
			static.PublicKeys = append(static.PublicKeys, crypto.PublicKey(c.PublicKey))
		}
		t.keys = static
		return t.keys, nil
	}
	provider, err := oidc.NewProvider(ctx, t.Issuer)
	if err != nil {
		return nil, unavailable("query the issuer %s: %w", t.Issuer, err)
	}
	var found struct {
		Keys string `json:"jwks_uri"`
	}
	if err := provider.Claims(&found); err != nil || found.Keys == "" {
		return nil, unavailable("%s does not publish the URL of its keys", t.Issuer)
	}
	t.keys = oidc.NewRemoteKeySet(oidc.ClientContext(context.Background(), t.client), found.Keys)
	return t.keys, nil
}

// introspect asks the server about a token, and about its user.
func (t *Tokens) introspect(ctx context.Context, token string) (claims map[string]json.RawMessage, until time.Time, err error) {
	form := url.Values{"token": {token}, "token_type_hint": {"access_token"}}
	if t.InForm {
		form.Set("client_id", t.ClientID)
		form.Set("client_secret", t.ClientSecret)
	}
	rq, err := http.NewRequestWithContext(ctx, http.MethodPost, t.IntrospectionURL, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, until, unavailable("%w", err)
	}
	rq.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if !t.InForm {
		rq.SetBasicAuth(url.QueryEscape(t.ClientID), url.QueryEscape(t.ClientSecret)) // RFC 6749 section 2.3.1
	}
	if err := t.ask(rq, &claims); err != nil {
		return nil, until, err
	}
	var said struct {
		Active   bool            `json:"active"`
		Expires  int64           `json:"exp"`
		NotYet   int64           `json:"nbf"`
		Issuer   string          `json:"iss"`
		Audience json.RawMessage `json:"aud"`
	}
	text, err := json.Marshal(claims)
	if err == nil {
		err = json.Unmarshal(text, &said)
	}
	now := t.Now()
	if err != nil || !said.Active || said.Expires != 0 && now.After(time.Unix(said.Expires, 0).Add(maxClockSkew)) ||
		now.Add(maxClockSkew).Before(time.Unix(said.NotYet, 0)) || t.Issuer != "" && said.Issuer != "" && said.Issuer != t.Issuer ||
		t.Audience != "" && !slices.Contains(textsOf(said.Audience), t.Audience) {
		return nil, until, ErrWrong
	}
	if until = now.Add(maxClockSkew); said.Expires != 0 && time.Unix(said.Expires, 0).Before(until) {
		until = time.Unix(said.Expires, 0)
	}
	if t.UserInfoURL == "" {
		return claims, until, nil
	}
	rq, err = http.NewRequestWithContext(ctx, http.MethodGet, t.UserInfoURL, nil)
	if err != nil {
		return nil, until, unavailable("%w", err)
	}
	rq.Header.Set("Authorization", "Bearer "+token)
	var user map[string]json.RawMessage
	if err := t.ask(rq, &user); err != nil {
		return nil, until, err
	}
	if subject := textOf(claims["sub"]); subject != "" && textOf(user["sub"]) != subject { // OpenID Connect Core section 5.3.2
		return nil, until, ErrWrong
	}
	for name, value := range user {
		claims[name] = value
	}
	return claims, until, nil
}

// ask sends a request and decodes the JSON object of the answer.
func (t *Tokens) ask(rq *http.Request, into any) error {
	rq.Header.Set("Accept", "application/json")
	rs, err := t.client.Do(rq)
	if err != nil {
		return unavailable("%w", err)
	}
	defer func() { _ = rs.Body.Close() }()
	if rs.StatusCode == http.StatusUnauthorized && rq.Method == http.MethodGet { // the server rejects the token
		return ErrWrong
	}
	if rs.StatusCode != http.StatusOK {
		return unavailable("%s answers %s", rq.URL.Redacted(), rs.Status)
	}
	if err := json.NewDecoder(io.LimitReader(rs.Body, maxAnswer)).Decode(into); err != nil {
		return unavailable("%s did not return JSON: %w", rq.URL.Redacted(), err)
	}
	return nil
}

// textOf returns a claim that is a string, otherwise the empty string.
func textOf(raw json.RawMessage) (text string) {
	if json.Unmarshal(raw, &text) != nil {
		return ""
	}
	return text
}

// textsOf returns a claim that is a list of strings, or a single string.
func textsOf(raw json.RawMessage) (texts []string) {
	if json.Unmarshal(raw, &texts) != nil {
		if one := textOf(raw); one != "" {
			return []string{one}
		}
		return nil
	}
	return texts
}

// IssuerOf returns the claimed issuer of a JSON Web Token without verifying it; empty if the text is not one.
func IssuerOf(token string) string {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return ""
	}
	var claims struct {
		Issuer string `json:"iss"`
	}
	if data, err := decodePart(parts[1]); err != nil || json.Unmarshal(data, &claims) != nil {
		return ""
	}
	return claims.Issuer
}
