package server

import (
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"strings"

	"portolan/internal/base/fairlisten"
	"portolan/internal/wire/checkin"
)

// loopback reports whether a listener is reachable from this machine only.
func loopback(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback() || a.Network() == "unix"
}

// Limits of simultaneous connections to the APIs, to the metrics, and of those to the check-in listener without a certificate. Each is at
// most a quarter of the file descriptors of the process; the others are for the database, service points and files. A client network may
// have a quarter of the limit.
const (
	maxConnections = 4096
	maxScrapers    = 64
	maxStrangers   = 16384
)

// limitConnections limits the connections of a listener fairly between client networks. Trusted proxies are exempt, because they carry many
// clients.
func (m *Manager) limitConnections(name string, l net.Listener, most int) *fairlisten.Listener {
	most = min(most, max(fairlisten.Descriptors()/4, 16))
	shared := m.isTrustedProxy
	if len(m.options.TrustProxy) == 0 {
		shared = nil
	}
	return fairlisten.New(l, fairlisten.Limits{Max: most, PerNetwork: max(most/4, 8), Shared: shared,
		Ended: func() { m.metrics.connectionEnded(name) }})
}

func (m *Manager) listen() (err error) {
	if m.api, err = listenAt(m.options.Listen); err != nil {
		return fmt.Errorf("listen for the APIs: %w", err)
	}
	m.api = m.limitConnections("api", m.api, maxConnections)
	if m.checkins = m.options.Door; m.checkins == nil {
		if m.checkins, err = listenAt(m.options.CheckinListen); err != nil {
			return fmt.Errorf("listen for check-ins: %w", err)
		}
	}
	fair := m.limitConnections("check-in", m.checkins, maxStrangers)
	m.checkins, m.anonymous = fair, fair
	if err := m.renewCertificate(); err != nil {
		return err
	}
	if m.options.MetricsListen != "" {
		if m.figures, err = listenAt(m.options.MetricsListen); err != nil {
			return fmt.Errorf("listen for metrics: %w", err)
		}
		m.figures = m.limitConnections("metrics", m.figures, maxScrapers)
	}
	config, err := m.tlsConfig()
	if err != nil {
		return err
	}
	if m.options.TLSCert != "" || !loopback(m.api.Addr()) && len(m.options.TrustProxy) == 0 {
		m.chain.Secure = true
		m.api = tls.NewListener(m.api, config)
	}
	m.Address.Manager.Address = m.URL()
	if m.figures != nil && !loopback(m.figures.Addr()) {
		m.figures = tls.NewListener(m.figures, config)
	}
	return nil
}

// tlsConfig returns the TLS configuration of listeners beyond loopback: with the configured certificate, or one of the manager's own
// authority.
func (m *Manager) tlsConfig() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}
	if m.options.TLSCert != "" {
		// Changed files are read again when a client connects, so that a renewed certificate needs no restart.
		m.files = &certificateFiles{cert: m.options.TLSCert, key: m.options.TLSKey}
		if _, err := m.files.get(nil); err != nil {
			return nil, fmt.Errorf("read the certificate: %w", err)
		}
		config.GetCertificate = m.files.get
		return m.wanting(config), nil
	}
	if !loopback(m.api.Addr()) && len(m.options.TrustProxy) == 0 {
		m.log.Warn("no TLS certificate configured, using one of the manager's own authority", "listen", m.api.Addr().String())
	}
	config.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return m.certificate.Load(), nil }
	return m.wanting(config), nil
}

// wanting requests client certificates while an authenticator verifies them (docs/sign-in.md).
func (m *Manager) wanting(config *tls.Config) *tls.Config {
	asking := config.Clone()
	asking.ClientAuth = tls.RequestClientCert
	config.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		if m.Identity.WantsCertificates(hello.Context()) {
			return asking, nil
		}
		return nil, nil
	}
	return config
}

// URL is the address of the APIs.
func (m *Manager) URL() string {
	scheme := "http://"
	if m.chain.Secure {
		scheme = "https://"
	}
	return scheme + m.api.Addr().String()
}

// RegistrationEndpoint returns the URL for the enrolment of service points.
func (m *Manager) RegistrationEndpoint() string {
	if m.options.PublicURL != "" {
		return strings.TrimRight(m.options.PublicURL, "/") + checkin.EnrolPath
	}
	host, port, err := net.SplitHostPort(m.checkins.Addr().String())
	if err != nil {
		return "https://" + m.checkins.Addr().String() + checkin.EnrolPath
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		if name, err := os.Hostname(); err == nil {
			host = name
		}
	}
	return "https://" + net.JoinHostPort(host, port) + checkin.EnrolPath
}
