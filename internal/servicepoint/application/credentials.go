package application

import (
	"crypto/tls"
	"encoding/json"
	"maps"
	"strings"
)

// Credentials are a certificate, with those that it follows from behind it, and its private key, in PEM: what listeners over TLS show.
// They are the member tls of a configuration. The key is never shown: where it is left out, the one stays that came with the same
// certificate.
type Credentials struct {
	Certificate string `json:"certificate"`
	Key         string `json:"key,omitempty"`
}

// Wrong says what is wrong with credentials by bad, which is given the field and the sentence; nil where nothing is. wanted says that a
// listener shows them.
func (c *Credentials) Wrong(wanted bool, bad func(field, format string, args ...any) error) error {
	switch {
	case c == nil:
		return nil
	case !wanted:
		return bad("tls", "no listener has tls: true, so that nothing would show it")
	case c.Key == "":
		return bad("tls.key", "is needed with a certificate that was not there before")
	}
	if _, err := c.Pair(); err != nil {
		return bad("tls", "%v", err)
	}
	return nil
}

// Pair is the certificate with its key.
func (c *Credentials) Pair() (tls.Certificate, error) {
	return tls.X509KeyPair([]byte(c.Certificate), []byte(c.Key))
}

// Expiration is until when the certificate is good, in Unix milliseconds; 0 without one.
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

// HideKey takes the private key out of a configuration. Of one that this program cannot read into a struct nothing is shown.
func HideKey(text json.RawMessage, into any) json.RawMessage {
	if Decode(text, into) != nil {
		return json.RawMessage("{}")
	}
	return withKey(text, func(*Credentials) string { return "" })
}

// FillKey puts the private key of the configuration before into one that has the same certificate without it.
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

// credentialsOf gives the credentials of a configuration; nil where there are none.
func credentialsOf(text json.RawMessage) *Credentials {
	var c struct {
		TLS *Credentials `json:"tls"`
	}
	if json.Unmarshal(text, &c) != nil {
		return nil
	}
	return c.TLS
}

// withKey gives a configuration with the private key that keyOf says; one without credentials stays as it is.
func withKey(text json.RawMessage, keyOf func(*Credentials) string) json.RawMessage {
	var members map[string]json.RawMessage
	now := credentialsOf(text)
	if now == nil || json.Unmarshal(text, &members) != nil {
		return text // which is refused, or has nothing to hide
	}
	now.Key = keyOf(now)
	tlsText, err := json.Marshal(now)
	if err != nil {
		return text
	}
	maps.DeleteFunc(members, func(name string, _ json.RawMessage) bool { return strings.EqualFold(name, "tls") }) // as it is decoded
	members["tls"] = tlsText
	whole, err := json.Marshal(members)
	if err != nil {
		return text
	}
	return whole
}
