package checkin

import "encoding/json"

// DiagnosticsPath and StatusPath are the paths of the diagnostics on the listener of a service point (spec.md 4.3, reference/fleet.md).
const (
	DiagnosticsPath = "/api/v1/diagnostics"
	StatusPath      = "/api/v1/status"
)

// Diagnostics are the diagnostics of a service point of the fleet variant (spec.md 2.5).
type Diagnostics struct {
	CorporateHTTPProxy  Proxy        `json:"corporateHttpProxy"`
	NetworkConnectivity Connectivity `json:"networkConnectivity"`
	RegistrationStatus  Registration `json:"registrationStatus"`
}

// Proxy is the proxy in diagnostics, without its password.
type Proxy struct {
	Host               string `json:"host"`
	Port               string `json:"port"`
	ProxyPasswordIsSet bool   `json:"proxyPasswordIsSet"`
	Scheme             string `json:"scheme"`
	User               string `json:"user"`
}

// V4Diagnostics are the diagnostics of a Service Point v4 (spec.md 2.6).
type V4Diagnostics struct {
	Diagnostics
	ID               string        `json:"id"`
	Status           string        `json:"status"`
	ConnectionStatus string        `json:"connectionStatus"`
	UpdateStatus     string        `json:"updateStatus"`
	Version          string        `json:"version"`
	OriginalVersion  string        `json:"originalVersion"`
	Platform         string        `json:"platform"`
	DNSServers       []string      `json:"dnsServers"`
	Addresses        []V4Address   `json:"addresses"`
	AnycastStatus    AnycastStatus `json:"anycastStatus"`
	NTPStatus        NTPStatus     `json:"ntpStatus"`
	Services         []Service     `json:"services"`
}

// Service is an application with its own diagnostics, in the diagnostics of a Service Point v4.
type Service struct {
	ServiceInstance
	Diagnostics json.RawMessage `json:"diagnostics"`
}

// Status is the short form of the diagnostics (reference/fleet.md).
type Status struct {
	NetworkConnectivity struct {
		FleetMgmtEndpointErrorMessage string `json:"fleetMgmtEndpointErrorMessage"`
		FleetMgmtEndpointStatus       int    `json:"fleetMgmtEndpointStatus"`
		LocalIPStatus                 string `json:"localIpStatus"`
	} `json:"networkConnectivity"`
	RegistrationStatus Registration `json:"registrationStatus"`
}

// Connectivity contains the latest results of the probes (spec.md 2.5, networkConnectivity).
type Connectivity struct {
	FleetMgmtEndpointErrorMessage string `json:"fleetMgmtEndpointErrorMessage"`
	FleetMgmtEndpointStatus       int    `json:"fleetMgmtEndpointStatus"`
	InternetHTTPStatus            int    `json:"internetHttpStatus"`
	InternetPingStatus            string `json:"internetPingStatus"`
	LocalIPStatus                 string `json:"localIpStatus"`
	LocalNetworkStatus            string `json:"localNetworkStatus"`
}

// Registration is the registration state in diagnostics.
type Registration struct {
	Details string `json:"details"`
	State   string `json:"state"`
}
