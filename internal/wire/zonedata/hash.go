package zonedata

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"

	"portolan/internal/wire/content"
)

// Hash names the content of a zone: it is the sum of the SHA-256 of its records, in four lanes of 64 bits. It does not depend on their
// order, and follows from the one before by what was added and removed. It finds faults, not forgers: what it is about comes over a
// channel whose ends have shown who they are.
type Hash [4]uint64

// Add counts a record in.
func (h *Hash) Add(r Record) { h.step(r, 1) }

// Remove takes a record out that was counted in.
func (h *Hash) Remove(r Record) { h.step(r, ^uint64(0)) }

func (h *Hash) step(r Record, sign uint64) {
	sum := sha256.Sum256(r)
	for i := range h {
		h[i] += sign * binary.BigEndian.Uint64(sum[8*i:])
	}
}

// String is the hash in 64 hexadecimal digits.
func (h Hash) String() string {
	var b [32]byte
	for i, lane := range h {
		binary.BigEndian.PutUint64(b[8*i:], lane)
	}
	return hex.EncodeToString(b[:])
}

// ParseHash reads what String writes.
func ParseHash(text string) (h Hash, err error) {
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != 32 {
		return h, fmt.Errorf("%q is no hash of a zone", text)
	}
	for i := range h {
		h[i] = binary.BigEndian.Uint64(b[8*i:])
	}
	return h, nil
}

// AddZone counts the content of a zone in, in a hash of what a server serves; RemoveZone takes it out.
func (h *Hash) AddZone(id, content string) { h.step(Record(id+" "+content), 1) }

// RemoveZone takes out what AddZone counted in.
func (h *Hash) RemoveZone(id, content string) { h.step(Record(id+" "+content), ^uint64(0)) }

// AddSettings counts the settings in, RemoveSettings takes them out.
func (h *Hash) AddSettings(text []byte) { h.step(Record(text), 1) }

// RemoveSettings takes out what AddSettings counted in.
func (h *Hash) RemoveSettings(text []byte) { h.step(Record(text), ^uint64(0)) }

// Total is the hash of what a server serves: its settings, and the content of each zone by its id.
func Total(settings []byte, zones map[string]string) (h Hash) {
	h.AddSettings(settings)
	for id, content := range zones {
		h.AddZone(id, content)
	}
	return h
}

// Revision names what a server serves: Number tells an earlier one from a later one in one database, and Hash what it is.
type Revision struct {
	Number int64
	Hash   Hash
}

// String is the number and the hash, with a hyphen between them.
func (r Revision) String() string {
	return content.Revision{Number: r.Number, Hash: r.Hash.String()}.String()
}

// ParseRevision reads what String writes.
func ParseRevision(text string) (r Revision, err error) {
	named, err := content.ParseRevision(text)
	if err != nil {
		return r, err
	}
	r.Number = named.Number
	r.Hash, err = ParseHash(named.Hash)
	return r, err
}
