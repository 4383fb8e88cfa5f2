package nameserver

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	dns "portolan/internal/base/dnsmsg"
)

// The path and media type of DNS over HTTPS (RFC 8484 sections 4 and 6).
const (
	webPath = "/dns-query"
	webType = "application/dns-message"
)

// Limits of HTTPS requests.
const (
	webHeader  = 8 << 10
	maxWebBody = 65535
	webTimeout = 10 * time.Second
)

// newWeb returns the server for DNS over HTTPS.
func (l *listener) newWeb() *http.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+webPath, func(w http.ResponseWriter, r *http.Request) {
		m, err := base64.RawURLEncoding.DecodeString(r.URL.Query().Get("dns"))
		if err != nil || len(m) == 0 {
			http.Error(w, "dns: must be a message in base64url (RFC 8484 section 4.1)", http.StatusBadRequest)
			return
		}
		l.serveWeb(w, r, m)
	})
	mux.HandleFunc("POST "+webPath, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Content-Type") != webType {
			http.Error(w, "Content-Type: must be "+webType, http.StatusUnsupportedMediaType)
			return
		}
		m, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxWebBody))
		if err != nil {
			http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
			return
		}
		l.serveWeb(w, r, m)
	})
	return &http.Server{Handler: mux, MaxHeaderBytes: webHeader, ReadTimeout: webTimeout, WriteTimeout: webTimeout,
		IdleTimeout: webTimeout, ErrorLog: slog.NewLogLogger(l.a.log.Handler(), slog.LevelDebug)}
}

// serveWeb answers one message.
func (l *listener) serveWeb(w http.ResponseWriter, r *http.Request, m []byte) {
	client, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	answer := l.a.answer(m, nil, client.Addr().Unmap(), true)
	if answer == nil {
		http.Error(w, "the body must be a DNS query", http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", webType)
	w.Header().Set("Cache-Control", fmt.Sprintf("max-age=%d", maxAge(answer)))
	_, _ = w.Write(answer) //nolint:gosec // not a web page; the client repeats a lost request
}

// maxAge returns the cache lifetime of an answer in seconds: the smallest TTL of its records (RFC 8484 section 5.1).
func maxAge(answer []byte) (seconds uint32) {
	m := new(dns.Msg)
	if m.Unpack(answer) != nil {
		return 0
	}
	first := true
	for _, section := range [][]dns.RR{m.Answer, m.Ns} {
		for _, rr := range section {
			ttl := rr.Header().Ttl
			if soa, ok := rr.(*dns.SOA); ok && len(m.Answer) == 0 {
				ttl = min(ttl, soa.Minttl)
			}
			if first || ttl < seconds {
				seconds, first = ttl, false
			}
		}
	}
	return seconds
}

// checkWeb sends a query to this listener.
func (l *listener) checkWeb(ctx context.Context, m *dns.Msg) error {
	wire, err := m.Pack()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	rq, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+l.address.String()+webPath, bytes.NewReader(wire))
	if err != nil {
		return err
	}
	rq.Header.Set("Content-Type", webType)
	itself := &tls.Config{InsecureSkipVerify: true} //nolint:gosec // connects to this process
	transport := &http.Transport{TLSClientConfig: itself, DisableKeepAlives: true}
	defer transport.CloseIdleConnections()
	rs, err := transport.RoundTrip(rq)
	if err != nil {
		return err
	}
	_ = rs.Body.Close()
	if rs.StatusCode != http.StatusOK {
		return errors.New(rs.Status)
	}
	return nil
}
