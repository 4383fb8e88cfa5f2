// Package checkin defines the messages between managers and service points. It contains only the shared types. Both sides import it; it
// imports neither.
package checkin

import (
	"encoding/json"
	"reflect"
	"strings"
	"time"
)

// Paths of the check-in listener.
const (
	EnrolPath   = "/enrol/v1"
	CheckInPath = "/checkin/v1"
	RenewPath   = "/renew/v1"
	LogPath     = "/log/v1"
	ContentPath = "/content/v1"
	UpdatePath  = "/update/v1"
	HealthPath  = "/healthz"
)

// ServerName is the name in the check-in certificate of every manager. Service points trust the manager's own authority for this one name,
// whatever address they connect to.
const ServerName = "manager.portolan.internal"

// Interval is the time between two reports if nothing has changed. The manager holds a check-in open for the same time. After
// MissedIntervals without a report the service point is NOT_CONNECTED.
const (
	Interval        = 30 * time.Second
	MissedIntervals = 3
)

// NodeRemoved is the error code for a node that was removed from its service point. The node must stop all applications.
const NodeRemoved = "NodeRemoved"

// ServicePointDeleted is the error code for a deleted service point. It must stop all applications. A service point that the manager does
// not know continues, because the manager may have lost its data.
const ServicePointDeleted = "ServicePointDeleted"

// OtherMachine is the error code for a machine with a copy of another machine's state directory. It must not run applications.
const OtherMachine = "OtherMachineAnswers"

// CertificateExpired is the error code for a check-in with an expired certificate. The certificate can be renewed.
const CertificateExpired = "CertificateExpired"

// Variants of a service point.
const (
	Fleet = "fleet"
	V4    = "v4"
)

// EnrolRequest requests a certificate with a registration key.
type EnrolRequest struct {
	RegistrationKey string `json:"registrationKey"`
	// Request is the certificate request in PEM, signed with the service point's new key.
	Request string `json:"request"`
	Variant string `json:"variant"`
	Version string `json:"version"`
}

// EnrolAnswer is the identity of the service point.
type EnrolAnswer struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	// Node is the number of this machine among the nodes of the service point, from 1; 0 means 1.
	Node int64 `json:"node,omitempty"`
	// Certificate and Authority are in PEM.
	Certificate string `json:"certificate"`
	Authority   string `json:"authority"`
}

// RenewRequest requests a new certificate with the current one.
type RenewRequest struct {
	Request string `json:"request"`
}

// RenewAnswer contains the new certificate, in PEM.
type RenewAnswer struct {
	Certificate string `json:"certificate"`
}

// Request is a check-in.
type Request struct {
	// Report is the service point's report; nil if the manager has the latest.
	Report *Report `json:"report,omitempty"`
	// Sequence numbers the reports of a service point. The manager ignores a report that arrives after a later one. 0 if reports are not
	// numbered.
	Sequence int64 `json:"sequence,omitempty"`
	// Digest identifies the latest report, in up to 128 bytes, also if the request does not contain the report. A manager with another
	// digest asks for the report.
	Digest string `json:"digest,omitempty"`
	// Desired is the generation of the desired state that the service point has stored.
	Desired int64 `json:"desired"`
	// Process is the process that sends the request; nil if unknown.
	Process *Process `json:"process,omitempty"`
	// Leaving announces that the service point shuts down: it is NOT_CONNECTED at once, not after MissedIntervals.
	Leaving bool `json:"leaving,omitempty"`
	// WaitSeconds is the time that the manager may hold the request open if there is nothing new.
	WaitSeconds int `json:"waitSeconds"`
}

// Process is a process of an agent. If two processes with the same identity check in alternately, they run on two machines.
type Process struct {
	// ID is a random text of up to 64 bytes. Before is the ID of the process that last received an answer with the same state directory.
	ID     string `json:"id"`
	Before string `json:"before,omitempty"`
	// Address is an address of its machine.
	Address string `json:"address,omitempty"`
}

