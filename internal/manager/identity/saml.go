package identity

import (
	"context"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"time"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
	"portolan/internal/manager/authn"
	"portolan/internal/manager/authz"
)

// A SAML sign-in redirects the browser to the identity provider, whose page posts the answer to Consume. That request is cross-site, so the
// browser sends no cookie. Consume therefore seals the verified answer into the URL of the next request (CompleteSAMLSignIn), which has the
// cookie of the browser that started the sign-in.

// arrival is the verified answer of an identity provider. It is sealed and passed in a URL.
type arrival struct {
	Provider int64 `json:"provider"`
	// Request is the id of the request that was answered. State is the relay state sent with it.
	Request string `json:"request"`
	State   string `json:"state"`
	// Until is when the arrival expires, in Unix seconds.
	Until int64 `json:"until"`
	authn.Identity
}

// arrivalUse is the purpose that an arrival is sealed for. arrivalLife is its lifetime in seconds; browsers redirect at once.
const (
	arrivalUse  = "an answer of an identity provider"
	arrivalLife = 120
)

// maxSAMLForm is the maximum size of a form from an identity provider, in bytes. maxUnknownGroups is the number of unknown groups of a user
// that are kept for the log.
const (
	maxSAMLForm      = 1 << 20
	maxUnknownGroups = 10
)

// errAnswer reports a form that is not a valid SAML response.
var errAnswer = unauthorized("InvalidAuthorizationCredentials", "the request is not a response of an identity provider")

// loadSAML returns the service provider settings for identity providers. Host is empty if they cannot be used.
func (s *Service) loadSAML(tx *store.Tx) (service authn.SAMLService, err error) {
	api := authz.PolicyOf(s.store).API()
	o, err := api.FindSingle(tx, "SAMLServiceProviderSettings")
	x, ok := o.(*SAMLServiceProviderSettings)
	if err != nil || !ok {
		return service, err
	}
	secrets, err := api.Secrets(tx, x)
	if err != nil {
		return service, err
	}
	if service, err = x.service(secrets["serviceKey"]); err != nil { // SAML sign-in is then unavailable, other sign-ins work
		s.reportUnavailable("SAMLServiceProviderSettings", err)
		service.Host = ""
	}
	return service, nil
}

// service returns the service provider settings. pair is the key and the certificate in PEM; empty if there are none.
func (x *SAMLServiceProviderSettings) service(pair string) (authn.SAMLService, error) {
	s := authn.SAMLService{Host: x.AddressManagerFQDN, NameID: authn.NameIDFormats[x.NameIDFormat], Sign: x.SigningEnabled,
		Encrypt: x.EncryptionEnabled, Organization: x.OrganizationName, OrganizationURL: x.OrganizationURL, Contact: x.ContactName,
		ContactEmail: x.ContactEmail}
	if pair == "" {
		return s, nil
	}
	first, rest := pem.Decode([]byte(pair))
	second, _ := pem.Decode(rest)
	if first == nil || second == nil {
		return s, errors.New("the key of SAMLServiceProviderSettings is invalid")
	}
	key, err := x509.ParsePKCS8PrivateKey(first.Bytes)
	if err != nil {
		return s, err
	}
	s.Key, _ = key.(*rsa.PrivateKey)
	s.Certificate, err = x509.ParseCertificate(second.Bytes)
	return s, err
}

// SAMLMetadata returns the manager's SAML metadata document.
func (s *Service) SAMLMetadata(ctx context.Context) ([]byte, error) {
	var service authn.SAMLService
	if err := s.store.View(ctx, func(tx *store.Tx) (err error) {
		service, err = s.loadSAML(tx)
		return err
	}); err != nil {
		return nil, err
	}
	return service.Metadata(s.store.Now())
}

// samlProviders returns the enabled SAML identity providers.
func (s *Service) samlProviders(ctx context.Context) (found []*external, err error) {
	err = s.store.View(ctx, func(tx *store.Tx) error {
		all, err := s.loadExternals(tx)
		found = slices.DeleteFunc(slices.Clone(all), func(e *external) bool { return e.saml == nil })
		return err
	})
	return found, err
}

