package authntest

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// Provider is an OpenID provider: discovery, keys, tokens, introspection, and user info.
type Provider struct {
	*httptest.Server
	mu    sync.Mutex
	keys  []*rsa.PrivateKey // guarded by mu; the last one signs
	more  []jose.JSONWebKey // additional published keys; guarded by mu
	asked int               // number of requests for the keys; guarded by mu
	// grants are the unused codes; guarded by mu.
	grants map[string]Grant
}

// Grant is the data of a code.
type Grant struct {
	// Challenge is the PKCE challenge (RFC 7636, S256). Back is the redirect URL.
	Challenge, Back string
	// Claims are the claims of the token. Key signs it; nil means the provider's own key.
	Claims map[string]any
	Key    *rsa.PrivateKey
}

// Allow creates a code, as the provider does after a user has signed in.
func (p *Provider) Allow(code string, g Grant) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.grants == nil {
		p.grants = map[string]Grant{}
	}
	p.grants[code] = g
}

// redeem handles the token endpoint (RFC 6749 section 4.1.3).
func (p *Provider) redeem(w http.ResponseWriter, r *http.Request) {
	id, secret, _ := r.BasicAuth()
	sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
	p.mu.Lock()
	g, ok := p.grants[r.FormValue("code")]
	delete(p.grants, r.FormValue("code"))
	key := p.keys[len(p.keys)-1]
	p.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if !ok || id != "portolan" || secret != "hush" || g.Back != r.FormValue("redirect_uri") ||
		g.Challenge != base64.RawURLEncoding.EncodeToString(sum[:]) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write([]byte(`{"error":"invalid_grant"}`))
		return
	}
	if g.Key != nil {
		key = g.Key
	}
	token, err := signed(jose.RS256, jose.JSONWebKey{Key: key, KeyID: KeyID(key)}, g.Claims)
	if err != nil {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"access_token": "opaque", "token_type": "Bearer", "expires_in": 60, "id_token": token})
}

// NewProvider starts a provider that runs until the test ends.
func NewProvider(t *testing.T) *Provider {
	t.Helper()
	p := &Provider{}
	p.Rotate(t, false)
	mux := http.NewServeMux()
	answer := func(w http.ResponseWriter, v any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(v)
	}
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]any{"issuer": p.URL, "jwks_uri": p.URL + "/keys", "authorization_endpoint": p.URL + "/authorize",
			"token_endpoint": p.URL + "/token", "userinfo_endpoint": p.URL + "/user"})
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.asked++
		set := jose.JSONWebKeySet{}
		for _, k := range p.keys {
			set.Keys = append(set.Keys, jose.JSONWebKey{Key: k.Public(), KeyID: KeyID(k), Algorithm: "RS256", Use: "sig"})
		}
		set.Keys = append(set.Keys, p.more...)
		answer(w, set)
	})
	mux.HandleFunc("POST /token", p.redeem)
	mux.HandleFunc("POST /introspect", func(w http.ResponseWriter, r *http.Request) {
		id, secret, _ := r.BasicAuth()
		if id == "" {
			id, secret = r.FormValue("client_id"), r.FormValue("client_secret")
		}
		if id != "portolan" || secret != "s%3Acret" && secret != "s:cret" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		switch r.FormValue("token") {
		case "good":
			answer(w, map[string]any{"active": true, "sub": "7", "aud": []string{"portolan"}, "name": "carol", "groups": "netops",
				"exp": time.Now().Add(time.Hour).Unix()})
		case "of somebody else":
			answer(w, map[string]any{"active": true, "sub": "8", "aud": "portolan", "name": "carol"})
		case "for others":
			answer(w, map[string]any{"active": true, "sub": "7", "aud": "others", "name": "carol"})
		case "expired":
			answer(w, map[string]any{"active": true, "sub": "7", "aud": "portolan", "name": "carol", "exp": time.Now().Add(-time.Hour).Unix()})
		case "moved":
			http.Redirect(w, r, p.URL+"/inside", http.StatusTemporaryRedirect)
		case "endless":
			for range 3000 {
				_, _ = w.Write([]byte(strings.Repeat(" ", 1000)))
			}
		default:
			answer(w, map[string]any{"active": false})
		}
	})
	mux.HandleFunc("POST /inside", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]any{"active": true, "sub": "7", "aud": "portolan", "name": "carol"})
	})
	mux.HandleFunc("GET /user", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]any{"sub": "7", "name": "carol", "email": "carol@example.net"})
	})
	p.Server = httptest.NewTLSServer(mux)
	t.Cleanup(p.Close)
	return p
}

// KeyID returns the id of a key.
func KeyID(k *rsa.PrivateKey) string { return k.N.Text(36)[:8] }

// Rotate creates a new signing key. If alone is true, the previous keys are removed.
func (p *Provider) Rotate(t *testing.T, alone bool) {
	t.Helper()
	k, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if alone {
		p.keys = nil
	}
	p.keys = append(p.keys, k)
}

// Publish publishes another key, of any kind.
func (p *Provider) Publish(public jose.JSONWebKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.more = append(p.more, public)
}

// Sign issues a token with claims.
func (p *Provider) Sign(t *testing.T, claims map[string]any) string {
	t.Helper()
	p.mu.Lock()
	k := p.keys[len(p.keys)-1]
	p.mu.Unlock()
	return SignBy(t, jose.RS256, jose.JSONWebKey{Key: k, KeyID: KeyID(k)}, claims)
}

// SignBy signs claims with a key.
func SignBy(t *testing.T, algorithm jose.SignatureAlgorithm, key any, claims map[string]any) string {
	t.Helper()
	text, err := signed(algorithm, key, claims)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func signed(algorithm jose.SignatureAlgorithm, key any, claims map[string]any) (string, error) {
	s, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: key}, nil)
	if err != nil {
		return "", err
	}
	return jwt.Signed(s).Claims(claims).Serialize()
}

// Trusted returns the certificate of the provider, in PEM.
func (p *Provider) Trusted() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.Certificate().Raw}))
}

// Key returns the signing key.
func (p *Provider) Key() *rsa.PrivateKey {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.keys[len(p.keys)-1]
}
