package authntest

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/xml"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/beevik/etree"
	"github.com/crewjam/saml"
	dsig "github.com/russellhaering/goxmldsig"
)

// IdentityProvider is a SAML 2.0 identity provider.
type IdentityProvider struct {
	saml.IdentityProvider
	service saml.EntityDescriptor
}

// NewIdentityProvider creates an identity provider that knows a service by its metadata. Its URLs are on a host that does not exist.
func NewIdentityProvider(t testing.TB, metadata []byte) *IdentityProvider {
	t.Helper()
	key, certificate := KeyPair(t)
	at := func(path string) url.URL { return url.URL{Scheme: "https", Host: "idp.example", Path: path} }
	p := &IdentityProvider{IdentityProvider: saml.IdentityProvider{Key: key, Certificate: certificate, MetadataURL: at("/metadata"),
		SSOURL: at("/sso"), LogoutURL: at("/logout"), SignatureMethod: dsig.RSASHA256SignatureMethod}}
	p.ServiceProviderProvider = p
	p.Learn(t, metadata)
	return p
}

// KeyPair creates a key and a certificate for it, valid for an hour.
func KeyPair(t testing.TB) (*rsa.PrivateKey, *x509.Certificate) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return key, certificate
}

// Learn replaces the metadata of the service.
func (p *IdentityProvider) Learn(t testing.TB, metadata []byte) {
	t.Helper()
	p.service = saml.EntityDescriptor{}
	if err := xml.Unmarshal(metadata, &p.service); err != nil {
		t.Fatalf("the metadata: %v in %s", err, metadata)
	}
}

// GetServiceProvider returns the metadata of a service.
func (p *IdentityProvider) GetServiceProvider(_ *http.Request, name string) (*saml.EntityDescriptor, error) {
	if name != p.service.EntityID {
		return nil, os.ErrNotExist
	}
	return &p.service, nil
}

// Signer returns the certificate that verifies its messages, in base64.
func (p *IdentityProvider) Signer() string {
	return base64.StdEncoding.EncodeToString(p.Certificate.Raw)
}

// Answer returns the form that the browser posts to the service after a sign-in. sent is the URL that the browser was redirected to. change
// modifies the assertion before it is signed; it may be nil.
func (p *IdentityProvider) Answer(t testing.TB, sent string, who saml.Session, change func(*saml.Assertion)) url.Values {
	t.Helper()
	if who.NameIDFormat == "" {
		who.NameIDFormat = string(saml.PersistentNameIDFormat)
	}
	asked, err := saml.NewIdpAuthnRequest(&p.IdentityProvider, httptest.NewRequest(http.MethodGet, sent, nil))
	if err == nil {
		err = asked.Validate()
	}
	if err == nil {
		err = saml.DefaultAssertionMaker{}.MakeAssertion(asked, &who)
	}
	if err != nil {
		t.Fatalf("the request %s: %v", sent, err)
	}
	if change != nil {
		change(asked.Assertion)
	}
	form, err := asked.PostBinding()
	if err != nil {
		t.Fatal(err)
	}
	return url.Values{"SAMLResponse": {form.SAMLResponse}, "RelayState": {form.RelayState}}
}

// Edited returns such a form with its XML changed after it was signed.
func Edited(t testing.TB, form url.Values, edit func(string) string) url.Values {
	t.Helper()
	text, err := base64.StdEncoding.DecodeString(form.Get("SAMLResponse"))
	if err != nil {
		t.Fatal(err)
	}
	edited := edit(string(text))
	if edited == string(text) {
		t.Fatal("nothing is edited")
	}
	return url.Values{"SAMLResponse": {base64.StdEncoding.EncodeToString([]byte(edited))}, "RelayState": form["RelayState"]}
}

// ReadAssertion returns the assertion in the XML of a response.
func ReadAssertion(response string) string {
	from, to := strings.Index(response, "<saml:Assertion"), strings.LastIndex(response, "</saml:Assertion>")
	if from < 0 || to < 0 {
		return ""
	}
	return response[from : to+len("</saml:Assertion>")]
}

// SignOut returns the form of a sign-out request for a user, signed or not.
func (p *IdentityProvider) SignOut(t testing.TB, name string, signed bool) url.Values {
	t.Helper()
	return p.SignOutAt(t, name, signed, time.Now())
}

// SignOutAt is SignOut with the given time of issue.
func (p *IdentityProvider) SignOutAt(t testing.TB, name string, signed bool, at time.Time) url.Values {
	t.Helper()
	to := p.service.SPSSODescriptors[0].SingleLogoutServices[0].Location
	rq := saml.LogoutRequest{ID: "id-" + rand.Text(), IssueInstant: at, Version: "2.0", Destination: to,
		Issuer: &saml.Issuer{Value: p.MetadataURL.String()}, NameID: &saml.NameID{Value: name}}
	element := rq.Element()
	if signed {
		context := dsig.NewDefaultSigningContext(dsig.TLSCertKeyStore{PrivateKey: p.Key, Certificate: [][]byte{p.Certificate.Raw}})
		context.Canonicalizer = dsig.MakeC14N10ExclusiveCanonicalizerWithPrefixList("")
		var err error
		if element, err = context.SignEnveloped(element); err != nil {
			t.Fatal(err)
		}
	}
	var text bytes.Buffer
	document := etree.NewDocument()
	document.SetRoot(element)
	if _, err := document.WriteTo(&text); err != nil {
		t.Fatal(err)
	}
	return url.Values{"SAMLRequest": {base64.StdEncoding.EncodeToString(text.Bytes())}}
}
