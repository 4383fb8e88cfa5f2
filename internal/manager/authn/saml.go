package authn

import (
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/xml"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/crewjam/saml"
	dsig "github.com/russellhaering/goxmldsig"
	"software.sslmate.com/src/go-pkcs12"
)

// SAMLService is the SAML 2.0 service provider of the manager, with the same host name for all identity providers
// (SAMLServiceProviderSettings). Its URLs never depend on a request's headers: an attacker could otherwise use an assertion that was issued
// for another site.
type SAMLService struct {
	// Host is the host name where browsers reach the manager, with a port if it is not the default.
	Host string
	// NameID is the requested format of user names in SAML (NameIDFormats); empty leaves it to the provider.
	NameID string
	// Key and Certificate are those of the manager; nil if there are none. Sign signs messages, Encrypt requires encrypted assertions.
	Key           *rsa.PrivateKey
	Certificate   *x509.Certificate
	Sign, Encrypt bool
	// Organization, its website, and the name and mail address of the contact are shown in the metadata unless empty.
	Organization, OrganizationURL, Contact, ContactEmail string
}

// Paths of the service.
const (
	SAMLMetadataPath = "/saml/metadata"
	SAMLConsumePath  = "/saml/consume"
	SAMLLogoutPath   = "/saml/logout"
)

// URL returns the URL of a path of the service. It is https, except on the local host.
func (s SAMLService) URL(path string) url.URL {
	u := url.URL{Scheme: "https", Host: s.Host, Path: path}
	if ip := net.ParseIP(u.Hostname()); u.Hostname() == "localhost" || ip != nil && ip.IsLoopback() {
		u.Scheme = "http"
	}
	return u
}

// NameIDFormats maps the names of the published API to the formats of SAML (saml-core-2.0-os section 8.3).
var NameIDFormats = map[string]string{
	"UNSPECIFIED":        "",
	"EMAIL_ADDRESS":      "urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress",
	"ENTITY":             "urn:oasis:names:tc:SAML:2.0:nameid-format:entity",
	"PERSISTENT":         "urn:oasis:names:tc:SAML:2.0:nameid-format:persistent",
	"X509_SUBJECTNAME":   "urn:oasis:names:tc:SAML:1.1:nameid-format:X509SubjectName",
	"WIN_QUALIFIED_NAME": "urn:oasis:names:tc:SAML:1.1:nameid-format:WindowsDomainQualifiedName",
	"KERBEROS":           "urn:oasis:names:tc:SAML:2.0:nameid-format:kerberos",
}

// ReadKeyStore reads an RSA key and its certificate from a PKCS #12 file in base64.
func ReadKeyStore(text, password string) (*rsa.PrivateKey, *x509.Certificate, error) {
	der, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, nil, errors.New("it is not base64")
	}
	key, certificate, _, err := pkcs12.DecodeChain(der, password)
	if err != nil {
		return nil, nil, err
	}
	private, ok := key.(*rsa.PrivateKey)
	if !ok {
		return nil, nil, fmt.Errorf("its key is a %T: must be RSA", key)
	}
	return private, certificate, nil
}

// Metadata returns the metadata document of the service provider (saml-metadata-2.0-os).
func (s SAMLService) Metadata(now time.Time) ([]byte, error) {
	m := s.serviceProvider(now).Metadata()
	for i := range m.SPSSODescriptors {
		if !s.Encrypt {
			m.SPSSODescriptors[i].KeyDescriptors = slices.DeleteFunc(m.SPSSODescriptors[i].KeyDescriptors,
				func(k saml.KeyDescriptor) bool { return k.Use == "encryption" })
		}
	}
	text := func(value string) saml.LocalizedName { return saml.LocalizedName{Lang: "en", Value: value} }
	if s.Organization != "" {
		m.Organization = &saml.Organization{OrganizationNames: []saml.LocalizedName{text(s.Organization)},
			OrganizationDisplayNames: []saml.LocalizedName{text(s.Organization)},
			OrganizationURLs:         []saml.LocalizedURI{{Lang: "en", Value: s.OrganizationURL}}}
	}
	if s.Contact != "" || s.ContactEmail != "" {
		c := saml.ContactPerson{ContactType: "technical", GivenName: s.Contact}
		if s.ContactEmail != "" {
			c.EmailAddresses = []string{"mailto:" + s.ContactEmail}
		}
		m.ContactPersons = []saml.ContactPerson{c}
	}
	body, err := xml.MarshalIndent(m, "", "  ")
	return append([]byte(xml.Header), body...), err
}

