// Package snmpwalk reads the interfaces, the neighbours and the forwarding table of a network device by SNMP (RFC 3411 to 3418). It sends
// requests to one device and knows nothing of the database. Times, retries, rows and the rate of packets have limits.
package snmpwalk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gosnmp/gosnmp"
)

// Limits of the messages to a device: the rows of one answer, and the time until an answer counts as lost.
const (
	rowsPerAnswer  = 25
	defaultTimeout = 2 * time.Second
	defaultRetries = 2
)

// The versions of the protocol.
const (
	V1  = "v1"
	V2c = "v2c"
	V3  = "v3"
)

// Target is a device, with its access data.
type Target struct {
	// Address is the address and the UDP port of the device.
	Address netip.AddrPort
	// Version is V1, V2c or V3. Communities and Usernames are tried in their order.
	Version     string
	Communities []string
	Usernames   []string
	// Context is the context name of version 3.
	Context string
	// IsAuthenticated and IsEncrypted are the security level of version 3.
	IsAuthenticated, IsEncrypted bool
	// AuthenticationProtocol is MD5 or SHA, PrivacyProtocol DES or AES128.
	AuthenticationProtocol, AuthenticationPassphrase string
	PrivacyProtocol, PrivacyPassphrase               string
	// Timeout is the time to wait for an answer, and Retries the number of repeated requests; 0 means the default.
	Timeout time.Duration
	Retries int
	// MaxRows limits the rows of each table; 0 means 100,000.
	MaxRows int
	// Pace is called before each packet; nil for no limit of the rate.
	Pace func(ctx context.Context) error
	// WithDevices reads the neighbouring devices (LLDP and CDP).
	WithDevices bool
	// ByVLAN reads the forwarding table of each VLAN with a community (community@20) or a context (vlan-20) of its own.
	ByVLAN bool
}

// errTruncated reports a table with more rows than allowed.
var errTruncated = errors.New("the table has more rows than the limit")

// errLoop reports a device whose answers are not in increasing order.
var errLoop = errors.New("the device repeats rows or returns them out of order")

// session is a connection to a device.
type session struct {
	ctx context.Context
	// credential is the community or the user that the device answers.
	credential string
	client     *gosnmp.GoSNMP
	maxRows    int
	// single reports that the device does not answer GETBULK.
	single bool
	// pace is the error of Target.Pace, and stop ends the watch on ctx.
	pace error
	stop func() bool
}

// credentials returns the communities or users of a target, at least one.
func (t *Target) credentials() []string {
	all := t.Communities
	if t.Version == V3 {
		all = t.Usernames
	}
	if len(all) == 0 {
		all = []string{""}
	}
	return all
}