// Consume verifies the SAML response that the browser posts and returns the URL to redirect the browser to. An unsigned response, or one
// for another service, returns the problem InvalidAuthorizationCredentials.
func (s *Service) Consume(w http.ResponseWriter, r *http.Request) (to string, err error) {
	r.Body = http.MaxBytesReader(w, r.Body, maxSAMLForm)
	if r.ParseForm() != nil {
		return "", errAnswer
	}
	text := r.PostForm.Get("SAMLResponse")
	all, err := s.samlProviders(r.Context())
	if err != nil {
		return "", err
	}
	issuer := authn.SAMLIssuer(text)
	at := slices.IndexFunc(all, func(e *external) bool { return e.saml.EntityID == issuer })
	if at < 0 {
		s.reportSignIn(Refused, "", Remote(r))
		return "", errAnswer
	}
	a, e := arrival{Provider: all[at].id, State: r.PostForm.Get("RelayState"), Until: s.store.Now().Unix() + arrivalLife}, all[at]
	var found error
	if err := s.lookups.run(r.Context(), Remote(r), func() { a.Identity, a.Request, found = e.saml.Verify(text) }); err != nil {
		return "", err
	}
	if found != nil {
		s.reportSignIn(Refused, a.Name, Remote(r))
		if s.observer.ResponseRejected != nil {
			s.observer.ResponseRejected(e.name, found)
		}
		return "", errAnswer
	}
	if err := s.store.View(r.Context(), func(tx *store.Tx) error { return e.dropUnknownGroups(tx, &a.Identity) }); err != nil {
		return "", err
	}
	sealed, err := s.seal(r.Context(), arrivalUse, a)
	return authn.SAMLConsumePath + "?" + url.Values{"arrived": {sealed}}.Encode(), err
}

// dropUnknownGroups removes the groups that do not exist here, except for the first maxUnknownGroups. Hundreds of groups would exceed the
// length of a URL.
func (e *external) dropUnknownGroups(tx *store.Tx, id *authn.Identity) error {
	known := map[string]bool{}
	if err := eachRemoteGroup(tx, func(row *store.Resource, authenticator int64) {
		known[row.Name] = known[row.Name] || authenticator == e.id
	}); err != nil {
		return err
	}
	unknown := 0
	id.Groups = slices.DeleteFunc(id.Groups, func(name string) bool {
		if known[name] {
			return false
		}
		unknown++
		return unknown > maxUnknownGroups
	})
	return nil
}

// seal returns a value as encrypted text. Only the manager can create or read it.
func (s *Service) seal(ctx context.Context, use string, value any) (text string, err error) {
	plain, err := json.Marshal(value)
	if err != nil {
		return "", err
	}
	seal := func(tx *store.Tx) error {
		sealed, err := authz.PolicyOf(s.store).API().Sealer.Seal(tx, use, string(plain))
		text = base64.RawURLEncoding.EncodeToString([]byte(sealed))
		return err
	}
	// The sealing key usually exists. A read transaction then suffices, and the request does not wait for a writer.
	if s.store.View(ctx, seal) == nil {
		return text, nil
	}
	return text, s.store.Update(ctx, store.Author{}, seal)
}

// unseal decodes a text from seal; errFlow if it is not valid.
func (s *Service) unseal(ctx context.Context, use, text string, into any) error {
	sealed, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return errFlow
	}
	var plain string
	if err := s.store.View(ctx, func(tx *store.Tx) (err error) {
		plain, err = authz.PolicyOf(s.store).API().Sealer.Open(tx, use, string(sealed))
		return err
	}); err != nil {
		if ctx.Err() != nil {
			return err
		}
		return errFlow
	}
	if json.Unmarshal([]byte(plain), into) != nil {
		return errFlow
	}
	return nil
}

