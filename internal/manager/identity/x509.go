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

// BeforeWrite validates the settings. Only one X509Authenticator may exist.
func (x *X509Authenticator) BeforeWrite(c *resource.Change) error {
	if x.SecondaryAuthenticator.ID != 0 {
		return problem.Invalid("secondaryAuthenticator", "must be null: certificates are only verified by their issuers")
	}
	if another, err := hasCertificateAuthenticator(c, x.ID); err != nil || another {
		return errors.Join(err, errSecondAuthenticator(another))
	}
	if x.LDAPUserMatchOption != "NONE" {
		return problem.NotYet("ldapUserMatchOption: must be NONE: users are only found by the common name of their certificate")
	}
	if _, err := x.issuers(); err != nil {
		return err
	}
	return errors.Join(checkResponder("primaryServerUrl", x.PrimaryServerURL), checkResponder("secondaryServerUrl", x.SecondaryServerURL))
}

// errSecondAuthenticator returns the error for a second X509Authenticator. A certificate identifies a user by name only, so the issuers of
// one authenticator could vouch for the users of the other.
func errSecondAuthenticator(another bool) error {
	if !another {
		return nil
	}
	return problem.Conflict("ResourceConflictsWithOther", "type: an X509Authenticator already exists: add the issuers to its caCertificates")
}

// issuers parses the CA certificates. At least one must be a root.
func (x *X509Authenticator) issuers() (all authn.Certificates, err error) {
	for _, text := range x.CACertificates {
		list, err := authn.ParseCertificates(text)
		if err != nil {
			return all, problem.Field("InvalidX509CertificateValue", "caCertificates", "has no certificate in PEM or base64: %v", err)
		}
		all.Issuers = append(all.Issuers, list...)
	}
	if !slices.ContainsFunc(all.Issuers, func(c *x509.Certificate) bool { return c.IsCA && c.CheckSignatureFrom(c) == nil }) {
		return all, problem.Field("InvalidX509CertificateValue", "caCertificates", "has no root certificate: send the whole chain")
	}
	return all, nil
}

// checkResponder rejects an invalid URL of an OCSP responder. http is allowed, because the answers are signed.
func checkResponder(field, text string) error {
	if text == "" {
		return nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || u.Scheme != "http" && u.Scheme != "https" {
		return problem.Field("InvalidUrlValue", field, "must be a URL such as http://ocsp.example.net, not %q", text)
	}
	return nil
}

// certificates returns the verifier of client certificates; nil if the CA certificates are invalid.
func (x *X509Authenticator) certificates(now func() time.Time) *authn.Certificates {
	all, err := x.issuers()
	if err != nil {
		return nil // BeforeWrite rejects it
	}
	all.Now, all.Responders = now, []string{x.PrimaryServerURL}
	if x.SecondaryServerURL != "" {
		all.Responders = append(all.Responders, x.SecondaryServerURL)
	}
	return &all
}

// BeforeDelete rejects the deletion of the last X509Authenticator while users require certificates.
func (x *X509Authenticator) BeforeDelete(c *resource.Change) error {
	if another, err := hasCertificateAuthenticator(c, x.ID); err != nil || another {
		return err
	}
	return c.Each(store.InCollection("users"), func(_ *store.Resource, o schema.Object) error {
		if u, ok := o.(*User); ok && u.X509Required {
			return problem.InUse("user %s (%d) can only sign in with a certificate (x509Required), which requires this authenticator", u.Name, u.ID)
		}
		return nil
	})
}

// hasCertificateAuthenticator reports whether an X509Authenticator other than the given one exists.
func hasCertificateAuthenticator(c *resource.Change, than int64) (there bool, err error) {
	err = c.Each(store.All{store.InCollection(authenticators), authz.OfType("X509Authenticator")}, func(r *store.Resource,
		_ schema.Object) error {
		there = there || r.ID != than
		return nil
	})
	return there, err
}

// certificateRequest caches whether browsers are asked for client certificates, because that is checked on each connection.
type certificateRequest struct {
	until      atomic.Int64 // Unix time in nanoseconds
	isRequired atomic.Bool
}

// certificateRequestLife is the lifetime of the cached result.
const certificateRequestLife = 2 * time.Second

// WantsCertificates reports whether browsers are asked for client certificates: an X509Authenticator exists.
func (s *Service) WantsCertificates(ctx context.Context) bool {
	now := time.Now()
	if now.UnixNano() < s.certificateRequest.until.Load() {
		return s.certificateRequest.isRequired.Load()
	}
	err := s.store.View(ctx, func(tx *store.Tx) error {
		all, err := s.loadExternals(tx)
		s.certificateRequest.isRequired.Store(slices.ContainsFunc(all, func(e *external) bool { return e.certificates != nil }))
		return err
	})
	if err == nil {
		s.certificateRequest.until.Store(now.Add(certificateRequestLife).UnixNano())
	}
	return s.certificateRequest.isRequired.Load()
}

// certificateOf is the prefix of the credential name of a sign-in with a certificate.
const certificateOf = "certificate of "

// signInByCertificate signs in the user of the browser's certificate. It returns errLogin if the certificate is invalid, if the user does
// not exist, or if the user does not require certificates (User.X509Required).
func (s *Service) signInByCertificate(w http.ResponseWriter, r *http.Request, e *external) error {
	remote := Remote(r)
	// A page of another site can navigate the browser here, which then shows its certificate. Such a request must not sign in.
	if mode := r.Header.Get("Sec-Fetch-Mode"); r.Header.Get("Sec-Fetch-Site") == "cross-site" || mode != "" && mode != "navigate" {
		return problem.Forbidden("CrossOriginRequest", "a page of another origin sent the browser here: start at the sign-in page")
	}
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		s.reportSignIn(Refused, "", remote)
		return unauthorized("CertificateRequired",
			"the manager received no client certificate: choose one when the browser asks; a proxy that terminates TLS does not forward it")
	}
	var id authn.Identity
	var found error
	if err := s.lookups.run(r.Context(), remote, func() {
		id, found = e.certificates.Verify(r.Context(), r.TLS.PeerCertificates)
	}); err != nil {
		return err
	}
	if errors.Is(found, authn.ErrUnavailable) {
		s.reportSignIn(Unavailable, "", remote)
		s.reportUnavailable(e.name, found)
		return errUnavailable(e.name)
	}
	if found != nil {
		if s.observer.ResponseRejected != nil {
			s.observer.ResponseRejected(e.name, found)
		}
		s.reportSignIn(Refused, id.Name, remote)
		return errLogin
	}
	var p authz.Principal
	err := s.store.View(r.Context(), func(tx *store.Tx) error {
		rows, err := tx.ByName("users", 0, id.Name)
		if err != nil {
			return err
		}
		if !isStorableName(id.Name) || len(rows) == 0 {
			return errLogin
		}
		user, err := asUser(rows[0])
		if err == nil && (!user.X509Required || !user.usable(authz.ConsoleInterface)) {
			err = errLogin
		}
		if err == nil {
			p, err = s.principalOf(tx, user)
		}
		return err
	})
	if err != nil {
		if errors.Is(err, errLogin) {
			s.reportSignIn(Refused, id.Name, remote)
		}
		return err
	}
	s.reportSignIn(Accepted, p.Name, remote)
	p.Credential = certificateOf + e.name
	return s.startBrowserSession(w, r, p)
}