// Desired is the desired state of a service point. Each change increases the generation.
type Desired struct {
	Generation   int64                `json:"generation"`
	Applications []DesiredApplication `json:"applications"`
	// Update is the release of Portolan to install; nil if the service point keeps its release.
	Update *Update `json:"update,omitempty"`
	// Anycast is the announcement of anycast addresses to routers; nil if there is none.
	Anycast *AnycastService `json:"anycast,omitempty"`
	// NTPServers are the servers used to measure the clock offset: names or addresses, with or without a port.
	NTPServers []string `json:"ntpServers,omitempty"`
}

// Update is a release of Portolan that a service point must install.
type Update struct {
	Version string `json:"version"`
	// Asked identifies the order. A failed release is tried again if it is ordered again.
	Asked int64 `json:"asked"`
}

// UpdateReport is the progress of an update.
type UpdateReport struct {
	Update
	// Status is UpdateRunning or UpdateFailed. A failed update has a Reason.
	Status string `json:"status"`
	Reason string `json:"reason,omitempty"`
}

// States of an update (spec.md section 3).
const (
	UpdateOK      = "OK"
	UpdateQueued  = "UPDATE_QUEUED"
	UpdateRunning = "UPDATE_RUNNING"
	UpdateFailed  = "UPDATE_FAILED"
)

// DesiredApplication is an application that a service point must run.
type DesiredApplication struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Version string `json:"version"`
	// Configuration is a JSON object. Its content depends on the application.
	Configuration json.RawMessage `json:"configuration"`
	// Title is the users' name for the application; empty if they have not set one.
	Title string `json:"title,omitempty"`
	// Anycast are the addresses that are announced while the application is healthy.
	Anycast []string `json:"anycast,omitempty"`
	// Limits are the resource limits on the machine.
	Limits Limits `json:"limits,omitzero"`
	// ServesContent is true if the application serves content besides its configuration. The content is fetched from ContentPath. It is set
	// only for the first such application; service points detect the others.
	ServesContent bool `json:"contented,omitempty"`
}

// ContentRequest requests the content of an application. The answer is a stream (portolan/internal/wire/zonedata) as soon as the revision
// differs from From, or 204 after WaitSeconds.
type ContentRequest struct {
	// From is the revision that is currently served; empty requests the complete content.
	From string `json:"from"`
	// WaitSeconds is the time that the manager may hold the request open if there is nothing new.
	WaitSeconds int `json:"waitSeconds"`
	// Application is the id of the application. Each application of a service point has its own requests. It may be empty.
	Application string `json:"application,omitempty"`
}

// UpdateRequest forwards a dynamic update of a zone (RFC 2136) that an application has received from a client and has authorized.
type UpdateRequest struct {
	View    int64  `json:"view"`
	Zone    string `json:"zone"`
	Client  string `json:"client"`
	Key     string `json:"key,omitempty"`
	Message []byte `json:"message"`
}

// UpdateAnswer is the result of a dynamic update.
type UpdateAnswer struct {
	// Code is the response code for the client. Changed is true if the content has changed.
	Code    int  `json:"code"`
	Changed bool `json:"changed,omitempty"`
}

// Limits are the resource limits of an application. 0 means DefaultMemoryMiB, and all processors.
type Limits struct {
	MemoryMiB int `json:"memoryMiB,omitempty"`
	// CPUPercent is relative to one processor: 250 are two and a half.
	CPUPercent int `json:"cpuPercent,omitempty"`
}

// DefaultMemoryMiB is the default memory limit of an application.
const DefaultMemoryMiB = 512

// BGP is the only supported protocol of an AnycastService (RFC 4271).
const BGP = "BGP"

