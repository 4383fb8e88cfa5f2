package history

import (
	"bufio"
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"database/sql"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
)

//go:embed migrations/*/*.sql
var migrations embed.FS

// Extension returns the store extension with the tables of signed heads.
func Extension() *store.Extension {
	return &store.Extension{Name: "history heads", Migrations: migrations, Verify: verifyHeads, Tables: []store.Table{
		{Name: "history_head", Columns: []string{"place", "txn", "at", "hash", "public", "signature"}, Key: 1},
		{Name: "history_base", Columns: []string{"place", "txn", "at", "hash", "public", "signature"}, Key: 1},
		{Name: "history_key", Columns: []string{"id", "public", "private"}, Key: 1}}}
}

// Head is a signed state of the history. Its hash covers all transactions up to Transaction.
type Head struct {
	// Place is the number of the link in the chain, Transaction the transaction of the link.
	Place       int64 `json:"place"`
	Transaction int64 `json:"transaction"`
	// At is the time of the signature.
	At time.Time `json:"at"`
	// Hash is the hash of the link, PublicKey the Ed25519 key of the signer. All three are in hexadecimal.
	Hash      string `json:"hash"`
	PublicKey string `json:"publicKey"`
	Signature string `json:"signature"`
}

// signedText returns the text that the signature covers.
func (h Head) signedText() []byte {
	return fmt.Appendf(nil, "portolan history head\n%d\n%d\n%s\n%s\n", h.Place, h.Transaction, h.At.UTC().Format(time.RFC3339), h.Hash)
}

// Verify reports whether the signature is valid for the key in the head.
func (h Head) Verify() bool {
	public, err := hex.DecodeString(h.PublicKey)
	signature, e := hex.DecodeString(h.Signature)
	return err == nil && e == nil && len(public) == ed25519.PublicKeySize && ed25519.Verify(public, h.signedText(), signature)
}

// keyPurpose is the purpose that the private key is sealed for.
const keyPurpose = "history-key"

// signingKey returns the key that signs heads, and creates it on first use.
func signingKey(tx *store.Tx, sealer resource.Sealer) (ed25519.PrivateKey, error) {
	var sealed string
	err := tx.QueryRow("SELECT private FROM history_key ORDER BY id DESC LIMIT 1").Scan(&sealed)
	if err == nil {
		seed, err := sealer.Open(tx, keyPurpose, sealed)
		if err != nil {
			return nil, err
		}
		if len(seed) != ed25519.SeedSize {
			return nil, errors.New("the stored key that signs heads of the history is malformed")
		}
		return ed25519.NewKeyFromSeed([]byte(seed)), nil
	}
	if !errors.Is(err, sql.ErrNoRows) {
		return nil, err
	}
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err == nil {
		sealed, err = sealer.Seal(tx, keyPurpose, string(private.Seed()))
	}
	if err != nil {
		return nil, err
	}
	return private, tx.Write("INSERT INTO history_key (id, public, private) VALUES (1, ?, ?)", []byte(public), sealed)
}

// maxChainDelay is the maximum time between the start of a transaction and its chaining, with a margin for a slow database and a wrong
// clock.
const maxChainDelay = time.Hour

// headRetention is the retention period of signed heads in the database. Longer retention is the task of the heads file and syslog.
const headRetention = 30 * 24 * time.Hour

// signHead signs the last link of the chain, stores the head, and deletes heads older than headRetention.
func signHead(tx *store.Tx, sealer resource.Sealer) error {
	last, err := tx.LastLink()
	if err != nil {
		return err
	}
	key, err := signingKey(tx, sealer)
	if err != nil {
		return err
	}
	if err := tx.Write("DELETE FROM history_head WHERE at < ?", tx.Now().Add(-headRetention).Unix()); err != nil {
		return err
	}
	return storeSigned(tx, key, "history_head", last)
}

// storeSigned signs a link, and stores the head in a table.
func storeSigned(tx *store.Tx, key ed25519.PrivateKey, table string, l store.Link) error {
	public, _ := key.Public().(ed25519.PublicKey)
	at := tx.Now().UTC().Truncate(time.Second)
	h := Head{Place: l.Place, Transaction: l.Transaction, At: at, Hash: hex.EncodeToString(l.Hash),
		PublicKey: hex.EncodeToString(public)} // all fields but the signature
	return tx.Write("INSERT INTO "+table+" (place, txn, at, hash, public, signature) VALUES (?,?,?,?,?,?)",
		h.Place, h.Transaction, at.Unix(), l.Hash, []byte(public), ed25519.Sign(key, h.signedText()))
}

// SignStart returns a function for store.PruneHistory that signs the last pruned link, after which the chain starts.
func SignStart(sealer resource.Sealer) func(tx *store.Tx, base store.Link) error {
	return func(tx *store.Tx, base store.Link) error {
		key, err := signingKey(tx, sealer)
		if err != nil {
			return err
		}
		if err := tx.Write("DELETE FROM history_base"); err != nil {
			return err
		}
		return storeSigned(tx, key, "history_base", base)
	}
}

// verifyBase reports a fault if the chain starts later than at the signed base.
func verifyBase(tx *store.Tx, fault func(string, ...any)) error {
	base, err := tx.ChainBase()
	if err != nil || base.Place == 0 {
		return err
	}
	said := false
	if err := eachSigned(tx, "history_base", 0, func(h Head) error {
		said = said || h.Place == base.Place && h.Transaction == base.Transaction && h.Hash == hex.EncodeToString(base.Hash) && h.Verify()
		return nil
	}); err != nil {
		return err
	}
	if !said {
		fault("the history begins after transaction %d (link %d), but no manager recorded the removal of earlier transactions", base.Transaction,
			base.Place)
	}
	return tx.ReportFaults(fault, "where the history begins, at place %d, was signed by a key that is not the manager's%s",
		"SELECT place, '' FROM history_base h WHERE NOT EXISTS (SELECT 1 FROM history_key k WHERE k.public = h.public)")
}

