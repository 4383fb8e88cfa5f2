package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"portolan/internal/base/fairlisten"
	"portolan/internal/base/ping"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/rest"
	"portolan/internal/engine/store"
	"portolan/internal/engine/store/archive"
	"portolan/internal/manager/audit"
	"portolan/internal/manager/authz"
	"portolan/internal/manager/backup"
	"portolan/internal/manager/dhcppublish"
	"portolan/internal/manager/discovery"
	"portolan/internal/manager/dnspublish"
	"portolan/internal/manager/figures"
	"portolan/internal/manager/fleet"
	"portolan/internal/manager/history"
	"portolan/internal/manager/identity"
	"portolan/internal/manager/imports"
	"portolan/internal/manager/ipam"
	"portolan/internal/manager/model"
	"portolan/internal/manager/notify"
	"portolan/internal/manager/secrets"
	"portolan/internal/manager/server/addressapi"
	"portolan/internal/manager/server/journal"
	"portolan/internal/manager/server/middleware"
	"portolan/internal/manager/serverconfig"
	"portolan/internal/manager/settings"
	"portolan/internal/wire/checkin"
	"portolan/internal/wire/release"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// Options say what a manager serves and where.
type Options struct {
	// Data is the data directory.
	Data string
	// Database is the URL of a PostgreSQL; empty means SQLite in Data.
	Database string
	// DatabaseRead is the URL of a standby of Database that lists are read from.
	DatabaseRead string
	// MasterKeys seal the keys of secrets. If nil, these keys are stored unsealed in the database.
	MasterKeys secrets.MasterKeys
	// Listen is the listen address of the APIs, CheckinListen that of the check-in of service points.
	Listen, CheckinListen string
	// Door, if not nil, replaces the check-in listener. Measurements use it for more connections than a process may open.
	Door net.Listener
	// Programs are the applications that service points can run. If nil, none can be deployed.
	Programs checkin.Programs
	// PublicURL is the URL at which service points reach the check-in listener; empty means CheckinListen.
	PublicURL string
	// TLSCert and TLSKey are files with the certificate of the API listener. Without them a listener
	// that is not on loopback makes its own.
	TLSCert, TLSKey string
	// MetricsListen is the listen address of /metrics; empty means Listen.
	MetricsListen string
	// KeepHistory, KeepEvents and KeepSessions say how long transactions with their changes, events, and
	// sessions that have ended are kept; 0 means for ever. Older transactions cannot be undone.
	KeepHistory, KeepEvents, KeepSessions time.Duration
	// MaxLimit is the largest page of the address API; 0 means 100,000 (spec.md section 8).
	MaxLimit int64
	// Releases is a directory with a repository of releases for service points (release.Repository); empty means releases/ in Data.
	Releases string
	// Mail is the mail server that notifications go to, Traps are the receivers of SNMP traps; nil where there are none.
	Mail  *notify.Mail
	Traps []*notify.Traps
	// Sweep enables automatic scans of networks for reconciliation.
	Sweep bool
	// HistoryHeads is a file that signed heads of the history are written to, HistorySyslog where transactions are sent; empty and nil:
	// nowhere.
	HistoryHeads  string
	HistorySyslog *history.Syslog
	// AccessLog and AuditLog are files that each request, and each that changes something with each sign-in, is appended to; "-" is
	// standard output, empty none.
	AccessLog, AuditLog string
	// Traces is the URL of the OpenTelemetry collector for traces (ParseTraces); nil disables them.
	Traces *url.URL
	// TrustProxy are the addresses of proxies. They may connect over plain HTTP from other machines, and their X-Forwarded-For is trusted as
	// the address of the client.
	TrustProxy []netip.Prefix
	// NearlyFull is the utilization of a nearly full network, in percent; 0 means DefaultNearlyFull.
	NearlyFull int
	// Feeds is the URL of name lists for response policy zones, with feedCategory as the placeholder of the category; empty disables them.
	Feeds string
	// Probe reports whether an address responds; nil means ICMP.
	Probe func(ctx context.Context, a netip.Addr) (bool, error)
	// Resolver is the name server that checks of parent zones ask; the zero value means that of the system.
	Resolver netip.AddrPort
	// Backups is a directory for backups; empty means backups/ in Data.
	Backups string
	// BackupEvery is the interval between automatic backups; 0 means that schedules apply. BackupKeep is the number of these backups to
	// keep, 2 to 20; 0 means DefaultBackupKeep.
	BackupEvery time.Duration
	BackupKeep  int
	// AdminPassword is the password of the user admin at the first start; empty generates one.
	AdminPassword string
	// MemoryLimit is the result of Tune. The limit grows with the connected service points. If 0, the manager does not set a limit.
	MemoryLimit int64
	// Version is the version that the manager reports.
	Version string
	// Log is the logger; nil means slog.Default.
	Log *slog.Logger
	// LogLevel is the name of the minimum level of Log; if empty, the settings apply.
	LogLevel string
	// Interval is how often service points report; 0 means checkin.Interval.
	Interval time.Duration
	// FiguresURL is the URL of a server with the HTTP API of Prometheus that figures over time are written to and read from; nil means a
	// folder in Data. FigureLines is the maximum number of lines in that folder, FigureBytes about its maximum size; 0 means the defaults,
	// and negative FigureBytes keep no figures.
	FiguresURL  *url.URL
	FigureLines int64
	FigureBytes int64
	// Speedup divides the pauses of the manager's workers (store.Options.Speedup); tests set it.
	Speedup int
	// RolloutEvery is the interval between steps of rollouts without an event; 0 means a second.
	RolloutEvery time.Duration
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Manager is a running manager.
type Manager struct {
	Store   *store.Store
	Address *resource.API
	// REST serves Address over HTTP.
	REST     *rest.Server
	Fleet    *fleet.Service
	Identity *identity.Service
	// Figures are the figures over time; nil without a data directory or a server for them.
	Figures figures.Store
	// NewPassword is the password made for admin at the first start, empty otherwise.
	NewPassword string

	// addressAPI finds the callers of the address API.
	addressAPI *addressapi.API
	// chain is the middleware of all listeners.
	chain *middleware.Chain
	// anonymous limits the connections to the check-in listener that have shown no certificate.
	anonymous *fairlisten.Listener

	options   Options
	log       *slog.Logger
	levels    levels
	metrics   *metrics
	registry  *prometheus.Registry
	authority *fleet.Authority
	// published are the releases that it has for service points.
	published publishedReleases
	// routes are the paths of the API listener outside of Base, checkinRoutes those of the check-in listener. The tests of credentials
	// request each.
	routes, checkinRoutes []string
	// api, checkins and figures are the listeners; figures is nil where /metrics is on the API's.
	api, checkins, figures net.Listener
	// parking holds the connections of waiting service points.
	parking *middleware.Parking
	// files is the configured certificate; nil if the manager uses its own.
	files *certificateFiles
	// ownLog is the log file of the manager; nil without one.
	ownLog *journal.Journal
	// since is the start time. statusKept, spaceKept and certificatesKept cache the status.
	since      time.Time
	statusKept remembered[Status]
	spaceKept  remembered[SpaceStatus]
	// certificatesKept caches the certificates of applications.
	certificatesKept remembered[[]CertificateStatus]
	rehearsals       rehearsals
	// indexFault is the reason why an index of a user-defined field could not be created; nil without a failure.
	indexFault atomic.Pointer[string]
	servers    []*http.Server
	// certificate is the manager's own certificate, for the check-in listener, and for the APIs if none is configured. It is renewed when a
	// third of its lifetime is left.
	certificate atomic.Pointer[tls.Certificate]
	background  sync.WaitGroup
	stop        context.CancelFunc
	failed      chan error
}

// apiTitle and APIVersion are the title and version of the address API in the OpenAPI document. The version is that
// of the published API whose surface it has.
const (
	apiTitle   = "Portolan address manager"
	APIVersion = "9.5"
)

// DefaultNearlyFull is the default of Options.NearlyFull, in percent.
const DefaultNearlyFull = 90

// DefaultBackupKeep is the default number of backups of --backup-every to keep.
const DefaultBackupKeep = 7

// DefaultMaxLimit is the largest page (spec.md section 8).
const DefaultMaxLimit = 100000

// Start opens the data and the listeners and serves until Close.
func Start(ctx context.Context, o Options) (_ *Manager, err error) {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.MaxLimit == 0 {
		o.MaxLimit = DefaultMaxLimit
	}
	o.NearlyFull = cmp.Or(o.NearlyFull, DefaultNearlyFull)
	if o.Releases == "" && o.Data != "" {
		o.Releases = filepath.Join(o.Data, "releases")
	}
	if o.Backups == "" && o.Data != "" {
		o.Backups = filepath.Join(o.Data, "backups")
	}
	m := &Manager{options: o, published: publishedReleases{repository: release.Repository{Dir: o.Releases}},
		registry: prometheus.NewRegistry(), since: time.Now(), failed: make(chan error, 3),
		rehearsals: rehearsals{wanted: make(chan string, 1)}}
	m.chain = middleware.New(m.registry)
	if err := m.openLogs(); err != nil {
		return nil, err
	}
	if m.chain.Traces, err = middleware.NewTraces(ctx, o.Traces, o.Version, hostName()); err != nil {
		return nil, fmt.Errorf("send traces: %w", err)
	}
	m.metrics = newMetrics(m.registry)
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if m.Store, err = store.Open(store.Options{Layout: model.Layout(), Dir: o.Data, Database: o.Database, DatabaseRead: o.DatabaseRead,
		Exclusive: true, Now: o.Now, Speedup: o.Speedup}); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			for _, l := range []net.Listener{m.api, m.checkins, m.figures} {
				if l != nil {
					_ = l.Close()
				}
			}
			if m.Figures != nil {
				_ = m.Figures.Close()
			}
			_ = m.Store.Close()
		}
	}()
	m.openOwnLog()
	m.Identity = identity.ServiceOf(m.Store)
	m.Identity.Observe(identity.Observer{SignIn: m.recordSignIn, Guessing: m.reportGuessing, Unreachable: m.logUnreachable,
		ResponseRejected: m.logRejectedResponse, UnknownUser: m.logUnknownUser})
	sealed, err := secrets.FromStore(m.Store).UseMasterKeys(ctx, o.MasterKeys)
	if err != nil {
		return nil, err
	}
	if sealed > 0 {
		m.log.Info("secret keys sealed by the master key", "keys", sealed)
	}
	m.Address = model.NewAPI(m.Store)
	m.REST = Serve(m.Address, o.MaxLimit, o.Version)
	m.REST.Log, m.REST.Batched = m.logOf(&m.levels.api), m.metrics.countBatch
	provisions := m.Address.Provisions
	resource.Provide(provisions, notify.Options{Mail: o.Mail != nil, Traps: len(o.Traps) > 0})
	resource.Provide(provisions, discovery.Options{Sweeps: o.Sweep})
	resource.Provide(provisions, backup.NewOptions(o.Backups))
	resource.Provide(provisions, audit.Options{Logs: m.logFiles()})
	resource.Provide(provisions, settings.Options{LogLevel: o.LogLevel, Backups: o.Backups != "", LastBackup: backup.LastBackup})
	m.REST.SetCookie, m.REST.RequestFields = identity.SetCookie, identity.RequestToken
	m.addressAPI = &addressapi.API{REST: m.REST, Address: m.Address, Identity: m.Identity, Sample: Status{}, Log: m.log,
		Status:     func(ctx context.Context) (any, error) { return m.status(ctx) },
		NameServer: m.nameServerOf, Resolver: o.Resolver, Rehearse: m.rehearse, Rehearsal: m.rehearsal}
	m.REST.CurrentCaller = func(r *http.Request) (resource.Caller, error) { return m.addressAPI.Caller(identity.Quietly(r)) }
	m.Store.Time(store.Timing{Change: func(ctx context.Context, began time.Time) {
		m.metrics.changes.Observe(time.Since(began).Seconds())
		m.chain.Traces.Changed(ctx, began)
	},
		Commit: func(d time.Duration) { m.metrics.commits.Observe(d.Seconds()) }})
	observeFollowers(m.registry, m.REST.Followers)
	if o.Probe == nil {
		m.options.Probe = func(ctx context.Context, a netip.Addr) (bool, error) { return ping.Answers(ctx, a, probeTime) }
	}
	resource.Provide(provisions, ipam.Options{Probe: m.options.Probe})
	if m.authority, err = fleet.LoadAuthority(ctx, m.Store, m.Address.Sealer); err != nil {
		return nil, fmt.Errorf("load the authority: %w", err)
	}
	m.Fleet = fleet.New(m.Store, m.authority, m.log, o.Interval, o.Programs, m.releases)
	resource.Provide(provisions, dnspublish.Options{Serving: func(tx *store.Tx, servicePoint string) (string, bool, error) {
		is, err := fleetPoints{m.Fleet}.Serving(tx, servicePoint, serverconfig.ServiceDNS)
		return is.Content, is.Exists && !is.Silent, err
	}, Services: m.otherServices()})
	m.Fleet.Observe(m.metrics.statusChanged)
	m.Fleet.ObserveStream(m.metrics.countStreamed)
	m.takeLeases()
	m.Fleet.SetChangeObserver(serverconfig.PointsMoved)
	m.observeStatus()
	if err := m.openFigures(); err != nil {
		return nil, err
	}
	m.observeFigures()
	m.addressAPI.Figures, m.addressAPI.SeesServicePoint = m.Figures, m.seesServicePoint
	if err := m.Fleet.SetClock(ctx); err != nil {
		return nil, fmt.Errorf("read the time of the database: %w", err)
	}
	if err := history.CheckFile(o.HistoryHeads); err != nil {
		return nil, fmt.Errorf("the file of the history's heads: %w", err)
	}
	if err := m.listen(); err != nil {
		return nil, err
	}
	if err := m.setup(ctx); err != nil { // behind whatever may fail: the password that it makes is shown once
		return nil, err
	}
	if err := backup.ScheduleEvery(ctx, m.Address, o.BackupEvery, int64(cmp.Or(o.BackupKeep, DefaultBackupKeep))); err != nil {
		return nil, fmt.Errorf("the schedule of backups: %w", err)
	}
	if err := audit.KeepLogs(ctx, m.Address); err != nil {
		return nil, fmt.Errorf("the list of logs: %w", err)
	}
	if err := m.serve(); err != nil {
		return nil, err
	}
	return m, nil
}