// serviceProvider returns the service provider of the library.
func (s SAMLService) serviceProvider(now time.Time) *saml.ServiceProvider {
	metadata, consume, logout := s.URL(SAMLMetadataPath), s.URL(SAMLConsumePath), s.URL(SAMLLogoutPath)
	p := &saml.ServiceProvider{EntityID: metadata.String(), MetadataURL: metadata, AcsURL: consume, SloURL: logout,
		AuthnNameIDFormat: saml.UnspecifiedNameIDFormat, Clock: dsig.NewFakeClockAt(now), RejectSHA1Signatures: true,
		AssertionConsumerServiceBindings: []string{saml.HTTPPostBinding},
		LogoutBindings:                   []string{saml.HTTPRedirectBinding, saml.HTTPPostBinding},
		IgnoreCertificateExpiry:          true} // the certificate in the authenticator is trusted until it is removed
	if s.NameID != "" {
		p.AuthnNameIDFormat = saml.NameIDFormat(s.NameID)
	}
	if s.Key != nil {
		p.Key, p.Certificate = s.Key, s.Certificate
	}
	if s.Sign && s.Key != nil {
		p.SignatureMethod = dsig.RSASHA256SignatureMethod
	}
	return p
}

// SAML is an identity provider where users sign in with a browser (saml-profiles-2.0-os section 4.1).
type SAML struct {
	SAMLService
	// EntityID is its entity ID, Certificates verify its messages, and browsers are redirected to SignOnURL and LogoutURL. An empty
	// LogoutURL disables sign-out there.
	EntityID, Certificates, SignOnURL, LogoutURL string
	// GroupAttribute and EmailAttribute are the attributes with the groups and the mail address.
	GroupAttribute, EmailAttribute string
	Now                            func() time.Time
}

// serviceProvider returns the service provider of the library, configured for this identity provider.
func (p SAML) serviceProvider() (*saml.ServiceProvider, error) {
	certificates, err := ParseCertificates(p.Certificates)
	if err != nil {
		return nil, unavailable("its signing certificate: %w", err)
	}
	var keys []saml.KeyDescriptor
	for _, c := range certificates {
		keys = append(keys, saml.KeyDescriptor{Use: "signing", KeyInfo: saml.KeyInfo{X509Data: saml.X509Data{
			X509Certificates: []saml.X509Certificate{{Data: base64.StdEncoding.EncodeToString(c.Raw)}}}}})
	}
	var logouts []saml.Endpoint
	if p.LogoutURL != "" {
		logouts = []saml.Endpoint{{Binding: saml.HTTPRedirectBinding, Location: p.LogoutURL}}
	}
	all := p.SAMLService.serviceProvider(p.Now())
	all.IDPMetadata = &saml.EntityDescriptor{EntityID: p.EntityID, IDPSSODescriptors: []saml.IDPSSODescriptor{{
		SSODescriptor: saml.SSODescriptor{RoleDescriptor: saml.RoleDescriptor{KeyDescriptors: keys,
			ProtocolSupportEnumeration: "urn:oasis:names:tc:SAML:2.0:protocol"}, SingleLogoutServices: logouts},
		SingleSignOnServices: []saml.Endpoint{{Binding: saml.HTTPRedirectBinding, Location: p.SignOnURL}}}}}
	return all, nil
}

// StartSignIn returns the URL of the sign-in page and the id of the request, which the response repeats.
func (p SAML) StartSignIn(state string) (to, request string, err error) {
	provider, err := p.serviceProvider()
	if err != nil {
		return "", "", err
	}
	asked, err := provider.MakeAuthenticationRequest(p.SignOnURL, saml.HTTPRedirectBinding, saml.HTTPPostBinding)
	if err != nil {
		return "", "", err
	}
	u, err := asked.Redirect(state, provider)
	if err != nil {
		return "", "", err
	}
	return u.String(), asked.ID, nil
}

// message is the part of a response that is read before it is verified.
type message struct {
	XMLName      xml.Name
	InResponseTo string     `xml:",attr"`
	Issuer       string     `xml:"urn:oasis:names:tc:SAML:2.0:assertion Issuer"`
	Encrypted    []struct{} `xml:"urn:oasis:names:tc:SAML:2.0:assertion EncryptedAssertion"`
	Plain        []struct{} `xml:"urn:oasis:names:tc:SAML:2.0:assertion Assertion"`
}

