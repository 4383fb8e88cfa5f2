package history

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"syscall"
	"time"

	"portolan/internal/engine/store"
)

// Syslog sends transactions to a collector, as messages of RFC 5424: over UDP (RFC 5426), over TCP with octet counting (RFC 6587 section
// 3.4.1), or over TLS (RFC 5425). The message text is the transaction in JSON. A Syslog must be used by one goroutine at a time.
type Syslog struct {
	network, address string
	host             string         // the name of this machine, for messages
	roots            *x509.CertPool // the authorities to trust; nil for those of the system
	conn             net.Conn
	refused          bool // a UDP send was refused, and the error was returned once
}

// syslogPorts are the default ports (RFC 5426 section 3.3, RFC 5425 section 4.1). TCP without TLS has no registered port; that of UDP is
// common.
var syslogPorts = map[string]string{"udp": "514", "tcp": "514", "tls": "6514"}

// ParseSyslog parses the address of a collector: udp://HOST:PORT, tcp://HOST:PORT or tls://HOST:PORT.
func ParseSyslog(text string) (*Syslog, error) {
	u, err := url.Parse(text)
	if err != nil || syslogPorts[u.Scheme] == "" || u.Hostname() == "" || u.Path != "" || u.RawQuery != "" || u.User != nil {
		return nil, errors.New("must be udp://HOST:PORT, tcp://HOST:PORT or tls://HOST:PORT")
	}
	port := u.Port()
	if port == "" {
		port = syslogPorts[u.Scheme]
	}
	s := &Syslog{network: u.Scheme, address: net.JoinHostPort(u.Hostname(), port), host: "-"}
	if name, err := os.Hostname(); err == nil && name != "" {
		s.host = name
	}
	return s, nil
}

// syslogTime is the timeout for connecting, and for sending one batch of messages.
const syslogTime = 10 * time.Second

// priority is the PRI of all messages: facility 13, log audit, and severity 5, notice (RFC 5424 section 6.2.1).
const priority = 13*8 + 5

// sentLine is the JSON text of a transaction. Its body contains the author, the credential, the client address and the comment.
type sentLine struct {
	Transaction int64           `json:"transaction"`
	Position    string          `json:"position"`
	User        int64           `json:"user"`
	Body        json.RawMessage `json:"body"`
}

// headID is the MSGID of signed heads. The MSGID of a transaction is its operation.
const headID = "HISTORY_HEAD"

// message returns a syslog message with a timestamp; id is its MSGID (RFC 5424 section 6.2.7).
func (s *Syslog) message(at time.Time, id string, text []byte) []byte {
	return fmt.Appendf(nil, "<%d>1 %s %s portolan - %s - %s", priority, at.UTC().Format("2006-01-02T15:04:05.000Z"), s.host,
		id[:min(len(id), 32)], text)
}

// send sends transactions, and heads in JSON. After an error, some of the messages may have been sent.
func (s *Syslog) send(ctx context.Context, entries []store.Entry, heads [][]byte) error {
	var messages [][]byte
	for _, e := range entries {
		text, err := json.Marshal(sentLine{e.ID, e.Position.String(), e.User, e.Body})
		if err != nil {
			return err
		}
		messages = append(messages, s.message(e.At, e.Operation, text))
	}
	for _, h := range heads {
		messages = append(messages, s.message(time.Now(), headID, h))
	}
	if len(messages) == 0 {
		return nil
	}
	if err := s.dial(ctx); err != nil {
		return err
	}
	_ = s.conn.SetDeadline(time.Now().Add(syslogTime)) // never fails on these connections
	var all bytes.Buffer
	for _, text := range messages {
		if s.network == "udp" {
			if err := s.sendDatagram(text); err != nil {
				s.close()
				return err
			}
			continue
		}
		all.WriteString(strconv.Itoa(len(text)) + " ")
		all.Write(text)
	}
	if s.network == "udp" {
		return nil
	}
	_, err := s.conn.Write(all.Bytes())
	if err != nil {
		s.close()
	}
	return err
}

// maxDatagram is the maximum length of a UDP message, in bytes, below the limit of a datagram. Longer messages are cut.
const maxDatagram = 60_000

// sendDatagram sends a message over UDP. The error that the port is closed is returned only once: it refers to an earlier message, and UDP
// does not report delivery anyway.
func (s *Syslog) sendDatagram(text []byte) error {
	text = text[:min(len(text), maxDatagram)]
	_, err := s.conn.Write(text)
	if !errors.Is(err, syscall.ECONNREFUSED) || !s.refused {
		s.refused = s.refused || errors.Is(err, syscall.ECONNREFUSED)
		return err
	}
	if _, err = s.conn.Write(text); errors.Is(err, syscall.ECONNREFUSED) {
		return nil
	}
	return err
}

// isBroken reports whether the connection of earlier messages is closed, so that messages the collector had not read are lost. It closes
// the connection on this side.
func (s *Syslog) isBroken() bool {
	if s.network == "udp" {
		return false
	}
	if s.conn != nil && s.isClosedByPeer() {
		s.close()
	}
	return s.conn == nil
}

// dial connects, unless there is an open connection.
func (s *Syslog) dial(ctx context.Context) (err error) {
	if s.conn != nil && s.network != "udp" && s.isClosedByPeer() {
		s.close()
	}
	if s.conn != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, syslogTime)
	defer cancel()
	switch s.network {
	case "tls":
		host, _, _ := net.SplitHostPort(s.address)
		s.conn, err = (&tls.Dialer{Config: &tls.Config{MinVersion: tls.VersionTLS12, ServerName: host, RootCAs: s.roots}}).DialContext(ctx,
			"tcp", s.address)
	default:
		s.conn, err = new(net.Dialer).DialContext(ctx, s.network, s.address)
	}
	if err != nil {
		s.conn = nil
	}
	return err
}

// isClosedByPeer reports whether the collector closed the connection. A collector never sends data, so a read either times out or fails.
func (s *Syslog) isClosedByPeer() bool {
	_ = s.conn.SetReadDeadline(time.Now().Add(time.Millisecond))
	var one [1]byte
	_, err := s.conn.Read(one[:])
	var network net.Error
	return !errors.As(err, &network) || !network.Timeout()
}

func (s *Syslog) close() {
	if s.conn != nil {
		_ = s.conn.Close()
		s.conn = nil
	}
}
