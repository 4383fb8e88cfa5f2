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

// A person who signs in by SAML is sent to the identity provider, whose page makes the browser send what it says of them to Consume. That
// request is one of another site, with which the browser sends no cookie: what was verified goes along, sealed, in the address of the next
// one (ComeBackFromSAML), which has the cookie of who was sent.

// arrival is what an identity provider has said of somebody; sealed, it travels in an address.
type arrival struct {
	Provider int64 `json:"provider"`
	// Request is the number of the request that it answers, State what was sent with it.
	Request string `json:"request"`
	State   string `json:"state"`
	// Until is when it is too late, in seconds since 1970.
	Until int64 `json:"until"`
	authn.Identity
}

// arrivalUse is what it is sealed for, arrivalLife how long it is good, in seconds: the browser goes on at once.
const (
	arrivalUse  = "an answer of an identity provider"
	arrivalLife = 120
)

// Bounds of what an identity provider sends: the form, in bytes, and how many groups that are not known here are told of, in the log.
const (
	maxSAMLForm   = 1 << 20
	strangeGroups = 10
)

// errAnswer refuses a form that is none.
var errAnswer = unauthorized("InvalidAuthorizationCredentials", "what was sent is no answer of an identity provider")

// samlIn gives what the manager is to identity providers.
func (s *Service) samlIn(tx *store.Tx) (service authn.SAMLService, err error) {
	api := authz.PolicyOf(s.store).API()
	o, err := api.Only(tx, "SAMLServiceProviderSettings")
	x, ok := o.(*SAMLServiceProviderSettings)
	if err != nil || !ok {
		return service, err
	}
	secrets, err := api.Secrets(tx, x)
	if err != nil {
		return service, err
	}
	if service, err = x.service(secrets["serviceKey"]); err != nil { // nobody comes in by SAML then, and everybody else does
		s.told("SAMLServiceProviderSettings", err)
		service.Host = ""
	}
	return service, nil
}

// service is what the manager is to identity providers, with its key and certificate in PEM, if it has any.
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
		return s, errors.New("the key of SAMLServiceProviderSettings is none")
	}
	key, err := x509.ParsePKCS8PrivateKey(first.Bytes)
	if err != nil {
		return s, err
	}
	s.Key, _ = key.(*rsa.PrivateKey)
	s.Certificate, err = x509.ParseCertificate(second.Bytes)
	return s, err
}

// SAMLMetadata gives what the manager says of itself to identity providers.
func (s *Service) SAMLMetadata(ctx context.Context) ([]byte, error) {
	var service authn.SAMLService
	if err := s.store.View(ctx, func(tx *store.Tx) (err error) {
		service, err = s.samlIn(tx)
		return err
	}); err != nil {
		return nil, err
	}
	return service.Metadata(s.store.Now())
}

// samlProviders gives the identity providers that people sign in at.
func (s *Service) samlProviders(ctx context.Context) (found []*external, err error) {
	err = s.store.View(ctx, func(tx *store.Tx) error {
		all, err := s.externalsIn(tx)
		found = slices.DeleteFunc(slices.Clone(all), func(e *external) bool { return e.saml == nil })
		return err
	})
	return found, err
}

// Consume takes what an identity provider has made a browser send, and gives where the browser goes on to. What the provider has not
// signed, or what is not for the manager, is refused with the problem InvalidAuthorizationCredentials.
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
		s.saw(Refused, "", Remote(r))
		return "", errAnswer
	}
	a, e := arrival{Provider: all[at].id, State: r.PostForm.Get("RelayState"), Until: s.store.Now().Unix() + arrivalLife}, all[at]
	var found error
	if err := s.asking.pass(r.Context(), Remote(r), func() { a.Identity, a.Request, found = e.saml.Verify(text) }); err != nil {
		return "", err
	}
	if found != nil {
		s.saw(Refused, a.Name, Remote(r))
		if s.observer.NotTaken != nil {
			s.observer.NotTaken(e.name, found)
		}
		return "", errAnswer
	}
	if err := s.store.View(r.Context(), func(tx *store.Tx) error { return e.keepKnown(tx, &a.Identity) }); err != nil {
		return "", err
	}
	sealed, err := s.sealed(r.Context(), arrivalUse, a)
	return authn.SAMLConsumePath + "?" + url.Values{"arrived": {sealed}}.Encode(), err
}

