package secrets

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
)

// RandomBytes returns n random octets.
func RandomBytes(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // crypto/rand.Read never fails
	return b
}

// New returns 256 random bits as text.
func New() string { return base64.RawURLEncoding.EncodeToString(RandomBytes(32)) }

// Hash returns the stored form of a token. Tokens are random, so one round is enough.
func Hash(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}
