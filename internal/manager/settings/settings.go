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

// registerSettings declares the settings of the manager, one resource of each type, which others declare further types of.
func registerSettings(r *resource.Registry) {
	r.Collection(resource.Collection{Name: "settings", Parents: []string{""}, Guard: resource.Administration, NoSearch: true,
		Complete: func(tx *store.Tx, rows []*store.Resource) error { return completeSettings(tx, r.Manager, rows) }},
		&SystemSettings{}, &AuditDataSettings{}, &LogLevelSettings{}, &MonitoringSettings{}, &WebAccessSettings{}, &DHCPAlertSettings{})
	r.Seed(seedSettings)
}

// seedSettings makes the settings that are missing.
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

// SystemSettings says what the manager is.
type SystemSettings struct {
	schema.Head `head:"readOnly" post:"no"`
	// Hostname is the name of the machine.
	Hostname string `api:"hostname,computed"`
	// Version is the release of the published API that is served: clients compare it. The manager's own is in GET /status.
	Version string `api:"version,computed"`
	// Address is where its APIs are served.
	Address string `api:"address,computed"`
	// InterfaceRedundancyEnabled says whether the interfaces of the machine are bonded, which is the machine's own affair.
	InterfaceRedundancyEnabled bool `api:"interfaceRedundancyEnabled,put"`
	// ActiveSessions is how many sessions are open.
	ActiveSessions *int64 `api:"activeSessions,computed"`
	// ActiveSessionCount is the same, as release 9.6 calls it.
	ActiveSessionCount *int64 `api:"activeSessionCount,computed"`
}

// AuditDataSettings says how long what happened is kept.
type AuditDataSettings struct {
	schema.Head `head:"readOnly" post:"no"`
	// AdministrativeHistoryRetentionPeriod is how long transactions are kept, with what they changed; null leaves it to how the manager was
	// started.
	AdministrativeHistoryRetentionPeriod string `api:"administrativeHistoryRetentionPeriod,duration"`
	// SessionAndEventsRetentionPeriod is how long events, and sessions that have ended, are kept; null leaves it to how the manager was
	// started.
	SessionAndEventsRetentionPeriod string `api:"sessionAndEventsRetentionPeriod,duration"`
	// DHCPTransactionRetentionPeriod is how long what DHCP servers did is kept.
	DHCPTransactionRetentionPeriod string `api:"dhcpTransactionRetentionPeriod,duration"`
	// DdnsTransactionRetentionPeriod is how long dynamic updates are kept.
	DdnsTransactionRetentionPeriod string `api:"ddnsTransactionRetentionPeriod,duration"`
	// ExportEnabled says whether all of it is sent elsewhere, too.
	ExportEnabled bool `api:"exportEnabled,put"`
	// Destination is where it is sent.
	Destination *sink.Destination `api:"destination"`
}

// LogLevelSettings says what the parts of the manager log, as soon as they are written. Where the command line says it (--log-level) they
// cannot be changed.
type LogLevelSettings struct {
	schema.Head `head:"readOnly" post:"no"`
	// AddressManager is the least that the manager logs.
	AddressManager string `api:"addressManager,put,notNull" enum:"OFF|FATAL|ERROR|WARN|INFO|DEBUG|TRACE|ALL" default:"INFO"`
	// RestV2 is that of its API.
	RestV2 string `api:"restV2,put,notNull" enum:"OFF|FATAL|ERROR|WARN|INFO|DEBUG|TRACE|ALL" default:"INFO"`
	// ZoneImport is that of imports.
	ZoneImport string `api:"zoneImport,put,notNull" enum:"OFF|FATAL|ERROR|WARN|INFO|DEBUG|TRACE|ALL" default:"INFO"`
	// ReconciliationService is that of reconciliation, which logs with the manager.
	ReconciliationService string `api:"reconciliationService,put,notNull" enum:"OFF|FATAL|ERROR|WARN|INFO|DEBUG|TRACE|ALL" default:"INFO"`
	// DiscoveryEngine is that of discovery, which logs with the manager.
	DiscoveryEngine string `api:"discoveryEngine,put,notNull" enum:"OFF|FATAL|ERROR|WARN|INFO|DEBUG|TRACE|ALL" default:"INFO"`
	// SNMPClient is that of SNMP, which logs with the manager.
	SNMPClient string `api:"snmpClient,put,notNull" enum:"OFF|FATAL|ERROR|WARN|INFO|DEBUG|TRACE|ALL" default:"INFO"`
	// MonitoringService is that of monitoring, which logs with the manager.
	MonitoringService string `api:"monitoringService,put,notNull" enum:"OFF|FATAL|ERROR|WARN|INFO|DEBUG|TRACE|ALL" default:"INFO"`
	// RRDTool is that of figures over time, which log with the manager.
	RRDTool string `api:"rrdTool,put,notNull" enum:"OFF|FATAL|ERROR|WARN|INFO|DEBUG|TRACE|ALL" default:"INFO"`
}

