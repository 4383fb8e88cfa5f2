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

// MinPassword and MaxPassword are the limits of a password's length, in bytes.
const (
	MinPassword = 8
	MaxPassword = 256
)

// HashPassword returns the salted hash of a password in the PHC string format. speedup divides the memory that hashing uses
// (store.Options.Speedup); it is 1 except in tests.
func HashPassword(password string, speedup int) string {
	salt, memory := secrets.RandomBytes(16), uint32(argonMemory/speedup) //nolint:gosec // it is positive
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

// decoy returns the hash of a random password. Sign-ins with unknown names are checked against it.
var decoy = sync.OnceValue(func() string { return HashPassword(secrets.New(), 1) })

// CheckPassword validates a new password.
func CheckPassword(password string) error {
	if len(password) < MinPassword || len(password) > MaxPassword || strings.TrimSpace(password) == "" {
		return problem.Invalid("password", "must have %d to %d bytes, not only blanks", MinPassword, MaxPassword)
	}
	return nil
}

// hasPassword reports whether a password is the user's current password.
func hasPassword(tx *store.Tx, user int64, password string) (same bool, err error) {
	var hash string
	err = tx.QueryRow("SELECT hash FROM credential WHERE user_id = ? AND kind = ?", user, kindPassword).Scan(&hash)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil && verifyPassword(hash, password), err
}

// SetPassword sets a user's password hash and revokes the session tokens and sign-in links of the user.
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

// revokeTokens revokes a user's bearer tokens and key sets, and deletes the access tokens created from them. A password reset calls it,
// because an attacker may hold the tokens.
func revokeTokens(tx *store.Tx, user int64) error {
	tx.Touch(topic)
	if err := tx.Write("UPDATE credential SET revoked = 1 WHERE user_id = ? AND kind IN (?, ?)", user, kindBearer, kindKeySet); err != nil {
		return err
	}
	return tx.Write("DELETE FROM credential WHERE user_id = ? AND kind = ?", user, kindAccess)
}

// Forget deletes all of a user's credentials and preferences.
func Forget(tx *store.Tx, user int64) error {
	tx.Touch(topic)
	if err := tx.Write("DELETE FROM credential WHERE user_id = ?", user); err != nil {
		return err
	}
	if err := tx.Write("DELETE FROM user_preference WHERE user_id = ?", user); err != nil {
		return err
	}
	return tx.Write("DELETE FROM credential_used WHERE id NOT IN (SELECT id FROM credential)")
}
