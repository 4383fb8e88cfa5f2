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

// Extension keeps signed heads of the chain.
func Extension() *store.Extension {
	return &store.Extension{Name: "history heads", Migrations: migrations, Verify: verifyHeads, Tables: []store.Table{
		{Name: "history_head", Columns: []string{"place", "txn", "at", "hash", "public", "signature"}, Key: 1},
		{Name: "history_base", Columns: []string{"place", "txn", "at", "hash", "public", "signature"}, Key: 1},
		{Name: "history_key", Columns: []string{"id", "public", "private"}, Key: 1}}}
}

// Head is the chain of the history at a moment, signed: all up to its transaction was as the hash says.
type Head struct {
	// Place is the number of the link, Transaction the one that it was made for.
	Place       int64 `json:"place"`
	Transaction int64 `json:"transaction"`
	// At is when it was signed.
	At time.Time `json:"at"`
	// Hash is that of the link, PublicKey the key of Ed25519 that has signed, Signature the signature; all in hexadecimal.
	Hash      string `json:"hash"`
	PublicKey string `json:"publicKey"`
	Signature string `json:"signature"`
}

// signed is the text that is signed.
func (h Head) signed() []byte {
	return fmt.Appendf(nil, "portolan history head\n%d\n%d\n%s\n%s\n", h.Place, h.Transaction, h.At.UTC().Format(time.RFC3339), h.Hash)
}

// Verify reports whether the head is signed by the key that it names.
func (h Head) Verify() bool {
	public, err := hex.DecodeString(h.PublicKey)
	signature, e := hex.DecodeString(h.Signature)
	return err == nil && e == nil && len(public) == ed25519.PublicKeySize && ed25519.Verify(public, h.signed(), signature)
}

// aboutKey is what the private key is sealed for.
const aboutKey = "history-key"

// signingKey gives the key that heads are signed by, and makes it where there is none yet.
func signingKey(tx *store.Tx, sealer resource.Sealer) (ed25519.PrivateKey, error) {
	var sealed string
	err := tx.QueryRow("SELECT private FROM history_key ORDER BY id DESC LIMIT 1").Scan(&sealed)
	if err == nil {
		seed, err := sealer.Open(tx, aboutKey, sealed)
		if err != nil {
			return nil, err
		}
		if len(seed) != ed25519.SeedSize {
			return nil, errors.New("the key that signs heads of the history is not as keys are kept")
		}
		return ed25519.NewKeyFromSeed([]byte(seed)), nil
	}
	if !errors.Is(err, sql.ErrNoRows) {
		return nil, err
	}
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err == nil {
		sealed, err = sealer.Seal(tx, aboutKey, string(private.Seed()))
	}
	if err != nil {
		return nil, err
	}
	return private, tx.Write("INSERT INTO history_key (id, public, private) VALUES (1, ?, ?)", []byte(public), sealed)
}

// chainedWithin is how long a transaction may take from its beginning until it is chained, however slow its database is, and its clock
// wrong.
const chainedWithin = time.Hour

// keepHeads is how long signed heads are kept in the database: those that are to last are sent elsewhere.
const keepHeads = 30 * 24 * time.Hour

// sign signs the chain as it is, and keeps the head.
func sign(tx *store.Tx, sealer resource.Sealer) error {
	last, err := tx.LastLink()
	if err != nil {
		return err
	}
	key, err := signingKey(tx, sealer)
	if err != nil {
		return err
	}
	if err := tx.Write("DELETE FROM history_head WHERE at < ?", tx.Now().Add(-keepHeads).Unix()); err != nil {
		return err
	}
	return keepSigned(tx, key, "history_head", last)
}

// keepSigned signs a link, and keeps that in a table.
func keepSigned(tx *store.Tx, key ed25519.PrivateKey, table string, l store.Link) error {
	public, _ := key.Public().(ed25519.PublicKey)
	at := tx.Now().UTC().Truncate(time.Second)
	h := Head{Place: l.Place, Transaction: l.Transaction, At: at, Hash: hex.EncodeToString(l.Hash),
		PublicKey: hex.EncodeToString(public)} // all but the signature
	return tx.Write("INSERT INTO "+table+" (place, txn, at, hash, public, signature) VALUES (?,?,?,?,?,?)",
		h.Place, h.Transaction, at.Unix(), l.Hash, []byte(public), ed25519.Sign(key, h.signed()))
}

// Begins gives what signs, when retention takes something away, behind which link the chain begins then (store.PruneHistory).
func Begins(sealer resource.Sealer) func(tx *store.Tx, base store.Link) error {
	return func(tx *store.Tx, base store.Link) error {
		key, err := signingKey(tx, sealer)
		if err != nil {
			return err
		}
		if err := tx.Write("DELETE FROM history_base"); err != nil {
			return err
		}
		return keepSigned(tx, key, "history_base", base)
	}
}