// MonitoringSettings says what is watched, and how often.
type MonitoringSettings struct {
	schema.Head `head:"readOnly" post:"no"`
	// AddressManagerMonitoring is how the manager itself is watched.
	AddressManagerMonitoring *Monitoring `api:"addressManagerMonitoring,put"`
	// ServerMonitoring is how servers are watched.
	ServerMonitoring *ServerMonitoring `api:"serverMonitoring,put"`
	// F5ServerMonitoring is how load balancers are watched.
	F5ServerMonitoring *Monitoring `api:"f5ServerMonitoring"`
}

// Monitoring is how something is watched.
type Monitoring struct {
	// Enabled says whether it is.
	Enabled bool `api:"enabled"`
	// Address is where it is.
	Address string `api:"address"`
	// PollingInterval is how often it is asked.
	PollingInterval string `api:"pollingInterval,required,duration"`
	// SNMP is how it is asked.
	SNMP *snmp.Settings `api:"snmp"`
}

// ServerMonitoring is how servers are watched.
type ServerMonitoring struct {
	// Enabled says whether they are.
	Enabled bool `api:"enabled"`
	// PollingInterval is how often they are asked.
	PollingInterval string `api:"pollingInterval,required,duration"`
	// StatusRefreshInterval is how often what is shown of them is made anew.
	StatusRefreshInterval string `api:"statusRefreshInterval,required,duration"`
	// FailureDetectionThreshold is how often in a row they may be silent.
	FailureDetectionThreshold int64 `api:"failureDetectionThreshold,required" min:"1" max:"2147483647"`
}

// WebAccessSettings says how the manager's APIs are reached, which is said when it is started.
type WebAccessSettings struct {
	schema.Head `head:"readOnly" post:"no"`
	// Server is the machine; null.
	Server schema.Ref `api:"server,readOnly" ref:"AddressManagerServer"`
	// HTTPEnabled says whether they are served without encryption, which is so on loopback alone.
	HTTPEnabled bool `api:"httpEnabled,readOnly" default:"true"`
	// HTTPToHTTPSRedirectionEnabled says whether who comes without encryption is sent on.
	HTTPToHTTPSRedirectionEnabled bool `api:"httpToHttpsRedirectionEnabled,readOnly"`
	// HTTPSEnabled says whether they are served over TLS, which is so wherever it is not loopback.
	HTTPSEnabled bool `api:"httpsEnabled,readOnly" default:"true"`
	// Authenticator is what checks certificates of clients; null.
	Authenticator schema.Ref `api:"authenticator,readOnly" ref:"X509Authenticator"`
	// PrivateKey is the key of its certificate (--tls-key); it is never shown.
	PrivateKey string `api:"privateKey,readOnly"`
	// Password is the password of the key.
	Password string `api:"password,writeOnly,nonblank"`
	// Certificate is its certificate (--tls-cert).
	Certificate string `api:"certificate,readOnly"`
	// CACertificates are those of who issued it.
	CACertificates []string `api:"caCertificates,readOnly"`
}

// Validate refuses what is said when the manager is started.
func (x *WebAccessSettings) Validate(*resource.Change) error {
	if x.Password != "" {
		return problem.Field("UnsupportedResourceFieldValue", "password",
			"the key of the manager's certificate is given when it is started (--tls-key)")
	}
	return nil
}

// DHCPAlertSettings says when the usage of DHCP ranges is an event; DHCP is not served yet.
type DHCPAlertSettings struct {
	schema.Head `head:"readOnly" post:"no"`
	// LowWaterMark is below which share of addresses in use, in percent, it is one.
	LowWaterMark *int64 `api:"lowWaterMark" min:"0" max:"100"`
	// HighWaterMark is above which share.
	HighWaterMark *int64 `api:"highWaterMark" min:"0" max:"100"`
	// PollingInterval is how often that is looked at.
	PollingInterval string `api:"pollingInterval,duration"`
}

// Validate refuses what nothing acts upon yet.
func (x *DHCPAlertSettings) Validate(*resource.Change) error {
	switch {
	case x.LowWaterMark != nil:
		return problem.NotYet("lowWaterMark: DHCP is not served yet; blocks and networks have marks of their own")
	case x.HighWaterMark != nil:
		return problem.NotYet("highWaterMark: DHCP is not served yet; blocks and networks have marks of their own")
	case x.PollingInterval != "":
		return problem.NotYet("pollingInterval: DHCP is not served yet")
	}
	return nil
}

// Validate refuses what is the machine's own affair.
func (x *SystemSettings) Validate(*resource.Change) error {
	if x.InterfaceRedundancyEnabled {
		return problem.Field("UnsupportedResourceFieldValue", "interfaceRedundancyEnabled",
			"the interfaces of the machine are bonded by its operating system")
	}
	return nil
}

