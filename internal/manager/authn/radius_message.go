package authn

import (
	"crypto/hmac"
	"crypto/md5" //nolint:gosec // RFC 2865 requires it
	"crypto/rand"
	"encoding/binary"
	"errors"
)

// The codes of RADIUS messages (RFC 2865 section 4) that a sign-in uses.
const (
	accessRequest   = 1
	accessAccept    = 2
	accessReject    = 3
	accessChallenge = 11
)

// The types of attributes (RFC 2865 section 5, RFC 3579 section 3.2) that a sign-in uses.
const (
	radiusUserName             = 1
	radiusUserPassword         = 2
	radiusCHAPPassword         = 3
	radiusNASIdentifier        = 32
	radiusCHAPChallenge        = 60
	radiusMessageAuthenticator = 80
)

// radiusHead is the size of the header of a message, and maxRADIUS the maximum size of a message, in octets.
const (
	radiusHead = 20
	maxRADIUS  = 4096
)

// radiusAttribute is an attribute of a message.
type radiusAttribute struct {
	kind  byte
	value []byte
}

// radiusMessage is a RADIUS message (RFC 2865 section 3).
type radiusMessage struct {
	code, id      byte
	authenticator [md5.Size]byte
	attributes    []radiusAttribute
}

// newRADIUSRequest returns an Access-Request with a random identifier and authenticator.
func newRADIUSRequest() *radiusMessage {
	m := &radiusMessage{code: accessRequest}
	one := [1]byte{}
	_, _ = rand.Read(one[:]) // never fails
	_, _ = rand.Read(m.authenticator[:])
	m.id = one[0]
	return m
}

// add adds an attribute. It returns an error if the value has no octet, or more than 253.
func (m *radiusMessage) add(kind byte, value []byte) error {
	const longest = 253
	if len(value) == 0 || len(value) > longest {
		return errors.New("a RADIUS attribute has 1 to 253 octets")
	}
	m.attributes = append(m.attributes, radiusAttribute{kind, value})
	return nil
}

// encode returns the octets of the message.
func (m *radiusMessage) encode() []byte {
	text := append([]byte{m.code, m.id, 0, 0}, m.authenticator[:]...)
	for _, a := range m.attributes {
		text = append(append(text, a.kind, byte(len(a.value)+2)), a.value...)
	}
	binary.BigEndian.PutUint16(text[2:], uint16(len(text))) //nolint:gosec // few attributes
	return text
}

// parseRADIUS reads a message. Octets beyond its length are padding.
func parseRADIUS(text []byte) (*radiusMessage, error) {
	if len(text) < radiusHead {
		return nil, errors.New("the RADIUS message is shorter than its header")
	}
	length := int(binary.BigEndian.Uint16(text[2:]))
	if length < radiusHead || length > len(text) || length > maxRADIUS {
		return nil, errors.New("the RADIUS message has a wrong length")
	}
	m := &radiusMessage{code: text[0], id: text[1]}
	copy(m.authenticator[:], text[4:])
	for rest := text[radiusHead:length]; len(rest) > 0; {
		const head = 2
		if len(rest) < head || int(rest[1]) < head || int(rest[1]) > len(rest) {
			return nil, errors.New("an attribute of the RADIUS message has a wrong length")
		}
		m.attributes = append(m.attributes, radiusAttribute{rest[0], rest[head:rest[1]]})
		rest = rest[rest[1]:]
	}
	return m, nil
}

// isAnswerTo reports whether the message answers a request of a client with a secret: its authenticator is the MD5 of the message with the
// authenticator of the request, and of the secret (RFC 2865 section 3).
func (m *radiusMessage) isAnswerTo(request *radiusMessage, secret string) bool {
	other := *m
	other.authenticator = request.authenticator
	sum := md5.Sum(append(other.encode(), secret...)) //nolint:gosec // RFC 2865 requires MD5
	return m.id == request.id && hmac.Equal(sum[:], m.authenticator[:])
}

// hidePassword returns the value of User-Password: the password in blocks of 16 octets, each combined with the MD5 of the secret and of the
// block before, first of the authenticator (RFC 2865 section 5.2).
func (m *radiusMessage) hidePassword(password, secret string) []byte {
	hidden := make([]byte, max(1, (len(password)+md5.Size-1)/md5.Size)*md5.Size)
	copy(hidden, password)
	before := m.authenticator[:]
	for i := 0; i < len(hidden); i += md5.Size {
		sum := md5.Sum(append([]byte(secret), before...)) //nolint:gosec // RFC 2865 requires MD5
		for j := range sum {
			hidden[i+j] ^= sum[j]
		}
		before = hidden[i : i+md5.Size]
	}
	return hidden
}

// sign adds the Message-Authenticator of a request. It is the first attribute, so that no attribute before it can be forged.
func (m *radiusMessage) sign(secret string) {
	m.attributes = append([]radiusAttribute{{radiusMessageAuthenticator, make([]byte, md5.Size)}}, m.attributes...)
	m.attributes[0].value = m.signature(m.authenticator, secret)
}

// checkSignature reports whether an answer has a Message-Authenticator, and whether it is correct for the request.
func (m *radiusMessage) checkSignature(request *radiusMessage, secret string) (has, right bool) {
	for i := range m.attributes {
		if a := &m.attributes[i]; a.kind == radiusMessageAuthenticator {
			given := a.value
			if len(given) != md5.Size {
				return true, false
			}
			a.value = make([]byte, md5.Size)
			right = hmac.Equal(m.signature(request.authenticator, secret), given)
			a.value = given
			return true, right
		}
	}
	return false, false
}

// signature returns the HMAC-MD5 of a message whose Message-Authenticator is 16 zeros, with the authenticator of its request.
func (m *radiusMessage) signature(authenticator [md5.Size]byte, secret string) []byte {
	other := *m
	other.authenticator = authenticator
	mac := hmac.New(md5.New, []byte(secret))
	mac.Write(other.encode())
	return mac.Sum(nil)
}
