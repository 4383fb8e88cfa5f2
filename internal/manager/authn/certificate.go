package authn

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"golang.org/x/crypto/ocsp"
)

// Certificates verifies users by the client certificates of their browsers.
type Certificates struct {
	// Issuers are the CA certificates of the chain, roots and intermediates.
	Issuers []*x509.Certificate
	// Responders are the OCSP responders (RFC 6960), asked in this order.
	Responders []string
	Now        func() time.Time
}

// responderSkew is how much the clock of a responder may differ. maxAnswerAge is the maximum age of an answer without a next update.
// maxResponse is the maximum size of an answer, in bytes.
const (
	responderSkew = 5 * time.Minute
	maxAnswerAge  = time.Hour
	maxResponse   = 64 << 10
)

// Verify returns the user of the first certificate of a chain, by its common name. It returns ErrWrong if the certificate has another
// issuer, lacks the extended key usage client authentication, is outside of its validity, or is revoked. It returns ErrUnavailable if no
// responder answers.
func (c *Certificates) Verify(ctx context.Context, chain []*x509.Certificate) (id Identity, err error) {
	if len(chain) == 0 {
		return id, fmt.Errorf("%w: the browser did not send a certificate", ErrWrong)
	}
	leaf, roots, between := chain[0], x509.NewCertPool(), x509.NewCertPool()
	for _, issuer := range c.Issuers {
		if bytes.Equal(issuer.RawSubject, issuer.RawIssuer) {
			roots.AddCert(issuer)
		} else {
			between.AddCert(issuer)
		}
	}
	chains, err := leaf.Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, CurrentTime: c.Now(),
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	if err != nil {
		return id, fmt.Errorf("%w: the certificate: %w", ErrWrong, err)
	}
	if len(chains[0]) < 2 || leaf.IsCA {
		return id, fmt.Errorf("%w: the certificate is an issuer's own", ErrWrong)
	}
	if leaf.Subject.CommonName == "" {
		return id, fmt.Errorf("%w: the certificate has no common name", ErrWrong)
	}
	if err := c.checkRevocation(ctx, leaf, chains[0][1]); err != nil {
		return id, err
	}
	return Identity{Name: leaf.Subject.CommonName}, nil
}

// checkRevocation asks the responders whether a certificate is revoked.
func (c *Certificates) checkRevocation(ctx context.Context, leaf, issuer *x509.Certificate) error {
	asked, err := ocsp.CreateRequest(leaf, issuer, nil)
	if err != nil {
		return err
	}
	ctx, cancel := withAskTime(ctx)
	defer cancel()
	var faults []error
	for _, at := range c.Responders {
		answer, err := ask(ctx, at, asked)
		if err == nil {
			var said *ocsp.Response
			if said, err = ocsp.ParseResponseForCert(answer, leaf, issuer); err == nil {
				now := c.Now()
				switch {
				case !mayAnswer(said.Certificate, issuer, now):
					err = errors.New("the signer of its response is not authorized")
				case said.NextUpdate.IsZero() && said.ThisUpdate.Before(now.Add(-maxAnswerAge)):
					err = errors.New("its response is outdated")
				case said.ThisUpdate.After(now.Add(responderSkew)) ||
					!said.NextUpdate.IsZero() && said.NextUpdate.Before(now.Add(-responderSkew)):
					err = errors.New("its response is not valid at this time")
				case said.Status == ocsp.Good:
					return nil
				default:
					return fmt.Errorf("%w: the certificate is revoked, or its issuer does not know it", ErrWrong)
				}
			}
		}
		faults = append(faults, fmt.Errorf("query %s: %w", at, err))
	}
	return unavailable("checking the revocation of a certificate: %w", errors.Join(faults...))
}

// mayAnswer reports whether an OCSP answer may be signed by the certificate in it; nil means that the issuer signed it. The library
// verifies only that the issuer issued the signer's certificate. That is true for client certificates as well (RFC 6960 section 4.2.2.2).
func mayAnswer(signer, issuer *x509.Certificate, now time.Time) bool {
	if signer == nil || bytes.Equal(signer.Raw, issuer.Raw) {
		return true
	}
	return slices.Contains(signer.ExtKeyUsage, x509.ExtKeyUsageOCSPSigning) && !now.Before(signer.NotBefore) && !now.After(signer.NotAfter)
}

// ask sends a request to a responder.
func ask(ctx context.Context, at string, question []byte) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, at, bytes.NewReader(question))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/ocsp-request")
	rs, err := newHTTPClient(&http.Transport{DisableKeepAlives: true}).Do(r)
	if err != nil {
		return nil, err
	}
	answer, err := io.ReadAll(io.LimitReader(rs.Body, maxResponse))
	if e := rs.Body.Close(); err == nil {
		err = e
	}
	if err == nil && rs.StatusCode != http.StatusOK {
		err = errors.New(rs.Status)
	}
	return answer, err
}
