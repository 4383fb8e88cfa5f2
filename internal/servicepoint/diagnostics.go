package servicepoint

import (
	"cmp"
	"encoding/json"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"portolan/internal/wire/checkin"
)

// handler serves the diagnostics. It shows the last probe results; a request does not start a probe.
func (a *Agent) handler() http.Handler {
	mux := http.NewServeMux()
	a.serveDocument(mux, checkin.DiagnosticsPath, func() (int, any, error) {
		if a.options.Variant == checkin.V4 {
			d, err := a.v4()
			return http.StatusOK, d, err
		}
		return http.StatusOK, a.diagnostics(), nil
	})
	a.serveDocument(mux, checkin.StatusPath, func() (int, any, error) { return http.StatusOK, a.shortStatus(), nil })
	a.serveNotFound(mux, checkin.DiagnosticsPath)
	return mux
}

// checkHost rejects requests whose Host header is neither an IP address nor a name of this machine. This protects against DNS rebinding,
// in which a web page's name resolves to this machine.
func (a *Agent) checkHost(handler http.Handler) http.Handler {
	names := append([]string{"localhost"}, a.options.Names...)
	if name, err := os.Hostname(); err == nil {
		first, _, _ := strings.Cut(name, ".")
		names = append(names, name, first)
		for _, domain := range a.host.searchDomains() {
			names = append(names, first+"."+domain)
		}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
		host = strings.TrimSuffix(strings.Trim(host, "[]"), ".")
		_, err := netip.ParseAddr(host)
		if host != "" && err != nil && !slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(name, host) }) {
			a.reply(w, http.StatusMisdirectedRequest, errorDocument(http.StatusMisdirectedRequest, "MisdirectedRequest",
				"this machine does not have the name "+strconv.Quote(host)+": use its address, or add the name with --diagnostics-name"))
			return
		}
		handler.ServeHTTP(w, r)
	})
}

// serveDocument serves the status and document that document returns, for GET and HEAD.
func (a *Agent) serveDocument(mux *http.ServeMux, path string, document func() (int, any, error)) {
	mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			a.reply(w, http.StatusMethodNotAllowed, errorDocument(http.StatusMethodNotAllowed, "MethodNotAllowed",
				"This resource only accepts GET and HEAD"))
			return
		}
		status, d, err := document()
		if err != nil {
			a.log.Error("read machine state failed", "error", err)
			a.reply(w, http.StatusInternalServerError, errorDocument(http.StatusInternalServerError, "InternalError",
				"the system's state cannot be read"))
			return
		}
		a.reply(w, status, d)
	})
}

// serveNotFound answers all other paths with 404 and names an existing path.
func (a *Agent) serveNotFound(mux *http.ServeMux, there string) {
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		a.reply(w, http.StatusNotFound, errorDocument(http.StatusNotFound, "ResourceNotFound", "the path does not exist; see "+there))
	})
}

func errorDocument(status int, code, message string) map[string]any {
	return map[string]any{"status": status, "reason": http.StatusText(status), "code": code, "message": message, "brief": message}
}

func (a *Agent) reply(w http.ResponseWriter, status int, document any) {
	body, err := json.Marshal(document)
	if err != nil {
		a.log.Error("encode answer failed", "error", err)
		status, body = http.StatusInternalServerError, []byte("{}")
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // an error means that the client has gone
}

func (a *Agent) diagnostics() checkin.Diagnostics {
	a.mu.Lock()
	registration := a.registration
	a.mu.Unlock()
	return checkin.Diagnostics{CorporateHTTPProxy: a.proxy(), NetworkConnectivity: a.probes.results(), RegistrationStatus: registration}
}

// proxy returns the proxy settings without the password.
func (a *Agent) proxy() checkin.Proxy {
	u := a.options.Targets.Proxy
	if u == nil {
		return checkin.Proxy{}
	}
	password, set := u.User.Password()
	return checkin.Proxy{Host: u.Hostname(), Port: u.Port(), Scheme: u.Scheme, User: u.User.Username(),
		ProxyPasswordIsSet: set && password != ""}
}

func (a *Agent) shortStatus() (s checkin.Status) {
	d := a.diagnostics()
	s.NetworkConnectivity.FleetMgmtEndpointErrorMessage = d.NetworkConnectivity.FleetMgmtEndpointErrorMessage
	s.NetworkConnectivity.FleetMgmtEndpointStatus = d.NetworkConnectivity.FleetMgmtEndpointStatus
	s.NetworkConnectivity.LocalIPStatus = d.NetworkConnectivity.LocalIPStatus
	s.RegistrationStatus = d.RegistrationStatus
	return s
}

func (a *Agent) services() []checkin.Service {
	_, all := a.supervisor.report()
	services := make([]checkin.Service, len(all))
	for i, one := range all {
		services[i] = checkin.Service{ServiceInstance: checkin.ServiceInstance{ID: one.ID, ServiceName: one.Name,
			Name:    cmp.Or(a.supervisor.title(one.ID), one.Name),
			Version: one.Version, Status: one.Status, ErrorConditions: one.ErrorConditions}, Diagnostics: a.supervisor.diagnostics(one.ID)}
		services[i].TargetVersion, services[i].UpdateStatus = a.supervisor.pendingChange(one)
	}
	return services
}

// isConnected reports whether the manager answered recently and has not refused this service point since. The caller holds mu.
func (a *Agent) isConnected() bool {
	return !a.isRefused && !a.lastAnswer.IsZero() && time.Since(a.lastAnswer) <= checkin.MissedIntervals*a.interval
}

func (a *Agent) v4() (checkin.V4Diagnostics, error) {
	d := checkin.V4Diagnostics{Diagnostics: a.diagnostics(), Status: "HEALTHY", ConnectionStatus: "NOT_CONNECTED",
		UpdateStatus: a.updateStatus(),
		Version:      a.options.Version, Platform: platform(), DNSServers: a.host.resolvers(), Addresses: []checkin.V4Address{},
		AnycastStatus: a.supervisor.desiredState().Anycast.Status(), NTPStatus: a.machine.current().NTPStatus, Services: a.services()}
	a.mu.Lock()
	if a.identity == nil {
		d.Status = "WAITING_FOR_PROVISIONING"
	} else {
		d.ID, d.OriginalVersion = a.identity.ID, a.identity.OriginalVersion
	}
	if a.isConnected() {
		d.ConnectionStatus = "CONNECTED"
	}
	a.mu.Unlock()
	anycast, _ := a.anycast.report()
	if d.ID != "" && len(a.conditions()) > 0 {
		d.Status = "UNHEALTHY"
	}
	node, err := a.host.node("")
	d.Addresses = append(d.Addresses, checkin.V4Addresses(append(node.Addresses, anycast...))...)
	return d, err
}
