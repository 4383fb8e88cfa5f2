package nameserver

import (
	"crypto"
	"encoding/binary"
	"fmt"
	"strings"
	"time"

	dns "portolan/internal/base/dnsmsg"
	"portolan/internal/wire/zonedata"
)

// inceptionMargin is the time between the inception of a signature and its creation. It tolerates resolvers whose clock is late.
const inceptionMargin = time.Hour

// signing signs the answers of a zone (RFC 4035 section 2.2). It is immutable.
type signing struct {
	settings zonedata.Signing
	apex     string
	// keySigners sign the DNSKEY, CDS and CDNSKEY RRsets, zoneSigners all others.
	keySigners, zoneSigners []signingKey
	signatures              *signatures
}

// signingKey is a private key with its tag and algorithm.
type signingKey struct {
	tag       uint16
	algorithm uint8
	private   crypto.Signer
}

// newSigning reads the signing settings of a zone.
func newSigning(of zonedata.Signing, apex string, made *signatures) (*signing, error) {
	s := &signing{settings: of, apex: apex, signatures: made}
	name, _, err := dns.UnpackDomainName([]byte(apex), 0)
	if err != nil {
		return nil, err
	}
	for _, k := range of.Keys {
		record := &dns.DNSKEY{Hdr: dns.RR_Header{Name: name, Rrtype: dns.TypeDNSKEY, Class: dns.ClassINET}, Flags: k.Flags, Protocol: 3,
			Algorithm: k.Algorithm, PublicKey: k.Public}
		private, err := record.ReadPrivateKey(strings.NewReader(k.Private), name)
		if err != nil {
			return nil, fmt.Errorf("a key of zone %s cannot be read: %w", name, err)
		}
		signer, ok := private.(crypto.Signer)
		if !ok {
			return nil, fmt.Errorf("a key of zone %s cannot sign", name)
		}
		one := signingKey{record.KeyTag(), k.Algorithm, signer}
		if k.Flags&dns.SEP != 0 {
			s.keySigners = append(s.keySigners, one)
		} else {
			s.zoneSigners = append(s.zoneSigners, one)
		}
	}
	if len(s.keySigners) == 0 || len(s.zoneSigners) == 0 {
		return nil, fmt.Errorf("zone %s is signed but lacks a key-signing or a zone-signing key", name)
	}
	return s, nil
}

// signers returns the keys that sign records of a type (RFC 7344 section 4.1 for CDS and CDNSKEY).
func (s *signing) signers(kind uint16) []signingKey {
	if kind == dns.TypeDNSKEY || kind == dns.TypeCDS || kind == dns.TypeCDNSKEY {
		return s.keySigners
	}
	return s.zoneSigners
}

// signaturesFor returns the signatures of an RRset. They are cached until their renewal time.
func (s *signing) signaturesFor(owner string, of *set, now time.Time) (*set, error) {
	return s.signaturesUntil(owner, of, now, now)
}

// signaturesUntil returns signatures of an RRset whose renewal time is after until, unless their validity is too short.
func (s *signing) signaturesUntil(owner string, of *set, now, until time.Time) (*set, error) {
	return s.signatures.get(signatureKey{s, owner, of.kind}, of, until.Unix(), func() (*set, int64, error) { return s.sign(owner, of, now) })
}

// copyTime returns the maximum age of a copy of the zone. The manager then raises the serial, so that secondaries transfer the zone again,
// and the file of another engine is written again. A copied signature must therefore have this time left before its renewal time.
func (s *signing) copyTime() time.Duration {
	return time.Duration(s.settings.Validity-s.settings.Renewal) * time.Second / 2
}

// aheadTime returns the time before its renewal time at which a signature is renewed ahead of questions and transfers.
func (s *signing) aheadTime() time.Duration {
	return min(s.copyTime()+2*aheadInterval, s.copyTime()*3/2)
}

// sign creates the signatures of an RRset. until is their renewal time in Unix seconds.
func (s *signing) sign(owner string, of *set, now time.Time) (out *set, until int64, err error) {
	records, err := of.records(owner)
	if err != nil {
		return nil, 0, err
	}
	apex, _, err := dns.UnpackDomainName([]byte(s.apex), 0)
	if err != nil {
		return nil, 0, err
	}
	expiration := now.Add(time.Duration(s.settings.Validity) * time.Second)
	out = &set{kind: dns.TypeRRSIG, ttl: of.ttl}
	for _, k := range s.signers(of.kind) {
		from, to := uint32(now.Add(-inceptionMargin).Unix()), uint32(expiration.Unix()) //nolint:gosec // they wrap (RFC 4034 section 3.1.5)
		rr := &dns.RRSIG{Algorithm: k.algorithm, KeyTag: k.tag, SignerName: apex, Inception: from, Expiration: to}
		if err := rr.Sign(k.private, records); err != nil {
			return nil, 0, fmt.Errorf("sign a record of zone %s: %w", apex, err)
		}
		wire, err := zonedata.NewRecord(rr)
		if err != nil {
			return nil, 0, err
		}
		out.append(wire.Data())
	}
	return out, expiration.Add(-time.Duration(s.settings.Renewal) * time.Second).Unix(), nil
}

// records returns the records of an RRset as types of the DNS library.
func (s *set) records(owner string) (all []dns.RR, err error) {
	s.eachRecord(0, func(data []byte) bool {
		wire := make([]byte, 0, len(owner)+10+len(data))
		wire = append(wire, owner...)
		wire = binary.BigEndian.AppendUint16(wire, s.kind)
		wire = append(wire, 0, dns.ClassINET)
		wire = binary.BigEndian.AppendUint32(wire, s.ttl)
		wire = binary.BigEndian.AppendUint16(wire, uint16(len(data))) //nolint:gosec // at most 65,535
		var rr dns.RR
		if rr, _, err = dns.UnpackRR(append(wire, data...), 0); err == nil {
			all = append(all, rr)
		}
		return err == nil
	})
	return all, err
}

// append adds the data of one record to an RRset that no other goroutine uses.
func (s *set) append(data []byte) {
	s.data = append(binary.BigEndian.AppendUint16(s.data, uint16(len(data))), data...) //nolint:gosec // at most 65,535
	s.count++
}