// keepKnown leaves, of the groups that somebody is in, those that are known here, and some others to tell of: an address has not the room
// for hundreds.
func (e *external) keepKnown(tx *store.Tx, id *authn.Identity) error {
	known := map[string]bool{}
	if err := eachRemoteGroup(tx, func(row *store.Resource, authenticator int64) {
		known[row.Name] = known[row.Name] || authenticator == e.id
	}); err != nil {
		return err
	}
	strange := 0
	id.Groups = slices.DeleteFunc(id.Groups, func(name string) bool {
		if known[name] {
			return false
		}
		strange++
		return strange > strangeGroups
	})
	return nil
}

// sealed gives a value as a text that nobody else can make or read.
func (s *Service) sealed(ctx context.Context, use string, value any) (text string, err error) {
	plain, err := json.Marshal(value)
	if err != nil {
		return "", err
	}
	seal := func(tx *store.Tx) error {
		sealed, err := authz.PolicyOf(s.store).API().Sealer.Seal(tx, use, string(plain))
		text = base64.RawURLEncoding.EncodeToString([]byte(sealed))
		return err
	}
	// Most often there is a key to seal by: nobody waits for the one who writes then.
	if s.store.View(ctx, seal) == nil {
		return text, nil
	}
	return text, s.store.Update(ctx, store.Author{}, seal)
}