// Validate refuses what nothing acts upon yet, and lengths of time that are no whole days.
func (x *AuditDataSettings) Validate(*resource.Change) error {
	switch {
	case x.DHCPTransactionRetentionPeriod != "":
		return problem.NotYet("dhcpTransactionRetentionPeriod: DHCP is not served yet")
	case x.DdnsTransactionRetentionPeriod != "":
		return problem.NotYet("ddnsTransactionRetentionPeriod: dynamic updates are not taken yet")
	case x.ExportEnabled || x.Destination != nil:
		return problem.NotYet("exportEnabled: what happened is sent elsewhere by webhooks, and the history by --history-syslog")
	}
	for field, text := range map[string]string{"administrativeHistoryRetentionPeriod": x.AdministrativeHistoryRetentionPeriod,
		"sessionAndEventsRetentionPeriod": x.SessionAndEventsRetentionPeriod} {
		switch d := schema.LengthOf(text); {
		case text == "":
		case d < 24*time.Hour:
			return problem.Field("DurationValueOutsideRange", field, "must be a day or more")
		case d%(24*time.Hour) != 0:
			return problem.Field("DurationValueNotDivisibleBy", field, "must be whole days")
		}
	}
	return nil
}

// Retention gives how long transactions, and events and sessions that have ended, are to be kept by the settings; 0 where they do not say.
func Retention(tx *store.Tx, a *resource.API) (history, events time.Duration, err error) {
	o, err := a.Only(tx, "AuditDataSettings")
	x, there := o.(*AuditDataSettings)
	if !there || err != nil {
		return 0, 0, err
	}
	return schema.LengthOf(x.AdministrativeHistoryRetentionPeriod), schema.LengthOf(x.SessionAndEventsRetentionPeriod), nil
}

// Levels are the levels by their published names.
var Levels = map[string]slog.Level{"ALL": slog.LevelDebug - 8, "TRACE": slog.LevelDebug - 4, "DEBUG": slog.LevelDebug,
	"INFO": slog.LevelInfo, "WARN": slog.LevelWarn, "ERROR": slog.LevelError, "FATAL": slog.LevelError + 4, "OFF": slog.LevelError + 8}

// LogLevels gives what is to be logged by the settings; nil where there are none.
func LogLevels(tx *store.Tx, a *resource.API) (*LogLevelSettings, error) {
	o, err := a.Only(tx, "LogLevelSettings")
	x, _ := o.(*LogLevelSettings)
	return x, err
}

// parts are the levels of the parts, by their fields.
func (x *LogLevelSettings) parts() map[string]string {
	return map[string]string{"addressManager": x.AddressManager, "restV2": x.RestV2, "zoneImport": x.ZoneImport,
		"reconciliationService": x.ReconciliationService, "discoveryEngine": x.DiscoveryEngine, "snmpClient": x.SNMPClient,
		"monitoringService": x.MonitoringService, "rrdTool": x.RRDTool}
}

// BeforeWrite lets the parts that have no log lines of their own follow the manager, where nothing is said of them.
func (x *LogLevelSettings) BeforeWrite(c *resource.Change) error {
	for field, level := range map[string]*string{"reconciliationService": &x.ReconciliationService, "discoveryEngine": &x.DiscoveryEngine,
		"snmpClient": &x.SNMPClient, "monitoringService": &x.MonitoringService, "rrdTool": &x.RRDTool} {
		if c.Requested() && !c.Given[field] {
			*level = x.AddressManager
		}
	}
	return nil
}

// Validate takes one level for the parts that have no log lines of their own, and nothing new where the command line says what is logged.
func (x *LogLevelSettings) Validate(c *resource.Change) error {
	if old, ok := c.Old.(*LogLevelSettings); ok && resource.Provided[Options](c.API.Provisions).LogLevel != "" &&
		!maps.Equal(old.parts(), x.parts()) {
		return problem.Field("UnsupportedResourceFieldValue", "addressManager",
			"the manager was started to log from %s on (--log-level), which goes "+
				"before these settings", resource.Provided[Options](c.API.Provisions).LogLevel)
	}
	for _, field := range slices.Sorted(maps.Keys(x.parts())) {
		if level := x.parts()[field]; level != x.AddressManager && field != "restV2" && field != "zoneImport" {
			return problem.Field("UnsupportedResourceFieldValue", field, "is %s, and addressManager %s: this part logs with the manager",
				level, x.AddressManager)
		}
	}
	return nil
}

// Validate refuses what nothing acts upon yet.
func (x *MonitoringSettings) Validate(*resource.Change) error {
	if m := x.AddressManagerMonitoring; m != nil && m.Enabled {
		return problem.NotYet("addressManagerMonitoring: the manager shows its figures at /metrics; it does not ask itself by SNMP")
	}
	if m := x.ServerMonitoring; m != nil && m.Enabled {
		return problem.NotYet("serverMonitoring: servers are watched as service points of the fleet alone")
	}
	if m := x.F5ServerMonitoring; m != nil && m.Enabled {
		return problem.NotYet("f5ServerMonitoring: load balancers are not watched")
	}
	return nil
}

// completeSettings fills in what the manager knows of itself.
func completeSettings(tx *store.Tx, m *resource.Manager, rows []*store.Resource) error {
	for _, r := range rows {
		if r.Type != "SystemSettings" {
			continue
		}
		open, err := openSessions(tx)
		if err != nil {
			return fmt.Errorf("counting the sessions: %w", err)
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
