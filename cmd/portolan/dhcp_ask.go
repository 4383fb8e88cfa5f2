package main

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/insomniacslk/dhcp/dhcpv4"
)

type dhcpAskCommand struct {
	jsonFlag
	Network    string `help:"The network of the client. Default: that of this machine's address." placeholder:"PREFIX"`
	HostName   string `help:"The host name of the client." placeholder:"NAME"`
	Offer      bool   `help:"Stop after the offer, so that the server does not create a lease."`
	Release    bool   `help:"Release the lease afterwards."`
	Server     string `arg:"" help:"The IPv4 address of the server, with its port if it is not 67, such as 127.0.0.2:6767."`
	MACAddress string `arg:"" optional:"" name:"mac-address" help:"The hardware address of the client. Default: a random one."`
}

// How long a client waits for a reply, and how often it asks. A server may probe an address before it offers it.
const (
	askWait  = 2 * time.Second
	askTries = 3
)

// relaySourcePort asks for replies at the source port of a relay (RFC 8357). linkSelection is the network of the client (RFC 3527).
const (
	linkSelection   = 5
	relaySourcePort = 19
)

// dhcpAnswer is the last reply of a server. LeaseTime is in seconds. Options are the octets of the options by code, as hexadecimal digits.
type dhcpAnswer struct {
	MACAddress string            `json:"macAddress"`
	Reply      string            `json:"reply"`
	Address    string            `json:"address,omitempty"`
	Server     string            `json:"server,omitempty"`
	LeaseTime  int64             `json:"leaseTime,omitempty"`
	Message    string            `json:"message,omitempty"`
	Options    map[string]string `json:"options"`
}

// Run asks a server for an address as a client behind a relay, and prints its last reply.
func (c *dhcpAskCommand) Run(s *session) error {
	a, err := c.asker()
	if err != nil {
		return usageError{err}
	}
	defer func() { _ = a.conn.Close() }() // nothing is buffered
	last, err := a.getLease(s, c.Offer)
	if err != nil {
		return err
	}
	leased := last.MessageType() == dhcpv4.MessageTypeAck
	if c.Release && leased {
		m, err := a.message(dhcpv4.MessageTypeRelease, dhcpv4.WithClientIP(last.YourIPAddr),
			dhcpv4.WithOption(dhcpv4.OptServerIdentifier(last.ServerIdentifier())))
		if err != nil {
			return err
		}
		if _, err := a.conn.Write(m.ToBytes()); err != nil {
			return err
		}
	}
	answer := dhcpAnswer{MACAddress: a.mac.String(), Reply: last.MessageType().String(), Message: last.Message(), Options: map[string]string{}}
	for code, value := range last.Options {
		answer.Options[strconv.Itoa(int(code))] = hex.EncodeToString(value)
	}
	if last.MessageType() != dhcpv4.MessageTypeNak {
		answer.Address, answer.Server = last.YourIPAddr.String(), last.ServerIdentifier().String()
		answer.LeaseTime = int64(last.IPAddressLeaseTime(0) / time.Second)
	}
	if c.JSON {
		err = json.NewEncoder(s.stdout).Encode(answer)
	} else {
		_, err = fmt.Fprintf(s.stdout, "%s %s %s\n%s", answer.Reply, answer.MACAddress, answer.Address,
			visible(last.Options.Summary(nil)))
	}
	if err == nil && last.MessageType() == dhcpv4.MessageTypeNak {
		err = fmt.Errorf("the server refuses the address: %s", visible(answer.Message))
	}
	return err
}

// dhcpAsker is a client behind a relay.
type dhcpAsker struct {
	conn   *net.UDPConn
	mac    net.HardwareAddr
	always []dhcpv4.Modifier
}

// getLease gets a lease, or an offer alone, and returns the last reply of the server.
func (a *dhcpAsker) getLease(s *session, offer bool) (last *dhcpv4.DHCPv4, err error) {
	last, err = a.ask(s, dhcpv4.MessageTypeDiscover)
	if err != nil || offer || last.MessageType() != dhcpv4.MessageTypeOffer {
		return last, err
	}
	return a.ask(s, dhcpv4.MessageTypeRequest, dhcpv4.WithOption(dhcpv4.OptRequestedIPAddress(last.YourIPAddr)),
		dhcpv4.WithOption(dhcpv4.OptServerIdentifier(last.ServerIdentifier())))
}

// maxHostName is the maximum length of a host name in octets.
const maxHostName = 255

// check returns the fault of the arguments beside the MAC address and the network.
func (c *dhcpAskCommand) check(server netip.AddrPort) error {
	a := server.Addr()
	switch {
	case a.IsUnspecified() || a.IsMulticast() || a == netip.AddrFrom4([4]byte{255, 255, 255, 255}) || server.Port() == 0:
		return fmt.Errorf("%q is not the address of one server", c.Server)
	case len(c.HostName) > maxHostName:
		return fmt.Errorf("--host-name: at most %d octets", maxHostName)
	case strings.ContainsFunc(c.HostName, unicode.IsControl):
		return errors.New("--host-name: control characters are not allowed")
	case c.Offer && c.Release:
		return errors.New("--release requires a lease: omit --offer")
	}
	return nil
}

