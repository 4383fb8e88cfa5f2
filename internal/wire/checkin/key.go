package checkin

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"strings"
)

// RegistrationKey enrolls a service point. It contains a secret and the fingerprint of the authority of the manager that created it, so
// that the first connection cannot be intercepted.
type RegistrationKey struct {
	Secret    [32]byte
	Authority [32]byte // SHA-256 of the authority's certificate in DER
}

const (
	keyPrefix   = "ptlk_"
	keyChecksum = 4
)

// ErrKeyDamaged reports a registration key that was truncated or changed.
var ErrKeyDamaged = errors.New("the registration key is incomplete or was changed: copy it again")

// String returns the key as it is shown, once: ptlk_ and base64url of the secret, the fingerprint and the first four bytes of their
// SHA-256.
func (k RegistrationKey) String() string {
	payload := append(append([]byte{}, k.Secret[:]...), k.Authority[:]...)
	sum := sha256.Sum256(payload)
	return keyPrefix + base64.RawURLEncoding.EncodeToString(append(payload, sum[:keyChecksum]...))
}

// ParseKey parses a key. It returns ErrKeyDamaged if a single bit is wrong.
func ParseKey(text string) (k RegistrationKey, err error) {
	rest, ok := strings.CutPrefix(strings.TrimSpace(text), keyPrefix)
	if !ok {
		return k, ErrKeyDamaged
	}
	data, err := base64.RawURLEncoding.Strict().DecodeString(rest)
	if err != nil || len(data) != 64+keyChecksum {
		return k, ErrKeyDamaged
	}
	sum := sha256.Sum256(data[:64])
	if !bytes.Equal(sum[:keyChecksum], data[64:]) {
		return k, ErrKeyDamaged
	}
	copy(k.Secret[:], data[:32])
	copy(k.Authority[:], data[32:64])
	return k, nil
}
