package dhcp

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	dns "portolan/internal/base/dnsmsg"
	"portolan/internal/wire/dhcpdata"
)

// The times of updates: how long an answer is awaited, how often a message is sent, and the difference of the clocks that a signature
// allows, in seconds.
const (
	updateTimeout = 3 * time.Second
	updateTries   = 2
	signatureTime = 300
	dnsPort       = 53
)

// updateSender sends update messages to the servers of a zone.
type updateSender struct {
	// port is the port of the servers, which tests replace.
	port uint16
}

// errUnusable reports that no server of a zone accepts updates now, with the reason.
var errUnusable = errors.New("no server of the zone responds")

// send sends a message to the primary server of a zone, or else to the secondary. It returns the response code. An error means that no
// server can decide now.
func (u *updateSender) send(ctx context.Context, z dhcpdata.Zone, n *dhcpdata.Names, m *dns.Msg) (code int, err error) {
	for _, server := range []netip.Addr{z.Primary, z.Secondary} {
		if !server.IsValid() {
			continue
		}
		for range updateTries {
			var one error
			if code, one = u.exchange(ctx, server, z, n, m); one == nil {
				return code, nil
			}
			err = errors.Join(err, fmt.Errorf("%s: %w", server, one))
			var late net.Error
			if ctx.Err() != nil || !errors.As(one, &late) || !late.Timeout() {
				break
			}
		}
	}
	return 0, fmt.Errorf("%w: %w", errUnusable, err)
}

// exchange sends a message to a server and returns the response code. The codes of servers that cannot decide are errors.
func (u *updateSender) exchange(ctx context.Context, server netip.Addr, z dhcpdata.Zone, n *dhcpdata.Names, m *dns.Msg) (int, error) {
	dialer := net.Dialer{Timeout: updateTimeout}
	if n.Source.IsValid() && n.Source.Is4() == server.Is4() {
		dialer.LocalAddr = &net.UDPAddr{IP: n.Source.AsSlice()}
	}
	socket, err := dialer.DialContext(ctx, "udp", netip.AddrPortFrom(server, u.port).String())
	if err != nil {
		return 0, err
	}
	defer context.AfterFunc(ctx, func() { _ = socket.Close() })()
	c := &dns.Conn{Conn: socket}
	defer func() { _ = c.Close() }()
	out := m.Copy()
	if z.KeyName != "" {
		out.SetTsig(z.KeyName, z.KeyAlgorithm, signatureTime, time.Now().Unix())
		c.TsigSecret = map[string]string{z.KeyName: base64.StdEncoding.EncodeToString(z.KeySecret)}
	}
	if err := errors.Join(c.SetDeadline(time.Now().Add(updateTimeout)), c.WriteMsg(out)); err != nil {
		return 0, err
	}
	for {
		in, err := c.ReadMsg()
		if in != nil && in.Id != out.Id { // the answer to another message
			continue
		}
		if in != nil {
			if t := in.IsTsig(); t != nil && t.Error != 0 {
				return 0, fmt.Errorf("the server rejects the key %s: %s", z.KeyName, dns.RcodeToString[int(t.Error)])
			}
		}
		if err != nil {
			return 0, err
		}
		if z.KeyName != "" && in.IsTsig() == nil {
			return 0, fmt.Errorf("the answer %s is not signed", dns.RcodeToString[in.Rcode])
		}
		switch in.Rcode {
		case dns.RcodeServerFailure, dns.RcodeNotAuth, dns.RcodeNotImplemented:
			return 0, fmt.Errorf("the server returned %s", dns.RcodeToString[in.Rcode])
		}
		return in.Rcode, nil
	}
}

// outcome is the result of a task.
type outcome string

// The outcomes. The metric portolan_dhcp_names_total counts them.
const (
	outcomeAdded    outcome = "added"
	outcomeRemoved  outcome = "removed"
	outcomeConflict outcome = "conflict"
	outcomeRefused  outcome = "refused"
)

// perform sends the steps of a task until one succeeds. failed is the response code of a refusal.
func (u *updateSender) perform(ctx context.Context, z dhcpdata.Zone, n *dhcpdata.Names, steps []nameStep,
) (done bool, refusal int, err error) {
	for _, one := range steps {
		code, err := u.send(ctx, z, n, one.message)
		switch {
		case err != nil:
			return false, 0, err
		case failsPrerequisite(code):
			continue
		case code != dns.RcodeSuccess:
			return false, code, nil
		}
		if one.after != nil {
			code, err = u.send(ctx, z, n, one.after)
			if err == nil && code != dns.RcodeSuccess && !failsPrerequisite(code) {
				return false, code, nil
			}
		}
		return true, 0, err
	}
	return false, 0, nil
}
