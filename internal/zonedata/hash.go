package zonedata

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// Hash names the content of a zone: it is the sum of the SHA-256 of its records, in four lanes of 64 bits. It does not depend on their order,
// and follows from the one before by what was added and removed. It finds faults, not forgers: what it is about comes over a channel whose
// ends have shown who they are.
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

// Revision names what a server serves: its settings, and the content of each zone by its id.
func Revision(settings []byte, zones map[string]string) string {
	ids := make([]string, 0, len(zones))
	for id := range zones {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, strings.Compare)
	sum := sha256.New()
	sum.Write(settings)
	for _, id := range ids {
		fmt.Fprintf(sum, "\n%s %s", id, zones[id])
	}
	return hex.EncodeToString(sum.Sum(nil))
}
