package dns

import (
	"bufio"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/miekg/dns"
)

// TransferKey is a key that a transfer is signed with (RFC 8945): Name and Algorithm as names with their last dots, Secret in base64.
type TransferKey struct{ Name, Algorithm, Secret string }

// sign has a message signed with the key, and gives the secrets that its answer is checked with; nil where there is no key.
func (k *TransferKey) sign(m *dns.Msg) map[string]string {
	if k == nil {
		return nil
	}
	m.SetTsig(k.Name, k.Algorithm, 300, time.Now().Unix())
	return map[string]string{k.Name: k.Secret}
}

// keyStatement is a key as tsig-keygen prints it, and as the configuration of BIND has it.
var keyStatement = regexp.MustCompile(`(?s)key\s+"?([^\s"{]+)"?\s*\{(.*?)\}`)

// keyPart is a part of it.
var keyPart = regexp.MustCompile(`(algorithm|secret)\s+"?([^\s";]+)"?\s*;`)

// ReadKey reads a key from a file as tsig-keygen prints it.
func ReadKey(file string) (*TransferKey, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	found := keyStatement.FindSubmatch(text)
	if found == nil {
		return nil, fmt.Errorf(`%s holds no key, such as tsig-keygen prints: key "NAME" { algorithm hmac-sha256; secret "..."; };`, file)
	}
	parts := map[string]string{}
	for _, part := range keyPart.FindAllSubmatch(found[2], -1) {
		parts[string(part[1])] = string(part[2])
	}
	k := &TransferKey{dns.CanonicalName(string(found[1])), dns.CanonicalName(parts["algorithm"]), parts["secret"]}
	if _, err := base64.StdEncoding.DecodeString(k.Secret); err != nil || k.Secret == "" || parts["algorithm"] == "" {
		return nil, fmt.Errorf("%s: the key %s has no algorithm, or no secret in base64", file, found[1])
	}
	return k, nil
}

// Bounds of a transfer: how long a server may take for each message, and for all of it, and how many records there may be.
const (
	transferTime    = 30 * time.Second
	transferWhole   = 30 * time.Minute
	transferRecords = 20_000_000
)

// FetchZone writes a zone as a server gives it (CopyZone), as text that naming.ReadZone reads.
func FetchZone(ctx context.Context, server, zone string, key *TransferKey, out io.Writer) error {
	text := bufio.NewWriter(out)
	if err := eachOfTransfer(ctx, server, zone, key, func(rr dns.RR) error {
		_, err := text.WriteString(rr.String() + "\n")
		return err
	}); err != nil {
		return err
	}
	return text.Flush()
}

// CopyZone gives the records of a zone as a server gives them, the SOA first and last.
func CopyZone(ctx context.Context, server, zone string, key *TransferKey) (all []dns.RR, err error) {
	err = eachOfTransfer(ctx, server, zone, key, func(rr dns.RR) error {
		all = append(all, rr)
		return nil
	})
	return all, err
}

// FetchAuthority asks a server for the SOA of a zone, over TCP, signed with the key where that is not nil.
func FetchAuthority(ctx context.Context, server, zone string, key *TransferKey) (*dns.SOA, error) {
	m := new(dns.Msg)
	m.SetQuestion(dns.Fqdn(zone), dns.TypeSOA)
	m.RecursionDesired = false
	client := &dns.Client{Net: "tcp", Timeout: transferTime, TsigSecret: key.sign(m)}
	answer, _, err := client.ExchangeContext(ctx, m, withPort(server))
	if err != nil {
		return nil, fmt.Errorf("asking %s: %w", server, err)
	}
	for _, rr := range answer.Answer {
		if soa, ok := rr.(*dns.SOA); ok && answer.Authoritative && dns.CanonicalName(soa.Hdr.Name) == dns.CanonicalName(zone) {
			return soa, nil
		}
	}
	return nil, fmt.Errorf("%s does not answer for %s: %s", server, zone, dns.RcodeToString[answer.Rcode])
}

// withPort is a server with its port.
func withPort(server string) string {
	if _, _, err := net.SplitHostPort(server); err != nil {
		return net.JoinHostPort(strings.Trim(server, "[]"), "53")
	}
	return server
}

// eachOfTransfer gives the records of a zone as a server gives them (AXFR, RFC 5936), the SOA first and last. The server is an address or a
// name, with a port where that is not 53. It gives an error where the transfer is refused or does not come to its end.
func eachOfTransfer(ctx context.Context, server, zone string, key *TransferKey, fn func(dns.RR) error) error {
	server = withPort(server)
	ctx, cancel := context.WithTimeout(ctx, transferWhole)
	defer cancel()
	conn, err := (&net.Dialer{Timeout: transferTime}).DialContext(ctx, "tcp", server)
	if err != nil {
		return fmt.Errorf("asking %s: %w", server, err)
	}
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	t := &dns.Transfer{Conn: &dns.Conn{Conn: conn}, DialTimeout: transferTime, ReadTimeout: transferTime, WriteTimeout: transferTime}
	m := new(dns.Msg)
	m.SetAxfr(dns.Fqdn(zone))
	t.TsigSecret = key.sign(m)
	envelopes, err := t.In(m, server)
	if err != nil {
		_ = conn.Close()
		return fmt.Errorf("asking %s: %w", server, err)
	}
	soas, records := 0, 0
	for e := range envelopes { // to its end, which closes the connection
		if e.Error != nil && err == nil {
			err = e.Error
		}
		for _, rr := range e.RR {
			if rr.Header().Rrtype == dns.TypeSOA {
				soas++
			}
			if records++; records > transferRecords && err == nil {
				err = fmt.Errorf("it has more than %d records", transferRecords)
				cancel()
			}
			if err != nil { // the rest is read, and left
				continue
			}
			err = fn(rr)
		}
	}
	if err == nil && soas < 2 {
		err = errors.New("the transfer has no end")
	}
	if err != nil {
		return fmt.Errorf("copying %s from %s: %w", zone, server, err)
	}
	return nil
}
