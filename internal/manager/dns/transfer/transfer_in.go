package transfer

import (
	"context"
	"crypto/hmac"
	"crypto/md5"  //nolint:gosec // still an algorithm of RFC 8945 section 6
	"crypto/sha1" //nolint:gosec // as above
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"net"
	"time"

	dns "portolan/internal/base/dnsmsg"
)

// TransferKey is a key that signs a transfer (RFC 8945). Name and Algorithm are names with the trailing dot, Secret is in base64.
type TransferKey struct{ Name, Algorithm, Secret string }

// Limits of a transfer: the time for each message and for the entire transfer, and the number of records and bytes.
const (
	messageTimeout     = 30 * time.Second
	transferTimeout    = 30 * time.Minute
	maxTransferRecords = 20_000_000
	maxTransferBytes   = 512 << 20
)

// tsigHashes contains the hash functions of the key algorithms (RFC 8945 section 6).
var tsigHashes = map[string]func() hash.Hash{dns.HmacMD5: md5.New, dns.HmacSHA1: sha1.New, dns.HmacSHA224: sha256.New224,
	dns.HmacSHA256: sha256.New, dns.HmacSHA384: sha512.New384, dns.HmacSHA512: sha512.New}

// conversation is a query over TCP and its responses. They are signed if key is not nil.
type conversation struct {
	conn *dns.Conn
	id   uint16
	key  *TransferKey
	// mac is the MAC of the query or of the last signed response. unsigned contains the responses since then, which the next signed
	// response covers (RFC 8945 section 5.3.1).
	mac           []byte
	unsigned      []byte
	unsignedCount int
	answered      bool
	// bytes is the total length of the responses.
	bytes int
}

// maxUnsigned is the maximum number of unsigned messages between two signed ones.
const maxUnsigned = 99

// sendQuery sends a query.
func sendQuery(conn net.Conn, m *dns.Msg, key *TransferKey) (*conversation, error) {
	c := &conversation{conn: &dns.Conn{Conn: conn}, id: m.Id, key: key}
	if err := conn.SetDeadline(time.Now().Add(messageTimeout)); err != nil {
		return nil, err
	}
	if key == nil {
		return c, c.conn.WriteMsg(m)
	}
	m.SetTsig(key.Name, key.Algorithm, 300, time.Now().Unix())
	wire, mac, err := dns.TsigGenerate(m, key.Secret, "", false)
	if err != nil {
		return nil, err
	}
	if c.mac, err = hex.DecodeString(mac); err != nil {
		return nil, err
	}
	_, err = c.conn.Write(wire)
	return c, err
}

// next returns the next response. Do not use its content before checkSigned succeeded.
func (c *conversation) next() (*dns.Msg, error) {
	if err := c.conn.SetReadDeadline(time.Now().Add(messageTimeout)); err != nil {
		return nil, err
	}
	wire, err := c.conn.ReadMsgHeader(nil)
	if err != nil {
		return nil, err
	}
	if c.bytes += len(wire); c.bytes > maxTransferBytes {
		return nil, fmt.Errorf("the zone has more than %d MiB", maxTransferBytes>>20)
	}
	m := new(dns.Msg)
	if err := m.Unpack(wire); err != nil {
		return nil, err
	}
	if m.Id != c.id || !m.Response {
		return nil, errors.New("the response does not match the query")
	}
	if c.key != nil {
		err = c.verify(m, wire)
	}
	if err == nil && m.Rcode != dns.RcodeSuccess {
		err = fmt.Errorf("the server answered %s", dns.RcodeToString[m.Rcode])
	}
	c.answered = true
	return m, err
}

// checkSigned returns an error if the last responses are not covered by a signature.
func (c *conversation) checkSigned() error {
	if len(c.unsigned) > 0 {
		return errors.New("the last message is not signed")
	}
	return nil
}

