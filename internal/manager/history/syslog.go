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
// 3.4.1), or over TLS (RFC 5425). The message is the transaction in JSON. It is used by one goroutine at a time.
type Syslog struct {
	network, address string
	host             string         // this machine
	roots            *x509.CertPool // whom a collector's certificate must be from; nil: whom the machine trusts
	conn             net.Conn
	refused          bool // somebody answered that nobody listens, over UDP, and that was said
}

// Ports of the syslog (RFC 5426 section 3.3, RFC 5425 section 4.1); TCP without TLS has none of its own, and mostly the one of UDP.
var syslogPorts = map[string]string{"udp": "514", "tcp": "514", "tls": "6514"}

// ParseSyslog reads where transactions are sent: udp://HOST:PORT, tcp://HOST:PORT or tls://HOST:PORT.
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

// syslogTime is how long a connection, or the sending of some messages, may take.
const syslogTime = 10 * time.Second

// priority is that of what is sent: facility 13, log audit, severity 5, notice (RFC 5424 section 6.2.1).
const priority = 13*8 + 5

// sentLine is a transaction in a message. Its body has who did it, by what credential, from where, and the comment.
type sentLine struct {
	Transaction int64           `json:"transaction"`
	Position    string          `json:"position"`
	User        int64           `json:"user"`
	Body        json.RawMessage `json:"body"`
}

// headID is the MSGID of signed heads; that of a transaction is its operation.
const headID = "HISTORY_HEAD"

// message words a message of a time; id is its MSGID (section 6.2.7).
func (s *Syslog) message(at time.Time, id string, text []byte) []byte {
	return fmt.Appendf(nil, "<%d>1 %s %s portolan - %s - %s", priority, at.UTC().Format("2006-01-02T15:04:05.000Z"), s.host,
		id[:min(len(id), 32)], text)
}

// send sends transactions, and heads in JSON; what failed may have been sent in part.
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
	_ = s.conn.SetDeadline(time.Now().Add(syslogTime)) // which these connections take
	var all bytes.Buffer
	for _, text := range messages {
		if s.network == "udp" {
			if err := s.datagram(text); err != nil {
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

// maxDatagram is how much of a message goes into a datagram, in bytes: less than any may have.
const maxDatagram = 60_000

// datagram sends a message over UDP. That nobody listens is said once: such an answer is about a message before, and who sends over UDP
// does not know what arrives.
func (s *Syslog) datagram(text []byte) error {
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

// broken reports whether the connection over which messages were sent is not there any more: what the collector had not read is lost. It
// closes what is left of it.
func (s *Syslog) broken() bool {
	if s.network == "udp" {
		return false
	}
	if s.conn != nil && s.ended() {
		s.close()
	}
	return s.conn == nil
}

// dial connects where there is no connection, or where the collector has ended it.
func (s *Syslog) dial(ctx context.Context) (err error) {
	if s.conn != nil && s.network != "udp" && s.ended() {
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

// ended reports whether the collector has closed the connection: it never sends anything.
func (s *Syslog) ended() bool {
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
