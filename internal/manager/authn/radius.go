package authn

import (
	"context"
	"crypto/md5" //nolint:gosec // CHAP requires it (RFC 2865 section 2.2)
	"crypto/rand"
	"errors"
	"net"
	"os"
	"strconv"
	"time"

	"portolan/internal/manager/outbound"
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
	m := newRADIUSRequest()
	if err := errors.Join(m.add(radiusUserName, []byte(name)), m.add(radiusNASIdentifier, []byte("portolan"))); err != nil {
		return id, ErrWrong
	}
	if r.CHAP {
		challenge := make([]byte, md5.Size)
		_, _ = rand.Read(challenge) // never fails
		one := byte(1)
		sum := md5.Sum(append(append([]byte{one}, password...), challenge...)) //nolint:gosec // CHAP requires MD5
		err = errors.Join(m.add(radiusCHAPChallenge, challenge), m.add(radiusCHAPPassword, append([]byte{one}, sum[:]...)))
	} else {
		err = m.add(radiusUserPassword, m.hidePassword(password, r.Secret))
	}
	if err != nil {
		return id, unavailable("compose the request: %w", err)
	}
	m.sign(r.Secret)
	answer, err := r.ask(ctx, m)
	if err != nil {
		return id, err
	}
	switch answer.code {
	case accessAccept:
		return Identity{Name: name}, nil
	case accessReject, accessChallenge: // the sign-in cannot answer a challenge
		return id, ErrWrong
	}
	return id, unavailable("the answer has the code %d", answer.code)
}

// ask sends a request, repeatedly until it is answered or ctx ends.
func (r RADIUS) ask(ctx context.Context, request *radiusMessage) (*radiusMessage, error) {
	all := time.Duration(r.Retries+1) * r.Timeout
	dial, end := context.WithTimeout(ctx, all) // it looks up the name
	defer end()
	conn, err := outbound.Dialer().DialContext(dial, "udp", net.JoinHostPort(r.Host, strconv.FormatInt(r.Port, 10)))
	if err != nil {
		return nil, unavailable("connect: %w", err)
	}
	defer func() { _ = conn.Close() }() // nothing is buffered
	for try := 0; try <= r.Retries && ctx.Err() == nil; try++ {
		if _, err := conn.Write(request.encode()); err != nil {
			return nil, unavailable("send: %w", err)
		}
		if answer, err := r.await(ctx, conn, request); answer != nil || err != nil {
			return answer, err
		}
	}
	if ctx.Err() != nil {
		return nil, unavailable("wait for the answer: %w", context.Cause(ctx))
	}
	return nil, unavailable("no answer within %s", all)
}

// await returns the answer to a request; nil if none arrives within the timeout, or before ctx ends. Messages that are not the answer of a
// server with the secret are ignored.
func (r RADIUS) await(ctx context.Context, conn net.Conn, request *radiusMessage) (*radiusMessage, error) {
	if err := conn.SetReadDeadline(time.Now().Add(r.Timeout)); err != nil {
		return nil, unavailable("wait: %w", err)
	}
	defer context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Now()) })()
	buffer := make([]byte, maxRADIUS)
	for {
		n, err := conn.Read(buffer)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return nil, nil
		}
		if err != nil { // such as a closed port
			return nil, unavailable("receive: %w", err)
		}
		answer, err := parseRADIUS(buffer[:n])
		if err != nil || !answer.isAnswerTo(request, r.Secret) {
			continue
		}
		if has, right := answer.checkSignature(request, r.Secret); !right && (has || r.Signed) {
			return nil, unavailable("the answer has no Message-Authenticator, or a wrong one: the server must send it (RFC 3579 section 3.2)")
		}
		return answer, nil
	}
}
