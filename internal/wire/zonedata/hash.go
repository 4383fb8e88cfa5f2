package zonedata

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"

	"portolan/internal/wire/content"
)

// Hash identifies the content of a zone. It is the sum of the SHA-256 of its records, in four lanes of 64 bits. It does not depend on their
// order, and can be updated for added and removed records. It detects faults, not forgery: the content is sent over authenticated
// connections.
type Hash [4]uint64

// Add adds a record to the hash.
func (h *Hash) Add(r Record) { h.step(r, 1) }

// Remove removes a record from the hash.
func (h *Hash) Remove(r Record) { h.step(r, ^uint64(0)) }

func (h *Hash) step(r Record, sign uint64) {
	sum := sha256.Sum256(r)
	for i := range h {
		h[i] += sign * binary.BigEndian.Uint64(sum[8*i:])
	}
}

// String returns the hash as 64 hexadecimal digits.
func (h Hash) String() string {
	var b [32]byte
	for i, lane := range h {
		binary.BigEndian.PutUint64(b[8*i:], lane)
	}
	return hex.EncodeToString(b[:])
}

// ParseHash parses the output of String.
func ParseHash(text string) (h Hash, err error) {
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != 32 {
		return h, fmt.Errorf("%q is not the hash of a zone", text)
	}
	for i := range h {
		h[i] = binary.BigEndian.Uint64(b[8*i:])
	}
	return h, nil
}

// AddZone adds the content of a zone to the hash of a server's content.
func (h *Hash) AddZone(id, content string) { h.step(Record(id+" "+content), 1) }

// RemoveZone removes what AddZone added.
func (h *Hash) RemoveZone(id, content string) { h.step(Record(id+" "+content), ^uint64(0)) }

// AddSettings adds the settings to the hash of a server's content.
func (h *Hash) AddSettings(text []byte) { h.step(Record(text), 1) }

// RemoveSettings removes what AddSettings added.
func (h *Hash) RemoveSettings(text []byte) { h.step(Record(text), ^uint64(0)) }

// Total returns the hash of a server's content: its settings, and the content hash of each zone by its id.
func Total(settings []byte, zones map[string]string) (h Hash) {
	h.AddSettings(settings)
	for id, content := range zones {
		h.AddZone(id, content)
	}
	return h
}

// Revision identifies the content of a server. Number orders the revisions of one database. Hash identifies the content.
type Revision struct {
	Number int64
	Hash   Hash
}

// String returns the number and the hash, separated by a hyphen.
func (r Revision) String() string {
	return content.Revision{Number: r.Number, Hash: r.Hash.String()}.String()
}

// ParseRevision parses the output of String.
func ParseRevision(text string) (r Revision, err error) {
	named, err := content.ParseRevision(text)
	if err != nil {
		return r, err
	}
	r.Number = named.Number
	r.Hash, err = ParseHash(named.Hash)
	return r, err
}
