// Package authn asks others who somebody is: directories (LDAP), RADIUS servers, those that issue tokens (OAuth 2.0, OpenID Connect), SAML
// identity providers, and those that issue certificates.
// What somebody may do is access's affair.
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

// Identity is who somebody is, as others know them.
type Identity struct {
	// Name is their name here, Email their mail address; empty where it is not known.
	Name, Email string
	// Groups are what they are in, as it is called there: distinguished names of a directory, names in a token.
	Groups []string
}

// Results of asking.
var (
	// ErrWrong says that the name, the password or the token is wrong.
	ErrWrong = errors.New("the name, the password or the token is wrong")
	// ErrAway says that whoever knows could not be asked; what is around it says why.
	ErrAway = errors.New("who knows the user cannot be asked")
)

// away words why nobody could be asked.
func away(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrAway, shortened{fmt.Errorf(format, args...)})
}

// shortened is an error whose text is cut to maxTold bytes, because it may contain the answer of another server.
type shortened struct{ error }

// maxTold is how much that is, in bytes.
const maxTold = 400

// Error tells the beginning.
func (e shortened) Error() string {
	text := e.error.Error()
	if len(text) > maxTold {
		text = strings.ToValidUTF8(text[:maxTold], "") + "…"
	}
	return text
}

// Unwrap gives the whole error.
func (e shortened) Unwrap() error { return e.error }

// Unusable is an authenticator whose settings cannot be used.
type Unusable struct{ Reason error }

// Check returns ErrAway with the reason.
func (u Unusable) Check(context.Context, string, string) (Identity, error) {
	return Identity{}, away("%w", u.Reason)
}

// AskTime is how long one question may take.
const AskTime = 10 * time.Second

// asking bounds a question.
func asking(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, AskTime)
}

// ParseCertificates reads certificates: in PEM, or one in base64 without lines around it, as the published API has them.
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

// trusting gives how a host is spoken to by TLS: its certificate must be issued by one of those in a text, or, where that is empty, by one
// that the machine trusts.
func trusting(host, certificates string) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: host}
	if certificates == "" {
		return config, nil
	}
	all, err := ParseCertificates(certificates)
	if err != nil {
		return nil, fmt.Errorf("the certificates that are trusted cannot be read: %w", err)
	}
	config.RootCAs = x509.NewCertPool()
	for _, c := range all {
		config.RootCAs.AddCert(c)
	}
	return config, nil
}

// decodePart decodes a part of a JSON Web Token.
func decodePart(part string) ([]byte, error) { return base64.RawURLEncoding.DecodeString(part) }
