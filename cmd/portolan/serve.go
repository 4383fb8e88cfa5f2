package main

import (
	"fmt"
	"net/url"
	"os"
	"time"

	"github.com/alecthomas/kong"
	"github.com/coreos/go-systemd/v22/daemon"

	"portolan/internal/client/cli"
	"portolan/internal/manager/history"
	"portolan/internal/manager/notify"
	"portolan/internal/manager/outbound"
	"portolan/internal/manager/server"
	"portolan/internal/manager/server/middleware"
	"portolan/internal/servicepoint/application/all"
)

type serveCommand struct {
	Config        kong.ConfigFlag `help:"A YAML file of settings with the names of these flags and their values. The command line and the environment override it." env:"PORTOLAN_CONFIG" placeholder:"FILE"`
	Check         bool            `help:"Check the settings, the certificates and the database without starting the manager." env:"-"`
	Data          string          `help:"The data directory. The first start creates it." type:"path" placeholder:"DIR"`
	Database      string          `help:"The URL of a PostgreSQL database for the data. Several managers can share it. The data directory then contains nothing that another manager needs." placeholder:"postgres://..."`
	DatabaseRead  string          `help:"The URL of a standby of that database. The manager reads lists from it while it is up to date." placeholder:"postgres://..."`
	Listen        string          `help:"The address of the API listener: plain HTTP on loopback, TLS elsewhere. systemd:NAME uses a socket of systemd." default:"127.0.0.1:8080" placeholder:"ADDR"`
	CheckinListen string          `help:"The address for enrolment and check-ins of service points, always with TLS." default:"127.0.0.1:8443" placeholder:"ADDR"`
	PublicURL     string          `help:"The URL at which service points reach the check-in listener, such as https://portolan.example.net:8443." name:"public-url" placeholder:"URL"`
	TLSCert       string          `help:"The certificate of the API listener, in PEM. Default: one that the manager's own authority issues." name:"tls-cert" type:"path" placeholder:"FILE"`
	TLSKey        string          `help:"The key of that certificate, in PEM." name:"tls-key" type:"path" placeholder:"FILE"`
	MetricsListen string          `help:"The address for /metrics, instead of the API listener. Plain HTTP is allowed only on loopback." placeholder:"ADDR"`
	KeepHistory   time.Duration   `help:"The retention of transactions and their changes. Deleted transactions cannot be undone. 0s keeps them forever." default:"0s"`
	KeepEvents    time.Duration   `help:"The retention of events and finished deployments; 0s keeps them forever." default:"8760h"`
	KeepSessions  time.Duration   `help:"The retention of ended sessions; 0s keeps them forever." default:"720h"`
	MaxLimit      int64           `help:"The maximum page size of the address API." default:"100000" placeholder:"N"`
	Releases      string          `help:"The directory of the release repository, as created by portolan release. Default: releases in the data directory." type:"path" placeholder:"DIR"`
	BackupDir     string          `help:"The directory for scheduled backups. Default: backups in the data directory." type:"path" placeholder:"DIR"`
	SMTP          string          `help:"The mail server for notifications to groups: smtp://USER:PASSWORD@HOST:PORT?from=ADDRESS, or smtps://. Use PORTOLAN_SMTP if the URL contains a password." name:"smtp" env:"PORTOLAN_SMTP" placeholder:"URL"`
	SNMPTrap      []string        `help:"A receiver of the SNMP traps of notification groups. Repeatable." name:"snmp-trap" env:"PORTOLAN_SNMP_TRAP" placeholder:"snmp://COMMUNITY@HOST:PORT"`
	BackupEvery   time.Duration   `help:"The interval of automatic backups; 0s for only the schedules of the API." default:"0s"`
	BackupKeep    int             `help:"The number of backups of --backup-every to keep, 2 to 20." default:"7" placeholder:"N"`
	AccessLog     string          `help:"A log file of all requests, in the combined format of web servers; - is standard output. SIGHUP reopens it." placeholder:"FILE"`
	AuditLog      string          `help:"A log file of all sign-ins and changing requests, as lines of JSON; - is standard output. SIGHUP reopens it." placeholder:"FILE"`
	OTLP          string          `help:"The OpenTelemetry collector that receives traces of requests and changes, by OTLP over HTTP." name:"otlp" placeholder:"http://HOST:4318"`
	TrustProxy    []string        `help:"The address or prefix of a TLS-terminating proxy on another machine. Repeatable. Only it may use plain HTTP, and its X-Forwarded-For gives the client address." placeholder:"PREFIX"`
	NearlyFull    int             `help:"The utilization in percent above which metrics and portolan status report a network as nearly full." default:"90" placeholder:"PERCENT"`
	Sweep         bool            `help:"Allow reconciliation policies to probe the addresses of their networks from this machine."`
	Feeds         string          `help:"The HTTP URL of the lists of names for response policy zones of the type FEED. {category} is replaced by each category of a zone." name:"response-feeds" env:"PORTOLAN_RESPONSE_FEEDS" placeholder:"https://HOST/{category}.txt"`
	Outbound      []string        `help:"A prefix or address that the manager may connect to for webhooks, lease events and authenticators. Repeatable. Default: all except link-local addresses." placeholder:"PREFIX"`
	HistoryHeads  string          `help:"A file for signed heads of the history. Store it where the database owner cannot change it; portolan check --heads then detects changes of the history." type:"path" placeholder:"FILE"`
	HistorySyslog string          `help:"The syslog server that receives each transaction and the signed heads (RFC 5424)." env:"PORTOLAN_HISTORY_SYSLOG" placeholder:"udp|tcp|tls://HOST:PORT"`
	FiguresURL    string          `help:"A server with the HTTP API of Prometheus for figures over time, instead of the data directory. It must accept remote write." name:"figures-url" env:"PORTOLAN_FIGURES_URL" placeholder:"http://HOST:9090"`
	FiguresLines  int64           `help:"The maximum number of lines of figures over time, such as the utilization of a network." default:"20000" placeholder:"N"`
	FiguresBytes  int64           `help:"About the maximum size of figures over time on the disk, in bytes; -1 keeps none." default:"2147483648" placeholder:"N"`
	masterFlag
	AdminPassword string `help:"The password of the user admin, at the first start only. Prefer PORTOLAN_ADMIN_PASSWORD. Default: a generated password, which is printed." hidden:""`
}

