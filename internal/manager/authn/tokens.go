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

// Tokens knows users by tokens that an authorization server has issued: it verifies them itself (JSON Web Tokens, RFC 9068), or asks that
// server (RFC 7662).
type Tokens struct {
	// Issuer is who must have issued them, Audience whom they must be for.
	Issuer, Audience string
	// Certificates hold the keys that sign tokens; empty: the keys that the issuer publishes (OpenID Connect Discovery 1.0).
	Certificates string
	// IntrospectionURL is where tokens are asked about, as ClientID with ClientSecret; empty: they are verified here. People are sent to the
	// issuer under that name, too. InForm says that these
	// travel in the form and not as Basic credentials. UserInfoURL is where users are asked for; it may be empty.
	IntrospectionURL, UserInfoURL, ClientID, ClientSecret string
	InForm                                                bool
	// UserClaim, GroupClaim and EmailClaim are the claims with the user's name, groups and mail address.
	UserClaim, GroupClaim, EmailClaim string
	// Trusted are the certificates that those of the server must be issued by, in PEM; empty: those that the machine trusts.
	Trusted string
	// Now is the clock.
	Now func() time.Time

	once   sync.Once
	client *http.Client
	failed error
	mu     sync.Mutex
	keys   oidc.KeySet // found by discovery; guarded by mu
	// provider is what the issuer said of itself, and when; guarded by mu.
	provider *oidc.Provider
	asked    time.Time
}

// skew is by how much clocks may differ.
const skew = time.Minute

// maxAnswer bounds what an authorization server answers, in bytes.
const maxAnswer = 1 << 20

// algorithms are those that tokens may be signed by: none with a shared secret, and none without a signature.
var algorithms = []string{oidc.RS256, oidc.RS384, oidc.RS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.PS256, oidc.PS384, oidc.PS512,
	oidc.EdDSA}

