package settings

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"portolan/internal/base/problem"
	"portolan/internal/engine/published"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
	"portolan/internal/manager/sink"
	"portolan/internal/manager/snmp"
)

// registerSettings declares the settings of the manager, one resource of each type. Other packages add types to the collection.
func registerSettings(r *resource.Registry) {
	r.Collection(resource.Collection{Name: "settings", Parents: []string{""}, Guard: resource.Administration, NoSearch: true,
		Complete: func(tx *store.Tx, rows []*store.Resource) error { return completeSettings(tx, r.Manager, rows) }},
		&SystemSettings{}, &AuditDataSettings{}, &LogLevelSettings{}, &MonitoringSettings{}, &WebAccessSettings{}, &DHCPAlertSettings{})
	r.Seed(seedSettings)
}

// seedSettings creates the settings that do not exist yet.
func seedSettings(c *resource.Change) error {
	there := map[string]bool{}
	if err := c.Tx.List(store.Query{From: store.Resources, Where: store.InCollection("settings")}, func(r *store.Resource) error {
		there[r.Type] = true
		return nil
	}); err != nil {
		return err
	}
	for _, t := range c.API.Collection("settings").Types {
		if there[t.Name] {
			continue
		}
		if _, err := c.Following().Create(t, t.New()); err != nil {
			return err
		}
	}
	return nil
}

// SystemSettings describes the manager itself.
type SystemSettings struct {
	schema.Head `head:"readOnly" post:"no"`
	// Hostname is the host name of the machine.
	Hostname string `api:"hostname,computed"`
	// Version is the release of the published API, for clients that compare it. The manager's own version is in GET /status.
	Version string `api:"version,computed"`
	// Address is the address that the APIs are served at.
	Address string `api:"address,computed"`
	// InterfaceRedundancyEnabled is always false: the operating system of the machine bonds its interfaces.
	InterfaceRedundancyEnabled bool `api:"interfaceRedundancyEnabled,put"`
	// ActiveSessions is the number of open sessions.
	ActiveSessions *int64 `api:"activeSessions,computed"`
	// ActiveSessionCount is the number of open sessions, under the name that release 9.6 uses.
	ActiveSessionCount *int64 `api:"activeSessionCount,computed"`
}

// AuditDataSettings sets how long the history and events are kept.
type AuditDataSettings struct {
	schema.Head `head:"readOnly" post:"no"`
	// AdministrativeHistoryRetentionPeriod is the retention period of transactions and their operations; null for the value of the command
	// line.
	AdministrativeHistoryRetentionPeriod string `api:"administrativeHistoryRetentionPeriod,duration"`
	// SessionAndEventsRetentionPeriod is the retention period of events and ended sessions; null for the value of the command line.
	SessionAndEventsRetentionPeriod string `api:"sessionAndEventsRetentionPeriod,duration"`
	// DHCPTransactionRetentionPeriod is the retention period of ended leases (leaseSpans); null keeps them, and zero keeps none.
	DHCPTransactionRetentionPeriod string `api:"dhcpTransactionRetentionPeriod,duration"`
	// DdnsTransactionRetentionPeriod is the retention period of dynamic updates.
	DdnsTransactionRetentionPeriod string `api:"ddnsTransactionRetentionPeriod,duration"`
	// ExportEnabled controls whether audit data is sent to a destination.
	ExportEnabled bool `api:"exportEnabled,put"`
	// Destination is the receiver of the audit data.
	Destination *sink.Destination `api:"destination"`
}