// verify checks the signature of a response.
func (c *conversation) verify(m *dns.Msg, wire []byte) error {
	t := m.IsTsig()
	if t == nil {
		if c.unsignedCount++; !c.answered || c.unsignedCount > maxUnsigned {
			if m.Rcode != dns.RcodeSuccess {
				return fmt.Errorf("the server answered %s without a signature", dns.RcodeToString[m.Rcode])
			}
			return errors.New("the response is not signed")
		}
		c.unsigned = append(c.unsigned, wire...)
		return nil
	}
	if t.Error != dns.RcodeSuccess {
		return fmt.Errorf("the server answered %s: check the key %s, its secret and the clock", dns.RcodeToString[int(t.Error)], c.key.Name)
	}
	if dns.CanonicalName(t.Hdr.Name) != dns.CanonicalName(c.key.Name) || dns.CanonicalName(t.Algorithm) != dns.CanonicalName(c.key.Algorithm) {
		return errors.New("the response is signed by another key")
	}
	if off := time.Since(time.Unix(int64(t.TimeSigned), 0)); off.Abs() > time.Duration(t.Fudge)*time.Second { //nolint:gosec // of 48 bits
		return fmt.Errorf("the signature time of the response differs by %s: check the clocks", off.Round(time.Second))
	}
	mac, err := hex.DecodeString(t.MAC)
	if err != nil {
		return err
	}
	want, err := c.signature(t, wire)
	if err != nil {
		return err
	}
	if !hmac.Equal(mac, want) {
		return errors.New("the signature of the response is invalid")
	}
	c.mac, c.unsigned, c.unsignedCount = mac, nil, 0
	return nil
}

// signature computes the expected MAC of a response (RFC 8945 section 4.3).
func (c *conversation) signature(t *dns.TSIG, wire []byte) ([]byte, error) {
	newHash := tsigHashes[dns.CanonicalName(c.key.Algorithm)]
	secret, err := base64.StdEncoding.DecodeString(c.key.Secret)
	if err != nil || newHash == nil {
		return nil, fmt.Errorf("the key %s cannot be used: check its algorithm and its base64 secret", c.key.Name)
	}
	body, err := stripLastRecord(wire)
	if err != nil {
		return nil, err
	}
	binary.BigEndian.PutUint16(body, t.OrigId)
	sum := hmac.New(newHash, secret)
	put := func(b []byte) { _, _ = sum.Write(b) }               // hash.Hash.Write never returns an error
	put(binary.BigEndian.AppendUint16(nil, uint16(len(c.mac)))) //nolint:gosec // of a hash
	put(c.mac)
	put(c.unsigned)
	put(body)
	when := binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint64(nil, t.TimeSigned), t.Fudge)[2:]
	if c.answered { // the following responses contain only the timers
		put(when)
		return sum.Sum(nil), nil
	}
	for i, name := range []string{c.key.Name, c.key.Algorithm} {
		packed := make([]byte, 256)
		n, err := dns.PackDomainName(dns.CanonicalName(name), packed, 0, nil, false)
		if err != nil {
			return nil, err
		}
		if put(packed[:n]); i == 0 {
			put([]byte{0, dns.ClassANY, 0, 0, 0, 0})
		}
	}
	other, err := hex.DecodeString(t.OtherData)
	if err != nil {
		return nil, err
	}
	put(when)
	put(binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, t.Error), uint16(len(other)))) //nolint:gosec // a part of a message
	put(other)
	return sum.Sum(nil), nil
}

// stripLastRecord returns a message without its last record.
func stripLastRecord(wire []byte) ([]byte, error) {
	const header = 12
	if len(wire) < header {
		return nil, errors.New("malformed DNS message")
	}
	count := func(at int) int { return int(binary.BigEndian.Uint16(wire[at:])) }
	at, last := header, header
	for range count(4) {
		_, end, err := dns.UnpackDomainName(wire, at)
		if err != nil || end+4 > len(wire) {
			return nil, errors.New("malformed DNS message")
		}
		at = end + 4
	}
	for range count(6) + count(8) + count(10) {
		_, end, err := dns.UnpackDomainName(wire, at)
		if err != nil || end+10 > len(wire) {
			return nil, errors.New("malformed DNS message")
		}
		last, at = at, end+10+int(binary.BigEndian.Uint16(wire[end+8:]))
	}
	if at != len(wire) || count(10) == 0 {
		return nil, errors.New("malformed DNS message")
	}
	body := append([]byte(nil), wire[:last]...)
	binary.BigEndian.PutUint16(body[10:], uint16(count(10)-1)) //nolint:gosec // of 16 bits
	return body, nil
}

