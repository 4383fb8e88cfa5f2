package identity

import (
	"context"
	"crypto/x509"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"sync/atomic"
	"time"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
	"portolan/internal/manager/authn"
	"portolan/internal/manager/authz"
)

// BeforeWrite refuses what nobody could be verified by.
func (x *X509Authenticator) BeforeWrite(c *resource.Change) error {
	if x.SecondaryAuthenticator.ID != 0 {
		return problem.Invalid("secondaryAuthenticator", "a certificate is verified by its issuers, and nobody else")
	}
	if another, err := certificatesTaken(c, x.ID); err != nil || another {
		return errors.Join(err, oneAuthenticator(another))
	}
	if x.LDAPUserMatchOption != "NONE" {
		return problem.NotYet("ldapUserMatchOption: must be NONE: users are found by the common name of their certificate alone")
	}
	if _, err := x.issuers(); err != nil {
		return err
	}
	return errors.Join(checkResponder("primaryServerUrl", x.PrimaryServerURL), checkResponder("secondaryServerUrl", x.SecondaryServerURL))
}

// oneAuthenticator refuses a second authenticator of certificates: a name is all that a certificate says of a user, and the issuers of one
// would vouch for the users of the other.
func oneAuthenticator(another bool) error {
	if !another {
		return nil
	}
	return problem.Conflict("ResourceConflictsWithOther", "type: there is an X509Authenticator already: add the issuers to its caCertificates")
}

// issuers reads the certificates of the issuers.
func (x *X509Authenticator) issuers() (all authn.Certificates, err error) {
	for _, text := range x.CACertificates {
		list, err := authn.ParseCertificates(text)
		if err != nil {
			return all, problem.Field("InvalidX509CertificateValue", "caCertificates", "has no certificate in PEM or base64: %v", err)
		}
		all.Issuers = append(all.Issuers, list...)
	}
	if !slices.ContainsFunc(all.Issuers, func(c *x509.Certificate) bool { return c.IsCA && c.CheckSignatureFrom(c) == nil }) {
		return all, problem.Field("InvalidX509CertificateValue", "caCertificates", "has no root: give all of the chain")
	}
	return all, nil
}

// checkResponder refuses a URL that no responder has. Its answers are signed: most speak http.
func checkResponder(field, text string) error {
	if text == "" {
		return nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || u.Scheme != "http" && u.Scheme != "https" {
		return problem.Field("InvalidUrlValue", field, "%q is no URL such as http://ocsp.example.net", text)
	}
	return nil
}

// certificates is what verifies the certificates of people; nil where nobody could be verified.
func (x *X509Authenticator) certificates(now func() time.Time) *authn.Certificates {
	all, err := x.issuers()
	if err != nil {
		return nil // which is refused when it is written
	}
	all.Now, all.Responders = now, []string{x.PrimaryServerURL}
	if x.SecondaryServerURL != "" {
		all.Responders = append(all.Responders, x.SecondaryServerURL)
	}
	return &all
}

// BeforeDelete keeps the last one that users need.
func (x *X509Authenticator) BeforeDelete(c *resource.Change) error {
	if another, err := certificatesTaken(c, x.ID); err != nil || another {
		return err
	}
	return c.Each(store.InCollection("users"), func(_ *store.Resource, o schema.Object) error {
		if u, ok := o.(*User); ok && u.X509Required {
			return problem.InUse("user %d, %s, signs in with a certificate alone (x509Required), which nothing else verifies", u.ID, u.Name)
		}
		return nil
	})
}

// certificatesTaken reports whether there is an authenticator of certificates other than this one.
func certificatesTaken(c *resource.Change, than int64) (there bool, err error) {
	err = c.Each(store.All{store.InCollection(authenticators), authz.OfType("X509Authenticator")}, func(r *store.Resource,
		_ schema.Object) error {
		there = there || r.ID != than
		return nil
	})
	return there, err
}

// certificateWish remembers for a moment whether browsers are to show certificates: it is asked at each connection.
type certificateWish struct {
	until atomic.Int64 // in nanoseconds since 1970
	yes   atomic.Bool
}

// wishLife is how long that is remembered.
const wishLife = 2 * time.Second

// WantsCertificates reports whether browsers are asked for certificates: there is somebody who verifies them.
func (s *Service) WantsCertificates(ctx context.Context) bool {
	now := time.Now()
	if now.UnixNano() < s.wish.until.Load() {
		return s.wish.yes.Load()
	}
	err := s.store.View(ctx, func(tx *store.Tx) error {
		all, err := s.externalsIn(tx)
		s.wish.yes.Store(slices.ContainsFunc(all, func(e *external) bool { return e.certificates != nil }))
		return err
	})
	if err == nil {
		s.wish.until.Store(now.Add(wishLife).UnixNano())
	}
	return s.wish.yes.Load()
}

// certificateOf begins the name of a credential that was a certificate.
const certificateOf = "certificate of "

// enterByCertificate signs in whose certificate the browser has shown; errLogin where it is nobody's, or of somebody who may come in
// otherwise: a certificate is for those who need one (User.X509Required).
func (s *Service) enterByCertificate(w http.ResponseWriter, r *http.Request, e *external) error {
	remote := Remote(r)
	// Browsers show a certificate wherever a page sends them: that of another site signs nobody in.
	if mode := r.Header.Get("Sec-Fetch-Mode"); r.Header.Get("Sec-Fetch-Site") == "cross-site" || mode != "" && mode != "navigate" {
		return problem.Forbidden("CrossOriginRequest", "a page of another origin sent the browser here: begin at the sign-in page")
	}
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		s.saw(Refused, "", remote)
		return unauthorized("CertificateRequired",
			"the browser has shown no certificate to the manager itself: choose one when it asks; where TLS ends at a proxy, none comes here")
	}
	var id authn.Identity
	var found error
	if err := s.asking.pass(r.Context(), remote, func() {
		id, found = e.certificates.Verify(r.Context(), r.TLS.PeerCertificates)
	}); err != nil {
		return err
	}
	if errors.Is(found, authn.ErrAway) {
		s.saw(Unavailable, "", remote)
		s.told(e.name, found)
		return errAway(e.name)
	}
	if found != nil {
		if s.observer.NotTaken != nil {
			s.observer.NotTaken(e.name, found)
		}
		s.saw(Refused, id.Name, remote)
		return errLogin
	}
	var p authz.Principal
	err := s.store.View(r.Context(), func(tx *store.Tx) error {
		rows, err := tx.ByName("users", 0, id.Name)
		if err != nil {
			return err
		}
		if !nameable(id.Name) || len(rows) == 0 {
			return errLogin
		}
		user, err := asUser(rows[0])
		if err == nil && (!user.X509Required || !user.usable(authz.ConsoleDoor)) {
			err = errLogin
		}
		if err == nil {
			p, err = s.principalOf(tx, user)
		}
		return err
	})
	if err != nil {
		if errors.Is(err, errLogin) {
			s.saw(Refused, id.Name, remote)
		}
		return err
	}
	s.saw(Accepted, p.Name, remote)
	p.Credential = certificateOf + e.name
	return s.enterBrowser(w, r, p)
}
