package resource

import (
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// Sealer keeps secrets: what it gives for a text tells nobody but it what the text is. about names what the secret is for, and has to be
// the same again.
type Sealer interface {
	Seal(tx *store.Tx, about, plain string) (sealed string, err error)
	Open(tx *store.Tx, about, sealed string) (plain string, err error)
}

// seal seals what the change gives of secrets.
func (c *Change) seal() error {
	return c.Type.EachSecret(c.New, func(path string, s *schema.Secret) (err error) {
		if s.Plain != "" {
			s.Sealed, err = c.API.Sealer.Seal(c.Tx, c.Type.Name+"."+path, s.Plain)
			s.Plain = ""
		} else if s.Given {
			s.Sealed = ""
		}
		s.Given = false
		return err
	})
}

// Secrets gives the secrets of a stored object in plain text, by their paths.
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
