package secrets

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"

	"portolan/internal/engine/store"
)

// MasterKeys seal the keys that secrets are sealed by, and are not in the database: the first one seals, all open. Nil: those keys lie in
// the database as they are.
type MasterKeys []masterKey

// masterKey is a key of AES-256.
type masterKey [keySize]byte

// NewMasterKey makes a master key, in base64.
func NewMasterKey() string { return base64.StdEncoding.EncodeToString(RandomBytes(keySize)) }

// wrappedMark stands before a master key that a key management service has wrapped.
const wrappedMark = "wrapped:"

// NewWrappedMasterKey makes a master key and gives it as a key management service wraps it, as it stands in a file.
func NewWrappedMasterKey(wrap func(key []byte) ([]byte, error)) (string, error) {
	wrapped, err := wrap(RandomBytes(keySize))
	return wrappedMark + base64.StdEncoding.EncodeToString(wrapped), err
}

// ParseMasterKeys reads master keys, each 32 bytes in base64, or behind "wrapped:" as a key management service has wrapped it; one on each
// line or one behind the other; lines that begin with # are passed over. The first is the one that seals. Nothing gives nil. unwrap asks
// the service; nil where there is none.
func ParseMasterKeys(text string, unwrap func(wrapped []byte) ([]byte, error)) (keys MasterKeys, err error) {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		for _, one := range strings.Fields(line) {
			one, wrapped := strings.CutPrefix(one, wrappedMark)
			if wrapped && unwrap == nil {
				return nil, fmt.Errorf("master key %d is wrapped: --kms says which key management service unwraps it", len(keys)+1)
			}
			data, err := base64.StdEncoding.DecodeString(one)
			if err == nil && wrapped {
				if data, err = unwrap(data); err != nil {
					return nil, fmt.Errorf("master key %d: %w", len(keys)+1, err)
				}
			}
			if err != nil || len(data) != keySize {
				return nil, fmt.Errorf("master key %d is not %d bytes in base64, as portolan secrets new-key makes one", len(keys)+1, keySize)
			}
			keys = append(keys, masterKey(data))
		}
	}
	return keys, nil
}

// ReadMasterKeys is ParseMasterKeys of a file; there has to be one key.
func ReadMasterKeys(file string, unwrap func(wrapped []byte) ([]byte, error)) (MasterKeys, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	keys, err := ParseMasterKeys(string(text), unwrap)
	if err == nil && len(keys) == 0 {
		err = errors.New("there is no master key in " + file)
	}
	return keys, err
}

// fingerprint tells which key it is, and nothing of what it is.
func (k masterKey) fingerprint() []byte {
	sum := sha256.Sum256(append([]byte("portolan master key"), k[:]...))
	return sum[:fingerprintSize]
}

// A key that is sealed is kept as a byte that says so, the fingerprint of the master key, a nonce, and the sealed key. One that is not is
// kept as it is, and has keySize bytes.
const (
	masterForm      = 1
	fingerprintSize = 8
)

