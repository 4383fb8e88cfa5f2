package notify

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"mime"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"net/smtp"
	"net/textproto"
	"net/url"
	"strings"
	"time"
)

// Mail is a mail server that accepts messages (RFC 5321).
type Mail struct {
	host, port, user, password string
	// secure means TLS from the start of the connection. Otherwise STARTTLS is used if the server supports it (RFC 3207).
	secure bool
	from   mail.Address
	dial   func(ctx context.Context, network, address string) (net.Conn, error)
}

// mailTime is the timeout of sending a message.
const mailTime = 20 * time.Second

// ParseMail parses the URL of a mail server: smtp://USER:PASSWORD@HOST:PORT?from=ADDRESS, or smtps://. User and password may be omitted.
func ParseMail(text string) (*Mail, error) {
	u, err := url.Parse(text)
	if err != nil {
		// the URL may contain a password
		return nil, errors.New("the mail server must be a URL such as smtp://mail.example.net?from=portolan@example.net")
	}
	m := &Mail{host: u.Hostname(), port: u.Port(), secure: u.Scheme == "smtps", dial: (&net.Dialer{Timeout: mailTime}).DialContext}
	switch {
	case u.Scheme != "smtp" && u.Scheme != "smtps" || m.host == "":
		return nil, errors.New("the mail server must be a URL with smtp or smtps and a host")
	case m.port == "" && m.secure:
		m.port = "465"
	case m.port == "":
		m.port = "25"
	}
	m.user = u.User.Username()
	m.password, _ = u.User.Password()
	from, err := mail.ParseAddress(u.Query().Get("from"))
	if err != nil {
		return nil, fmt.Errorf("the URL of the mail server requires from=ADDRESS, the sender of messages: %w", err)
	}
	m.from = *from
	return m, nil
}

// maxReplies is the size limit of all replies of a mail server to one message, in bytes.
const maxReplies = 1 << 20

// limitedConn is a connection with a limit of bytes that can be read.
type limitedConn struct {
	net.Conn
	left int
}

func (b *limitedConn) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errors.New("the responses of the mail server exceed the limit")
	}
	n, err := b.Conn.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// isTemporary reports whether a mail server may accept later what it rejects now (RFC 5321 section 4.2.1).
func isTemporary(err error) bool {
	var reply *textproto.Error
	return errors.As(err, &reply) && reply.Code >= 400 && reply.Code < 500
}

// send sends a message to some addresses. refused are the addresses that the server rejects; if it rejects all, send returns an error.
// patient means that a temporary rejection of one address fails the whole message, so that it is retried.
func (m *Mail) send(ctx context.Context, to []string, name, subject, text string, patient bool) (refused []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, mailTime)
	defer cancel()
	conn, err := m.dial(ctx, "tcp", net.JoinHostPort(m.host, m.port))
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	conn = &limitedConn{conn, maxReplies}
	if m.secure {
		conn = tls.Client(conn, &tls.Config{ServerName: m.host, MinVersion: tls.VersionTLS12})
	}
	c, err := smtp.NewClient(conn, m.host)
	if err != nil {
		return nil, err
	}
	if ok, _ := c.Extension("STARTTLS"); ok && !m.secure {
		if err := c.StartTLS(&tls.Config{ServerName: m.host, MinVersion: tls.VersionTLS12}); err != nil {
			return nil, err
		}
	}
	if m.user != "" {
		if err := c.Auth(smtp.PlainAuth("", m.user, m.password, m.host)); err != nil {
			return nil, err
		}
	}
	if err := c.Mail(m.from.Address); err != nil {
		return nil, err
	}
	for _, address := range to {
		e := c.Rcpt(address)
		if e != nil && patient && isTemporary(e) {
			return nil, fmt.Errorf("%s: %w", address, e)
		}
		if e != nil {
			refused, err = append(refused, address), e
		}
	}
	if len(refused) == len(to) {
		return refused, fmt.Errorf("the mail server rejected all recipients: %w", err)
	}
	w, err := c.Data()
	if err != nil {
		return refused, err
	}
	message, err := m.message(name, subject, text)
	if err != nil {
		return refused, err
	}
	if _, err := w.Write(message); err != nil {
		return refused, err
	}
	if err := w.Close(); err != nil {
		return refused, err
	}
	_ = c.Quit() // the server has accepted the message
	return refused, nil
}

// message returns the text of a message (RFC 5322). name is the display name of the receivers.
func (m *Mail) message(name, subject, text string) ([]byte, error) {
	var id [12]byte
	_, _ = rand.Read(id[:]) // it never fails
	domain := m.from.Address[strings.LastIndex(m.from.Address, "@")+1:]
	var b bytes.Buffer
	to := mail.Address{Name: name, Address: m.from.Address}
	for _, line := range [][2]string{{"From", m.from.String()}, {"To", to.String()}, {"Subject", mime.QEncoding.Encode("utf-8", subject)},
		{"Date", time.Now().Format(time.RFC1123Z)}, {"Message-ID", fmt.Sprintf("<%x@%s>", id, domain)},
		{"Auto-Submitted", "auto-generated"}, {"MIME-Version", "1.0"}, {"Content-Type", "text/plain; charset=utf-8"},
		{"Content-Transfer-Encoding", "quoted-printable"}} {
		b.WriteString(line[0] + ": " + line[1] + "\r\n")
	}
	b.WriteString("\r\n")
	w := quotedprintable.NewWriter(&b)
	if _, err := w.Write([]byte(strings.ReplaceAll(text, "\n", "\r\n"))); err != nil {
		return nil, err
	}
	return b.Bytes(), w.Close()
}