// Verify gives whose token it is, and until when it is good. ErrWrong says that it is not, ErrAway that nobody could be asked.
func (t *Tokens) Verify(ctx context.Context, token string) (id Identity, until time.Time, err error) {
	if t.once.Do(t.prepare); t.failed != nil {
		return id, until, away("%w", t.failed)
	}
	ctx, end := asking(ctx)
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

// identity is whom claims speak of.
func (t *Tokens) identity(claims map[string]json.RawMessage) Identity {
	return Identity{Name: textOf(claims[t.UserClaim]), Email: textOf(claims[t.EmailClaim]), Groups: textsOf(claims[t.GroupClaim])}
}

// verifier verifies tokens of the issuer that are for somebody.
func (t *Tokens) verifier(audience string, keys oidc.KeySet) *oidc.IDTokenVerifier {
	return oidc.NewVerifier(t.Issuer, keys, &oidc.Config{ClientID: audience, SupportedSigningAlgs: algorithms,
		Now: func() time.Time { return t.Now().Add(-skew) }})
}

// prepare makes what the server is asked with. Redirects are not followed: they could lead inside.
func (t *Tokens) prepare() {
	config, err := trusting("", t.Trusted)
	if err != nil {
		t.failed = err
		return
	}
	t.client = guarded(&http.Transport{TLSClientConfig: config, DisableCompression: true, MaxIdleConns: 4, IdleConnTimeout: time.Minute,
		ForceAttemptHTTP2: true})
	t.client.Transport = bounded{t.client.Transport}
}

// guarded is a client of HTTP that reaches what the manager may reach alone, follows no redirects to elsewhere, and waits no longer than
// AskTime.
func guarded(t *http.Transport) *http.Client {
	t.DialContext, t.TLSHandshakeTimeout = outbound.Dialer().DialContext, AskTime
	return &http.Client{Timeout: AskTime, Transport: t,
		CheckRedirect: func(*http.Request, []*http.Request) error { return errors.New("redirects are not followed") }}
}

// bounded reads no more of an answer than an authorization server has to say.
type bounded struct{ http.RoundTripper }

// RoundTrip answers a request.
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

// verify verifies a token by the keys of its issuer.
func (t *Tokens) verify(ctx context.Context, token string) (claims map[string]json.RawMessage, until time.Time, err error) {
	keys, err := t.keySet(ctx)
	if err != nil {
		return nil, until, err
	}
	known, err := t.verifier(t.Audience, keys).Verify(ctx, token)
	switch {
	case err != nil && strings.Contains(err.Error(), "fetching keys"): // go-oidc has no error of its own for it
		return nil, until, away("%w", err)
	case err != nil:
		return nil, until, fmt.Errorf("%w: %w", ErrWrong, err)
	}
	if err = known.Claims(&claims); err == nil && claims["nonce"] != nil { // it says who signed in to a browser, and is no key to an API
		err = ErrWrong
	}
	return claims, known.Expiry.Add(skew), err
}

// keySet gives the keys that tokens are verified by. Those of a discovery are fetched again when a token names one that is not known.
func (t *Tokens) keySet(ctx context.Context) (oidc.KeySet, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.keys != nil {
		return t.keys, nil
	}
	if t.Certificates != "" {
		all, err := ParseCertificates(t.Certificates)
		if err != nil {
			return nil, away("the certificate that signs tokens cannot be read: %w", err)
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
		return nil, away("asking %s who it is: %w", t.Issuer, err)
	}
	var found struct {
		Keys string `json:"jwks_uri"`
	}
	if err := provider.Claims(&found); err != nil || found.Keys == "" {
		return nil, away("%s does not say where its keys are", t.Issuer)
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
		return nil, until, away("%w", err)
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
	if err != nil || !said.Active || said.Expires != 0 && now.After(time.Unix(said.Expires, 0).Add(skew)) ||
		now.Add(skew).Before(time.Unix(said.NotYet, 0)) || t.Issuer != "" && said.Issuer != "" && said.Issuer != t.Issuer ||
		t.Audience != "" && !slices.Contains(textsOf(said.Audience), t.Audience) {
		return nil, until, ErrWrong
	}
	if until = now.Add(skew); said.Expires != 0 && time.Unix(said.Expires, 0).Before(until) {
		until = time.Unix(said.Expires, 0)
	}
	if t.UserInfoURL == "" {
		return claims, until, nil
	}
	rq, err = http.NewRequestWithContext(ctx, http.MethodGet, t.UserInfoURL, nil)
	if err != nil {
		return nil, until, away("%w", err)
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

// ask sends a request, and reads the object that it is answered with.
func (t *Tokens) ask(rq *http.Request, into any) error {
	rq.Header.Set("Accept", "application/json")
	rs, err := t.client.Do(rq)
	if err != nil {
		return away("%w", err)
	}
	defer func() { _ = rs.Body.Close() }()
	if rs.StatusCode == http.StatusUnauthorized && rq.Method == http.MethodGet { // a token that the server does not take
		return ErrWrong
	}
	if rs.StatusCode != http.StatusOK {
		return away("%s answers %s", rq.URL.Redacted(), rs.Status)
	}
	if err := json.NewDecoder(io.LimitReader(rs.Body, maxAnswer)).Decode(into); err != nil {
		return away("%s answers what is no JSON: %w", rq.URL.Redacted(), err)
	}
	return nil
}

// textOf gives a claim that is a text; empty where it is none.
func textOf(raw json.RawMessage) (text string) {
	if json.Unmarshal(raw, &text) != nil {
		return ""
	}
	return text
}

// textsOf gives a claim that is a list of texts, or one text.
func textsOf(raw json.RawMessage) (texts []string) {
	if json.Unmarshal(raw, &texts) != nil {
		if one := textOf(raw); one != "" {
			return []string{one}
		}
		return nil
	}
	return texts
}

// IssuerOf gives who says to have issued a JSON Web Token, without verifying it; empty where it is none.
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