// LogLevelSettings sets the log level of each part of the manager. A change takes effect at once. It is rejected where the command line
// sets the level (--log-level).
type LogLevelSettings struct {
	schema.Head `head:"readOnly" post:"no"`
	// AddressManager is the minimum level of the manager's log.
	AddressManager string `api:"addressManager,put,notNull" enum:"OFF|FATAL|ERROR|WARN|INFO|DEBUG|TRACE|ALL" default:"INFO"`
	// RestV2 is the minimum level for the RESTful v2 API.
	RestV2 string `api:"restV2,put,notNull" enum:"OFF|FATAL|ERROR|WARN|INFO|DEBUG|TRACE|ALL" default:"INFO"`
	// ZoneImport is the minimum level for imports.
	ZoneImport string `api:"zoneImport,put,notNull" enum:"OFF|FATAL|ERROR|WARN|INFO|DEBUG|TRACE|ALL" default:"INFO"`
	// ReconciliationService is the level for reconciliation, which must be that of addressManager.
	ReconciliationService string `api:"reconciliationService,put,notNull" enum:"OFF|FATAL|ERROR|WARN|INFO|DEBUG|TRACE|ALL" default:"INFO"`
	// DiscoveryEngine is the level for discovery, which must be that of addressManager.
	DiscoveryEngine string `api:"discoveryEngine,put,notNull" enum:"OFF|FATAL|ERROR|WARN|INFO|DEBUG|TRACE|ALL" default:"INFO"`
	// SNMPClient is the level for SNMP, which must be that of addressManager.
	SNMPClient string `api:"snmpClient,put,notNull" enum:"OFF|FATAL|ERROR|WARN|INFO|DEBUG|TRACE|ALL" default:"INFO"`
	// MonitoringService is the level for monitoring, which must be that of addressManager.
	MonitoringService string `api:"monitoringService,put,notNull" enum:"OFF|FATAL|ERROR|WARN|INFO|DEBUG|TRACE|ALL" default:"INFO"`
	// RRDTool is the level for statistics over time, which must be that of addressManager.
	RRDTool string `api:"rrdTool,put,notNull" enum:"OFF|FATAL|ERROR|WARN|INFO|DEBUG|TRACE|ALL" default:"INFO"`
}

// MonitoringSettings sets what is monitored, and how often.
type MonitoringSettings struct {
	schema.Head `head:"readOnly" post:"no"`
	// AddressManagerMonitoring is the monitoring of the manager itself.
	AddressManagerMonitoring *Monitoring `api:"addressManagerMonitoring,put"`
	// ServerMonitoring is the monitoring of servers.
	ServerMonitoring *ServerMonitoring `api:"serverMonitoring,put"`
	// F5ServerMonitoring is the monitoring of load balancers.
	F5ServerMonitoring *Monitoring `api:"f5ServerMonitoring"`
}

// Monitoring sets how one device is monitored.
type Monitoring struct {
	// Enabled controls whether the device is monitored.
	Enabled bool `api:"enabled"`
	// Address is the address of the device.
	Address string `api:"address"`
	// PollingInterval is the time between two queries.
	PollingInterval string `api:"pollingInterval,required,duration"`
	// SNMP is the SNMP access data of the device.
	SNMP *snmp.Settings `api:"snmp"`
}

// ServerMonitoring sets how servers are monitored.
type ServerMonitoring struct {
	// Enabled controls whether servers are monitored.
	Enabled bool `api:"enabled"`
	// PollingInterval is the time between two queries.
	PollingInterval string `api:"pollingInterval,required,duration"`
	// StatusRefreshInterval is the time between two updates of the displayed status.
	StatusRefreshInterval string `api:"statusRefreshInterval,required,duration"`
	// FailureDetectionThreshold is the number of consecutive queries without an answer after which a server has failed.
	FailureDetectionThreshold int64 `api:"failureDetectionThreshold,required" min:"1" max:"2147483647"`
}

// WebAccessSettings describes how the manager serves its APIs. The command line sets this when the manager starts.
type WebAccessSettings struct {
	schema.Head `head:"readOnly" post:"no"`
	// Server is always null.
	Server schema.Ref `api:"server,readOnly" ref:"AddressManagerServer"`
	// HTTPEnabled reports whether the APIs are served without encryption, which happens on loopback only.
	HTTPEnabled bool `api:"httpEnabled,readOnly" default:"true"`
	// HTTPToHTTPSRedirectionEnabled reports whether requests without encryption are redirected to HTTPS.
	HTTPToHTTPSRedirectionEnabled bool `api:"httpToHttpsRedirectionEnabled,readOnly"`
	// HTTPSEnabled reports whether the APIs are served over TLS, which they are on every address other than loopback.
	HTTPSEnabled bool `api:"httpsEnabled,readOnly" default:"true"`
	// Authenticator is the authenticator that checks client certificates; always null.
	Authenticator schema.Ref `api:"authenticator,readOnly" ref:"X509Authenticator"`
	// PrivateKey is the private key of the certificate (--tls-key); it is never shown.
	PrivateKey string `api:"privateKey,readOnly"`
	// Password is the password of the private key. It is rejected, because --tls-key sets the key.
	Password string `api:"password,writeOnly,nonblank"`
	// Certificate is the manager's certificate (--tls-cert).
	Certificate string `api:"certificate,readOnly"`
	// CACertificates are the certificates of its issuers.
	CACertificates []string `api:"caCertificates,readOnly"`
}