// Help returns examples.
func (serveCommand) Help() string {
	return `Examples:

  portolan serve --data /var/lib/portolan --backup-every 24h
  portolan serve --config /etc/portolan/portolan.yaml --check
  portolan serve --database 'postgres://portolan@db.example.net/portolan' --listen :8080 --checkin-listen :8443`
}

// options returns the options of the manager from the flags.
func (c *serveCommand) options(s *session) (o server.Options, err error) {
	switch {
	case (c.TLSCert == "") != (c.TLSKey == ""):
		return o, usageError{fmt.Errorf("--tls-cert and --tls-key must be set together")}
	case c.Data == "" && c.Database == "":
		return o, usageError{fmt.Errorf("--data or --database is required")}
	case c.DatabaseRead != "" && c.Database == "":
		return o, usageError{fmt.Errorf("--database-read requires --database")}
	case c.MaxLimit < 1:
		return o, usageError{fmt.Errorf("--max-limit must be 1 or more")}
	case c.FiguresLines < 1:
		return o, usageError{fmt.Errorf("--figures-lines must be 1 or more")}
	case c.FiguresBytes != -1 && c.FiguresBytes < 64<<20:
		return o, usageError{fmt.Errorf("--figures-bytes must be -1 (none) or at least 67108864 (64 MiB)")}
	case c.NearlyFull < 1 || c.NearlyFull > 100:
		return o, usageError{fmt.Errorf("--nearly-full must be from 1 to 100")}
	case c.BackupKeep < 2 || c.BackupKeep > 20:
		return o, usageError{fmt.Errorf("--backup-keep must be from 2 to 20")}
	case c.BackupEvery != 0 && c.BackupEvery < time.Minute:
		return o, usageError{fmt.Errorf("--backup-every must be 0s or at least one minute")}
	case c.BackupEvery != 0 && c.Data == "" && c.BackupDir == "":
		return o, usageError{fmt.Errorf("--backup-every requires --backup-dir or --data")}
	}
	for name, keep := range map[string]time.Duration{"--keep-history": c.KeepHistory, "--keep-events": c.KeepEvents,
		"--keep-sessions": c.KeepSessions} {
		if keep < 0 || keep > 0 && keep < time.Hour {
			return o, usageError{fmt.Errorf("%s must be 0s (forever) or at least one hour", name)}
		}
	}
	if u, err := url.Parse(c.Feeds); c.Feeds != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "") {
		return o, usageError{fmt.Errorf("--response-feeds must be an http or https URL that contains {category}")}
	}
	receivers, err := c.receivers()
	if err != nil {
		return o, usageError{err}
	}
	keys, err := c.keys()
	if err != nil {
		return o, usageError{fmt.Errorf("--master-key: %w", err)}
	}
	var collector *history.Syslog
	if c.HistorySyslog != "" {
		if collector, err = history.ParseSyslog(c.HistorySyslog); err != nil {
			return o, usageError{fmt.Errorf("--history-syslog: %w", err)}
		}
	}
	prefixes, err := outbound.Parse(c.Outbound)
	if err != nil {
		return o, usageError{fmt.Errorf("--outbound: %w", err)}
	}
	proxies, err := outbound.Parse(c.TrustProxy)
	if err != nil {
		return o, usageError{fmt.Errorf("--trust-proxy: %w", err)}
	}
	var traces *url.URL
	if c.OTLP != "" {
		if traces, err = middleware.ParseTraces(c.OTLP); err != nil {
			return o, usageError{fmt.Errorf("--otlp: %w", err)}
		}
	}
	var figures *url.URL
	if c.FiguresURL != "" {
		if figures, err = url.Parse(c.FiguresURL); err != nil || figures.Scheme != "http" && figures.Scheme != "https" || figures.Host == "" {
			return o, usageError{fmt.Errorf("--figures-url must be an http or https URL")}
		}
	}
	outbound.Allow(prefixes)
	return server.Options{
		Programs: all.Programs(), Data: c.Data, Database: c.Database, DatabaseRead: c.DatabaseRead, Listen: c.Listen,
		CheckinListen: c.CheckinListen, PublicURL: c.PublicURL,
		TLSCert: c.TLSCert, TLSKey: c.TLSKey, MaxLimit: c.MaxLimit, MetricsListen: c.MetricsListen, KeepHistory: c.KeepHistory,
		KeepEvents: c.KeepEvents, KeepSessions: c.KeepSessions, Releases: c.Releases, Backups: c.BackupDir,
		BackupEvery: c.BackupEvery, BackupKeep: c.BackupKeep, AccessLog: c.AccessLog, AuditLog: c.AuditLog, TrustProxy: proxies, Traces: traces,
		FiguresURL: figures, FigureLines: c.FiguresLines, FigureBytes: c.FiguresBytes,
		NearlyFull: c.NearlyFull, HistoryHeads: c.HistoryHeads, HistorySyslog: collector,
		Sweep: c.Sweep, Feeds: c.Feeds, Mail: receivers.mail, Traps: receivers.traps,
		AdminPassword: c.AdminPassword, MasterKeys: keys,
		Version: versionText(), Log: s.log, LogLevel: s.logLevel}, nil
}