// CompleteSAMLSignIn signs in the browser that Consume redirected. The browser must be the one that was sent to the provider with the
// answered request; otherwise the problem InvalidAuthorizationCredentials is returned.
func (s *Service) CompleteSAMLSignIn(w http.ResponseWriter, r *http.Request) error {
	var a arrival
	if err := s.unseal(r.Context(), arrivalUse, r.URL.Query().Get("arrived"), &a); err != nil {
		return err
	}
	sent, err := s.flowOf(r, a.Provider)
	if err != nil {
		return err
	}
	setFlow(w, r, "", -1) // valid once
	e, err := s.provider(r.Context(), a.Provider)
	if err != nil {
		return err
	}
	if e.saml == nil || a.Until <= s.store.Now().Unix() || a.Request != sent.Nonce || a.State != sent.State ||
		!s.externals.markUsed(a.Request, s.store.Now()) {
		s.reportSignIn(Refused, a.Name, Remote(r))
		return errFlow
	}
	p, err := s.finishSignIn(r.Context(), e, a.Identity, nil, Remote(r))
	if err != nil {
		return err
	}
	return s.startBrowserSession(w, r, p)
}

// SignOutAt returns the URL that signs the principal out at its identity provider; empty if there is none.
func (s *Service) SignOutAt(ctx context.Context, p authz.Principal) (to string, err error) {
	var e *external
	if err := s.store.View(ctx, func(tx *store.Tx) error {
		row, err := tx.Get(p.User)
		if err != nil {
			return err
		}
		all, err := s.loadExternals(tx)
		at := slices.IndexFunc(all, func(e *external) bool { return e.saml != nil && e.id == row.Ref("authenticator") })
		if at >= 0 {
			e = all[at]
		}
		return err
	}); err != nil || e == nil {
		return "", err
	}
	return e.saml.SignOut(p.Name)
}

// EndSAMLSession ends the sessions of a user who signed out at an identity provider, and returns the URL to redirect the browser to
// with the answer. A request that no provider has signed returns the problem InvalidAuthorizationCredentials. An answer to a request of the
// manager redirects to the console.
func (s *Service) EndSAMLSession(w http.ResponseWriter, r *http.Request) (to string, err error) {
	r.Body = http.MaxBytesReader(w, r.Body, maxSAMLForm)
	if r.ParseForm() != nil {
		return "", errAnswer
	}
	if r.Form.Get("SAMLRequest") == "" {
		return "/", nil
	}
	all, err := s.samlProviders(r.Context())
	if err != nil {
		return "", err
	}
	for _, e := range all {
		var out authn.SignedOut
		found := authn.ErrWrong
		if err := s.lookups.run(r.Context(), Remote(r), func() { out, found = e.saml.SignedOut(r) }); err != nil {
			return "", err
		}
		if found == nil {
			return out.Answer, s.endSessionsOf(r.Context(), e, out.Name, out.At.Add(maxClockSkew))
		}
	}
	return "", errAnswer
}

// maxClockSkew is the time that the clock of an identity provider may be behind.
const maxClockSkew = time.Minute

