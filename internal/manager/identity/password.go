package identity

import (
	"crypto/subtle"
	"database/sql"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"sync"

	"portolan/internal/base/problem"
	"portolan/internal/engine/store"
	"portolan/internal/manager/secrets"

	"golang.org/x/crypto/argon2"
)

// Parameters of argon2id (RFC 9106 section 4, second choice reduced to 19 MiB and two passes).
const (
	argonTime    = 2
	argonMemory  = 19 << 10 // KiB
	argonThreads = 1
	argonKey     = 32
)

// MinPassword and MaxPassword bound a password, in bytes.
const (
	MinPassword = 8
	MaxPassword = 256
)

// HashPassword returns the salted hash of a password in the PHC string format. hurry divides the memory that it takes
// (store.Options.Hurry); 1 outside of tests.
func HashPassword(password string, hurry int) string {
	salt, memory := secrets.RandomBytes(16), uint32(argonMemory/hurry) //nolint:gosec // which is positive
	key := argon2.IDKey([]byte(password), salt, argonTime, memory, argonThreads, argonKey)
	enc := base64.RawStdEncoding
	return fmt.Sprintf("$argon2id$v=19$m=%d,t=%d,p=%d$%s$%s", memory, argonTime, argonThreads,
		enc.EncodeToString(salt), enc.EncodeToString(key))
}

func verifyPassword(hash, password string) bool {
	parts := strings.Split(hash, "$")
	if len(parts) != 6 || parts[1] != "argon2id" {
		return false
	}
	var memory, time uint32
	var threads uint8
	if _, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &memory, &time, &threads); err != nil {
		return false
	}
	enc := base64.RawStdEncoding
	salt, err := enc.DecodeString(parts[4])
	if err != nil {
		return false
	}
	want, err := enc.DecodeString(parts[5])
	if err != nil {
		return false
	}
	got := argon2.IDKey([]byte(password), salt, time, memory, threads, uint32(len(want)))
	return subtle.ConstantTimeCompare(got, want) == 1
}

// decoy is the hash of a password nobody has.
var decoy = sync.OnceValue(func() string { return HashPassword(secrets.New(), 1) })

// CheckPassword says what is wrong with a new password.
func CheckPassword(password string) error {
	if len(password) < MinPassword || len(password) > MaxPassword || strings.TrimSpace(password) == "" {
		return problem.Invalid("password", "must have %d to %d bytes, not blanks alone", MinPassword, MaxPassword)
	}
	return nil
}

// HasPassword reports whether a password is the one that a user has.
func HasPassword(tx *store.Tx, user int64, password string) (same bool, err error) {
	var hash string
	err = tx.QueryRow("SELECT hash FROM credential WHERE user_id = ? AND kind = ?", user, kindPassword).Scan(&hash)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil && verifyPassword(hash, password), err
}

// SetPassword sets a user's password by its hash and ends the user's sessions' tokens.
func SetPassword(tx *store.Tx, user int64, hash string) error {
	tx.Touch(topic)
	if err := tx.Write("DELETE FROM credential WHERE user_id = ? AND kind = ?", user, kindPassword); err != nil {
		return err
	}
	if err := tx.Write("UPDATE credential SET revoked = 1 WHERE user_id = ? AND kind IN (?, ?)", user, kindSession, kindLink); err != nil {
		return err
	}
	err := tx.Write("INSERT INTO credential (id, kind, name, user_id, role, hash, created) VALUES (?,?,?,?,'',?,?)",
		secrets.New(), kindPassword, "password", user, hash, tx.Now().Unix())
	return err
}

// RevokeTokens ends the bearer tokens and key sets of a user, with the access tokens made from them: who has them may be the one whom the
// user, or the password, was changed against.
func RevokeTokens(tx *store.Tx, user int64) error {
	tx.Touch(topic)
	if err := tx.Write("UPDATE credential SET revoked = 1 WHERE user_id = ? AND kind IN (?, ?)", user, kindBearer, kindKeySet); err != nil {
		return err
	}
	return tx.Write("DELETE FROM credential WHERE user_id = ? AND kind = ?", user, kindAccess)
}

// Forget takes all of a user's credentials away.
func Forget(tx *store.Tx, user int64) error {
	tx.Touch(topic)
	if err := tx.Write("DELETE FROM credential WHERE user_id = ?", user); err != nil {
		return err
	}
	return tx.Write("DELETE FROM credential_used WHERE id NOT IN (SELECT id FROM credential)")
}