// Run serves until it is interrupted.
func (c *serveCommand) Run(s *session) error {
	o, err := c.options(s)
	if err != nil {
		return err
	}
	if c.Check {
		return c.check(s, o)
	}
	o.MemoryLimit = server.Tune()
	m, err := server.Start(s.ctx, o)
	if err != nil {
		return err
	}
	if m.NewPassword != "" {
		fmt.Fprintf(s.stdout, "Created the user admin. Its password, shown once: %s\n", m.NewPassword)
	}
	s.log = m.Log() // the manager's logger also writes to its log files
	s.log.Info("serving", "apis", m.URL(), "registration", m.RegistrationEndpoint(), "data", describeLocation(c.Data, c.Database))
	notifySystemd(s, daemon.SdNotifyReady)
	hangUp := make(chan os.Signal, 1)
	notifyHangUp(hangUp)
	for err == nil {
		select {
		case <-s.ctx.Done():
			s.log.Info("stopping")
			notifySystemd(s, daemon.SdNotifyStopping)
			return m.Close()
		case <-hangUp:
			c.reload(s, m)
		case err = <-m.Failure():
		}
	}
	_ = m.Close() // the error of the listener is returned instead
	return err
}

// notifySystemd reports the state of the program to systemd if systemd started it and waits for that.
func notifySystemd(s *session, state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		s.log.Warn("systemd notification failed", "error", err)
	}
}

// reload opens the log files again and reads certificates and the log level again.
func (c *serveCommand) reload(s *session, m *server.Manager) {
	if err := m.Reload(); err != nil {
		s.log.Error("reload failed", "error", err)
		return
	}
	if c.Config != "" && !s.levelGiven {
		level, err := cli.ConfiguredLevel(string(c.Config))
		if err != nil {
			s.log.Error("settings reload failed", "error", err)
			return
		}
		if level != nil {
			s.level.Set(*level)
		}
	}
	s.log.Info("logs, certificates and log level reloaded")
}

// check checks the settings and the environment without starting the manager.
func (c *serveCommand) check(s *session, o server.Options) error {
	findings := server.Examine(s.ctx, o)
	for _, f := range findings {
		if err := f.Print(s.stdout); err != nil {
			return err
		}
	}
	if n := server.Faults(findings); n > 0 {
		return fmt.Errorf("%d of these must be fixed before portolan serve can start", n)
	}
	_, err := fmt.Fprintln(s.stdout, "no problems found: portolan serve can start with these settings")
	return err
}

// describeLocation returns the location of the data for logs. A database URL may contain a password and is not returned.
func describeLocation(data, database string) string {
	if database != "" {
		return "PostgreSQL"
	}
	return data
}

// receivers are the receivers of notifications.
type receivers struct {
	mail  *notify.Mail
	traps []*notify.Traps
}

// receivers parses the flags for mail and SNMP traps.
func (c *serveCommand) receivers() (r receivers, err error) {
	if c.SMTP != "" {
		if r.mail, err = notify.ParseMail(c.SMTP); err != nil {
			return r, fmt.Errorf("--smtp: %w", err)
		}
	}
	for _, text := range c.SNMPTrap {
		one, err := notify.ParseTraps(text)
		if err != nil {
			return r, fmt.Errorf("--snmp-trap: %w", err)
		}
		r.traps = append(r.traps, one)
	}
	return r, nil
}
