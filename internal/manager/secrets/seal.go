package secrets

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"database/sql"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"portolan/internal/engine/store"
)

// Sealer encrypts the secrets of a manager with AES-256-GCM. The purpose of a secret is authenticated with it, so that a password cannot
// replace a key. The sealing keys are stored in the database, and so in backups. They are encrypted with a master key that is not stored
// there, if there is one (MasterKeys).
type Sealer struct{}

// sealedForm is the format of a sealed text: the id of the sealing key, and nonce and ciphertext in base64.
const sealedForm = "%d.%s"

// Seal encrypts a text. about is its purpose. The first call creates the first sealing key.
func (Sealer) Seal(tx *store.Tx, about, plain string) (string, error) {
	id, aead, err := sealingKey(tx, 0)
	if errors.Is(err, sql.ErrNoRows) {
		if err = makeSealingKey(tx, 1); err == nil {
			id, aead, err = sealingKey(tx, 0)
		}
	}
	if err != nil {
		return "", fmt.Errorf("encrypt %s: %w", about, err)
	}
	nonce := make([]byte, aead.NonceSize(), aead.NonceSize()+len(plain)+aead.Overhead())
	if _, err := rand.Read(nonce); err != nil {
		return "", err
	}
	return fmt.Sprintf(sealedForm, id, base64.RawStdEncoding.EncodeToString(aead.Seal(nonce, nonce, []byte(plain), []byte(about)))), nil
}

// Open decrypts a sealed text with the same purpose.
func (Sealer) Open(tx *store.Tx, about, sealed string) (string, error) {
	number, text, found := strings.Cut(sealed, ".")
	id, err := strconv.ParseInt(number, 10, 64)
	if !found || err != nil {
		return "", fmt.Errorf("the stored secret %s is malformed", about)
	}
	_, aead, err := sealingKey(tx, id)
	if err != nil {
		return "", fmt.Errorf("the sealing key %d of the secret %s: %w", id, about, err)
	}
	data, err := base64.RawStdEncoding.DecodeString(text)
	if err != nil || len(data) < aead.NonceSize() {
		return "", fmt.Errorf("the stored secret %s is malformed", about)
	}
	plain, err := aead.Open(nil, data[:aead.NonceSize()], data[aead.NonceSize():], []byte(about))
	if err != nil {
		return "", fmt.Errorf("the secret %s: %w", about, err)
	}
	return string(plain), nil
}

// sealingKey returns the sealing key with an id, or the latest for 0.
func sealingKey(tx *store.Tx, wanted int64) (id int64, aead cipher.AEAD, err error) {
	var key []byte
	if err := tx.QueryRow("SELECT id, key FROM sealing_key WHERE id = ? OR ? = 0 ORDER BY id DESC LIMIT 1", wanted, wanted).
		Scan(&id, &key); err != nil {
		return 0, nil, err
	}
	if key, _, err = masterOf(tx).openKey(id, key); err != nil {
		return 0, nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return 0, nil, err
	}
	aead, err = cipher.NewGCM(block)
	return id, aead, err
}

// keySize is the size of an AES-256 key, in bytes.
const keySize = 32

// makeSealingKey creates the sealing key with an id. If two managers do so at the same time, the first key is kept.
func makeSealingKey(tx *store.Tx, id int64) error {
	key, err := newSealingKey(tx, id)
	if err != nil {
		return err
	}
	_, err = tx.Exec("INSERT INTO sealing_key (id, key, created) VALUES (?, ?, ?) ON CONFLICT DO NOTHING", id, key, tx.Now().Unix())
	return err
}