// setup creates the user admin and the other initial data of a new manager.
func (m *Manager) setup(ctx context.Context) error {
	users, upgraded, current := false, false, false
	if err := m.Store.View(ctx, func(tx *store.Tx) (err error) {
		if users, err = tx.Exists(store.Query{From: store.Resources, Where: store.InCollection("users")}); err == nil {
			upgraded, err = authz.Upgraded(tx)
		}
		if err == nil {
			current, err = serverconfig.AreDefinitionsCurrent(tx)
		}
		return err
	}); err != nil {
		return err
	}
	if users && upgraded && current {
		return nil
	}
	if users { // a database of an earlier version
		return m.Store.Update(ctx, store.Author{Comment: "upgrade"}, m.Address.Seed)
	}
	password := m.options.AdminPassword
	if password == "" {
		password = secrets.New()[:20]
	}
	made, err := Setup(ctx, m.Address, password)
	if err != nil {
		return fmt.Errorf("set up the manager: %w", err)
	}
	if made && m.options.AdminPassword == "" {
		m.NewPassword = password
	}
	return nil
}

// probeTime is the response timeout of the optional probe before an address is assigned.
const probeTime = time.Second

// serve starts the servers and the background work.
func (m *Manager) serve() error {
	api, err := m.apiHandler()
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	m.stop = stop
	m.start(ctx, m.api, m.behindProxies(api), nil)
	points := &connections{limit: m.options.MemoryLimit}
	m.parking = middleware.NewParking(m.checkins.Addr(), points.count, m.Fleet.AwaitOrders)
	// HTTP/1.1 alone: of its connections one that waits can be parked.
	checkins := m.checkinHandler()
	m.start(ctx, tls.NewListener(m.checkins, &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{"http/1.1"},
		// Verified below: an expired one may still be renewed, and whether it has expired the database's time says.
		ClientAuth: tls.RequestClientCert,
		VerifyConnection: func(c tls.ConnectionState) error {
			if len(c.PeerCertificates) == 0 {
				return nil
			}
			return m.authority.Verify(c.PeerCertificates[0])
		},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return m.certificate.Load(), nil },
	}), checkins, func(c net.Conn, state http.ConnState) {
		if shown, is := c.(*tls.Conn); is && state == http.StateActive && len(shown.ConnectionState().PeerCertificates) > 0 {
			m.anonymous.Settle(shown.NetConn()) // a service point's: it may wait as long as it likes
		}
		points.stateChanged(c, state)
	})
	// A returned connection has the idle timeout of any kept-alive connection.
	m.startServer(ctx, m.parking, checkins, func(c net.Conn, state http.ConnState) {
		points.stateChanged(c, state)
		m.parking.StateChanged(c, state)
	}, idleTime)
	if m.figures != nil {
		mux := http.NewServeMux()
		mux.Handle("/metrics", m.chain.Reading(middleware.Plain("metrics"), m.showMetrics))
		mux.Handle("/", m.chain.Handler(middleware.Plain("none"), notFound("this listener serves /metrics")))
		m.start(ctx, m.figures, mux, nil)
	}
	m.background.Go(func() { m.sweep(ctx) })
	m.background.Go(func() { m.runRehearsals(ctx) })
	if m.options.MemoryLimit > 0 { // this program controls the collector
		m.background.Go(func() { returnMemory(ctx) })
	}
	if m.options.LogLevel == "" {
		m.background.Go(func() { m.heedLevels(ctx) })
	}
	keeper := history.NewKeeper(m.Store, m.Address.Sealer, m.log)
	keeper.HeadsFile, keeper.Syslog = m.options.HistoryHeads, m.options.HistorySyslog
	keeper.Chained, keeper.Sent, keeper.Failed = m.metrics.chained, m.metrics.historySent, m.metrics.historyFailed
	m.background.Go(func() { keeper.Run(ctx) })
	m.background.Go(func() { m.pruneNowAndThen(ctx) })
	m.background.Go(func() { m.sampleLeases(ctx) })
	m.background.Go(func() { ipam.NewRangeChecker(m.Store, m.log).Run(ctx) })
	m.background.Go(func() { m.keepUserIndexes(ctx) })
	m.background.Go(func() { m.keepFigures(ctx) })
	m.background.Go(func() { m.Fleet.Attend(ctx) })
	m.background.Go(func() { m.roll(ctx) })
	m.startSenders(ctx)
	importer := imports.NewRunner(m.Address, m.REST.Show, m.Identity.Acting, m.logOf(&m.levels.imports))
	importer.Ended, importer.Worked = m.metrics.importEnded, m.metrics.rowsImported
	importer.Leases = m.newLeaseImport
	m.background.Go(func() { importer.Run(ctx) })
	deployer := dnspublish.NewDeployer(m.Address, fleetPoints{m.Fleet}, m.log)
	copier := dnspublish.NewCopier(m.Address, fleetPoints{m.Fleet}, m.log)
	if copier.Copied = m.metrics.countCopy; m.options.Feeds != "" {
		copier.Feed = m.feed
	}
	m.background.Go(func() { copier.Run(ctx) })
	deployer.Ended, deployer.Changed, deployer.Rolled = m.metrics.deploymentEnded, m.metrics.deployedLive, m.metrics.countRollover
	m.background.Go(func() { deployer.Run(ctx) })
	live := dhcppublish.NewLive(m.Address, fleetPoints{m.Fleet}, m.log)
	m.background.Go(func() { live.Run(ctx) })
	backups := backup.NewRunner(m.Address, func(ctx context.Context, w io.Writer) error {
		_, err := archive.Write(ctx, m.Store, w, m.options.Version, func(int64) {})
		return err
	}, m.log)
	backups.Ended, backups.Uploaded = m.metrics.backupEnded, m.metrics.backupUploaded
	m.background.Go(func() { backups.Run(ctx) })
	sweeper := discovery.NewSweeper(m.Address, m.options.Probe, m.log)
	sweeper.Ended = m.metrics.discoveryEnded
	m.background.Go(func() { sweeper.Run(ctx) })
	notices := notify.NewSender(m.Address, m.options.Mail, m.options.Traps, m.log)
	notices.Sent = m.metrics.notified
	m.background.Go(func() { notices.Run(ctx) })
	return nil
}