// connect returns a session with the first credential that the device answers.
func connect(ctx context.Context, t *Target) (*session, error) {
	var failure error
	for _, credential := range t.credentials() {
		s, err := t.open(ctx, credential)
		if err != nil {
			return nil, err
		}
		if _, failure = s.get(sysName); failure == nil {
			return s, nil
		}
		s.close()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	return nil, failure
}

// open creates a session. It sends nothing to a device of version 1 or 2c.
func (t *Target) open(ctx context.Context, credential string) (*session, error) {
	s := &session{ctx: ctx, credential: credential, maxRows: t.MaxRows, single: t.Version == V1}
	if s.maxRows == 0 {
		s.maxRows = 100_000
	}
	c := &gosnmp.GoSNMP{Target: t.Address.Addr().String(), Port: t.Address.Port(), Transport: "udp", Context: ctx, Timeout: t.Timeout,
		Retries: t.Retries, MaxOids: gosnmp.MaxOids, MaxRepetitions: rowsPerAnswer, Community: credential}
	if c.Timeout == 0 {
		c.Timeout = defaultTimeout
	}
	if c.Retries == 0 {
		c.Retries = defaultRetries
	}
	if t.Pace != nil {
		wait := func(*gosnmp.GoSNMP) { s.pace = errors.Join(s.pace, t.Pace(ctx)) }
		c.PreSend, c.OnRetry = wait, wait
	}
	switch t.Version {
	case V1:
		c.Version = gosnmp.Version1
	case V2c:
		c.Version = gosnmp.Version2c
	case V3:
		t.setUser(c, credential)
	default:
		return nil, fmt.Errorf("SNMP version %q is unknown", t.Version)
	}
	s.client = c
	if err := c.Connect(); err != nil {
		return nil, fmt.Errorf("open a socket: %w", err)
	}
	conn := c.Conn
	s.stop = context.AfterFunc(ctx, func() { _ = conn.Close() }) // the library waits for an answer until its own time limit
	return s, nil
}

// setUser sets the user and the security level of version 3.
func (t *Target) setUser(c *gosnmp.GoSNMP, name string) {
	c.Version, c.SecurityModel, c.ContextName, c.MsgFlags = gosnmp.Version3, gosnmp.UserSecurityModel, t.Context, gosnmp.NoAuthNoPriv
	user := &gosnmp.UsmSecurityParameters{UserName: name}
	if t.IsAuthenticated {
		c.MsgFlags = gosnmp.AuthNoPriv
		user.AuthenticationProtocol, user.AuthenticationPassphrase = gosnmp.SHA, t.AuthenticationPassphrase
		if t.AuthenticationProtocol == "MD5" {
			user.AuthenticationProtocol = gosnmp.MD5
		}
	}
	if t.IsAuthenticated && t.IsEncrypted {
		c.MsgFlags = gosnmp.AuthPriv
		user.PrivacyProtocol, user.PrivacyPassphrase = gosnmp.AES, t.PrivacyPassphrase
		if t.PrivacyProtocol == "DES" {
			user.PrivacyProtocol = gosnmp.DES
		}
	}
	c.SecurityParameters = user
}

// close closes the socket, unless the end of the context has closed it.
func (s *session) close() {
	if s.stop() {
		_ = s.client.Conn.Close()
	}
}

// ask sends a request. A malformed answer that the library does not survive is an error.
func (s *session) ask(send func() (*gosnmp.SnmpPacket, error)) (p *gosnmp.SnmpPacket, err error) {
	defer func() {
		if r := recover(); r != nil {
			p, err = nil, fmt.Errorf("malformed answer: %v", r)
		}
	}()
	if s.pace != nil {
		return nil, s.pace
	}
	if p, err = send(); err != nil {
		return nil, cmp.Or(s.ctx.Err(), err)
	}
	if p.Error != gosnmp.NoError && p.Error != gosnmp.NoSuchName {
		return nil, fmt.Errorf("the device returned %v", p.Error)
	}
	return p, nil
}

// get returns the value of one object; nil if the device has none.
func (s *session) get(oid string) (any, error) {
	p, err := s.ask(func() (*gosnmp.SnmpPacket, error) { return s.client.Get([]string{oid}) })
	if err != nil || p.Error != gosnmp.NoError || len(p.Variables) == 0 {
		return nil, err
	}
	return p.Variables[0].Value, nil
}

// next returns the rows after an object: several with GETBULK, one with GETNEXT. A device that does not answer GETBULK is asked with
// GETNEXT from then on.
func (s *session) next(oid string) ([]gosnmp.SnmpPDU, error) {
	if !s.single {
		p, err := s.ask(func() (*gosnmp.SnmpPacket, error) { return s.client.GetBulk([]string{oid}, 0, rowsPerAnswer) })
		if err == nil {
			return p.Variables, nil
		}
		if s.ctx.Err() != nil {
			return nil, s.ctx.Err()
		}
		s.single = true
	}
	p, err := s.ask(func() (*gosnmp.SnmpPacket, error) { return s.client.GetNext([]string{oid}) })
	if err != nil || p.Error != gosnmp.NoError {
		return nil, err
	}
	return p.Variables, nil
}

// walk calls fn with the index and the value of each row of a column.
func (s *session) walk(column string, fn func(index []uint32, value any)) error {
	root, ok := parseOID(column)
	if !ok {
		return fmt.Errorf("%s is not an object identifier", column)
	}
	last, at := root, column
	for rows := 0; ; {
		answers, err := s.next(at)
		if err != nil {
			return err
		}
		if len(answers) == 0 {
			return nil
		}
		for _, v := range answers {
			oid, ok := parseOID(v.Name)
			if v.Type == gosnmp.EndOfMibView || v.Type == gosnmp.NoSuchObject || v.Type == gosnmp.NoSuchInstance ||
				ok && !isBelow(root, oid) && slices.Compare(oid, root) > 0 {
				return nil
			}
			if !ok || slices.Compare(oid, last) <= 0 {
				return errLoop
			}
			if rows++; rows > s.maxRows {
				return errTruncated
			}
			last, at = oid, v.Name
			fn(oid[len(root):], v.Value)
		}
	}
}

// isBelow reports whether an object is in the subtree of another one.
func isBelow(root, oid []uint32) bool {
	return len(oid) > len(root) && slices.Equal(oid[:len(root)], root)
}

// maxOIDParts is the maximum length of an object identifier (RFC 2578).
const maxOIDParts = 128

// parseOID parses an object identifier in dotted form.
func parseOID(text string) (oid []uint32, ok bool) {
	for part := range strings.SplitSeq(strings.TrimPrefix(text, "."), ".") {
		n, err := strconv.ParseUint(part, 10, 32)
		if err != nil || len(oid) == maxOIDParts {
			return nil, false
		}
		oid = append(oid, uint32(n))
	}
	return oid, true
}
