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

// MasterKeys encrypt the sealing keys and are not stored in the database. The first one encrypts, all of them decrypt. Without master keys,
// the sealing keys are stored unencrypted.
type MasterKeys []masterKey

// masterKey is an AES-256 key.
type masterKey [keySize]byte

// NewMasterKey creates a master key, in base64.
func NewMasterKey() string { return base64.StdEncoding.EncodeToString(RandomBytes(keySize)) }

// wrappedMark is the prefix of a master key that a key management service has wrapped.
const wrappedMark = "wrapped:"

// NewWrappedMasterKey creates a master key and returns it in the wrapped form for a key file. wrap calls the key management service.
func NewWrappedMasterKey(wrap func(key []byte) ([]byte, error)) (string, error) {
	wrapped, err := wrap(RandomBytes(keySize))
	return wrappedMark + base64.StdEncoding.EncodeToString(wrapped), err
}

// ParseMasterKeys parses master keys, separated by white space. Each is 32 bytes in base64, or "wrapped:" followed by a key that a key
// management service has wrapped. Lines that start with # are ignored. The first key encrypts. An empty text returns nil. unwrap calls the
// service; nil if there is none.
func ParseMasterKeys(text string, unwrap func(wrapped []byte) ([]byte, error)) (keys MasterKeys, err error) {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		for _, one := range strings.Fields(line) {
			one, wrapped := strings.CutPrefix(one, wrappedMark)
			if wrapped && unwrap == nil {
				return nil, fmt.Errorf("master key %d is wrapped: set --kms to the key management service that unwraps it", len(keys)+1)
			}
			data, err := base64.StdEncoding.DecodeString(one)
			if err == nil && wrapped {
				if data, err = unwrap(data); err != nil {
					return nil, fmt.Errorf("master key %d: %w", len(keys)+1, err)
				}
			}
			if err != nil || len(data) != keySize {
				return nil, fmt.Errorf("master key %d must be %d bytes in base64, as created by portolan secrets new-key", len(keys)+1, keySize)
			}
			keys = append(keys, masterKey(data))
		}
	}
	return keys, nil
}

// ReadMasterKeys parses the master keys in a file. A file without a key is an error.
func ReadMasterKeys(file string, unwrap func(wrapped []byte) ([]byte, error)) (MasterKeys, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	keys, err := ParseMasterKeys(string(text), unwrap)
	if err == nil && len(keys) == 0 {
		err = errors.New("no master key is in " + file)
	}
	return keys, err
}

// fingerprint identifies the key without revealing it.
func (k masterKey) fingerprint() []byte {
	sum := sha256.Sum256(append([]byte("portolan master key"), k[:]...))
	return sum[:fingerprintSize]
}

// An encrypted sealing key is stored as the byte masterForm, the fingerprint of the master key, a nonce, and the ciphertext. An unencrypted
// one is stored as it is, with keySize bytes.
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

// sealKey returns a sealing key in its stored form. Its id is authenticated with it.
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

// openKey returns a sealing key from its stored form. current is true if the form matches the current master keys.
func (m MasterKeys) openKey(id int64, kept []byte) (key []byte, current bool, err error) {
	if len(kept) == keySize {
		return kept, len(m) == 0, nil
	}
	if len(kept) < 1+fingerprintSize || kept[0] != masterForm {
		return nil, false, fmt.Errorf("the stored sealing key %d is malformed", id)
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
			return nil, false, fmt.Errorf("the stored sealing key %d is malformed", id)
		}
		key, err = aead.Open(nil, rest[:aead.NonceSize()], rest[aead.NonceSize():], fmt.Append(nil, "sealing key ", id))
		if err != nil {
			return nil, false, fmt.Errorf("decrypt sealing key %d: %w", id, err)
		}
		return key, i == 0, nil
	}
	return nil, false, fmt.Errorf("secrets are sealed by the master key %s: set --master-key to a file with this key",
		hex.EncodeToString(by))
}

// KnowMasterKeys sets the master keys that decrypt the sealing keys. The stored keys are not changed.
func (s *Secrets) KnowMasterKeys(keys MasterKeys) { s.master.Store(&keys) }

// VerifyMasterKeys decrypts all sealing keys with the current master keys, and returns an error if one cannot be decrypted.
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

// UseMasterKeys sets the master keys and encrypts again all sealing keys that are not encrypted with the first one. It returns an error if
// one cannot be decrypted, otherwise the number of keys that were encrypted.
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

// RotateSealingKey creates a new sealing key for all secrets written from now on. Existing secrets keep their key until they are written
// again.
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

// newSealingKey creates a sealing key in its stored form.
func newSealingKey(tx *store.Tx, id int64) ([]byte, error) {
	key := make([]byte, keySize)
	if _, err := rand.Read(key); err != nil {
		return nil, err
	}
	return masterOf(tx).sealKey(id, key)
}
