package authn

import (
	"context"
	"crypto/hmac"
	"crypto/md5" //nolint:gosec // CHAP requires it (RFC 2865 section 2.2)
	"crypto/rand"
	"errors"
	"net"
	"strconv"
	"time"

	"portolan/internal/manager/outbound"

	"layeh.com/radius"
	"layeh.com/radius/rfc2865"
	"layeh.com/radius/rfc2869"
)

// RADIUS is a RADIUS server (RFC 2865).
type RADIUS struct {
	Host   string
	Port   int64
	Secret string
	// Signed rejects answers without a Message-Authenticator (RFC 3579 section 3.2), which can be forged (CVE-2024-3596).
	Signed bool
	// CHAP sends passwords by CHAP instead of PAP.
	CHAP bool
	// Timeout is the time to wait for an answer. Retries is the number of times that a request is sent again.
	Timeout time.Duration
	Retries int
}

// Check verifies a name and a password. It returns ErrWrong if they are wrong, and ErrUnavailable if the server does not answer. Requests
// are signed.
func (r RADIUS) Check(ctx context.Context, name, password string) (id Identity, err error) {
	if len(password) > 128 { // RFC 2865 section 5.2
		return id, ErrWrong
	}
	p := radius.New(radius.CodeAccessRequest, []byte(r.Secret))
	if err := errors.Join(rfc2865.UserName_SetString(p, name), rfc2865.NASIdentifier_SetString(p, "portolan")); err != nil {
		return id, ErrWrong
	}
	if r.CHAP {
		challenge := make([]byte, 16)
		_, _ = rand.Read(challenge) // never fails
		one := byte(1)
		sum := md5.Sum(append(append([]byte{one}, password...), challenge...)) //nolint:gosec // CHAP requires MD5
		err = errors.Join(rfc2865.CHAPChallenge_Set(p, challenge), rfc2865.CHAPPassword_Set(p, append([]byte{one}, sum[:]...)))
	} else {
		err = rfc2865.UserPassword_SetString(p, password)
	}
	if err == nil {
		err = sign(p)
	}
	if err != nil {
		return id, unavailable("wording the question: %w", err)
	}
	answer, err := r.ask(ctx, p)
	if err != nil {
		return id, err
	}
	switch answer.Code {
	case radius.CodeAccessAccept:
		return Identity{Name: name}, nil
	case radius.CodeAccessReject, radius.CodeAccessChallenge: // the sign-in cannot answer a challenge
		return id, ErrWrong
	}
	return id, unavailable("the answer has the code %v", answer.Code)
}

// ask sends a request, repeatedly until it is answered.
func (r RADIUS) ask(ctx context.Context, p *radius.Packet) (*radius.Packet, error) {
	ctx, end := context.WithTimeout(ctx, time.Duration(r.Retries+1)*r.Timeout)
	defer end()
	client := &radius.Client{Dialer: *outbound.Dialer(), Retry: r.Timeout, MaxPacketErrors: 10}
	answer, err := client.Exchange(ctx, p, net.JoinHostPort(r.Host, strconv.FormatInt(r.Port, 10)))
	if err != nil {
		return nil, unavailable("asking: %w", err)
	}
	if has, right := checkSignature(answer, p.Authenticator); !right && (has || r.Signed) {
		return nil, unavailable("the answer has no Message-Authenticator, or a wrong one: the server must send it (RFC 3579 section 3.2)")
	}
	return answer, nil
}

// sign sets the Message-Authenticator of a request.
func sign(p *radius.Packet) error {
	if err := rfc2869.MessageAuthenticator_Set(p, make([]byte, 16)); err != nil {
		return err
	}
	sum, err := authenticator(p, p.Authenticator)
	if err != nil {
		return err
	}
	return rfc2869.MessageAuthenticator_Set(p, sum)
}

// checkSignature reports whether an answer has a Message-Authenticator, and whether it is correct for the request.
func checkSignature(p *radius.Packet, question [16]byte) (has, right bool) {
	for _, one := range p.Attributes {
		if one.Type != rfc2869.MessageAuthenticator_Type || len(one.Attribute) != 16 {
			continue
		}
		given := one.Attribute
		one.Attribute = make([]byte, 16)
		sum, err := authenticator(p, question)
		return true, err == nil && hmac.Equal(sum, given)
	}
	return false, false
}

// authenticator returns the HMAC of a message whose Message-Authenticator is 16 zeros, with the authenticator of its request.
func authenticator(p *radius.Packet, question [16]byte) ([]byte, error) {
	other := *p
	other.Authenticator = question
	text, err := other.MarshalBinary()
	if err != nil {
		return nil, err
	}
	mac := hmac.New(md5.New, p.Secret)
	mac.Write(text)
	return mac.Sum(nil), nil
}