// AnycastService configures how a service point announces anycast addresses to routers. Its fields are those of the published anycast
// service (reference/families.md) that have an effect.
type AnycastService struct {
	// Protocol is BGP.
	Protocol               string `json:"protocol"`
	AutonomousSystemNumber uint32 `json:"autonomousSystemNumber"`
	// RouterID is an IPv4 address.
	RouterID string `json:"routerId"`
	// KeepAliveInterval and HoldTimeInterval are in seconds.
	KeepAliveInterval int           `json:"keepAliveInterval"`
	HoldTimeInterval  int           `json:"holdTimeInterval"`
	Neighbors         []BGPNeighbor `json:"neighbors"`
}

// BGPNeighbor is a router that receives the announcements.
type BGPNeighbor struct {
	Address                string `json:"address"`
	AutonomousSystemNumber uint32 `json:"autonomousSystemNumber"`
	// Port is the TCP port of the router; 0 means 179.
	Port int `json:"port,omitempty"`
	// AuthenticationPassword is the password for TCP MD5 (RFC 2385). It is sent to the service point and is not shown. Nil keeps the
	// previous password.
	AuthenticationPassword *string `json:"authenticationPassword,omitempty"`
	// AuthenticationPasswordIsSet is shown instead of the password.
	AuthenticationPasswordIsSet bool `json:"authenticationPasswordIsSet,omitempty"`
	// HopLimit is the maximum distance in hops, 1 to 255; 0 means 1.
	HopLimit int `json:"hopLimit,omitempty"`
}

// Password returns the password; empty if there is none.
func (n BGPNeighbor) Password() string {
	if n.AuthenticationPassword == nil {
		return ""
	}
	return *n.AuthenticationPassword
}

// Equal reports whether two settings are the same.
func (a AnycastService) Equal(b AnycastService) bool { return reflect.DeepEqual(a, b) }

// Application is the state of an application, as the service point reports it.
type Application struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Version string `json:"version"`
	// Status is Deploying, Healthy, Unhealthy or DeployFailed.
	Status string `json:"status"`
	// ErrorConditions are sentences.
	ErrorConditions []string `json:"errorConditions"`
	// Content is the revision of the content that it serves; empty if it serves none. Contented is true if the application serves content.
	Content       string `json:"content,omitempty"`
	ServesContent bool   `json:"contented,omitempty"`
	// Engine is the server that answers for the application, such as BIND; empty if the application answers itself.
	Engine string `json:"engine,omitempty"`
}

// Stages of an order for an application (spec.md 2.3, updateStatus) that a service point reports.
const (
	ApplicationUpdating = "UPDATE_IN_PROGRESS"
	DeleteRunning       = "DELETE_IN_PROGRESS"
)

// States of an application (spec.md section 3).
const (
	Deploying    = "DEPLOYING"
	Healthy      = "HEALTHY"
	Unhealthy    = "UNHEALTHY"
	DeployFailed = "DEPLOY_FAILED"
	Deleted      = "DELETED"
)

// Answer is the answer to a check-in.
type Answer struct {
	// Desired is the generation of the desired state.
	Desired int64 `json:"desired"`
	// State is the desired state, if the service point has another generation.
	State *Desired `json:"state,omitempty"`
	// SendReport requests the report: the manager has none, or another one.
	SendReport bool `json:"sendReport,omitempty"`
	// Sequence is the number of the report that the manager has. A later report needs a higher number.
	Sequence int64 `json:"sequence,omitempty"`
	// Renew requests the renewal of the certificate, whatever the service point's clock says.
	Renew bool `json:"renew,omitempty"`
	// SpreadMillis is the period for spreading the reconnections of a manager's service points after all have lost it.
	SpreadMillis int64 `json:"spreadMillis,omitempty"`
	// Logs are requests for the ends of logs. Each is sent to LogPath.
	Logs []LogOrder `json:"logs,omitempty"`
	// IntervalSeconds is the interval between reports.
	IntervalSeconds int `json:"intervalSeconds"`
	// TimeMillis is the manager's time, in Unix milliseconds. Releases are verified at this time, whatever the service point's clock says.
	TimeMillis int64 `json:"timeMillis,omitempty"`
}