// unsealed reads such a text; errFlow where it is none.
func (s *Service) unsealed(ctx context.Context, use, text string, into any) error {
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

// ComeBackFromSAML signs in whoever comes from Consume, if it is who was sent to the provider with the request that the provider has
// answered; anybody else is refused with the problem InvalidAuthorizationCredentials.
func (s *Service) ComeBackFromSAML(w http.ResponseWriter, r *http.Request) error {
	var a arrival
	if err := s.unsealed(r.Context(), arrivalUse, r.URL.Query().Get("arrived"), &a); err != nil {
		return err
	}
	sent, err := s.flowOf(r, a.Provider)
	if err != nil {
		return err
	}
	setFlow(w, r, "", -1) // each is good once
	e, err := s.provider(r.Context(), a.Provider)
	if err != nil {
		return err
	}
	if e.saml == nil || a.Until <= s.store.Now().Unix() || a.Request != sent.Nonce || a.State != sent.State ||
		!s.externals.spend(a.Request, s.store.Now()) {
		s.saw(Refused, a.Name, Remote(r))
		return errFlow
	}
	p, err := s.arrived(r.Context(), e, a.Identity, nil, Remote(r))
	if err != nil {
		return err
	}
	return s.enterBrowser(w, r, p)
}

// SignOutAt gives where a browser goes to sign out at the provider, too, of who asks; empty where there is no such place.
func (s *Service) SignOutAt(ctx context.Context, p authz.Principal) (to string, err error) {
	var e *external
	if err := s.store.View(ctx, func(tx *store.Tx) error {
		row, err := tx.Get(p.User)
		if err != nil {
			return err
		}
		all, err := s.externalsIn(tx)
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

// SignedOutElsewhere ends the sessions of whoever has signed out at an identity provider, whose request a browser brings, and gives where
// the browser goes on to with the answer. A request that no provider has signed is refused with the problem
// InvalidAuthorizationCredentials; what answers one of ours leads to the console.
func (s *Service) SignedOutElsewhere(w http.ResponseWriter, r *http.Request) (to string, err error) {
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
		if err := s.asking.pass(r.Context(), Remote(r), func() { out, found = e.saml.SignedOut(r) }); err != nil {
			return "", err
		}
		if found == nil {
			return out.Answer, s.endSessionsOf(r.Context(), e, out.Name, out.At.Add(clocksDiffer))
		}
	}
	return "", errAnswer
}

// clocksDiffer is by how much the clock of an identity provider may be behind.
const clocksDiffer = time.Minute

// endSessionsOf ends the open sessions of a user of an authenticator that began before a time: a request to sign out that is sent again
// ends none that began since.
func (s *Service) endSessionsOf(ctx context.Context, e *external, name string, began time.Time) error {
	return s.store.Update(ctx, store.Author{Name: "authenticator " + e.name}, func(tx *store.Tx) error {
		rows, err := tx.ByName("users", 0, name)
		if err != nil {
			return err
		}
		c := &resource.Change{Tx: tx, API: authz.PolicyOf(s.store).API(), Given: map[string]bool{}, Extra: map[string]string{}}
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

// Attributes of a SAML assertion where none are said: those that Active Directory Federation Services and most others send.
const (
	usualGroupAttribute = "http://schemas.xmlsoap.org/claims/Group"
	usualEmailAttribute = "http://schemas.xmlsoap.org/ws/2005/05/identity/claims/emailaddress"
)

// BeforeWrite fills in the usual attributes, and refuses what nobody can be sent to or verified by.
func (x *SAMLIdentityProvider) BeforeWrite(c *resource.Change) error {
	if x.SecondaryAuthenticator.ID != 0 {
		return problem.Invalid("secondaryAuthenticator", "an answer is verified by who has signed it, and nobody else")
	}
	if x.GroupAttribute == "" {
		x.GroupAttribute = usualGroupAttribute
	}
	if x.EmailAttribute == "" {
		x.EmailAttribute = usualEmailAttribute
	}
	return errors.Join(checkURL("signOnUrl", x.SignOnURL), checkURL("logoutUrl", x.LogoutURL),
		checkCertificates("signingCertificate", x.SigningCertificate))
}

// Validate refuses a second provider of the same name: nobody could say whose users they are.
func (x *SAMLIdentityProvider) Validate(c *resource.Change) error {
	return c.Each(store.All{store.InCollection(authenticators), authz.OfType(x.Type)}, func(_ *store.Resource, o schema.Object) error {
		other, ok := o.(*SAMLIdentityProvider)
		if ok && other.ID != x.ID && other.EntityID == x.EntityID {
			return problem.Conflict("ResourceConflictsWithOther", "entityId: authenticator %d, %s, has it already", other.ID, other.Name)
		}
		return nil
	})
}

// provider is what asks the identity provider.
func (x *SAMLIdentityProvider) provider(service authn.SAMLService, s *store.Store) *authn.SAML {
	return &authn.SAML{SAMLService: service, EntityID: x.EntityID, Certificates: x.SigningCertificate, SignOnURL: x.SignOnURL,
		LogoutURL: x.LogoutURL, GroupAttribute: x.GroupAttribute, EmailAttribute: x.EmailAttribute, Now: s.Now}
}

// BeforeWrite reads the key that is given, refuses a name that no browser goes to and messages that could not be signed or read, and says
// at which addresses the manager is found.
func (x *SAMLServiceProviderSettings) BeforeWrite(*resource.Change) error {
	if u, err := url.Parse("https://" + x.AddressManagerFQDN); err != nil || u.Host != x.AddressManagerFQDN || u.Hostname() == "" {
		return problem.Invalid("addressManagerFqdn", "%q is no name of a host, with a port where it is another than 443", x.AddressManagerFQDN)
	}
	if x.ServiceKey.Plain != "" {
		return problem.Invalid("serviceKey", "comes from keyStore, a PKCS #12 file in base64, and keyStorePassword")
	}
	if _, ok := authn.NameIDFormats[x.NameIDFormat]; !ok {
		return problem.NotYet("nameIdFormat: by %s nobody is known again", x.NameIDFormat)
	}
	for _, one := range []struct{ field, store, password string }{{"keyStore", x.KeyStore, x.KeyStorePassword},
		{"pkcs12", x.PKCS12, x.Password}} {
		if one.store == "" {
			continue
		}
		key, certificate, err := authn.ReadKeyStore(one.store, one.password)
		if err != nil {
			return problem.Invalid(one.field, "is no PKCS #12 file in base64 that this password opens: %v", err)
		}
		der, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			return err
		}
		x.ServiceKey = schema.Secret{Given: true, Plain: string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})) +
			string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw}))}
	}
	x.KeyStore, x.KeyStorePassword, x.PKCS12, x.Password = "", "", "", ""
	for field, wanted := range map[string]bool{"signingEnabled": x.SigningEnabled, "encryptionEnabled": x.EncryptionEnabled} {
		if wanted && x.ServiceKey.Plain == "" && x.ServiceKey.Sealed == "" {
			return problem.Invalid(field, "takes a key: give keyStore, a PKCS #12 file in base64, and keyStorePassword")
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