// verifyBase refuses a chain that begins later than the manager has said.
func verifyBase(tx *store.Tx, fault func(string, ...any)) error {
	base, err := tx.ChainBase()
	if err != nil || base.Place == 0 {
		return err
	}
	said := false
	if err := signedIn(tx, "history_base", 0, func(h Head) error {
		said = said || h.Place == base.Place && h.Transaction == base.Transaction && h.Hash == hex.EncodeToString(base.Hash) && h.Verify()
		return nil
	}); err != nil {
		return err
	}
	if !said {
		fault("the history is said to begin behind transaction %d (link %d), and no manager has taken away what was before", base.Transaction,
			base.Place)
	}
	return tx.Faulty(fault, "where the history begins, at place %d, was signed by a key that is not the manager's%s",
		"SELECT place, '' FROM history_base h WHERE NOT EXISTS (SELECT 1 FROM history_key k WHERE k.public = h.public)")
}

// heads calls fn for the signed heads behind a place, in order.
func heads(tx *store.Tx, behind int64, fn func(Head) error) error {
	return signedIn(tx, "history_head", behind, fn)
}

// signedIn calls fn for what was signed and is kept in a table.
func signedIn(tx *store.Tx, table string, behind int64, fn func(Head) error) error {
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

// verifyHeads holds the chain to the heads that were signed.
func verifyHeads(tx *store.Tx, fault func(string, ...any)) error {
	if err := verifyBase(tx, fault); err != nil {
		return err
	}
	var all []Head
	if err := heads(tx, 0, func(h Head) error {
		all = append(all, h)
		return nil
	}); err != nil {
		return err
	}
	for _, h := range all {
		if _, err := compare(tx, h, "a head of the history", fault); err != nil {
			return err
		}
	}
	for i, h := range all {
		upTo := int64(math.MaxInt64)
		if i+1 < len(all) {
			upTo = all[i+1].Place
		}
		if err := tx.Faulty(fault, "transaction %d says to be of %s, and was chained long behind that: it was slipped into the history",
			"SELECT t.id, json_extract(t.body, '$.creationDateTime') FROM history_link l JOIN txn t ON t.id = l.txn"+
				" WHERE l.place > ? AND l.place <= ?"+
				" AND t.at < ?", h.Place, upTo, h.At.Add(-chainedWithin).UnixMilli()); err != nil {
			return err
		}
	}
	return tx.Faulty(fault, "a head of the history, at place %d, was signed by a key that is not the manager's%s",
		"SELECT place, '' FROM history_head h WHERE NOT EXISTS (SELECT 1 FROM history_key k WHERE k.public = h.public)")
}

// compare holds the chain to a head; held is false where that is older than the history is kept.
func compare(tx *store.Tx, h Head, what string, fault func(string, ...any)) (held bool, err error) {
	begins, err := tx.ChainBegins()
	if err != nil {
		return false, err
	}
	if !h.Verify() {
		fault("%s, signed at %s, has a signature that is not its own", what, h.At.Format(time.RFC3339))
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
		fault("%s, signed at %s, names transaction %d (link %d), and the chain does not have it: what came up to then was removed", what,
			h.At.Format(time.RFC3339), h.Transaction, h.Place)
	case hex.EncodeToString(l.Hash) != h.Hash || l.Transaction != h.Transaction:
		fault("%s, signed at %s, is not what the chain has at link %d: something up to transaction %d was changed since, and chained anew", what,
			h.At.Format(time.RFC3339), h.Place, h.Transaction)
	}
	return true, nil
}

// Compare holds the history to heads that were kept elsewhere, as JSON lines. public, where it is
// given, is the key that must have signed all of them. It gives how many heads there were, and how many of them are older than the
// history is kept.
func Compare(tx *store.Tx, in io.Reader, public string, fault func(string, ...any)) (n, older int, err error) {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 64<<10)
	for lines.Scan() {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		var h Head
		if err := json.Unmarshal(lines.Bytes(), &h); err != nil || h.Place == 0 {
			return n, older, fmt.Errorf("line %d is no head of the history", n+1)
		}
		n++
		if public != "" && h.PublicKey != public {
			fault("a head that was kept, signed at %s, was signed by another key", h.At.Format(time.RFC3339))
			continue
		}
		held, err := compare(tx, h, "a head that was kept", fault)
		if err != nil {
			return n, older, err
		}
		if !held {
			older++
		}
	}
	return n, older, lines.Err()
}

// VerifyKey opens the keys that have signed, by the master keys that are known, and says where one is not what it was: then somebody has
// signed without the master key. It fails where a key cannot be opened.
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
		seed, err := sealer.Open(tx, aboutKey, sealed)
		if err != nil {
			return err
		}
		if len(seed) != ed25519.SeedSize || !bytes.Equal(ed25519.NewKeyFromSeed([]byte(seed)).Public().(ed25519.PublicKey), []byte(public)) {
			fault("the key %x, which signs heads of the history, is not the manager's", public)
		}
	}
	return nil
}
