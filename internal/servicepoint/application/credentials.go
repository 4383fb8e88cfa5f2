package application

import (
	"crypto/tls"
	"encoding/json"
	"maps"
	"strings"
)

// Credentials are the certificate chain and private key of TLS listeners, in PEM. They are the member tls of a configuration. The key is
// never returned. If a configuration omits the key, the stored key of the same certificate is used.
type Credentials struct {
	Certificate string `json:"certificate"`
	Key         string `json:"key,omitempty"`
}

// Wrong returns the error of invalid credentials, created by bad with a field and a message; nil if they are valid. wanted reports that a
// listener uses them.
func (c *Credentials) Wrong(wanted bool, bad func(field, format string, args ...any) error) error {
	switch {
	case c == nil:
		return nil
	case !wanted:
		return bad("tls", "has no effect: no listener has tls: true")
	case c.Key == "":
		return bad("tls.key", "is required with a new certificate")
	}
	if _, err := c.Pair(); err != nil {
		return bad("tls", "%v", err)
	}
	return nil
}

// Pair returns the certificate with its key.
func (c *Credentials) Pair() (tls.Certificate, error) {
	return tls.X509KeyPair([]byte(c.Certificate), []byte(c.Key))
}

// Expiration returns the expiry time of the certificate in Unix milliseconds; 0 without a certificate.
func (c *Credentials) Expiration() int64 {
	if c == nil {
		return 0
	}
	pair, err := c.Pair()
	if err != nil || pair.Leaf == nil {
		return 0
	}
	return pair.Leaf.NotAfter.UnixMilli()
}

// HideKey removes the private key from a configuration. It returns an empty object if the configuration cannot be decoded.
func HideKey(text json.RawMessage, into any) json.RawMessage {
	if Decode(text, into) != nil {
		return json.RawMessage("{}")
	}
	return withKey(text, func(*Credentials) string { return "" })
}

// FillKey copies the private key from the previous configuration if text contains the same certificate without a key.
func FillKey(text, before json.RawMessage) json.RawMessage {
	old := credentialsOf(before)
	if old == nil {
		return text
	}
	return withKey(text, func(now *Credentials) string {
		if now.Key == "" && now.Certificate == old.Certificate {
			return old.Key
		}
		return now.Key
	})
}

// credentialsOf returns the credentials of a configuration; nil if it contains none.
func credentialsOf(text json.RawMessage) *Credentials {
	var c struct {
		TLS *Credentials `json:"tls"`
	}
	if json.Unmarshal(text, &c) != nil {
		return nil
	}
	return c.TLS
}

// withKey returns a configuration with the private key that keyOf returns. It returns a configuration without credentials unchanged.
func withKey(text json.RawMessage, keyOf func(*Credentials) string) json.RawMessage {
	var members map[string]json.RawMessage
	now := credentialsOf(text)
	if now == nil || json.Unmarshal(text, &members) != nil {
		return text // it will be rejected, or contains no key
	}
	now.Key = keyOf(now)
	tlsText, err := json.Marshal(now)
	if err != nil {
		return text
	}
	maps.DeleteFunc(members, func(name string, _ json.RawMessage) bool { return strings.EqualFold(name, "tls") }) // the decoder ignores case
	members["tls"] = tlsText
	whole, err := json.Marshal(members)
	if err != nil {
		return text
	}
	return whole
}