// writeTime is the time limit for a response. It allows for a long list over a slow line.
const writeTime = 15 * time.Minute

func (m *Manager) start(ctx context.Context, l net.Listener, h http.Handler, state func(net.Conn, http.ConnState)) {
	m.startServer(ctx, l, h, state, 10*time.Second)
}

// idleTime is the idle timeout of a connection.
const idleTime = 2 * time.Minute

// startServer serves what a listener accepts. A first request may take as long as head.
func (m *Manager) startServer(ctx context.Context, l net.Listener, h http.Handler, state func(net.Conn, http.ConnState),
	head time.Duration) {
	s := &http.Server{Handler: h, ReadHeaderTimeout: head, ReadTimeout: 2 * time.Minute, WriteTimeout: writeTime,
		IdleTimeout:    idleTime,
		MaxHeaderBytes: 64 << 10, ErrorLog: log.New(quiet{m.log}, "", 0), BaseContext: func(net.Listener) context.Context { return ctx },
		ConnState: state}
	s.Protocols = new(http.Protocols)
	s.Protocols.SetHTTP1(true)
	s.Protocols.SetHTTP2(true)
	m.servers = append(m.servers, s)
	m.background.Go(func() {
		if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			m.failed <- fmt.Errorf("serve on %s: %w", l.Addr(), err)
		}
	})
}

// quiet writes errors of net/http, such as failed handshakes, to the debug log.
type quiet struct{ log *slog.Logger }

func (q quiet) Write(b []byte) (int, error) {
	q.log.Debug("http server error", "error", strings.TrimSpace(string(b)))
	return len(b), nil
}

// Failure returns the error that ended a listener, if any.
func (m *Manager) Failure() <-chan error { return m.failed }
