package main

import (
	"fmt"
	"net/url"
	"time"

	"portolan/internal/history"
	"portolan/internal/notify"
	"portolan/internal/outbound"
	"portolan/internal/server"
)

type serveCommand struct {
	Data          string        `help:"The data directory; it is made at the first start." type:"path" placeholder:"DIR"`
	Database      string        `help:"The URL of a PostgreSQL to keep the data in. Any number of managers may share it; a data directory beside it then holds nothing that they would need." placeholder:"postgres://..."`
	DatabaseRead  string        `help:"The URL of a standby of that PostgreSQL; lists are read there while it is not behind." placeholder:"postgres://..."`
	Listen        string        `help:"Where the APIs are served. Plain HTTP on loopback, TLS elsewhere." default:"127.0.0.1:8080" placeholder:"ADDR"`
	CheckinListen string        `help:"Where service points enrol and check in, always with TLS." default:"127.0.0.1:8443" placeholder:"ADDR"`
	PublicURL     string        `help:"The check-in door's URL as service points reach it, such as https://portolan.example.net:8443." name:"public-url" placeholder:"URL"`
	TLSCert       string        `help:"The certificate of the API listener, in PEM; made by the manager's own authority when missing." name:"tls-cert" type:"path" placeholder:"FILE"`
	TLSKey        string        `help:"The key of that certificate, in PEM." name:"tls-key" type:"path" placeholder:"FILE"`
	MetricsListen string        `help:"Where /metrics is served, instead of on the API listener; without TLS on loopback alone." placeholder:"ADDR"`
	KeepHistory   time.Duration `help:"How long transactions are kept, with what they changed; they cannot be undone later. 0s for ever." default:"0s"`
	KeepEvents    time.Duration `help:"How long events, and deployments that have ended, are kept; 0s for ever." default:"8760h"`
	KeepSessions  time.Duration `help:"How long sessions that have ended are kept; 0s for ever." default:"720h"`
	MaxLimit      int64         `help:"The largest page of the address API." default:"100000" placeholder:"N"`
	Releases      string        `help:"A directory with the releases that service points are updated to, as portolan release makes it. Default: releases in the data directory." type:"path" placeholder:"DIR"`
	BackupDir     string        `help:"A directory for the backups that schedules make. Default: backups in the data directory." type:"path" placeholder:"DIR"`
	SMTP          string        `help:"The mail server that notification groups are told by: smtp://USER:PASSWORD@HOST:PORT?from=ADDRESS, or smtps://. Give it as PORTOLAN_SMTP where it has a password." name:"smtp" env:"PORTOLAN_SMTP" placeholder:"URL"`
	SNMPTrap      []string      `help:"A receiver of the traps of notification groups; may be given more than once." name:"snmp-trap" env:"PORTOLAN_SNMP_TRAP" placeholder:"snmp://COMMUNITY@HOST:PORT"`
	Sweep         bool          `help:"Let reconciliation policies ask the addresses of their networks whether they answer, from this machine."`
	Feeds         string        `help:"Where response policy zones of the type FEED have their names from: lists over HTTP, one for each category of a zone." name:"response-feeds" env:"PORTOLAN_RESPONSE_FEEDS" placeholder:"https://HOST/{category}.txt"`
	Outbound      []string      `help:"A prefix, or an address, that the manager may connect to for what is stored in it, webhooks and authenticators; may be given more than once. Without any: anywhere but link-local addresses." placeholder:"PREFIX"`
	HistoryHeads  string        `help:"A file that signed heads of the history are appended to: kept where the database's owner cannot change it, it tells whether the history was changed (portolan check --heads)." type:"path" placeholder:"FILE"`
	HistorySyslog string        `help:"Where each transaction is sent, with signed heads, as messages of RFC 5424." env:"PORTOLAN_HISTORY_SYSLOG" placeholder:"udp|tcp|tls://HOST:PORT"`
	masterFlag
	AdminPassword string `help:"The password of the user admin, at the first start only. Give it as PORTOLAN_ADMIN_PASSWORD; one is made and printed when it is missing." hidden:""`
}

