package server

import (
	"crypto/tls"
	"fmt"
	"net"
)

// loopback reports whether a listener can be reached from this machine alone.
func loopback(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback() || a.Network() == "unix"
}

func (m *Manager) listen() (err error) {
	if m.api, err = listenAt(m.options.Listen); err != nil {
		return fmt.Errorf("listening for the APIs: %w", err)
	}
	if m.checkins = m.options.Door; m.checkins == nil {
		if m.checkins, err = listenAt(m.options.CheckinListen); err != nil {
			return fmt.Errorf("listening for check-ins: %w", err)
		}
	}
	if err := m.renewCertificate(); err != nil {
		return err
	}
	if m.options.MetricsListen != "" {
		if m.figures, err = listenAt(m.options.MetricsListen); err != nil {
			return fmt.Errorf("listening for metrics: %w", err)
		}
	}
	config, err := m.tlsConfig()
	if err != nil {
		return err
	}
	if m.options.TLSCert != "" || !loopback(m.api.Addr()) && len(m.options.TrustProxy) == 0 {
		m.secure = true
		m.api = tls.NewListener(m.api, config)
	}
	m.Address.Manager.Address = m.URL()
	if m.figures != nil && !loopback(m.figures.Addr()) {
		m.figures = tls.NewListener(m.figures, config)
	}
	return nil
}

// tlsConfig is how the listeners beyond loopback speak TLS: with the certificate that was given, or one of the
// manager's own authority.
func (m *Manager) tlsConfig() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}
	if m.options.TLSCert != "" {
		// The files are read again when a client connects and they have changed, so that a renewed
		// certificate needs no restart.
		m.files = &certificateFiles{cert: m.options.TLSCert, key: m.options.TLSKey}
		if _, err := m.files.get(nil); err != nil {
			return nil, fmt.Errorf("reading the certificate: %w", err)
		}
		config.GetCertificate = m.files.get
		return m.wanting(config), nil
	}
	if !loopback(m.api.Addr()) && len(m.options.TrustProxy) == 0 {
		m.log.Warn("no certificate was given: this one is issued by the manager's own authority", "listen", m.api.Addr().String())
	}
	config.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return m.certificate.Load(), nil }
	return m.wanting(config), nil
}

// wanting has browsers asked for certificates as long as somebody verifies them (docs/sign-in.md).
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
