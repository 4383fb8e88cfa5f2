package servicepoint

import (
	"cmp"
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"portolan/internal/servicepoint/application"
	"portolan/internal/wire/checkin"
)

// Paths of the status endpoint of a service point with a resolver, for load balancers and monitoring (reference/edge.md, section 9).
const (
	HealthPath              = "/v1/status/health"
	SPDiagnosticsPath       = "/v1/status/spDiagnostics"
	ResolverDiagnosticsPath = "/v2/diagnostics"
)

// Status values in these documents.
const (
	good = "GOOD"
	bad  = "BAD"
)

// Names of the two parts of a service point with a resolver, as monitoring systems expect them.
const (
	statusService  = "status-service"
	gatewayService = "dns-gateway-service"
)

// SPDiagnostics is the answer of SPDiagnosticsPath. Times are Unix milliseconds.
type SPDiagnostics struct {
	SPStatus       string `json:"spStatus"`
	SPID           string `json:"spId"`
	CurrentVersion string `json:"currentVersion"`
	// DesiredVersion is n/a if no update is requested.
	DesiredVersion     string                   `json:"desiredVersion"`
	SPStatusTimestamp  int64                    `json:"spStatusTimestamp"`
	SPLocalTime        string                   `json:"spLocalTime"`
	SPTimeZone         string                   `json:"spTimeZone"`
	SPServicesStatuses map[string]ServiceStatus `json:"spServicesStatuses"`
}

// ServiceStatus is the status of a part of a service point.
type ServiceStatus struct {
	Status            string `json:"status"`
	StatusTimestamp   int64  `json:"statusTimestamp"`
	ServiceVersion    string `json:"serviceVersion"`
	ResourceDetails   any    `json:"resourceDetails"`
	AdditionalDetails any    `json:"additionalDetails"`
}

// SettingsDiagnostics describes the settings of the resolver and the times of their requests. Times are Unix milliseconds; 0 means never.
type SettingsDiagnostics struct {
	// ID contains 40 hex digits that identify the settings in use; empty before there are any.
	ID                                    string      `json:"id"`
	LastSettingsPollingTimestamp          int64       `json:"lastSettingsPollingTimestamp"`
	LastSuccessfulSettingsUpdateTimestamp int64       `json:"lastSuccessfulSettingsUpdateTimestamp"`
	LastSettingsPollingStatus             string      `json:"lastSettingsPollingStatus"`
	LastSettingsPollingStatusReason       string      `json:"lastSettingsPollingStatusReason,omitempty"`
	NamespaceDetails                      []Namespace `json:"namespaceDetails"`
	PolicyDetails                         []string    `json:"policyDetails"`
}

// Namespace is a resolution rule: all names are forwarded to these forwarders.
type Namespace struct {
	ID                        string   `json:"id"`
	Name                      string   `json:"name"`
	Forwarders                []string `json:"forwarders"`
	MatchListsDomainCount     int      `json:"matchListsDomainCount"`
	ExceptionListsDomainCount int      `json:"exceptionListsDomainCount"`
	MatchesAllDomains         bool     `json:"matchesAllDomains"`
	MatchCIDRCount            int      `json:"matchCidrCount"`
	ExceptionCIDRCount        int      `json:"exceptionCidrCount"`
}

// ResolverStatus is the answer of ResolverDiagnosticsPath.
type ResolverStatus struct {
	Status string `json:"status"`
	// ID is the id of the node, ClusterID that of the service point.
	ID              string         `json:"id"`
	ClusterID       string         `json:"clusterId"`
	ApplicationID   string         `json:"applicationId"`
	CurrentVersion  string         `json:"currentVersion"`
	StatusTimestamp int64          `json:"statusTimestamp"`
	Services        []ResolverPart `json:"services"`
}

// ResolverPart is a part of a resolver.
type ResolverPart struct {
	ID string `json:"id"`
	ServiceStatus
	Resources []ResolverResource `json:"resources"`
}

// ResolverResource is a resource that a part depends on.
type ResolverResource struct {
	ID     string   `json:"id"`
	Type   string   `json:"type"`
	Status string   `json:"status"`
	Info   []Info   `json:"info"`
	Errors []string `json:"errors"`
}