func (k masterKey) aead() (cipher.AEAD, error) {
	block, err := aes.NewCipher(k[:])
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// sealKey gives a key as it is kept; id is its number, which is sealed along.
func (m MasterKeys) sealKey(id int64, key []byte) ([]byte, error) {
	if len(m) == 0 {
		return key, nil
	}
	aead, err := m[0].aead()
	if err != nil {
		return nil, err
	}
	kept := append([]byte{masterForm}, m[0].fingerprint()...)
	nonce := RandomBytes(aead.NonceSize())
	return aead.Seal(append(kept, nonce...), nonce, key, fmt.Append(nil, "sealing key ", id)), nil
}

// openKey gives a key that is kept; current says that it is kept as it would be now.
func (m MasterKeys) openKey(id int64, kept []byte) (key []byte, current bool, err error) {
	if len(kept) == keySize {
		return kept, len(m) == 0, nil
	}
	if len(kept) < 1+fingerprintSize || kept[0] != masterForm {
		return nil, false, fmt.Errorf("sealing key %d is not as keys are kept", id)
	}
	by, rest := kept[1:1+fingerprintSize], kept[1+fingerprintSize:]
	for i, one := range m {
		if !bytes.Equal(one.fingerprint(), by) {
			continue
		}
		aead, err := one.aead()
		if err != nil {
			return nil, false, err
		}
		if len(rest) < aead.NonceSize() {
			return nil, false, fmt.Errorf("sealing key %d is not as keys are kept", id)
		}
		key, err = aead.Open(nil, rest[:aead.NonceSize()], rest[aead.NonceSize():], fmt.Append(nil, "sealing key ", id))
		if err != nil {
			return nil, false, fmt.Errorf("sealing key %d: %w", id, err)
		}
		return key, i == 0, nil
	}
	return nil, false, fmt.Errorf("secrets are sealed by the master key %s, which was not given: --master-key names a file with it",
		hex.EncodeToString(by))
}

// KnowMasterKeys opens the keys that secrets are sealed by with these master keys from now on, and leaves them as they are.
func (s *Secrets) KnowMasterKeys(keys MasterKeys) { s.master.Store(&keys) }

// VerifyMasterKeys opens all keys that secrets are sealed by, by the master keys that are known, and fails where one cannot be opened.
func VerifyMasterKeys(tx *store.Tx) error {
	return tx.Each(func(scan func(...any) error) error {
		var id int64
		var key []byte
		err := scan(&id, &key)
		if err == nil {
			_, _, err = masterOf(tx).openKey(id, key)
		}
		return err
	}, "SELECT id, key FROM sealing_key ORDER BY id")
}

// UseMasterKeys opens the keys that secrets are sealed by with these master keys from now on, and seals those anew that the first one has
// not sealed. It refuses where one cannot be opened. It gives how many it has sealed.
func (s *Secrets) UseMasterKeys(ctx context.Context, keys MasterKeys) (sealed int, err error) {
	s.KnowMasterKeys(keys)
	err = s.store.Update(ctx, store.Author{}, func(tx *store.Tx) error {
		sealed = 0
		kept := map[int64][]byte{}
		if err := tx.Each(func(scan func(...any) error) error {
			var id int64
			var key []byte
			err := scan(&id, &key)
			kept[id] = key
			return err
		}, "SELECT id, key FROM sealing_key ORDER BY id"); err != nil {
			return err
		}
		for id, key := range kept {
			plain, current, err := keys.openKey(id, key)
			if err != nil {
				return err
			}
			if current {
				continue
			}
			if key, err = keys.sealKey(id, plain); err != nil {
				return err
			}
			if err := tx.Write("UPDATE sealing_key SET key = ? WHERE id = ?", key, id); err != nil {
				return err
			}
			sealed++
		}
		return nil
	})
	return sealed, err
}

// RotateSealingKey makes another key, by which secrets are sealed from now on. Those that were sealed before keep theirs until they are
// written anew.
func (s *Secrets) RotateSealingKey(ctx context.Context) (id int64, err error) {
	err = s.store.Update(ctx, store.Author{}, func(tx *store.Tx) error {
		if err := tx.QueryRow("SELECT coalesce(max(id), 0) + 1 FROM sealing_key").Scan(&id); err != nil {
			return err
		}
		return makeSealingKey(tx, id)
	})
	return id, err
}

// masterOf returns the master keys of the store of a transaction.
func masterOf(tx *store.Tx) MasterKeys {
	if e := tx.Extension(extensionName); e != nil {
		if s, ok := e.State.(*Secrets); ok {
			if keys := s.master.Load(); keys != nil {
				return *keys
			}
		}
	}
	return nil
}

// newSealingKey makes a key as it is kept.
func newSealingKey(tx *store.Tx, id int64) ([]byte, error) {
	key := make([]byte, keySize)
	if _, err := rand.Read(key); err != nil {
		return nil, err
	}
	return masterOf(tx).sealKey(id, key)
}