// LogOrder requests the end of an application's log.
type LogOrder struct {
	ID string `json:"id"`
	// Application is the id of the application.
	Application string `json:"application"`
	// Bytes is the requested number of bytes from the end, at most MaxLog.
	Bytes int `json:"bytes"`
}

// MaxLog is the maximum number of bytes of a log that are sent.
const MaxLog = 128 << 10

// LogRequest sends the end of a log that was requested.
type LogRequest struct {
	ID string `json:"id"`
	// Text is the end of the log, starting with a complete line. If Problem is not empty, it is the reason for the missing text.
	Text    []byte `json:"text"`
	Problem string `json:"problem,omitempty"`
}

// LogAnswer is the empty answer to a LogRequest.
type LogAnswer struct{}

// Report is the state that a service point reports.
type Report struct {
	Version         string   `json:"version"`
	Variant         string   `json:"variant"`
	ErrorConditions []string `json:"errorConditions"`
	Nodes           []Node   `json:"nodes"`
	// HTTPProxySettings is nil if no proxy is set.
	HTTPProxySettings *ProxySettings `json:"httpProxySettings,omitempty"`
	// Applied is the generation of the desired state that was applied. Applications are the running applications.
	Applied      int64         `json:"applied,omitempty"`
	Applications []Application `json:"applications,omitempty"`
	// Platform is the platform of its programs, such as linux/amd64. BaseVersion is the version that was installed on the machine.
	Platform    string `json:"platform,omitempty"`
	BaseVersion string `json:"baseVersion,omitempty"`
	// Update is the progress of an update; nil if none is running, and no ordered update has failed.
	Update *UpdateReport `json:"update,omitempty"`
	// Machine describes the machine of the service point.
	Machine *Machine `json:"machine,omitempty"`
}

// Machine describes a machine. Its figures cover the last minutes and are rounded, so that they do not change in each report.
type Machine struct {
	// OriginalVersion is the version that enrolled. Platform is the manufacturer of the machine, such as vmware.
	OriginalVersion string    `json:"originalVersion"`
	Platform        string    `json:"platform"`
	NTPStatus       NTPStatus `json:"ntpStatus"`
	Resources       Resources `json:"resources"`
}

// NTPStatus reports whether the clock is synchronized, and the stratum of the NTP server. Stratum is empty if no server was asked or none
// has answered.
type NTPStatus struct {
	Stratum      string `json:"stratum"`
	Synchronized bool   `json:"synchronized"`
	// OffsetMillis is the time that the server's clock is ahead of the machine's, in milliseconds, rounded to 50. It is left out if it is
	// 0. Portolan extension.
	OffsetMillis int64 `json:"offsetMillis,omitempty"`
}

// Resources are the resources of a machine (reference/fleet.md).
type Resources struct {
	CPU struct {
		Cores        int `json:"cores"`
		FrequencyMHz int `json:"frequencyMHz"`
		IdlePercent  int `json:"idlePercent"`
	} `json:"cpu"`
	Memory struct {
		TotalMB int `json:"totalMB"`
		FreeMB  int `json:"freeMB"`
	} `json:"memory"`
	// Disk is the file system of the state directory.
	Disk struct {
		VarTotalMB int `json:"varTotalMB"`
		VarFreeMB  int `json:"varFreeMB"`
	} `json:"disk"`
}

// ProxySettings is an HTTP proxy (reference/fleet.md). Its password is not reported.
type ProxySettings struct {
	Host   string `json:"host"`
	Port   string `json:"port"`
	Scheme string `json:"scheme"`
	User   string `json:"user"`
}