// Info is a name with its value.
type Info struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// resolverView is the current state of the resolvers of this service point.
type resolverView struct {
	id, version string
	configured  string
	// reason is the reason why the resolver does not answer, if its own diagnostics do not contain it.
	reason string
	// answers reports that all resolvers answer; well, that all are HEALTHY.
	answers, well bool
	found         application.ResolverDiagnostics
	conditions    []string
}

// viewResolvers returns the state of the resolver. Several resolvers, which are unusual, are shown as one that is well if all are.
func (a *Agent) viewResolvers() (v resolverView) {
	v.answers, v.well = true, true
	none := true
	for _, one := range a.services() {
		if one.ServiceName != checkin.Resolver {
			continue
		}
		var found application.ResolverDiagnostics
		if err := json.Unmarshal(one.Diagnostics, &found); err != nil {
			one.ErrorConditions = append(one.ErrorConditions, "its diagnostics cannot be read: "+err.Error())
		}
		if none || one.Status != checkin.Healthy {
			v.id, v.version, v.found, v.configured = one.ID, one.Version, found, a.supervisor.configured(one.ID)
		}
		none = false
		responds := a.supervisor.responds(one.ID)
		if !responds {
			v.reason = "its process does not respond"
		}
		v.answers = v.answers && found.FrontendResponse == noError && responds
		v.well = v.well && one.Status == checkin.Healthy && responds
		v.conditions = append(v.conditions, one.ErrorConditions...)
	}
	v.answers, v.well = v.answers && !none, v.well && !none
	return v
}

// noError is the response code of a working resolver.
const noError = "NOERROR"

func statusWord(well bool) string {
	if well {
		return good
	}
	return bad
}

// statusHandler serves the status documents for load balancers and monitoring.
func (a *Agent) statusHandler() http.Handler {
	mux := http.NewServeMux()
	a.serveDocument(mux, HealthPath, func() (int, any, error) {
		v := a.viewResolvers()
		if v.answers {
			return http.StatusOK, map[string]string{"status": good}, nil
		}
		return http.StatusInternalServerError, errorDocument(http.StatusInternalServerError, "ResolverUnhealthy",
			"the resolver does not answer: "+cmp.Or(v.reason, v.found.FrontendResponse, "it does not run")), nil
	})
	a.serveDocument(mux, SPDiagnosticsPath, func() (int, any, error) { return http.StatusOK, a.spDiagnostics(), nil })
	a.serveDocument(mux, ResolverDiagnosticsPath, func() (int, any, error) {
		d, err := a.resolverStatus()
		return http.StatusOK, d, err
	})
	a.serveNotFound(mux, SPDiagnosticsPath)
	return mux
}

func (a *Agent) gatewayStatus(v resolverView) ServiceStatus {
	a.mu.Lock()
	polled, trouble, updated := a.lastAnswer, a.lastFailure, a.desiredChanged
	a.mu.Unlock()
	settings := SettingsDiagnostics{ID: v.configured[:min(40, len(v.configured))], LastSettingsPollingTimestamp: millis(polled),
		LastSuccessfulSettingsUpdateTimestamp: millis(updated), LastSettingsPollingStatus: "UNCHANGED", LastSettingsPollingStatusReason: trouble,
		NamespaceDetails: []Namespace{{ID: "default", Name: "default", Forwarders: slices.Sorted(maps.Keys(v.found.Upstreams)),
			MatchesAllDomains: true}}, PolicyDetails: []string{}}
	if trouble != "" {
		settings.LastSettingsPollingStatus = "FAILED"
	}
	return ServiceStatus{Status: statusWord(v.well), StatusTimestamp: time.Now().UnixMilli(), ServiceVersion: v.version,
		ResourceDetails:   map[string]string{"query-resolving-availability": statusWord(application.Resolves(v.found.BackendResponse))},
		AdditionalDetails: map[string]any{"settingsDiagnostics": settings}}
}

func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func (a *Agent) ownStatus() ServiceStatus {
	return ServiceStatus{Status: statusWord(len(a.conditions()) == 0), StatusTimestamp: time.Now().UnixMilli(),
		ServiceVersion: a.options.Version, ResourceDetails: map[string]string{}, AdditionalDetails: map[string]string{}}
}