func readMessage(text string) (m message, whole []byte, err error) {
	if whole, err = base64.StdEncoding.DecodeString(text); err == nil {
		err = xml.Unmarshal(whole, &m)
	}
	if err != nil {
		err = fmt.Errorf("%w: the response: %w", ErrWrong, err)
	}
	return m, whole, err
}

// SAMLIssuer returns the claimed issuer of a response, or of a sign-out request, in base64. It is not verified.
func SAMLIssuer(text string) string {
	m, _, err := readMessage(text)
	if err != nil {
		return ""
	}
	return m.Issuer
}

// Verify returns the user in a response, in base64, and the id of the request that it answers. The caller must check that the browser was
// sent with that request. It returns ErrWrong if the response is not from the provider, not for the manager, or too old.
func (p SAML) Verify(text string) (id Identity, request string, err error) {
	m, whole, err := readMessage(text)
	if err != nil {
		return id, "", err
	}
	wrong := func(format string, args ...any) (Identity, string, error) {
		return Identity{}, "", fmt.Errorf("%w: "+format, append([]any{ErrWrong}, args...)...)
	}
	if m.InResponseTo == "" {
		return wrong("the provider was not asked for it")
	}
	if p.Encrypt && (len(m.Plain) > 0 || len(m.Encrypted) == 0) {
		return wrong("the assertion is not encrypted, but SAMLServiceProviderSettings requires encryption")
	}
	provider, err := p.serviceProvider()
	if err != nil {
		return id, "", err
	}
	a, err := provider.ParseXMLResponse(whole, []string{m.InResponseTo}, p.URL(SAMLConsumePath))
	var invalid *saml.InvalidResponseError
	if errors.As(err, &invalid) {
		err = invalid.PrivateErr
	}
	if err != nil {
		return wrong("the response: %w", err)
	}
	if a.Subject == nil || a.Subject.NameID == nil || a.Subject.NameID.Value == "" {
		return wrong("the assertion contains no user")
	}
	if a.Subject.NameID.Format == string(saml.TransientNameIDFormat) {
		return wrong("the assertion identifies the user only for this session (transient)")
	}
	id.Name = a.Subject.NameID.Value
	for _, statement := range a.AttributeStatements {
		for _, attribute := range statement.Attributes {
			for _, v := range attribute.Values {
				switch {
				case hasName(attribute, p.GroupAttribute):
					id.Groups = append(id.Groups, v.Value)
				case hasName(attribute, p.EmailAttribute) && id.Email == "":
					id.Email = v.Value
				}
			}
		}
	}
	return id, m.InResponseTo, nil
}

// hasName reports whether an attribute has a name or friendly name.
func hasName(a saml.Attribute, name string) bool {
	return name != "" && (a.Name == name || a.FriendlyName == name)
}

// SignOut returns the URL that signs a user out at the provider; empty if the provider has none.
func (p SAML) SignOut(name string) (to string, err error) {
	if p.LogoutURL == "" {
		return "", nil
	}
	provider, err := p.serviceProvider()
	if err != nil {
		return "", err
	}
	u, err := provider.MakeRedirectLogoutRequest(name, "")
	if err != nil {
		return "", err
	}
	return u.String(), nil
}

// SignedOut describes a user who has signed out at the provider, and when.
type SignedOut struct {
	Name string
	At   time.Time
	// Answer is the URL that returns the answer to the provider.
	Answer string
}

// SignedOut verifies a sign-out request of the provider. It returns ErrWrong if the request is not from the provider.
func (p SAML) SignedOut(r *http.Request) (out SignedOut, err error) {
	provider, err := p.serviceProvider()
	if err != nil {
		return out, err
	}
	asked, err := provider.ValidateLogoutRequest(r)
	if err != nil {
		return out, fmt.Errorf("%w: verify the sign-out request: %w", ErrWrong, err)
	}
	if asked.NameID == nil {
		return out, fmt.Errorf("%w: the sign-out request has no NameID", ErrWrong)
	}
	answer, err := provider.MakeRedirectLogoutResponse(asked.ID, r.FormValue("RelayState"))
	if err != nil {
		return out, err
	}
	return SignedOut{Name: asked.NameID.Value, At: asked.IssueInstant, Answer: answer.String()}, nil
}
