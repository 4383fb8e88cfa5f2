// Package checkin is what a manager and a service point say to each other: the shared types and
// nothing more. Both sides import it; it imports neither.
package checkin

import (
	"encoding/json"
	"reflect"
	"strings"
	"time"
)

// Paths of the check-in door.
const (
	EnrolPath   = "/enrol/v1"
	CheckInPath = "/checkin/v1"
	RenewPath   = "/renew/v1"
	LogPath     = "/log/v1"
	ContentPath = "/content/v1"
	UpdatePath  = "/update/v1"
	HealthPath  = "/healthz"
)

// ServerName is the name every manager's check-in certificate carries. Service points trust the
// manager's own authority for this one name, whatever address they reach the manager at.
const ServerName = "manager.portolan.internal"

// Interval is how often a service point reports when nothing changed; a check-in is held open for
// as long. A service point that was silent for MissedIntervals of them is NOT_CONNECTED.
const (
	Interval        = 30 * time.Second
	MissedIntervals = 3
)

// NodeRemoved is the code of the refusal of a node that was taken away from its service point: it is to run nothing any more.
const NodeRemoved = "NodeRemoved"

// ServicePointDeleted is the code of the refusal of a service point that was deleted: it is to run nothing any more. One that a manager
// does not know goes on, as the manager may have lost it.
const ServicePointDeleted = "ServicePointDeleted"

// OtherMachine is the code of the refusal of a machine that has a copy of the state directory of another one: it is to run nothing.
const OtherMachine = "OtherMachineAnswers"

// CertificateExpired is the code of the refusal of a check-in whose certificate has expired: it can be renewed.
const CertificateExpired = "CertificateExpired"

// Variants of a service point.
const (
	Fleet = "fleet"
	V4    = "v4"
)

// EnrolRequest asks for a certificate with a registration key.
type EnrolRequest struct {
	RegistrationKey string `json:"registrationKey"`
	// Request is the certificate request in PEM, signed by the service point's new key.
	Request string `json:"request"`
	Variant string `json:"variant"`
	Version string `json:"version"`
}

// EnrolAnswer is the service point's identity.
type EnrolAnswer struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	// Node is which of its nodes this machine is, from 1 on; 0 stands for 1.
	Node int64 `json:"node,omitempty"`
	// Certificate and Authority are in PEM.
	Certificate string `json:"certificate"`
	Authority   string `json:"authority"`
}

// RenewRequest asks for a new certificate with the one at hand.
type RenewRequest struct {
	Request string `json:"request"`
}

// RenewAnswer is the new certificate, in PEM.
type RenewAnswer struct {
	Certificate string `json:"certificate"`
}

// Request is a check-in.
type Request struct {
	// Report is what the service point says of itself; nil when the manager has its latest.
	Report *Report `json:"report,omitempty"`
	// Sequence numbers the reports of a service point: one that comes late, behind a later one, is left. 0 where they have no numbers.
	Sequence int64 `json:"sequence,omitempty"`
	// Digest names the latest report, in up to 128 bytes, whether it comes with this request or not: a manager that has another one
	// asks for it.
	Digest string `json:"digest,omitempty"`
	// Desired is the generation of the desired state that the service point has on its disk.
	Desired int64 `json:"desired"`
	// Process is the process that asks; nil where it does not say.
	Process *Process `json:"process,omitempty"`
	// Leaving says that the service point ends: it is not missed for three intervals.
	Leaving bool `json:"leaving,omitempty"`
	// WaitSeconds is how long the manager may hold the request when there is nothing new.
	WaitSeconds int `json:"waitSeconds"`
}

// Process is a process of an agent. Two that answer in turn are two machines.
type Process struct {
	// ID is a random text of up to 64 bytes; Before is that of the process that last had an answer with the same state directory.
	ID     string `json:"id"`
	Before string `json:"before,omitempty"`
	// Address is where its machine can be found.
	Address string `json:"address,omitempty"`
}