// visible returns a text of a server without the control characters, which could change the terminal.
func visible(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

// asker opens the connection to the server.
func (c *dhcpAskCommand) asker() (*dhcpAsker, error) {
	at := c.Server
	if !strings.Contains(at, ":") {
		at += ":67"
	}
	server, err := netip.ParseAddrPort(at)
	if err != nil || !server.Addr().Is4() {
		return nil, fmt.Errorf("%q is not an IPv4 address with or without a port", c.Server)
	}
	if err := c.check(server); err != nil {
		return nil, err
	}
	a := &dhcpAsker{}
	if c.MACAddress == "" {
		a.mac = make(net.HardwareAddr, 6)
		_, _ = rand.Read(a.mac) // never fails
		a.mac[0] = a.mac[0]&^1 | 2
	} else if a.mac, err = net.ParseMAC(c.MACAddress); err != nil || len(a.mac) != 6 {
		return nil, fmt.Errorf("%q is not a MAC address of six octets", c.MACAddress)
	} else if a.mac[0]&1 != 0 || bytes.Equal(a.mac, make([]byte, 6)) {
		return nil, fmt.Errorf("%q is a group or empty address: servers do not answer such clients", c.MACAddress)
	}
	if a.conn, err = net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(server)); err != nil {
		return nil, err
	}
	local, _ := netip.AddrFromSlice(a.conn.LocalAddr().(*net.UDPAddr).IP.To4()) //nolint:errcheck,forcetypeassert // of a UDP connection
	relay, options := local, []dhcpv4.Option{dhcpv4.OptGeneric(dhcpv4.GenericOptionCode(relaySourcePort), nil)}
	if c.Network != "" {
		network, err := netip.ParsePrefix(c.Network)
		if err != nil || !network.Addr().Is4() || network.Bits() < 8 || network.Bits() > 30 {
			_ = a.conn.Close() // nothing was sent
			return nil, fmt.Errorf("--network: %q is not an IPv4 network with a length of 8 to 30", c.Network)
		}
		first := network.Masked().Addr()
		options = append(options, dhcpv4.OptGeneric(dhcpv4.GenericOptionCode(linkSelection), first.AsSlice()))
		if local.IsLoopback() { // the server answers to the source
			relay = first.Next()
		}
	} else if local.IsLoopback() {
		_ = a.conn.Close() // nothing was sent
		return nil, errors.New("--network is required for a server on this machine")
	}
	a.always = []dhcpv4.Modifier{dhcpv4.WithHwAddr(a.mac), dhcpv4.WithGatewayIP(relay.AsSlice()),
		dhcpv4.WithOption(dhcpv4.OptRelayAgentInfo(options...)), dhcpv4.WithRequestedOptions(dhcpv4.OptionSubnetMask, dhcpv4.OptionRouter,
			dhcpv4.OptionDomainNameServer, dhcpv4.OptionHostName, dhcpv4.OptionDomainName, dhcpv4.OptionNTPServers,
			dhcpv4.OptionDNSDomainSearchList, dhcpv4.OptionClasslessStaticRoute)}
	if c.HostName != "" {
		a.always = append(a.always, dhcpv4.WithOption(dhcpv4.OptHostName(c.HostName)))
	}
	return a, nil
}

// message returns a message of the client.
func (a *dhcpAsker) message(kind dhcpv4.MessageType, change ...dhcpv4.Modifier) (*dhcpv4.DHCPv4, error) {
	return dhcpv4.New(append(append([]dhcpv4.Modifier{dhcpv4.WithMessageType(kind)}, a.always...), change...)...)
}

// ask sends a message until the server replies.
func (a *dhcpAsker) ask(s *session, kind dhcpv4.MessageType, change ...dhcpv4.Modifier) (*dhcpv4.DHCPv4, error) {
	m, err := a.message(kind, change...)
	if err != nil {
		return nil, err
	}
	buffer := make([]byte, 1<<16)
	for range askTries {
		if s.ctx.Err() != nil {
			return nil, s.ctx.Err()
		}
		if _, err := a.conn.Write(m.ToBytes()); err != nil {
			return nil, err
		}
		if err := a.conn.SetReadDeadline(time.Now().Add(askWait)); err != nil {
			return nil, err
		}
		for {
			n, err := a.conn.Read(buffer)
			if errors.Is(err, os.ErrDeadlineExceeded) {
				break
			}
			if err != nil {
				return nil, fmt.Errorf("no reply to %s: %w", kind, err)
			}
			if r, err := dhcpv4.FromBytes(buffer[:n]); err == nil && r.TransactionID == m.TransactionID {
				return r, nil
			}
		}
	}
	return nil, fmt.Errorf("no reply to %s after %d messages: see portolan dhcp refused and portolan dhcp explain", kind, askTries)
}
