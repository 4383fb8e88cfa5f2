package nameserver

import (
	"crypto/hmac"
	"crypto/md5"  //nolint:gosec // for keys of old clients (RFC 8945 section 6)
	"crypto/sha1" //nolint:gosec // see above
	"crypto/sha256"
	"crypto/sha512"
	"encoding/binary"
	"fmt"
	"hash"
	"time"

	dns "portolan/internal/base/dnsmsg"
	"portolan/internal/wire/zonedata"
)

// TSIG error codes (RFC 8945 section 3).
const (
	badSignature = 16
	badKey       = 17
	badTime      = 18
)

// fudge is the permitted clock difference in seconds (RFC 8945 section 10).
const fudge = 300

// hashes are the TSIG algorithms by name, in wire format and in lower case.
var hashes = map[string]func() hash.Hash{
	"\x08hmac-md5\x07sig-alg\x03reg\x03int\x00": md5.New,
	"\x09hmac-sha1\x00":                         sha1.New,
	"\x0bhmac-sha256\x00":                       sha256.New,
	"\x0bhmac-sha512\x00":                       sha512.New,
}

// key is a TSIG key. Names are in wire format and in lower case.
type key struct {
	name, algorithm string
	// text is the name in the settings.
	text   string
	hash   func() hash.Hash
	secret []byte
}

// newKey reads a key of the settings.
func newKey(of zonedata.SigningKey) (k *key, err error) {
	k = &key{text: of.Name, secret: of.Secret}
	if k.name, err = zonedata.WireName(of.Name); err != nil {
		return nil, err
	}
	if k.algorithm, err = zonedata.WireName(of.Algorithm); err != nil {
		return nil, err
	}
	if k.hash = hashes[k.algorithm]; k.hash == nil {
		return nil, fmt.Errorf("the key %s has the unknown algorithm %q", of.Name, of.Algorithm)
	}
	return k, nil
}

// signature is a TSIG record (RFC 8945 section 4.2).
type signature struct {
	// offset is the offset of the record in the message.
	offset          int
	name, algorithm string
	// time is in Unix seconds.
	time    uint64
	fudge   uint16
	mac     []byte
	id      uint16
	problem uint16
	other   []byte
}

// read parses the record at an offset of a message. The record must be complete.
func (s *signature) read(m []byte, at int) bool {
	end := zonedata.NameEnd(m, at)
	if end < 0 || end+10 > len(m) || binary.BigEndian.Uint16(m[end+2:]) != dns.ClassANY {
		return false
	}
	data := m[end+10:]
	algorithm := zonedata.NameEnd(data, 0)
	if algorithm < 0 || algorithm+10 > len(data) {
		return false
	}
	*s = signature{offset: at, name: lowerName(m[at:end]), algorithm: lowerName(data[:algorithm])}
	data = data[algorithm:]
	s.time = uint64(binary.BigEndian.Uint16(data))<<32 | uint64(binary.BigEndian.Uint32(data[2:]))
	s.fudge = binary.BigEndian.Uint16(data[6:])
	size := int(binary.BigEndian.Uint16(data[8:]))
	if data = data[10:]; size+6 > len(data) {
		return false
	}
	s.mac, data = data[:size], data[size:]
	s.id, s.problem = binary.BigEndian.Uint16(data), binary.BigEndian.Uint16(data[2:])
	if size = int(binary.BigEndian.Uint16(data[4:])); 6+size != len(data) {
		return false
	}
	s.other = data[6:]
	return true
}

// verify returns the key that signed a message. problem is the TSIG error of an invalid signature. The key is also returned for BADTIME,
// because that answer is signed.
func (s *served) verify(m []byte, q *query, now time.Time) (k *key, problem uint16) {
	k = s.keys[q.signature.name]
	if k == nil || k.algorithm != q.signature.algorithm {
		return nil, badKey
	}
	sum := hmac.New(k.hash, k.secret)
	var head [headerSize]byte
	copy(head[:], m)
	binary.BigEndian.PutUint16(head[:], q.signature.id)
	binary.BigEndian.PutUint16(head[10:], binary.BigEndian.Uint16(m[10:])-1)
	sum.Write(head[:])
	sum.Write(m[headerSize:q.signature.offset])
	sum.Write(k.variables(&q.signature))
	if !hmac.Equal(sum.Sum(nil), q.signature.mac) {
		return nil, badSignature
	}
	apart := now.Unix() - int64(q.signature.time) //nolint:gosec // 48 bits
	if apart > int64(q.signature.fudge) || -apart > int64(q.signature.fudge) {
		return k, badTime
	}
	return k, 0
}

