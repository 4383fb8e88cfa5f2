package resource

import (
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// Sealer encrypts secrets: only the sealer can recover the text from a sealed one. about is the purpose of the secret; Open needs the
// same value as Seal.
type Sealer interface {
	Seal(tx *store.Tx, about, plain string) (sealed string, err error)
	Open(tx *store.Tx, about, sealed string) (plain string, err error)
}

// seal encrypts the secrets that the change sets.
func (c *Change) seal() error {
	return c.Type.EachSecret(c.New, func(path string, s *schema.Secret) (err error) {
		if s.Plain != "" {
			s.Sealed, err = c.API.Sealer.Seal(c.Tx, c.Type.Name+"."+path, s.Plain)
			s.Plain = ""
		} else if s.IsSet {
			s.Sealed = ""
		}
		s.IsSet = false
		return err
	})
}

// Secrets returns the secrets of a stored object in plain text, by their paths.
func (a *API) Secrets(tx *store.Tx, o schema.Object) (map[string]string, error) {
	plain := map[string]string{}
	t := a.types[schema.HeadOf(o).Type]
	err := t.EachSecret(o, func(path string, s *schema.Secret) error {
		if s.Sealed == "" {
			return nil
		}
		text, err := a.Sealer.Open(tx, t.Name+"."+path, s.Sealed)
		plain[path] = text
		return err
	})
	return plain, err
}