// Run serves until it is told to stop.
func (c *serveCommand) Run(s *session) error {
	if (c.TLSCert == "") != (c.TLSKey == "") {
		return usageError{fmt.Errorf("--tls-cert and --tls-key go together")}
	}
	if c.Data == "" && c.Database == "" {
		return usageError{fmt.Errorf("--data or --database is needed")}
	}
	if c.DatabaseRead != "" && c.Database == "" {
		return usageError{fmt.Errorf("--database-read goes with --database")}
	}
	for name, keep := range map[string]time.Duration{"--keep-history": c.KeepHistory, "--keep-events": c.KeepEvents,
		"--keep-sessions": c.KeepSessions} {
		if keep < 0 || keep > 0 && keep < time.Hour {
			return usageError{fmt.Errorf("%s must be 0s, for ever, or an hour at the least", name)}
		}
	}
	if c.MaxLimit < 1 {
		return usageError{fmt.Errorf("--max-limit must be 1 or more")}
	}
	if u, err := url.Parse(c.Feeds); c.Feeds != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "") {
		return usageError{fmt.Errorf("--response-feeds must be an http or https URL, in which {category} stands for a category")}
	}
	receivers, err := c.receivers()
	if err != nil {
		return usageError{err}
	}
	keys, err := c.keys()
	if err != nil {
		return usageError{fmt.Errorf("--master-key: %w", err)}
	}
	var collector *history.Syslog
	if c.HistorySyslog != "" {
		if collector, err = history.ParseSyslog(c.HistorySyslog); err != nil {
			return usageError{fmt.Errorf("--history-syslog: %w", err)}
		}
	}
	prefixes, err := outbound.Parse(c.Outbound)
	if err != nil {
		return usageError{fmt.Errorf("--outbound: %w", err)}
	}
	outbound.Allow(prefixes)
	limit := server.Tune()
	m, err := server.Start(s.ctx, server.Options{MemoryLimit: limit,
		Data: c.Data, Database: c.Database, DatabaseRead: c.DatabaseRead, Listen: c.Listen,
		CheckinListen: c.CheckinListen, PublicURL: c.PublicURL,
		TLSCert: c.TLSCert, TLSKey: c.TLSKey, MaxLimit: c.MaxLimit, MetricsListen: c.MetricsListen, KeepHistory: c.KeepHistory,
		KeepEvents: c.KeepEvents, KeepSessions: c.KeepSessions, Releases: c.Releases, Backups: c.BackupDir,
		HistoryHeads: c.HistoryHeads, HistorySyslog: collector,
		Sweep: c.Sweep, Feeds: c.Feeds, Mail: receivers.mail, Traps: receivers.traps,
		AdminPassword: c.AdminPassword, MasterKeys: keys,
		Version: versionText(), Log: s.log, LogLevel: s.logLevel})
	if err != nil {
		return err
	}
	if m.NewPassword != "" {
		fmt.Fprintf(s.stdout, "The user admin was made, with this password, shown once: %s\n", m.NewPassword)
	}
	s.log.Info("serving", "apis", m.URL(), "registration", m.RegistrationEndpoint(), "data", where(c.Data, c.Database))
	select {
	case <-s.ctx.Done():
		s.log.Info("stopping")
	case err = <-m.Failed():
	}
	if e := m.Close(); err == nil {
		err = e
	}
	return err
}

// where names where the data is; a database's URL may hold a password and is not repeated.
func where(data, database string) string {
	if database != "" {
		return "PostgreSQL"
	}
	return data
}

// receivers are who is told of events.
type receivers struct {
	mail  *notify.Mail
	traps []*notify.Traps
}

// receivers reads where notifications go.
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