func (a *Agent) spDiagnostics() SPDiagnostics {
	now := time.Now()
	zone, _ := now.Zone()
	d := SPDiagnostics{CurrentVersion: a.options.Version, DesiredVersion: cmp.Or(a.supervisor.desiredRelease(), "n/a"),
		SPStatusTimestamp: now.UnixMilli(), SPLocalTime: now.Format(time.RFC3339), SPTimeZone: zone,
		SPServicesStatuses: map[string]ServiceStatus{statusService: a.ownStatus(), gatewayService: a.gatewayStatus(a.viewResolvers())}}
	d.SPStatus = good
	for _, one := range d.SPServicesStatuses {
		if one.Status != good {
			d.SPStatus = bad
		}
	}
	if id := a.currentIdentity(); id != nil {
		d.SPID = id.ID
	}
	return d
}

// currentIdentity returns the identity; nil before enrolment.
func (a *Agent) currentIdentity() *identity {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.identity
}

func (a *Agent) resolverStatus() (d ResolverStatus, err error) {
	v := a.viewResolvers()
	d = ResolverStatus{Status: statusWord(v.well), ApplicationID: v.id, CurrentVersion: v.version, StatusTimestamp: time.Now().UnixMilli()}
	own, gateway := ResolverPart{statusService, a.ownStatus(), []ResolverResource{}}, ResolverPart{gatewayService, a.gatewayStatus(v), nil}
	a.mu.Lock()
	id, state, details := a.identity, a.registration.State, a.registration.Details
	connected := a.isConnected()
	a.mu.Unlock()
	connection := ResolverResource{ID: "customerInstanceConnection", Type: "customerInstanceConnection", Status: statusWord(connected),
		Info: []Info{{"registrationState", state}}, Errors: []string{}}
	if !connected && details != "" {
		connection.Errors = append(connection.Errors, details)
	}
	responses := ResolverResource{ID: "dnsResolvingResponses", Type: "dnsResolvingResponses",
		Status: statusWord(application.Resolves(v.found.BackendResponse)),
		Info:   []Info{{"rootNSQuery", v.found.BackendResponse}}, Errors: append([]string{}, v.conditions...)}
	gateway.Resources = []ResolverResource{connection, responses}
	if id != nil {
		d.ID, d.ClusterID = id.nodeID(), id.ID
		certificates, err := certificateTimes(id)
		if err != nil {
			return d, err
		}
		if until := v.found.CertificateExpiration; until > 0 {
			certificates.Info = append(certificates.Info, Info{"listenerCertificateExpiration", fmt.Sprint(until)})
		}
		gateway.Resources = append(gateway.Resources, certificates)
	}
	d.Services = []ResolverPart{own, gateway}
	return d, nil
}

// certificateTimes returns the expiry times of the service point's certificates.
func certificateTimes(id *identity) (r ResolverResource, err error) {
	r = ResolverResource{ID: "certificates", Type: "certificates", Status: good, Info: []Info{}, Errors: []string{}}
	for _, one := range []struct{ name, text string }{
		{"clientCertificateExpiration", id.Certificate}, {"caCertificateExpiration", id.Authority}} {
		block, _ := pem.Decode([]byte(one.text))
		if block == nil {
			return r, fmt.Errorf("%s: no certificate in PEM", one.name)
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return r, err
		}
		r.Info = append(r.Info, Info{one.name, fmt.Sprint(certificate.NotAfter.UnixMilli())})
		if time.Now().After(certificate.NotAfter) {
			r.Status = bad
			r.Errors = append(r.Errors, one.name+": it has expired")
		}
	}
	return r, nil
}

// serveStatus serves the status at an address while a resolver is in the desired state, until ctx ends.
func (a *Agent) serveStatus(ctx context.Context, address string) {
	for ctx.Err() == nil {
		wanted, changed := a.supervisor.isDesired(checkin.Resolver)
		if !wanted {
			select {
			case <-changed:
			case <-ctx.Done():
			}
			continue
		}
		serving, stop := context.WithCancel(ctx)
		go func() {
			defer stop()
			for wanted := true; wanted && serving.Err() == nil; wanted, changed = a.supervisor.isDesired(checkin.Resolver) {
				select {
				case <-changed:
				case <-serving.Done():
				}
			}
		}()
		a.serveAt(serving, "the resolver's status", SPDiagnosticsPath, a.statusHandler(),
			func() (net.Listener, error) { return net.Listen("tcp", address) })
		stop()
	}
}

// desiredTime returns the time when the desired state was last stored.
func (s state) desiredTime() time.Time {
	info, err := os.Stat(filepath.Join(s.dir, desiredFile))
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}