// Validate rejects a password, because the command line sets the key.
func (x *WebAccessSettings) Validate(*resource.Change) error {
	if x.Password != "" {
		return problem.Field("UnsupportedResourceFieldValue", "password",
			"the key of the manager's certificate is set by the flag --tls-key when the manager starts")
	}
	return nil
}

// DHCPAlertSettings sets when the utilization of IPv4 DHCP ranges raises an event. Its marks apply to ranges without marks of their own, of
// their network or of a block above.
type DHCPAlertSettings struct {
	schema.Head `head:"readOnly" post:"no"`
	// LowWaterMark is the low threshold, in percent: a utilization below it raises an event. Null means none.
	LowWaterMark *int64 `api:"lowWaterMark" min:"0" max:"100"`
	// HighWaterMark is the high threshold, in percent: a utilization above it raises an event. Null means none.
	HighWaterMark *int64 `api:"highWaterMark" min:"0" max:"100"`
	// PollingInterval is the time between two checks of all ranges, from one minute to one day; null means PT5M. Changes of the utilization
	// raise events at once.
	PollingInterval string `api:"pollingInterval,duration"`
}

// Validate rejects marks in the wrong order, and intervals outside of the limits.
func (x *DHCPAlertSettings) Validate(*resource.Change) error {
	if x.LowWaterMark != nil && x.HighWaterMark != nil && *x.LowWaterMark > *x.HighWaterMark {
		return problem.Invalid("lowWaterMark", "%d is above highWaterMark (%d)", *x.LowWaterMark, *x.HighWaterMark)
	}
	if d := schema.LengthOf(x.PollingInterval); x.PollingInterval != "" && (d < time.Minute || d > 24*time.Hour) {
		return problem.Field("DurationValueOutsideRange", "pollingInterval", "must be from one minute to one day")
	}
	return nil
}

// Validate rejects bonding, which the operating system of the machine sets up.
func (x *SystemSettings) Validate(*resource.Change) error {
	if x.InterfaceRedundancyEnabled {
		return problem.Field("UnsupportedResourceFieldValue", "interfaceRedundancyEnabled",
			"the operating system configures bonding of network interfaces")
	}
	return nil
}

// Validate rejects the fields that have no effect yet, and retention periods under one day or not in whole days.
func (x *AuditDataSettings) Validate(*resource.Change) error {
	switch {
	case x.DdnsTransactionRetentionPeriod != "":
		return problem.NotYet("ddnsTransactionRetentionPeriod: updates of the names of DHCP clients are not stored as transactions, so none " +
			"expires: " +
			"sessionAndEventsRetentionPeriod applies to the events about them")
	case x.ExportEnabled || x.Destination != nil:
		return problem.NotYet("exportEnabled: use webhooks to export events and --history-syslog to export the history")
	}
	for field, text := range map[string]string{"administrativeHistoryRetentionPeriod": x.AdministrativeHistoryRetentionPeriod,
		"sessionAndEventsRetentionPeriod": x.SessionAndEventsRetentionPeriod,
		"dhcpTransactionRetentionPeriod":  x.DHCPTransactionRetentionPeriod} {
		switch d := schema.LengthOf(text); {
		case text == "", d == 0 && field == "dhcpTransactionRetentionPeriod":
		case d < 24*time.Hour:
			return problem.Field("DurationValueOutsideRange", field, "must be at least one day")
		case d%(24*time.Hour) != 0:
			return problem.Field("DurationValueNotDivisibleBy", field, "must be whole days")
		}
	}
	return nil
}

// Retention returns the retention periods of the settings: of transactions, and of events and ended sessions. 0 means that the settings
// have none.
func Retention(tx *store.Tx, a *resource.API) (history, events time.Duration, err error) {
	o, err := a.FindSingle(tx, "AuditDataSettings")
	x, there := o.(*AuditDataSettings)
	if !there || err != nil {
		return 0, 0, err
	}
	return schema.LengthOf(x.AdministrativeHistoryRetentionPeriod), schema.LengthOf(x.SessionAndEventsRetentionPeriod), nil
}

// LeaseRetention returns the retention period of ended leases. isSet is false if they are kept.
func LeaseRetention(tx *store.Tx, a *resource.API) (keep time.Duration, isSet bool, err error) {
	o, err := a.FindSingle(tx, "AuditDataSettings")
	x, there := o.(*AuditDataSettings)
	if !there || err != nil || x.DHCPTransactionRetentionPeriod == "" {
		return 0, false, err
	}
	return schema.LengthOf(x.DHCPTransactionRetentionPeriod), true, nil
}

