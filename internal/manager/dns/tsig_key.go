package dns

import (
	"crypto/rand"
	"encoding/base64"
	"strings"
	"time"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
)

// TSIGKey is a key that servers and clients use to sign messages (RFC 8945). Only the response to the request that created the secret
// contains it.
type TSIGKey struct {
	schema.Head `head:"required,nonblank" unique:"siblings" parents:"configurations"`
	// Configuration is the configuration that contains the key.
	Configuration schema.Ref `api:"configuration,readOnly" ref:"Configuration" column:"configuration"`
	// Algorithm is the hash algorithm of the HMAC.
	Algorithm string `api:"algorithm,required" enum:"MD5|SHA1|SHA256|SHA512"`
	// Length is the length of the secret in bits.
	Length int64 `api:"length,required" min:"1" max:"512"`
	// State shows whether the key has a secret. REGENERATE, in a PATCH, generates a new one.
	State string `api:"state" enum:"GENERATED|NOT_GENERATED|REGENERATE"`
	// KeyGenerationDateTime is when the secret was created.
	KeyGenerationDateTime time.Time `api:"keyGenerationDateTime,readOnly"`
	// PrivateKey is the secret in base64. It can be set; only the response to the request that set or generated it contains it. Release 9.6
	// calls it sharedSecret.
	PrivateKey schema.Secret `api:"privateKey,once" also:"sharedSecret"`
}

// States of a key, and the value that requests a new secret.
const (
	KeyStateGenerated  = "GENERATED"
	keyNotGenerated    = "NOT_GENERATED"
	KeyStateRegenerate = "REGENERATE"
)

// BeforeWrite stores the given secret, or generates one.
func (x *TSIGKey) BeforeWrite(c *resource.Change) error {
	old, _ := c.Old.(*TSIGKey)
	switch {
	case c.SetFields["state"] && x.State == KeyStateRegenerate && old == nil:
		return problem.Field("InvalidEnumValue", "state", "REGENERATE requires an existing key; use GENERATED to create one")
	case x.PrivateKey.Plain != "":
		return x.readSecret(c)
	case x.PrivateKey.IsSet && !x.PrivateKey.Set():
		x.State, x.KeyGenerationDateTime = keyNotGenerated, time.Time{}
		return nil
	case c.SetFields["state"] && x.State == keyNotGenerated && x.PrivateKey.Set():
		return problem.Field("ConflictingResourceFieldValues", "state", "the key has a secret; set privateKey to an empty string to delete it")
	case c.SetFields["state"] && x.State == KeyStateRegenerate,
		x.State == KeyStateGenerated && !x.PrivateKey.Set(),
		x.State == "" && old == nil:
		return x.generate(c)
	case !x.PrivateKey.Set():
		x.State, x.KeyGenerationDateTime = keyNotGenerated, time.Time{}
	default:
		x.State = KeyStateGenerated
	}
	if old != nil && x.PrivateKey.Set() && x.Length != old.Length {
		return problem.Invalid("length", "the secret has %d bits; a new length requires a new secret (PATCH state to REGENERATE)",
			old.Length)
	}
	return nil
}

// readSecret decodes and stores the given secret.
func (x *TSIGKey) readSecret(c *resource.Change) error {
	text := strings.Join(strings.Fields(x.PrivateKey.Plain), "")
	secret, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(secret) == 0 {
		return problem.Field("InvalidPrivateKeyValue", "privateKey", "must be a secret in base64")
	}
	if bits := int64(len(secret)) * 8; bits != (x.Length+7)/8*8 {
		return problem.Field("InvalidPrivateKeyValue", "privateKey", "has %d bits, but length is %d", bits, x.Length)
	}
	x.setSecret(c, secret)
	return nil
}

// generate generates a secret.
func (x *TSIGKey) generate(c *resource.Change) error {
	secret := make([]byte, (x.Length+7)/8)
	if _, err := rand.Read(secret); err != nil {
		return err
	}
	x.setSecret(c, secret)
	return nil
}

// setSecret stores the secret and adds it to the response of this request.
func (x *TSIGKey) setSecret(c *resource.Change, secret []byte) {
	text := base64.StdEncoding.EncodeToString(secret)
	x.PrivateKey = schema.Secret{Plain: text, IsSet: true}
	x.State, x.KeyGenerationDateTime = KeyStateGenerated, c.Tx.Now().UTC()
	c.Extra["privateKey"], c.Extra["sharedSecret"] = text, text
}

// Validate checks the name, which appears in name server configurations.
func (x *TSIGKey) Validate(*resource.Change) error {
	if err := checkListName(x.Name); err != nil {
		return problem.Invalid("name", "%v", err)
	}
	return nil
}

// AfterWrite updates the access control lists that refer to the key after it was renamed.
func (x *TSIGKey) AfterWrite(c *resource.Change) error {
	if old, ok := c.Old.(*TSIGKey); ok && old.Name != x.Name {
		return renameInLists(c, x.ID, func(m Match) string { return m.Key }, old.Name, x.Name)
	}
	return nil
}