// variables returns the signed fields of a TSIG record (RFC 8945 section 4.3.3).
func (k *key) variables(s *signature) []byte {
	out := append([]byte(k.name), 0, dns.ClassANY, 0, 0, 0, 0)
	out = append(out, k.algorithm...)
	out = s.timers(out)
	out = binary.BigEndian.AppendUint16(out, s.problem)
	out = binary.BigEndian.AppendUint16(out, uint16(len(s.other))) //nolint:gosec // at most the size of a message
	return append(out, s.other...)
}

// timers appends the time and the fudge.
func (s *signature) timers(out []byte) []byte {
	out = binary.BigEndian.AppendUint16(out, uint16(s.time>>32))         //nolint:gosec // 48 bits
	out = binary.BigEndian.AppendUint32(out, uint32(s.time&0xffff_ffff)) //nolint:gosec // the lower 32 bits
	return binary.BigEndian.AppendUint16(out, s.fudge)
}

// signer signs the answers to one message.
type signer struct {
	// key is nil if the answer must not be signed. name and algorithm are those of the request.
	key             *key
	name, algorithm string
	asked           signature
	problem         uint16
	// previous is the previous signature: that of the request for the first answer. hasSigned reports that an answer has been signed (RFC
	// 8945 section 5.3.1).
	previous  []byte
	hasSigned bool
}

// maxSize returns the maximum size of a TSIG record.
func (s *signer) maxSize() int { return len(s.name) + len(s.algorithm) + 10 + 16 + sha512.Size + 6 }

// sign appends the TSIG record to an answer.
func (s *signer) sign(m []byte, now time.Time) []byte {
	of := signature{time: uint64(now.Unix()), fudge: fudge, problem: s.problem} //nolint:gosec // after 1970
	if s.problem == badTime {
		clock := binary.BigEndian.AppendUint64(nil, of.time)
		of.time, of.other = s.asked.time, clock[2:]
	}
	if s.key != nil {
		sum := hmac.New(s.key.hash, s.key.secret)
		sum.Write(binary.BigEndian.AppendUint16(nil, uint16(len(s.previous)))) //nolint:gosec // the size of a hash
		sum.Write(s.previous)
		sum.Write(m)
		if s.hasSigned {
			sum.Write(of.timers(nil))
		} else {
			sum.Write(s.key.variables(&of))
		}
		of.mac = sum.Sum(nil)
		s.previous, s.hasSigned = of.mac, true
	}
	id := binary.BigEndian.Uint16(m)
	m = append(append(m, s.name...), 0, byte(dns.TypeTSIG), 0, dns.ClassANY, 0, 0, 0, 0, 0, 0)
	at := len(m)
	m = of.timers(append(m, s.algorithm...))
	m = append(binary.BigEndian.AppendUint16(m, uint16(len(of.mac))), of.mac...) //nolint:gosec // the size of a hash
	m = binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(m, id), of.problem)
	m = append(binary.BigEndian.AppendUint16(m, uint16(len(of.other))), of.other...) //nolint:gosec // 0 or 6
	binary.BigEndian.PutUint16(m[at-2:], uint16(len(m)-at))                          //nolint:gosec // at most room
	binary.BigEndian.PutUint16(m[10:], binary.BigEndian.Uint16(m[10:])+1)
	return m
}

// identify returns the client of a message with the name of its TSIG key. The signer signs the answers; it is nil for an unsigned
// message. The code is NOTAUTH for an invalid signature, else 0.
func (a *nameServer) identify(s *served, m []byte, q *query, w zonedata.Client) (zonedata.Client, *signer, int) {
	if !q.signed {
		return w, nil, 0
	}
	k, problem := s.verify(m, q, time.Now())
	out := &signer{key: k, name: q.signature.name, algorithm: q.signature.algorithm, asked: q.signature, problem: problem,
		previous: q.signature.mac}
	if problem != 0 {
		return w, out, dns.RcodeNotAuth
	}
	w.Key = k.text
	return w, out, 0
}