// Desired is what a service point is to run. Whatever is changed in it gives it a higher generation.
type Desired struct {
	Generation   int64                `json:"generation"`
	Applications []DesiredApplication `json:"applications"`
	// Update is the release of Portolan that it is to run; nil where it may run what it runs.
	Update *Update `json:"update,omitempty"`
	// Anycast is how it tells routers of anycast addresses; nil where it does not.
	Anycast *AnycastService `json:"anycast,omitempty"`
	// NTPServers are the servers that it asks for the time, to say how far its clock is off: names or addresses, with or without a port.
	NTPServers []string `json:"ntpServers,omitempty"`
}

// Update is a release of Portolan that a service point is to run.
type Update struct {
	Version string `json:"version"`
	// Asked tells one order of a release from another: one that has failed is tried again where it is ordered anew.
	Asked int64 `json:"asked"`
}

// UpdateReport is how an update goes.
type UpdateReport struct {
	Update
	// Status is UpdateRunning or UpdateFailed, which has a Reason.
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

// DesiredApplication is an application that a service point is to run.
type DesiredApplication struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Version string `json:"version"`
	// Configuration is a JSON object; what it may hold is the application's.
	Configuration json.RawMessage `json:"configuration"`
	// Title is what users call it; empty where they have not said.
	Title string `json:"title,omitempty"`
	// Anycast are addresses that are announced while the application is healthy.
	Anycast []string `json:"anycast,omitempty"`
	// Limits are what it may take of its machine.
	Limits Limits `json:"limits,omitzero"`
	// Contented says that it serves content beyond its configuration, which is fetched from ContentPath. Of other applications than the
	// first one that did, service points find out by themselves.
	Contented bool `json:"contented,omitempty"`
}

// ContentRequest asks for the content of the application of a service point that has some. The answer is a stream
// (portolan/internal/wire/zonedata) as soon as there is another content than From, or, after WaitSeconds, 204.
type ContentRequest struct {
	// From is the revision that is served; empty asks for all of it.
	From string `json:"from"`
	// WaitSeconds is how long the manager may hold the request when there is nothing new.
	WaitSeconds int `json:"waitSeconds"`
	// Application is the id of the application that it is for: each of a service point waits for itself. It may be empty.
	Application string `json:"application,omitempty"`
}

// UpdateRequest brings a message that changes a zone (RFC 2136), as the application of a service point took it from a client, whom it has
// let in.
type UpdateRequest struct {
	View    int64  `json:"view"`
	Zone    string `json:"zone"`
	Client  string `json:"client"`
	Key     string `json:"key,omitempty"`
	Message []byte `json:"message"`
}

// UpdateAnswer says what came of it.
type UpdateAnswer struct {
	// Code is the one that the client is answered with; Changed says that there is another content.
	Code    int  `json:"code"`
	Changed bool `json:"changed,omitempty"`
}

// Limits are what an application may take of its machine; 0 means DefaultMemoryMiB, and all processors.
type Limits struct {
	MemoryMiB int `json:"memoryMiB,omitempty"`
	// CPUPercent is of one processor: 250 are two and a half.
	CPUPercent int `json:"cpuPercent,omitempty"`
}

// DefaultMemoryMiB is how much memory an application may take where nothing is said.
const DefaultMemoryMiB = 512

// BGP is the protocol of an AnycastService that there is (RFC 4271).
const BGP = "BGP"

// AnycastService is how a service point tells routers which anycast addresses it has. Its fields are those of the published anycast service
// (reference/families.md), as far as they act.
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

// BGPNeighbor is a router that is told.
type BGPNeighbor struct {
	Address                string `json:"address"`
	AutonomousSystemNumber uint32 `json:"autonomousSystemNumber"`
	// Port is where it listens; 0 means 179.
	Port int `json:"port,omitempty"`
	// AuthenticationPassword is for TCP MD5 (RFC 2385). It goes to the service point and is not shown; nil means the one from before.
	AuthenticationPassword *string `json:"authenticationPassword,omitempty"`
	// AuthenticationPasswordIsSet shows in its place.
	AuthenticationPasswordIsSet bool `json:"authenticationPasswordIsSet,omitempty"`
	// HopLimit is how many routers away it may be, 1 to 255; 0 means 1.
	HopLimit int `json:"hopLimit,omitempty"`
}

