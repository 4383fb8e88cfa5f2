package server

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"

	"github.com/coreos/go-systemd/v22/activation"

	"portolan/internal/base/problem"
	"portolan/internal/manager/server/middleware"
)

// socketPrefix is the prefix of the address of a systemd socket; the name of the socket follows (FileDescriptorName of its unit).
const socketPrefix = "systemd:"

// sockets are the sockets of systemd, by name.
var sockets = sync.OnceValues(activation.ListenersWithNames)

// listenAt listens at an address, or returns the systemd socket that it names.
func listenAt(address string) (net.Listener, error) {
	name, ok := strings.CutPrefix(address, socketPrefix)
	if !ok {
		return net.Listen("tcp", address)
	}
	all, err := sockets()
	if err != nil {
		return nil, err
	}
	for _, l := range all[name] {
		if l != nil {
			return l, nil
		}
	}
	return nil, fmt.Errorf("systemd did not pass a socket %q: set FileDescriptorName=%s in its unit", name, name)
}

// isTrustedProxy reports whether an address is that of a trusted proxy.
func (m *Manager) isTrustedProxy(a netip.Addr) bool {
	if a = a.Unmap(); a.IsLoopback() {
		return true
	}
	for _, p := range m.options.TrustProxy {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// behindProxies admits only trusted proxies if the listener is plain HTTP for them. The client's address is the last one of X-Forwarded-For
// that is not a trusted proxy. Without --trust-proxy it changes nothing.
func (m *Manager) behindProxies(h http.Handler) http.Handler {
	if len(m.options.TrustProxy) == 0 {
		return h
	}
	refused := m.chain.Handler(middleware.Plain("none"), func(http.ResponseWriter, *http.Request) error {
		return problem.Forbidden("AccessDenied", "only the proxies in --trust-proxy may connect to this listener, because it uses plain HTTP")
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from, err := netip.ParseAddrPort(r.RemoteAddr)
		if err != nil || !m.isTrustedProxy(from.Addr()) {
			if m.chain.Secure {
				h.ServeHTTP(w, r)
				return
			}
			refused.ServeHTTP(w, r)
			return
		}
		hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
		for i := len(hops) - 1; i >= 0; i-- {
			a, err := netip.ParseAddr(strings.TrimSpace(hops[i]))
			if err != nil || a.Zone() != "" { // a zone is any text, and local to a machine
				break
			}
			r.RemoteAddr = netip.AddrPortFrom(a, 0).String()
			if !m.isTrustedProxy(a) {
				break
			}
		}
		h.ServeHTTP(w, r)
	})
}