// Levels are the log levels by their published names.
var Levels = map[string]slog.Level{"ALL": slog.LevelDebug - 8, "TRACE": slog.LevelDebug - 4, "DEBUG": slog.LevelDebug,
	"INFO": slog.LevelInfo, "WARN": slog.LevelWarn, "ERROR": slog.LevelError, "FATAL": slog.LevelError + 4, "OFF": slog.LevelError + 8}

// LogLevels returns the log level settings, or nil if they do not exist.
func LogLevels(tx *store.Tx, a *resource.API) (*LogLevelSettings, error) {
	o, err := a.FindSingle(tx, "LogLevelSettings")
	x, _ := o.(*LogLevelSettings)
	return x, err
}

// levels returns the level of each part, by field name.
func (x *LogLevelSettings) levels() map[string]string {
	return map[string]string{"addressManager": x.AddressManager, "restV2": x.RestV2, "zoneImport": x.ZoneImport,
		"reconciliationService": x.ReconciliationService, "discoveryEngine": x.DiscoveryEngine, "snmpClient": x.SNMPClient,
		"monitoringService": x.MonitoringService, "rrdTool": x.RRDTool}
}

// BeforeWrite sets the parts without log lines of their own to the level of addressManager, unless the request gives them.
func (x *LogLevelSettings) BeforeWrite(c *resource.Change) error {
	for field, level := range map[string]*string{"reconciliationService": &x.ReconciliationService, "discoveryEngine": &x.DiscoveryEngine,
		"snmpClient": &x.SNMPClient, "monitoringService": &x.MonitoringService, "rrdTool": &x.RRDTool} {
		if c.IsRequested() && !c.SetFields[field] {
			*level = x.AddressManager
		}
	}
	return nil
}

// Validate rejects a changed level where --log-level is set. It rejects a level other than that of addressManager for the parts without log
// lines of their own.
func (x *LogLevelSettings) Validate(c *resource.Change) error {
	if old, ok := c.Old.(*LogLevelSettings); ok && resource.Provided[Options](c.API.Provisions).LogLevel != "" &&
		!maps.Equal(old.levels(), x.levels()) {
		return problem.Field("UnsupportedResourceFieldValue", "addressManager",
			"the manager was started to log from %s on (--log-level), which "+
				"overrides these settings", resource.Provided[Options](c.API.Provisions).LogLevel)
	}
	for _, field := range slices.Sorted(maps.Keys(x.levels())) {
		if level := x.levels()[field]; level != x.AddressManager && field != "restV2" && field != "zoneImport" {
			return problem.Field("UnsupportedResourceFieldValue", field, "is %s but addressManager is %s: this component logs with the manager",
				level, x.AddressManager)
		}
	}
	return nil
}

// Validate rejects monitoring, which is not available yet.
func (x *MonitoringSettings) Validate(*resource.Change) error {
	if m := x.AddressManagerMonitoring; m != nil && m.Enabled {
		return problem.NotYet("addressManagerMonitoring: SNMP is not supported for the manager: use /metrics")
	}
	if m := x.ServerMonitoring; m != nil && m.Enabled {
		return problem.NotYet("serverMonitoring: servers are only monitored as service points of the fleet")
	}
	if m := x.F5ServerMonitoring; m != nil && m.Enabled {
		return problem.NotYet("f5ServerMonitoring: load balancers are not monitored")
	}
	return nil
}

// completeSettings fills in the computed fields of SystemSettings.
func completeSettings(tx *store.Tx, m *resource.Manager, rows []*store.Resource) error {
	for _, r := range rows {
		if r.Type != "SystemSettings" {
			continue
		}
		open, err := openSessions(tx)
		if err != nil {
			return fmt.Errorf("count the sessions: %w", err)
		}
		members := map[string][]byte{"activeSessions": fmt.Append(nil, open), "activeSessionCount": fmt.Append(nil, open)}
		for name, text := range map[string]string{"hostname": m.Hostname, "version": published.Release, "address": m.Address} {
			if members[name], err = json.Marshal(text); err != nil {
				return err
			}
		}
		if r.Body, err = store.Rewritten(r.Body, members); err != nil {
			return err
		}
	}
	return nil
}