// Password is its password; empty where it has none.
func (n BGPNeighbor) Password() string {
	if n.AuthenticationPassword == nil {
		return ""
	}
	return *n.AuthenticationPassword
}

// Equal reports whether two settings are the same.
func (a AnycastService) Equal(b AnycastService) bool { return reflect.DeepEqual(a, b) }

// Application is an application as the service point that runs it sees it.
type Application struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Version string `json:"version"`
	// Status is Deploying, Healthy, Unhealthy or DeployFailed.
	Status string `json:"status"`
	// ErrorConditions are sentences.
	ErrorConditions []string `json:"errorConditions"`
	// Content names what it serves beyond its configuration; empty where it serves nothing. Contented says that it serves such.
	Content   string `json:"content,omitempty"`
	Contented bool   `json:"contented,omitempty"`
	// Engine is what answers in its place, such as BIND; empty where it does so itself.
	Engine string `json:"engine,omitempty"`
}

// Stages of what was asked of an application (spec.md 2.3, updateStatus), as far as a service point sees them.
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

// Answer is what comes back.
type Answer struct {
	// Desired is the generation of the desired state.
	Desired int64 `json:"desired"`
	// State is that desired state, where the service point has said that it has another one.
	State *Desired `json:"state,omitempty"`
	// SendReport asks for the report: the manager has none, or another one.
	SendReport bool `json:"sendReport,omitempty"`
	// Sequence is that of the report that the manager has: a later one needs a higher one.
	Sequence int64 `json:"sequence,omitempty"`
	// Renew asks the service point to renew its certificate, whatever its own clock says.
	Renew bool `json:"renew,omitempty"`
	// SpreadMillis is within how long the service points of a manager should come back when they all lost it.
	SpreadMillis int64 `json:"spreadMillis,omitempty"`
	// Logs are the ends of logs that somebody waits for; each is sent to LogPath.
	Logs []WantedLog `json:"logs,omitempty"`
	// IntervalSeconds is how often to report.
	IntervalSeconds int `json:"intervalSeconds"`
	// TimeMillis is the manager's time, in Unix milliseconds: a release is good at that time, whatever the service point's clock says.
	TimeMillis int64 `json:"timeMillis,omitempty"`
}

// WantedLog asks for the end of an application's log.
type WantedLog struct {
	ID string `json:"id"`
	// Application is the application's id.
	Application string `json:"application"`
	// Bytes is how many of the last bytes are wanted, at most MostLog.
	Bytes int `json:"bytes"`
}

// MostLog is how many bytes of a log are sent at most.
const MostLog = 128 << 10

// LogRequest brings the end of a log that was asked for.
type LogRequest struct {
	ID string `json:"id"`
	// Text is the end, which begins with a whole line; Problem, where it is not empty, says why there is none.
	Text    []byte `json:"text"`
	Problem string `json:"problem,omitempty"`
}

// LogAnswer takes it.
type LogAnswer struct{}

// Report is what a service point says of itself.
type Report struct {
	Version         string   `json:"version"`
	Variant         string   `json:"variant"`
	ErrorConditions []string `json:"errorConditions"`
	Nodes           []Node   `json:"nodes"`
	// HTTPProxySettings is nil where no proxy is set.
	HTTPProxySettings *ProxySettings `json:"httpProxySettings,omitempty"`
	// Applied is the generation of the desired state that was put in force, Applications what runs.
	Applied      int64         `json:"applied,omitempty"`
	Applications []Application `json:"applications,omitempty"`
	// Platform is what its programs are built for, such as linux/amd64, BaseVersion the version that was installed on the machine.
	Platform    string `json:"platform,omitempty"`
	BaseVersion string `json:"baseVersion,omitempty"`
	// Update is how an update goes; nil where none is under way and none has failed that is still asked for.
	Update *UpdateReport `json:"update,omitempty"`
	// Machine is what the service point knows of the machine that it runs on.
	Machine *Machine `json:"machine,omitempty"`
}

