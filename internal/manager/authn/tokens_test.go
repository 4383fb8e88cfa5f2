package authn

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"math/big"
	"strings"
	"testing"
	"time"

	"portolan/internal/testkit/authntest"

	"github.com/go-jose/go-jose/v4"
)

// TestTokens checks that tokens of an OpenID provider are verified with the keys that it publishes, also after a key rotation. Forged or
// expired tokens, and tokens for another audience or with another signature algorithm, are rejected.
func TestTokens(t *testing.T) {
	p := authntest.NewProvider(t)
	tokens := &Tokens{Issuer: p.URL, Audience: "portolan", UserClaim: "preferred_username", GroupClaim: "groups", EmailClaim: "email",
		Trusted: p.Trusted(), Now: time.Now}
	claims := func(change map[string]any) map[string]any {
		c := map[string]any{"iss": p.URL, "aud": "portolan", "sub": "7", "preferred_username": "carol", "groups": []string{"netops", "staff"},
			"email": "carol@example.net", "exp": time.Now().Add(time.Hour).Unix(), "iat": time.Now().Unix()}
		for name, value := range change {
			if value == nil {
				delete(c, name)
			} else {
				c[name] = value
			}
		}
		return c
	}
	good := p.Sign(t, claims(nil))
	id, until, err := tokens.Verify(t.Context(), good)
	if err != nil || id.Name != "carol" || id.Email != "carol@example.net" || len(id.Groups) != 2 || until.Before(time.Now()) {
		t.Fatalf("%+v until %v, %v", id, until, err)
	}
	p.Rotate(t, true)
	if _, _, err := tokens.Verify(t.Context(), p.Sign(t, claims(nil))); err != nil {
		t.Errorf("after the keys have changed: %v", err)
	}
	if _, _, err := tokens.Verify(t.Context(), p.Sign(t,
		claims(map[string]any{"exp": time.Now().Add(-30 * time.Second).Unix()}))); err != nil {
		t.Errorf("the clocks differ by half a minute: %v", err)
	}
	stranger, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	own := p.Key()
	public := x509.MarshalPKCS1PublicKey(own.Public().(*rsa.PublicKey))
	none := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`))
	parts := strings.Split(good, ".")
	fresh := p.Sign(t, claims(nil))
	for name, token := range map[string]string{
		"another issuer": p.Sign(t, claims(map[string]any{"iss": "https://other.example.net"})), "no issuer": p.Sign(t,
			claims(map[string]any{"iss": nil})),
		"another audience": p.Sign(t, claims(map[string]any{"aud": "others"})), "no audience": p.Sign(t, claims(map[string]any{"aud": nil})),
		"expired": p.Sign(t, claims(map[string]any{"exp": time.Now().Add(-2 * time.Minute).Unix()})), "no expiry": p.Sign(t,
			claims(map[string]any{"exp": nil})),
		"not yet": p.Sign(t, claims(map[string]any{"nbf": time.Now().Add(time.Hour).Unix()})), "no user": p.Sign(t,
			claims(map[string]any{"preferred_username": nil})),
		"a user that is not a text": p.Sign(t, claims(map[string]any{"preferred_username": []string{"carol"}})),
		"an old key":                good, "no signature": none + "." + parts[1] + ".", "without a signature": parts[0] + "." + parts[1] + ".",
		"a stranger's key":           authntest.SignBy(t, jose.RS256, jose.JSONWebKey{Key: stranger, KeyID: authntest.KeyID(own)}, claims(nil)),
		"the public key as a secret": authntest.SignBy(t, jose.HS256, jose.JSONWebKey{Key: public, KeyID: authntest.KeyID(own)}, claims(nil)),
		"a key of its own":           authntest.SignBy(t, jose.RS256, jose.JSONWebKey{Key: stranger, KeyID: "own"}, claims(nil)),
		"truncated":                  fresh[:len(fresh)-5], "no token": "x", "nothing": "", "two dots": "..",
		"changed": strings.Replace(fresh, ".", ".e30", 1),
	} {
		if id, _, err := tokens.Verify(t.Context(), token); !errors.Is(err, ErrWrong) {
			t.Errorf("%s: %+v, %v", name, id, err)
		}
	}
	if IssuerOf(good) != p.URL || IssuerOf("x") != "" || IssuerOf("a.b.c") != "" {
		t.Error("the issuer of a token is read wrong")
	}
	// Verification with a given certificate.
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, own.Public(), own)
	if err != nil {
		t.Fatal(err)
	}
	static := &Tokens{Issuer: p.URL, Audience: "portolan", UserClaim: "sub", Certificates: base64.StdEncoding.EncodeToString(der),
		Now: time.Now}
	if id, _, err := static.Verify(t.Context(), fresh); err != nil || id.Name != "7" {
		t.Errorf("by a certificate: %+v, %v", id, err)
	}
	if _, _, err := static.Verify(t.Context(), good); !errors.Is(err, ErrWrong) {
		t.Errorf("by another certificate: %v", err)
	}
	p.Close()
	away := &Tokens{Issuer: p.URL, Audience: "portolan", UserClaim: "sub", Trusted: p.Trusted(), Now: time.Now}
	if _, _, err := away.Verify(t.Context(), fresh); !errors.Is(err, ErrUnavailable) {
		t.Errorf("without a provider: %v", err)
	}
}

// TestAlgorithms checks that tokens are accepted with every algorithm in the list. A key that was published for one algorithm is not
// accepted for another one.
func TestAlgorithms(t *testing.T) {
	p := authntest.NewProvider(t)
	tokens := &Tokens{Issuer: p.URL, Audience: "portolan", UserClaim: "sub", Trusted: p.Trusted(), Now: time.Now}
	claims := map[string]any{"iss": p.URL, "aud": "portolan", "sub": "carol", "exp": time.Now().Add(time.Hour).Unix()}
	curve := func(c elliptic.Curve) crypto.Signer {
		k, err := ecdsa.GenerateKey(c, rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	keys := map[string]crypto.Signer{"ES256": curve(elliptic.P256()), "ES384": curve(elliptic.P384()), "ES512": curve(elliptic.P521()),
		"EdDSA": edwards}
	// All keys are published before the first request. go-oidc returns the result of a running fetch to concurrent callers, and that can be
	// from before a key was published.
	for _, algorithm := range algorithms {
		if keys[algorithm] == nil {
			keys[algorithm] = p.Key()
		}
		p.Publish(jose.JSONWebKey{Key: keys[algorithm].Public(), KeyID: algorithm, Use: "sig"})
	}
	for _, algorithm := range algorithms {
		key := keys[algorithm]
		token := authntest.SignBy(t, jose.SignatureAlgorithm(algorithm), jose.JSONWebKey{Key: key, KeyID: algorithm}, claims)
		if id, _, err := tokens.Verify(t.Context(), token); err != nil || id.Name != "carol" {
			t.Errorf("%s: %+v, %v", algorithm, id, err)
		}
		head, rest, _ := strings.Cut(token, ".")
		cut := head + "." + rest[:len(rest)-6] + "AAAAAA"
		if _, _, err := tokens.Verify(t.Context(), cut); !errors.Is(err, ErrWrong) {
			t.Errorf("%s, its end changed: %v", algorithm, err)
		}
	}
	for algorithm, named := range map[string]string{"ES256": "RS256", "EdDSA": "ES256", "ES384": "EdDSA", "RS256": "ES512"} {
		token := authntest.SignBy(t, jose.SignatureAlgorithm(algorithm), jose.JSONWebKey{Key: keys[algorithm], KeyID: named}, claims)
		if _, _, err := tokens.Verify(t.Context(), token); !errors.Is(err, ErrWrong) {
			t.Errorf("%s by the name of a key for %s: %v", algorithm, named, err)
		}
	}
}

// TestIntrospection checks that opaque tokens are verified by introspection.
func TestIntrospection(t *testing.T) {
	p := authntest.NewProvider(t)
	basic := func() *Tokens {
		return &Tokens{Audience: "portolan", IntrospectionURL: p.URL + "/introspect", UserInfoURL: p.URL + "/user", ClientID: "portolan",
			ClientSecret: "s:cret", UserClaim: "name", GroupClaim: "groups", EmailClaim: "email", Trusted: p.Trusted(), Now: time.Now}
	}
	inForm, wrong, distrustful := basic(), basic(), basic()
	inForm.InForm, wrong.ClientSecret, distrustful.Trusted = true, "wrong", ""
	for name, tokens := range map[string]*Tokens{"basic": basic(), "in the form": inForm} {
		id, until, err := tokens.Verify(t.Context(), "good")
		if err != nil || id.Name != "carol" || id.Email != "carol@example.net" || len(id.Groups) != 1 ||
			until.After(time.Now().Add(2*time.Minute)) {
			t.Errorf("%s: %+v until %v, %v", name, id, until, err)
		}
		for _, token := range []string{"unknown", "for others", "expired", "of somebody else", ""} {
			if id, _, err := tokens.Verify(t.Context(), token); !errors.Is(err, ErrWrong) {
				t.Errorf("%s: %q: %+v, %v", name, token, id, err)
			}
		}
		for _, token := range []string{"moved", "endless"} {
			if id, _, err := tokens.Verify(t.Context(), token); !errors.Is(err, ErrUnavailable) {
				t.Errorf("%s: %q: %+v, %v", name, token, id, err)
			}
		}
	}
	for name, tokens := range map[string]*Tokens{"a wrong secret": wrong, "a certificate that is not trusted": distrustful} {
		if _, _, err := tokens.Verify(t.Context(), "good"); !errors.Is(err, ErrUnavailable) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