// Node is a machine of a service point (spec.md 2.2).
type Node struct {
	ID                 string        `json:"id"`
	Name               string        `json:"name"`
	Hostname           string        `json:"hostname"`
	IPv4CIDRAddress    string        `json:"ipv4CIDRAddress"`
	IPv4GatewayAddress string        `json:"ipv4GatewayAddress"`
	IPv6CIDRAddress    string        `json:"ipv6CIDRAddress"`
	IPv6GatewayAddress string        `json:"ipv6GatewayAddress"`
	Addresses          []NodeAddress `json:"addresses"`
	// DNSServers are shown for a single service point, not in lists (reference/fleet.md).
	DNSServers []string `json:"dnsServers,omitempty"`
	// DiagnosticsURL is the URL of the node's diagnostics; empty if it does not show them. Portolan extension.
	DiagnosticsURL string `json:"diagnosticsUrl,omitempty"`
}

// NodeAddress is an address of a node (spec.md 2.2). IsUseByAppID and IsUp are set only for the type ANYCAST.
type NodeAddress struct {
	Type         string  `json:"type"`
	IPAddress    string  `json:"ipAddress"`
	IsUseByAppID *string `json:"isUseByAppId,omitempty"`
	IsUp         *bool   `json:"isUp,omitempty"`
}

// Types of a node's addresses.
const (
	Primary = "PRIMARY"
	Anycast = "ANYCAST"
	Alias   = "ALIAS"
)

// ServiceInstance is an application in the form of a Service Point v4 (spec.md 2.7).
type ServiceInstance struct {
	ID          string `json:"id"`
	ServiceName string `json:"serviceName"`
	// Name is the users' name for the application, otherwise the name of the application.
	Name            string   `json:"name"`
	Version         string   `json:"version"`
	Status          string   `json:"status"`
	ErrorConditions []string `json:"errorConditions"`
	// TargetVersion and UpdateStatus are left out if no update is running.
	TargetVersion string `json:"targetVersion,omitempty"`
	UpdateStatus  string `json:"updateStatus,omitempty"`
}

// V4Address is an address in the form of a Service Point v4. An anycast address has its interface and the application that uses it, in the
// published spelling of that variant (spec.md 2.6).
type V4Address struct {
	NodeAddress
	InterfaceName            string `json:"interfaceName,omitempty"`
	InUseByServiceInstanceID string `json:"inUseByServiceInstanceId,omitempty"`
}

// AnycastInterface is the interface of anycast addresses.
const AnycastInterface = "lo"

// V4Addresses returns the addresses of a node in the form of a Service Point v4.
func V4Addresses(all []NodeAddress) []V4Address {
	v4 := make([]V4Address, len(all))
	for i, a := range all {
		if v4[i].NodeAddress = a; a.Type == Anycast {
			v4[i].InterfaceName = AnycastInterface
			if a.IsUseByAppID != nil {
				v4[i].InUseByServiceInstanceID = *a.IsUseByAppID
			}
		}
	}
	return v4
}

// AnycastStatus reports whether the anycast service is enabled, and its protocol. OSPF contains the reason why OSPF is not available.
type AnycastStatus struct {
	// Status is enabled or disabled. Protocol is bgp, or empty if disabled.
	Status   string         `json:"status"`
	Protocol string         `json:"protocol"`
	OSPF     ProtocolStatus `json:"ospf"`
}

// ProtocolStatus is the status of a routing protocol with its reason.
type ProtocolStatus struct {
	Status string `json:"status"`
	Reason string `json:"reason"`
}

// Status returns the status of the settings; a may be nil.
func (a *AnycastService) Status() AnycastStatus {
	s := AnycastStatus{Status: "disabled", OSPF: ProtocolStatus{"NOT_CONFIGURED", NoOSPF}}
	if a != nil {
		s.Status, s.Protocol = "enabled", strings.ToLower(a.Protocol)
	}
	return s
}

// NoOSPF is the reason why OSPF is not available.
const NoOSPF = "a service point speaks BGP alone"
