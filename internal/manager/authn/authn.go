// Package authn verifies users with external systems: LDAP directories, Kerberos, RADIUS and TACACS+ servers, OAuth 2.0 and OpenID Connect
// servers, SAML identity providers, and certificate authorities. Package authz decides what users may do.
package authn

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Identity is a user as an external system describes it.
type Identity struct {
	// Name is the user name, Email the mail address; empty if unknown.
	Name, Email string
	// Groups are the user's groups as the external system names them: distinguished names of a directory, or names in a token.
	Groups []string
}

// Errors of a verification.
var (
	// ErrWrong means that the name, the password or the token is wrong.
	ErrWrong = errors.New("the name, the password or the token is wrong")
	// ErrUnavailable means that the external system did not answer. The wrapping error contains the reason.
	ErrUnavailable = errors.New("the authenticator of the user is unreachable")
)

// unavailable returns ErrUnavailable with the reason.
func unavailable(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrUnavailable, shortened{fmt.Errorf(format, args...)})
}

// shortened is an error whose text is cut to maxErrorText bytes, because it may contain the answer of another server.
type shortened struct{ error }

// maxErrorText is the maximum length of an error text, in bytes.
const maxErrorText = 400

// Error returns the beginning of the text.
func (e shortened) Error() string {
	text := e.error.Error()
	if len(text) > maxErrorText {
		text = strings.ToValidUTF8(text[:maxErrorText], "") + "…"
	}
	return text
}

// Unwrap returns the complete error.
func (e shortened) Unwrap() error { return e.error }

// Unusable is an authenticator whose settings cannot be used.
type Unusable struct{ Reason error }

// Check returns ErrUnavailable with the reason.
func (u Unusable) Check(context.Context, string, string) (Identity, error) {
	return Identity{}, unavailable("%w", u.Reason)
}

// AskTime is the maximum duration of one request to an external system.
const AskTime = 10 * time.Second

// withAskTime returns a context that ends after AskTime.
func withAskTime(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, AskTime)
}

// ParseCertificates parses certificates in PEM, or one certificate in plain base64, as the published API has them.
func ParseCertificates(text string) (certificates []*x509.Certificate, err error) {
	rest := []byte(text)
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		certificates = append(certificates, c)
	}
	if certificates != nil {
		return certificates, nil
	}
	der, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), ""))
	if err != nil {
		return nil, errors.New("it is neither PEM nor base64")
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return []*x509.Certificate{c}, nil
}

// tlsConfig returns the TLS settings for a host. Its certificate must be issued by one of the given certificates; without any, by one that
// the system trusts.
func tlsConfig(host, certificates string) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: host}
	if certificates == "" {
		return config, nil
	}
	all, err := ParseCertificates(certificates)
	if err != nil {
		return nil, fmt.Errorf("read the trusted certificates: %w", err)
	}
	config.RootCAs = x509.NewCertPool()
	for _, c := range all {
		config.RootCAs.AddCert(c)
	}
	return config, nil
}

// decodePart decodes a part of a JSON Web Token.
func decodePart(part string) ([]byte, error) { return base64.RawURLEncoding.DecodeString(part) }