// Machine is a machine. Its figures are of the last minutes, and rough, so that they do not change with each look.
type Machine struct {
	// OriginalVersion is the version that enrolled, Platform who makes the machine, such as vmware.
	OriginalVersion string    `json:"originalVersion"`
	Platform        string    `json:"platform"`
	NTPStatus       NTPStatus `json:"ntpStatus"`
	Resources       Resources `json:"resources"`
}

// NTPStatus says whether the clock is synchronised, and the stratum of the server that was asked; it is empty where none was, or none has
// answered.
type NTPStatus struct {
	Stratum      string `json:"stratum"`
	Synchronized bool   `json:"synchronized"`
	// OffsetMillis is by how much the server's clock is ahead of the machine's, in milliseconds, to 50 (ours); it is left out where it is 0.
	OffsetMillis int64 `json:"offsetMillis,omitempty"`
}

// Resources are what a machine has (reference/fleet.md).
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

// ProxySettings is an HTTP proxy (reference/fleet.md); its password stays where it is used.
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
	// DNSServers show in a single service point alone, not in the list of them (reference/fleet.md).
	DNSServers []string `json:"dnsServers,omitempty"`
	// DiagnosticsURL is where the node shows its diagnostics (ours); empty where it does not.
	DiagnosticsURL string `json:"diagnosticsUrl,omitempty"`
}

// NodeAddress is an address of a node (spec.md 2.2). IsUseByAppID and IsUp are there for ANYCAST
// and only then.
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

// ServiceInstance is an application as a Service Point v4 shows it (spec.md 2.7).
type ServiceInstance struct {
	ID          string `json:"id"`
	ServiceName string `json:"serviceName"`
	// Name is what users call it, or else the name of the application.
	Name            string   `json:"name"`
	Version         string   `json:"version"`
	Status          string   `json:"status"`
	ErrorConditions []string `json:"errorConditions"`
	// TargetVersion and UpdateStatus are left out where nothing is under way.
	TargetVersion string `json:"targetVersion,omitempty"`
	UpdateStatus  string `json:"updateStatus,omitempty"`
}

// V4Address is an address as a Service Point v4 shows it: an anycast address with its interface and, in the published spelling of that
// kind, the application that uses it (spec.md 2.6).
type V4Address struct {
	NodeAddress
	InterfaceName            string `json:"interfaceName,omitempty"`
	InUseByServiceInstanceID string `json:"inUseByServiceInstanceId,omitempty"`
}

// AnycastInterface is the interface that anycast addresses are on.
const AnycastInterface = "lo"

// V4Addresses are the addresses of a node as a Service Point v4 shows them.
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

// AnycastStatus says whether the anycast service is enabled, and by which protocol. OSPF says why that one is not.
type AnycastStatus struct {
	// Status is enabled or disabled, Protocol bgp, or empty where it is disabled.
	Status   string         `json:"status"`
	Protocol string         `json:"protocol"`
	OSPF     ProtocolStatus `json:"ospf"`
}

// ProtocolStatus is how it stands with a routing protocol, and why.
type ProtocolStatus struct {
	Status string `json:"status"`
	Reason string `json:"reason"`
}

// Status is what is shown of the settings; a may be nil.
func (a *AnycastService) Status() AnycastStatus {
	s := AnycastStatus{Status: "disabled", OSPF: ProtocolStatus{"NOT_CONFIGURED", NoOSPF}}
	if a != nil {
		s.Status, s.Protocol = "enabled", strings.ToLower(a.Protocol)
	}
	return s
}

// NoOSPF is why OSPF is not there.
const NoOSPF = "a service point speaks BGP alone"