// exchange sends a query to a server over TCP, and calls fn with each response until fn reports the last one.
func exchange(ctx context.Context, server string, m *dns.Msg, key *TransferKey, fn func(*dns.Msg) (last bool, err error)) error {
	ctx, cancel := context.WithTimeout(ctx, transferTimeout)
	defer cancel()
	conn, err := (&net.Dialer{Timeout: messageTimeout}).DialContext(ctx, "tcp", withPort(server))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	c, err := sendQuery(conn, m, key)
	if err != nil {
		return err
	}
	for {
		answer, err := c.next()
		if err != nil {
			return err
		}
		last, err := fn(answer)
		if err != nil {
			return err
		}
		if last {
			return c.checkSigned()
		}
	}
}

// FetchAuthority queries a server for the SOA record of a zone over TCP. The query is signed if key is not nil.
func FetchAuthority(ctx context.Context, server, zone string, key *TransferKey) (soa *dns.SOA, err error) {
	m := new(dns.Msg)
	m.SetQuestion(dns.Fqdn(zone), dns.TypeSOA)
	m.RecursionDesired = false
	err = exchange(ctx, server, m, key, func(answer *dns.Msg) (bool, error) {
		for _, rr := range answer.Answer {
			if one, ok := rr.(*dns.SOA); ok && answer.Authoritative && dns.CanonicalName(one.Hdr.Name) == dns.CanonicalName(zone) {
				soa = one
				return true, nil
			}
		}
		return true, errors.New("the server is not authoritative for the zone")
	})
	if err != nil {
		return nil, fmt.Errorf("query %s for %s: %w", server, zone, err)
	}
	return soa, nil
}

// transfer processes the records of a transfer (RFC 5936, RFC 1995) one by one.
type transfer struct {
	zone string
	// from is the serial number of the known zone data. ixfr is set if changes were requested.
	from uint32
	ixfr bool
	// first is the SOA record at the start, count the number of received records.
	first *dns.SOA
	count int
	// incremental is set if the response contains changes. adding is set while the following records are added, not removed. done is set at
	// the end of the transfer.
	incremental, adding, done bool
	serial                    uint32
	// onRecord is called with each record of a complete zone; only the first SOA is included. onChange is called with each record of a
	// change.
	onRecord func(dns.RR) error
	onChange func(rr dns.RR, added bool) error
}

// readMessage processes a message. It reports whether the transfer is complete.
func (t *transfer) readMessage(m *dns.Msg) (last bool, err error) {
	for _, rr := range m.Answer {
		if t.done {
			return true, errors.New("the transfer continues after its end")
		}
		if t.count++; t.count > maxTransferRecords {
			return true, fmt.Errorf("the zone has more than %d records", maxTransferRecords)
		}
		if err := t.readRecord(rr); err != nil {
			return true, err
		}
	}
	if t.ixfr && t.count == 1 && int32(t.first.Serial-t.from) <= 0 { //nolint:gosec // no changes: serials are compared as in RFC 1982
		t.incremental, t.done = true, true
	}
	if t.count == 0 {
		return true, errors.New("the transfer has no records")
	}
	return t.done, nil
}

