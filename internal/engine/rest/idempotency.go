package rest

import (
	"crypto/hmac"
	"crypto/sha256"
	"database/sql"
	"embed"
	"encoding/hex"
	"errors"
	"net/http"
	"time"

	"portolan/internal/base/problem"
	"portolan/internal/engine/store"
)

//go:embed migrations/*/*.sql
var migrations embed.FS

// Extension declares the table of answers to repeated requests.
func Extension() *store.Extension {
	return &store.Extension{Name: "idempotency", Migrations: migrations, Tables: []store.Table{
		{Name: "idempotency", Columns: []string{"user_id", "key", "request", "location", "etag", "answer", "created"}, Key: 2}}}
}

// maxKey is the maximum length of the Idempotency-Key, in bytes.
const maxKey = 255

// IdempotencyKey returns the request's Idempotency-Key; empty if it has none.
func IdempotencyKey(r *http.Request) (string, error) {
	key := r.Header.Get("Idempotency-Key")
	if len(key) > maxKey {
		return "", problem.BadRequest("InvalidHeaderValue", "Idempotency-Key: must have at most %d bytes", maxKey)
	}
	return key, nil
}

// keptFor is the time that an answer is stored for its Idempotency-Key.
const keptFor = 24 * time.Hour

// The database does not contain the key of a client: answers are found by a hash of it, and requests are distinguished by a hash that is
// keyed with it. A reader of the database can therefore not guess the contents of bodies.

// keyHash returns the hash that identifies a stored answer.
func (rq *request) keyHash() string {
	sum := sha256.Sum256([]byte("portolan idempotency\x00" + rq.key))
	return hex.EncodeToString(sum[:])
}

// fingerprint returns the hash that distinguishes the request from others.
func (rq *request) fingerprint() string {
	sum := hmac.New(sha256.New, []byte("portolan request\x00"+rq.key))
	for _, part := range []string{rq.Method, rq.URL.RequestURI(), rq.media.String()} {
		sum.Write([]byte(part))
		sum.Write([]byte{0})
	}
	sum.Write(rq.raw)
	return hex.EncodeToString(sum.Sum(nil))
}

// replay returns the answer that was stored for the request's Idempotency-Key, if there is one.
func (a *Server) replay(tx *store.Tx, rq *request) (ans answer, ok bool, err error) {
	if rq.key == "" {
		return ans, false, nil
	}
	var fingerprint string
	var created int64
	err = tx.QueryRow("SELECT request, location, etag, answer, created FROM idempotency WHERE user_id = ? AND key = ?", rq.caller.Owner(),
		rq.keyHash()).
		Scan(&fingerprint, &ans.location, &ans.etag, &ans.body, &created)
	if errors.Is(err, sql.ErrNoRows) || err == nil && created < tx.Now().Add(-keptFor).Unix() {
		return ans, false, nil
	}
	if err != nil {
		return ans, false, err
	}
	if fingerprint != rq.fingerprint() {
		return ans, false, problem.Conflict("IdempotencyKeyReused",
			"Idempotency-Key: the key was used for another request within %v; use a new key", keptFor)
	}
	ans.status = http.StatusCreated
	return ans, true, nil
}

// storeAnswer stores the answer in the transaction of the change, so that both are committed or neither.
func (a *Server) storeAnswer(tx *store.Tx, rq *request, ans answer) error {
	if rq.key == "" {
		return nil
	}
	// This deletes expired answers, among them one for this very key.
	if err := tx.Write("DELETE FROM idempotency WHERE created < ?", tx.Now().Add(-keptFor).Unix()); err != nil {
		return err
	}
	err := tx.Write("INSERT INTO idempotency (user_id, key, request, location, etag, answer, created) VALUES (?,?,?,?,?,?,?)",
		rq.caller.Owner(), rq.keyHash(), rq.fingerprint(), ans.location, ans.etag, ans.body, tx.Now().Unix())
	return err
}
