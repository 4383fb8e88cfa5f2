package server

import (
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"sync"
	"time"
)

// certificateFiles reads a certificate from its files when they change.
type certificateFiles struct {
	cert, key string
	mu        sync.Mutex
	modified  time.Time
	current   *tls.Certificate
}

func (f *certificateFiles) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	info, err := os.Stat(f.cert)
	if err == nil && f.current != nil && info.ModTime().Equal(f.modified) {
		return f.current, nil
	}
	if err == nil {
		var pair tls.Certificate
		if pair, err = tls.LoadX509KeyPair(f.cert, f.key); err == nil {
			f.current, f.modified = &pair, info.ModTime()
			return f.current, nil
		}
	}
	if f.current != nil { // the new files may be incomplete
		return f.current, nil
	}
	return nil, err
}

// reread reads the files even if they look unchanged.
func (f *certificateFiles) reread() error {
	f.mu.Lock()
	f.modified = time.Time{}
	f.mu.Unlock()
	_, err := tls.LoadX509KeyPair(f.cert, f.key)
	return err
}

// renewCertificate creates the manager's own certificate for every address of the manager.
func (m *Manager) renewCertificate() error {
	hosts := []string{"localhost"}
	if name, err := os.Hostname(); err == nil {
		hosts = append(hosts, name)
	}
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return fmt.Errorf("read the machine's addresses: %w", err)
	}
	for _, a := range addrs {
		if ip, ok := a.(*net.IPNet); ok {
			hosts = append(hosts, ip.IP.String())
		}
	}
	certificate, err := m.authority.ServerCertificate(hosts...)
	if err != nil {
		return err
	}
	m.certificate.Store(certificate)
	return nil
}
