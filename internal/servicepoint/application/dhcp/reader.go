package dhcp

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"unsafe"
)

// errLease reports a lease in the journal that cannot be read.
var errLease = errors.New("the lease is truncated")

// reader reads numbers and texts. The texts are parts of its text, which does not change.
type reader struct {
	text string
	err  error
}

func (r *reader) number() uint64 {
	n := uint64(0)
	for i := 0; i < len(r.text) && i < binary.MaxVarintLen64; i++ {
		b := r.text[i]
		if n |= uint64(b&0x7f) << (7 * i); b < 0x80 {
			if i == binary.MaxVarintLen64-1 && b > 1 {
				break // more than 64 bits
			}
			r.text = r.text[i+1:]
			return n
		}
	}
	r.text, r.err = "", errLease
	return 0
}

// signed reads a number of binary.AppendVarint.
func (r *reader) signed() int64 {
	n := r.number()
	return int64(n>>1) ^ -int64(n&1)
}

func (r *reader) octet() byte {
	if len(r.text) == 0 {
		r.err = errLease
		return 0
	}
	b := r.text[0]
	r.text = r.text[1:]
	return b
}

func (r *reader) octets() string {
	n := r.number()
	if n > uint64(len(r.text)) {
		r.text, r.err = "", errLease
		return ""
	}
	out := r.text[:n]
	r.text = r.text[n:]
	return out
}

func (r *reader) address() netip.Addr {
	text := r.octets()
	switch len(text) {
	case 0:
		return netip.Addr{}
	case net4:
		return netip.AddrFrom4([net4]byte([]byte(text)))
	case net6:
		return netip.AddrFrom16([net6]byte([]byte(text)))
	}
	r.err = errLease
	return netip.Addr{}
}

// net4 and net6 are the lengths of addresses in octets.
const (
	net4 = 4
	net6 = 16
)

// sharedText returns the octets as a text that changes with them.
func sharedText(octets []byte) string {
	return unsafe.String(unsafe.SliceData(octets), len(octets)) //nolint:gosec // a copy for each lease would double the memory of a start
}

func appendNumber(to []byte, n int64) []byte { return binary.AppendUvarint(to, uint64(n)) }

// appendText appends a text with its length.
func appendText[T ~string | ~[]byte](to []byte, text T) []byte {
	return append(binary.AppendUvarint(to, uint64(len(text))), text...)
}

// appendAddress appends an address with its length; 0 if it is not valid.
func appendAddress(to []byte, a netip.Addr) []byte {
	switch {
	case a.Is4():
		octets := a.As4()
		return appendText(to, octets[:])
	case a.IsValid():
		octets := a.As16()
		return appendText(to, octets[:])
	}
	return append(to, 0)
}