// eachHead calls fn for the signed heads after a place, in order.
func eachHead(tx *store.Tx, behind int64, fn func(Head) error) error {
	return eachSigned(tx, "history_head", behind, fn)
}

// eachSigned calls fn for the heads in a table after a place, in order.
func eachSigned(tx *store.Tx, table string, behind int64, fn func(Head) error) error {
	return tx.Each(func(scan func(...any) error) error {
		var h Head
		var at int64
		var sum, public, signature []byte
		if err := scan(&h.Place, &h.Transaction, &at, &sum, &public, &signature); err != nil {
			return err
		}
		h.At, h.Hash, h.PublicKey, h.Signature = time.Unix(at, 0).UTC(), hex.EncodeToString(sum), hex.EncodeToString(public),
			hex.EncodeToString(signature)
		return fn(h)
	}, "SELECT place, txn, at, hash, public, signature FROM "+table+" WHERE place > ? ORDER BY place", behind)
}

// verifyHeads reports a fault for each signed head that the chain does not match.
func verifyHeads(tx *store.Tx, fault func(string, ...any)) error {
	if err := verifyBase(tx, fault); err != nil {
		return err
	}
	var all []Head
	if err := eachHead(tx, 0, func(h Head) error {
		all = append(all, h)
		return nil
	}); err != nil {
		return err
	}
	for _, h := range all {
		if _, err := compareHead(tx, h, "a head of the history", fault); err != nil {
			return err
		}
	}
	for i, h := range all {
		upTo := int64(math.MaxInt64)
		if i+1 < len(all) {
			upTo = all[i+1].Place
		}
		if err := tx.ReportFaults(fault,
			"transaction %d has the time %s, but was chained much later: it was inserted into the history afterwards",
			"SELECT t.id, json_extract(t.body, '$.creationDateTime') FROM history_link l JOIN txn t ON t.id = l.txn"+
				" WHERE l.place > ? AND l.place <= ?"+
				" AND t.at < ?", h.Place, upTo, h.At.Add(-maxChainDelay).UnixMilli()); err != nil {
			return err
		}
	}
	return tx.ReportFaults(fault, "a head of the history, at position %d, was signed by a key that is not the manager's%s",
		"SELECT place, '' FROM history_head h WHERE NOT EXISTS (SELECT 1 FROM history_key k WHERE k.public = h.public)")
}

// compareHead reports a fault if the chain does not match a head. held is false if the head is older than the kept history.
func compareHead(tx *store.Tx, h Head, what string, fault func(string, ...any)) (held bool, err error) {
	begins, err := tx.ChainStart()
	if err != nil {
		return false, err
	}
	if !h.Verify() {
		fault("%s, signed at %s, has an invalid signature", what, h.At.Format(time.RFC3339))
		return true, nil
	}
	if h.Place < begins {
		return false, nil
	}
	l, ok, err := tx.LinkAt(h.Place)
	switch {
	case err != nil:
		return false, err
	case !ok:
		fault("%s, signed at %s, names transaction %d (link %d), but the chain does not contain it: transactions up to that time were removed",
			what, h.At.Format(time.RFC3339), h.Transaction, h.Place)
	case hex.EncodeToString(l.Hash) != h.Hash || l.Transaction != h.Transaction:
		fault("%s, signed at %s, differs from link %d of the chain: transactions up to %d were changed later and chained again",
			what, h.At.Format(time.RFC3339), h.Place, h.Transaction)
	}
	return true, nil
}

// Compare compares the history with heads that were kept elsewhere, as lines of JSON. If public is not empty, this key must have signed all
// of them. Compare returns the number of heads, and how many of them are older than the kept history.
func Compare(tx *store.Tx, in io.Reader, public string, fault func(string, ...any)) (n, older int, err error) {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 64<<10)
	for lines.Scan() {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		var h Head
		if err := json.Unmarshal(lines.Bytes(), &h); err != nil || h.Place == 0 {
			return n, older, fmt.Errorf("line %d is not a head of the history", n+1)
		}
		n++
		if public != "" && h.PublicKey != public {
			fault("the stored head of %s was signed by another key", h.At.Format(time.RFC3339))
			continue
		}
		held, err := compareHead(tx, h, "a stored head", fault)
		if err != nil {
			return n, older, err
		}
		if !held {
			older++
		}
	}
	return n, older, lines.Err()
}

// VerifyKey opens the stored signing keys with the master keys, and reports a fault for a key that does not match its public key. Such a
// key was stored without the master key. It returns an error if a key cannot be opened.
func VerifyKey(tx *store.Tx, sealer resource.Sealer, fault func(string, ...any)) error {
	kept := map[string]string{} // sealed private keys by public ones
	if err := tx.Each(func(scan func(...any) error) error {
		var public []byte
		var sealed string
		err := scan(&public, &sealed)
		kept[string(public)] = sealed
		return err
	}, "SELECT public, private FROM history_key"); err != nil {
		return err
	}
	for public, sealed := range kept {
		seed, err := sealer.Open(tx, keyPurpose, sealed)
		if err != nil {
			return err
		}
		if len(seed) != ed25519.SeedSize || !bytes.Equal(ed25519.NewKeyFromSeed([]byte(seed)).Public().(ed25519.PublicKey), []byte(public)) {
			fault("the key %x, which signs heads of the history, is not the manager's", public)
		}
	}
	return nil
}