// readRecord processes a record.
func (t *transfer) readRecord(rr dns.RR) error {
	if h := rr.Header(); h.Rdlength == 0 && h.Rrtype != dns.TypeAPL && h.Rrtype != dns.TypeNULL {
		return fmt.Errorf("%s has a record of type %s without data", h.Name, dns.Type(h.Rrtype))
	}
	soa, is := rr.(*dns.SOA)
	is = is && dns.CanonicalName(soa.Hdr.Name) == t.zone
	switch {
	case t.count == 1 && !is:
		return errors.New("the transfer does not start with the SOA of the zone")
	case t.count == 1:
		t.first = soa
		if !t.ixfr {
			return t.onRecord(rr)
		}
		return nil
	case t.ixfr && t.count == 2:
		if t.incremental = is && soa.Serial == t.from && soa.Serial != t.first.Serial; t.incremental {
			t.serial = soa.Serial
			return nil
		}
		if err := t.onRecord(t.first); err != nil { // the response is a complete zone
			return err
		}
	}
	switch {
	case !t.incremental && is:
		if t.done = soa.Serial == t.first.Serial; !t.done {
			return errors.New("the last SOA of the transfer differs from the first")
		}
		return nil
	case !t.incremental:
		return t.onRecord(rr)
	case !is:
		return t.onChange(rr, t.adding)
	case !t.adding: // the end of the removed records
		t.adding, t.serial = true, soa.Serial
	case soa.Serial != t.serial:
		return errors.New("the serial numbers of the changes are not consecutive")
	case soa.Serial == t.first.Serial:
		t.done = true
	default:
		t.adding = false
	}
	return nil
}

// CopyZone returns the records of a zone from a server (AXFR, RFC 5936), the SOA first. The server is an address or a name, with an
// optional port; the default is 53. It returns an error if the server refuses the transfer or the transfer is incomplete.
func CopyZone(ctx context.Context, server, zone string, key *TransferKey) (all []dns.RR, err error) {
	err = eachZoneRecord(ctx, server, zone, key, func(rr dns.RR) error {
		all = append(all, rr)
		return nil
	})
	return all, err
}

func eachZoneRecord(ctx context.Context, server, zone string, key *TransferKey, fn func(dns.RR) error) error {
	m := new(dns.Msg)
	m.SetAxfr(dns.Fqdn(zone))
	t := &transfer{zone: dns.CanonicalName(zone), onRecord: fn}
	if err := exchange(ctx, server, m, key, t.readMessage); err != nil {
		return fmt.Errorf("copy %s from %s: %w", zone, server, err)
	}
	return nil
}

// ZoneChanges is the response of a server to a request for the changes of a zone.
type ZoneChanges struct {
	// SOA is the current SOA record.
	SOA *dns.SOA
	// Whole contains all records, the SOA first, if the server sent the complete zone; otherwise it is nil.
	Whole []dns.RR
	// Steps contains the changes in order, without the SOA records.
	Steps []ZoneStep
}

// ZoneStep contains the records that were removed from or added to a zone.
type ZoneStep struct {
	Added   bool
	Records []dns.RR
}

// CopyChanges requests the changes of a zone since a known SOA record from a server (IXFR, RFC 1995).
func CopyChanges(ctx context.Context, server, zone string, key *TransferKey, known *dns.SOA) (*ZoneChanges, error) {
	m := new(dns.Msg)
	m.SetIxfr(dns.Fqdn(zone), known.Serial, known.Ns, known.Mbox)
	found := &ZoneChanges{}
	t := &transfer{zone: dns.CanonicalName(zone), ixfr: true, from: known.Serial,
		onRecord: func(rr dns.RR) error {
			found.Whole = append(found.Whole, rr)
			return nil
		},
		onChange: func(rr dns.RR, added bool) error {
			if n := len(found.Steps); n == 0 || found.Steps[n-1].Added != added {
				found.Steps = append(found.Steps, ZoneStep{Added: added})
			}
			last := &found.Steps[len(found.Steps)-1]
			last.Records = append(last.Records, rr)
			return nil
		}}
	if err := exchange(ctx, server, m, key, t.readMessage); err != nil {
		return nil, fmt.Errorf("copy the changes of %s from %s: %w", zone, server, err)
	}
	found.SOA = t.first
	return found, nil
}