// endSessionsOf ends the open sessions of a user of an authenticator that started before a time. A repeated sign-out request therefore does
// not end newer sessions.
func (s *Service) endSessionsOf(ctx context.Context, e *external, name string, began time.Time) error {
	return s.store.Update(ctx, store.Author{Name: "authenticator " + e.name}, func(tx *store.Tx) error {
		rows, err := tx.ByName("users", 0, name)
		if err != nil {
			return err
		}
		c := &resource.Change{Tx: tx, API: authz.PolicyOf(s.store).API(), SetFields: map[string]bool{}, Extra: map[string]string{}}
		for _, row := range rows {
			if row.Ref("authenticator") != e.id {
				continue
			}
			open, _, err := sessionsOf(tx, row.ID)
			if err != nil {
				return err
			}
			for _, id := range open {
				x, err := sessionOf(tx, id)
				if err == nil && !x.LoginDateTime.After(began) {
					err = endSessions(c, []int64{id}, terminated)
				}
				if err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// Default attributes of a SAML assertion, as Active Directory Federation Services and most other providers send them.
const (
	defaultGroupAttribute = "http://schemas.xmlsoap.org/claims/Group"
	defaultEmailAttribute = "http://schemas.xmlsoap.org/ws/2005/05/identity/claims/emailaddress"
)

// BeforeWrite sets the default attributes and validates the URLs and the certificate.
func (x *SAMLIdentityProvider) BeforeWrite(c *resource.Change) error {
	if x.SecondaryAuthenticator.ID != 0 {
		return problem.Invalid("secondaryAuthenticator", "must be null: responses are only verified by their signer")
	}
	if x.GroupAttribute == "" {
		x.GroupAttribute = defaultGroupAttribute
	}
	if x.EmailAttribute == "" {
		x.EmailAttribute = defaultEmailAttribute
	}
	return errors.Join(checkURL("signOnUrl", x.SignOnURL), checkURL("logoutUrl", x.LogoutURL),
		checkCertificates("signingCertificate", x.SigningCertificate))
}

// Validate rejects a second provider with the same entity ID: the owner of an assertion would be ambiguous.
func (x *SAMLIdentityProvider) Validate(c *resource.Change) error {
	return c.Each(store.All{store.InCollection(authenticators), authz.OfType(x.Type)}, func(_ *store.Resource, o schema.Object) error {
		other, ok := o.(*SAMLIdentityProvider)
		if ok && other.ID != x.ID && other.EntityID == x.EntityID {
			return problem.Conflict("ResourceConflictsWithOther", "entityId: already used by authenticator %s (%d)", other.Name, other.ID)
		}
		return nil
	})
}

// provider returns the client of the identity provider.
func (x *SAMLIdentityProvider) provider(service authn.SAMLService, s *store.Store) *authn.SAML {
	return &authn.SAML{SAMLService: service, EntityID: x.EntityID, Certificates: x.SigningCertificate, SignOnURL: x.SignOnURL,
		LogoutURL: x.LogoutURL, GroupAttribute: x.GroupAttribute, EmailAttribute: x.EmailAttribute, Now: s.Now}
}

// BeforeWrite reads the key store, validates the host name and the signing options, and sets the manager's SAML URLs.
func (x *SAMLServiceProviderSettings) BeforeWrite(*resource.Change) error {
	if u, err := url.Parse("https://" + x.AddressManagerFQDN); err != nil || u.Host != x.AddressManagerFQDN || u.Hostname() == "" {
		return problem.Invalid("addressManagerFqdn", "must be a host name, with a port if it is not 443, not %q", x.AddressManagerFQDN)
	}
	if x.ServiceKey.Plain != "" {
		return problem.Invalid("serviceKey", "cannot be set directly: send keyStore, a PKCS #12 file in base64, and keyStorePassword")
	}
	if _, ok := authn.NameIDFormats[x.NameIDFormat]; !ok {
		return problem.NotYet("nameIdFormat: %s does not identify returning users", x.NameIDFormat)
	}
	for _, one := range []struct{ field, store, password string }{{"keyStore", x.KeyStore, x.KeyStorePassword},
		{"pkcs12", x.PKCS12, x.Password}} {
		if one.store == "" {
			continue
		}
		key, certificate, err := authn.ReadKeyStore(one.store, one.password)
		if err != nil {
			return problem.Invalid(one.field, "is not a PKCS #12 file in base64, or the password is wrong: %v", err)
		}
		der, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			return err
		}
		x.ServiceKey = schema.Secret{IsSet: true, Plain: string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})) +
			string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw}))}
	}
	x.KeyStore, x.KeyStorePassword, x.PKCS12, x.Password = "", "", "", ""
	for field, wanted := range map[string]bool{"signingEnabled": x.SigningEnabled, "encryptionEnabled": x.EncryptionEnabled} {
		if wanted && x.ServiceKey.Plain == "" && x.ServiceKey.Sealed == "" {
			return problem.Invalid(field, "requires a key: send keyStore, a PKCS #12 file in base64, and keyStorePassword")
		}
	}
	s, err := x.service("")
	if err != nil {
		return err
	}
	metadata, consume, logout := s.URL(authn.SAMLMetadataPath), s.URL(authn.SAMLConsumePath), s.URL(authn.SAMLLogoutPath)
	x.MetadataURL, x.ConsumeURL, x.LogoutURL = metadata.String(), consume.String(), logout.String()
	return nil
}
