package server

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"portolan/internal/engine/store"
	"portolan/internal/manager/dhcp"
	"portolan/internal/manager/fleet"
	"portolan/internal/manager/history"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are the counters and histograms of a manager.
type metrics struct {
	signIns  *prometheus.CounterVec
	batches  *prometheus.HistogramVec
	webhooks *prometheus.CounterVec
	// activity counts events of servers for the destinations of their services.
	activity *prometheus.CounterVec
	imports  *prometheus.CounterVec
	rows     *prometheus.CounterVec
	moves    *prometheus.CounterVec
	// streamed counts applied records of service points, gaveUp records that their sources dropped.
	streamed, gaveUp *prometheus.CounterVec
	deployed         *prometheus.CounterVec
	live             prometheus.Counter
	// links counts chained transactions, historyLines those sent to the syslog, historyFailures failures of either.
	links, historyLines, historyFailures prometheus.Counter
	keys                                 *prometheus.CounterVec
	updates                              *prometheus.CounterVec
	copies, ended                        *prometheus.CounterVec
	backups, discoveries                 *prometheus.CounterVec
	notices                              *prometheus.CounterVec
	// checkIns counts check-ins, enrolments enrolment attempts; changes and commits are durations.
	checkIns, enrolments *prometheus.CounterVec
	// refused counts refused DHCP messages by reason.
	refused          *prometheus.CounterVec
	changes, commits prometheus.Histogram
	// figureFaults counts failures to store figures over time.
	figureFaults prometheus.Counter
}

func newMetrics(registry prometheus.Registerer) *metrics {
	m := &metrics{}
	m.signIns = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "portolan_sign_ins_total",
		Help: "Sign-ins with a password or a key set, by result: accepted, refused, or throttled after too many failures."}, []string{"result"})
	m.batches = prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "portolan_batch_changes",
		Help:    "Changes of batches and posted lists, by result: made, tried or refused.",
		Buckets: prometheus.ExponentialBuckets(1, 10, 5)}, []string{"result"})
	m.webhooks = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "portolan_webhook_messages_total",
		Help: "Attempts to send messages to webhooks, by result: taken (accepted) or refused."}, []string{"result"})
	m.activity = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "portolan_telemetry_events_total",
		Help: "Events for the destinations of DHCPActivityService, by result: sent, rejected by the receiver, dropped because too many wait, " +
			"or failed (to be sent again)."}, []string{"result"})
	m.moves = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "portolan_fleet_moves_total",
		Help: "Changes of service points, their applications and updates, and of rollouts, by field and new value."},
		[]string{"field", "to"})
	m.streamed = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "portolan_stream_records_total",
		Help: "Applied records of service points, by kind."}, []string{"kind"})
	m.gaveUp = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "portolan_stream_lost_records_total",
		Help: "Records that service points dropped before they could send them, by kind."}, []string{"kind"})
	registry.MustRegister(m.streamed, m.gaveUp)
	m.imports = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "portolan_imports_total",
		Help: "Completed imports by final state."}, []string{"state"})
	m.rows = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "portolan_import_rows_total",
		Help: "Processed rows of imports by result: created, updated, unchanged or refused."}, []string{"result"})
	m.deployed = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "portolan_deployments_total",
		Help: "Completed deployments by type and final state."}, []string{"type", "state"})
	m.live = prometheus.NewCounter(prometheus.CounterOpts{Name: "portolan_live_changes_total",
		Help: "Changed names and addresses of live views that were deployed."})
	m.backups = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "portolan_backups_total",
		Help: "Scheduled backups by result: made, failed, uploaded to another machine, or upload_failed."}, []string{"result"})
	m.notices = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "portolan_notifications_total",
		Help: "Attempts to send messages to notification groups, by type and result: sent or failed."}, []string{"type", "result"})
	for _, result := range []string{"made", "failed", "uploaded", "upload_failed"} { // rates need a series that starts at 0
		m.backups.WithLabelValues(result)
	}
	m.discoveries = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "portolan_discovery_runs_total",
		Help: "Runs of reconciliation policies, by result: done or failed."}, []string{"result"})
	for _, result := range []string{"done", "failed"} {
		m.discoveries.WithLabelValues(result)
	}
	registry.MustRegister(m.backups, m.notices, m.discoveries)
	m.links = prometheus.NewCounter(prometheus.CounterOpts{Name: "portolan_history_links_total",
		Help: "Chained transactions."})
	m.historyLines = prometheus.NewCounter(prometheus.CounterOpts{Name: "portolan_history_sent_total",
		Help: "Transactions sent to syslog."})
	m.historyFailures = prometheus.NewCounter(prometheus.CounterOpts{Name: "portolan_history_failures_total",
		Help: "Failures to chain, sign, write or send the history."})
	registry.MustRegister(m.links, m.historyLines, m.historyFailures)
	m.keys = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "portolan_zone_keys_total",
		Help: "Keys of signed zones that were created as successors, or removed after the successor took over."}, []string{"what"})
	m.updates = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "portolan_dynamic_updates_total",
		Help: "Dynamic updates (RFC 2136) by response code."}, []string{"code"})
	m.copies = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "portolan_zone_copies_total",
		Help: "Attempts to copy zones of other servers, by result: copied, changed, current or failed."}, []string{"result"})
	m.ended = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "portolan_connections_ended_total",
		Help: "Connections closed in favor of other clients because a listener reached its limit, " +
			"by listener."}, []string{"listener"})
	m.checkIns = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "portolan_check_ins_total",
		Help: "Check-ins of service points by result: taken (accepted) or refused."}, []string{"result"})
	m.enrolments = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "portolan_enrolments_total",
		Help: "Enrolment attempts by result: taken (accepted) or refused."}, []string{"result"})
	m.refused = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "portolan_dhcp_refused_messages_total",
		Help: "Messages refused by the DHCP servers of service points, by reason."}, []string{"reason"})
	m.figureFaults = prometheus.NewCounter(prometheus.CounterOpts{Name: "portolan_figures_failures_total",
		Help: "Failed attempts to store figures over time."})
	registry.MustRegister(m.refused, m.figureFaults)
	m.changes = prometheus.NewHistogram(prometheus.HistogramOpts{Name: "portolan_change_duration_seconds",
		Help:    "Duration of a change until its commit, with the time in the queue.",
		Buckets: prometheus.ExponentialBuckets(0.0005, 4, 9)})
	m.commits = prometheus.NewHistogram(prometheus.HistogramOpts{Name: "portolan_commit_duration_seconds",
		Help: "Duration of a commit, which contains one or more changes.", Buckets: prometheus.ExponentialBuckets(0.0005, 4,
			9)})
	registry.MustRegister(m.ended, m.checkIns, m.enrolments, m.changes, m.commits)
	registry.MustRegister(m.copies, m.updates, m.keys)
	registry.MustRegister(m.signIns, m.batches, m.webhooks, m.activity, m.moves, m.imports, m.rows, m.deployed, m.live)
	return m
}

// countBatch records the size of a batch.
func (m *metrics) countBatch(changes int, result string) {
	m.batches.WithLabelValues(result).Observe(float64(changes))
}

// statusChanged counts a committed status change of the fleet.
func (m *metrics) statusChanged(change fleet.StatusChange) {
	m.moves.WithLabelValues(change.Field, change.After).Inc()
}

// countStreamed counts records of a kind.
func (m *metrics) countStreamed(kind string, applied int, lost int64) {
	m.streamed.WithLabelValues(kind).Add(float64(applied))
	m.gaveUp.WithLabelValues(kind).Add(float64(lost))
}

// deploymentEnded counts a deployment.
func (m *metrics) deploymentEnded(kind, state string) { m.deployed.WithLabelValues(kind, state).Inc() }

// chained counts chained transactions, historySent those sent to the syslog, historyFailed failures of either.
func (m *metrics) chained(n int)     { m.links.Add(float64(n)) }
func (m *metrics) historySent(n int) { m.historyLines.Add(float64(n)) }
func (m *metrics) historyFailed()    { m.historyFailures.Inc() }

// backupEnded counts a backup.
func (m *metrics) backupEnded(whole bool) {
	m.backups.WithLabelValues(word(whole, "made", "failed")).Inc()
}

// discoveryEnded counts a run of a reconciliation policy.
func (m *metrics) discoveryEnded(state string) {
	m.discoveries.WithLabelValues(strings.ToLower(state)).Inc()
}

// backupUploaded counts an attempt to upload backups to another machine.
func (m *metrics) backupUploaded(whole bool) {
	m.backups.WithLabelValues(word(whole, "uploaded", "upload_failed")).Inc()
}

// notified counts a message to a notification group.
func (m *metrics) notified(kind string, sent bool) {
	m.notices.WithLabelValues(kind, word(sent, "sent", "failed")).Inc()
}

// word returns one of two words.
func word(yes bool, one, other string) string {
	if yes {
		return one
	}
	return other
}

// deployedLive counts deployed names and addresses of live views.
func (m *metrics) deployedLive(n int) { m.live.Add(float64(n)) }

// clientRefused counts refused DHCP messages. Reasons come from service points, so their number is limited.
func (m *metrics) clientRefused(reason string, n int64) {
	if !dhcp.IsReason(reason) {
		reason = "other"
	}
	m.refused.WithLabelValues(reason).Add(float64(n))
}

// connectionEnded counts connections that were closed in favor of other clients.
func (m *metrics) connectionEnded(listener string) { m.ended.WithLabelValues(listener).Inc() }

// countUpdate counts RFC 2136 updates by response code.
func (m *metrics) countUpdate(code int) { m.updates.WithLabelValues(strconv.Itoa(code)).Inc() }

// countCopy counts attempts to copy zones of other servers.
func (m *metrics) countCopy(result string) { m.copies.WithLabelValues(result).Inc() }

// countRollover counts rolled keys of signed zones.
func (m *metrics) countRollover(what string, n int) { m.keys.WithLabelValues(what).Add(float64(n)) }

// importEnded counts an import.
func (m *metrics) importEnded(state string) { m.imports.WithLabelValues(state).Inc() }

// rowsImported counts rows of imports.
func (m *metrics) rowsImported(rows int, result string) {
	m.rows.WithLabelValues(result).Add(float64(rows))
}

// telemetrySent counts events for the destinations of services.
func (m *metrics) telemetrySent(result string, n int) {
	m.activity.WithLabelValues(result).Add(float64(n))
}

// webhookSent counts an attempt to send to a webhook.
func (m *metrics) webhookSent(taken bool) {
	result := "refused"
	if taken {
		result = "taken"
	}
	m.webhooks.WithLabelValues(result).Inc()
}

// observeFollowers registers the number of clients that follow the changes.
func observeFollowers(registry prometheus.Registerer, followers func() int) {
	registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "portolan_changes_followers",
		Help: "Clients that follow the changes at this manager."}, func() float64 { return float64(followers()) }))
}

// countAccepted counts a request that was accepted or refused.
func countAccepted(c *prometheus.CounterVec, err error) {
	c.WithLabelValues(word(err == nil, "taken", "refused")).Inc()
}

// statusFigures collects figures of the status. Managers that share a database show the same ones.
type statusFigures struct {
	read      func(context.Context) (Status, error)
	now       func() time.Time
	collector bool // whether the history is sent to a syslog
	unsent    func(context.Context) (int64, error)
	described map[string]*prometheus.Desc
}

// figure is a figure of the status, with its labels.
type figure struct {
	name, help string
	labels     []string
}

// figureHelp describes the figures of the status and their labels.
var figureHelp = []figure{
	{"portolan_status_read", "1 if the database has answered for the figures of the status; 0 if they are missing.", nil},
	{"portolan_build_info", "1, with the version of the manager and that of Go.", []string{"version", "go"}},
	{"portolan_start_time_seconds", "Start of the manager, in Unix time.", nil},
	{"portolan_alarms", "Alarms that need action (portolan status), by severity.", []string{"severity"}},
	{"portolan_database_bytes", "Size of the database.", []string{"kind"}},
	{"portolan_database_condition", "1 for the condition of the database (READY, FULL, DAMAGED or AWAY); 0 for the others.",
		[]string{"condition"}},
	{"portolan_database_log_bytes", "Size of the write-ahead log of SQLite that is not in the database file yet.", nil},
	{"portolan_standby_behind_bytes", "Bytes of the log that the standby for lists has not replayed.", nil},
	{"portolan_disk_free_bytes", "Free space of the disk of the data directory.", nil},
	{"portolan_changes_waiting", "Changes of this manager that run or wait.", nil},
	{"portolan_transactions", "The number of the latest transaction of the history.", nil},
	{"portolan_texts_due", "Resources with texts that are pending in the trigram index.", nil},
	{"portolan_user_indexes_missing", "Requested indexes of user-defined fields that are not built yet.", nil},
	{"portolan_history_due", "Transactions that are not chained yet.", nil},
	{"portolan_history_unsigned", "Links of the history's chain behind the last signed head.", nil},
	{"portolan_history_unsent", "Links of the history's chain that were not sent to the collector yet.", nil},
	{"portolan_backup_last_time_seconds", "Time of the last backup, in Unix time; 0 without backups.", nil},
	{"portolan_backup_last_bytes", "Size of the last backup.", nil},
	{"portolan_backup_schedules", "Number of enabled backup schedules.", nil},
	{"portolan_backup_overdue_seconds", "Delay of a due backup; 0 if no backup is due.", nil},
	{"portolan_backup_files", "Number of backups.", nil},
	{"portolan_certificate_end_time_seconds", "End of a certificate, in Unix time.", []string{"certificate"}},
	{"portolan_certificate_days_left", "Days until the end of a certificate; negative after it.", []string{"certificate"}},
	{"portolan_service_points", "Service points, by status.", []string{"status"}},
	{"portolan_service_point_updates", "Service points with a running or failed update, by updateStatus.", []string{"status"}},
	{"portolan_service_points_connected", "Service points that are connected.", nil},
	{"portolan_service_points_away", "Service points that have lost their connection.", nil},
	{"portolan_service_points_silent", "Service points without a check-in for a longer time.", []string{"longer_than"}},
	{"portolan_applications", "Applications of service points, by name and status.", []string{"application", "status"}},
	{"portolan_rollouts", "Rollouts, by status.", []string{"status"}},
	{"portolan_networks_nearly_full_all", "IPv4 networks with a utilization of --nearly-full or more, in all configurations.", nil},
	{"portolan_networks_nearly_full", "IPv4 networks with a utilization of --nearly-full or more, by configuration.",
		[]string{"configuration"}},
	{"portolan_network_used_ratio", "Share of used addresses of the fullest of these networks, 0 to 1; at most twenty networks.",
		[]string{"configuration", "network"}},
}

// observeStatus registers the figures of the status.
func (m *Manager) observeStatus() {
	f := &statusFigures{read: m.status, now: m.now, collector: m.options.HistorySyslog != nil, described: map[string]*prometheus.Desc{}}
	f.unsent = func(ctx context.Context) (n int64, err error) {
		err = m.Store.Read(ctx, func(tx *store.Tx) error {
			n, err = history.Unsent(tx)
			return err
		})
		return n, err
	}
	for _, one := range slices.Concat(figureHelp, dhcpFigureHelp) {
		f.described[one.name] = prometheus.NewDesc(one.name, one.help, one.labels, nil)
	}
	m.registry.MustRegister(f)
}

// Describe implements prometheus.Collector.
func (f *statusFigures) Describe(all chan<- *prometheus.Desc) {
	for _, one := range f.described {
		all <- one
	}
}

// collectTime limits the time of the database, so that a scrape does not wait for busy readers.
const collectTime = 10 * time.Second

// Collect implements prometheus.Collector. It sends no figures if the database does not answer in time.
func (f *statusFigures) Collect(all chan<- prometheus.Metric) {
	ctx, end := context.WithTimeout(context.Background(), collectTime)
	defer end()
	s, err := f.read(ctx)
	if err != nil {
		all <- prometheus.MustNewConstMetric(f.described["portolan_status_read"], prometheus.GaugeValue, 0)
		return
	}
	whole := 1.0
	if s.Incomplete {
		whole = 0
	}
	all <- prometheus.MustNewConstMetric(f.described["portolan_status_read"], prometheus.GaugeValue, whole)
	give := func(name string, value float64, labels ...string) {
		all <- prometheus.MustNewConstMetric(f.described[name], prometheus.GaugeValue, value, labels...)
	}
	give("portolan_build_info", 1, s.Version, s.Go)
	give("portolan_start_time_seconds", float64(s.Since.Unix()))
	for _, severity := range []string{critical, warning} {
		n := 0
		for _, a := range s.Alarms {
			if a.Severity == severity {
				n++
			}
		}
		give("portolan_alarms", float64(n), strings.ToLower(severity))
	}
	for _, one := range store.Conditions {
		value := 0.0
		if one == s.Database.Condition {
			value = 1
		}
		give("portolan_database_condition", value, string(one))
	}
	if s.Incomplete {
		return
	}
	give("portolan_database_bytes", float64(s.Database.Bytes), s.Database.Kind)
	for name, value := range map[string]*int64{"portolan_database_log_bytes": s.Database.LogBytes,
		"portolan_standby_behind_bytes": s.Database.StandbyBytes, "portolan_disk_free_bytes": s.FreeBytes} {
		if value != nil {
			give(name, float64(*value))
		}
	}
	give("portolan_changes_waiting", float64(s.Database.Waiting))
	give("portolan_transactions", float64(s.Database.Transactions))
	give("portolan_texts_due", float64(s.History.TextsDue))
	give("portolan_user_indexes_missing", float64(s.Indexes.Missing))
	give("portolan_history_due", float64(s.History.Due))
	give("portolan_history_unsigned", float64(s.History.Unsigned))
	if f.collector {
		if n, err := f.unsent(ctx); err == nil {
			give("portolan_history_unsent", float64(n))
		}
	}
	last := 0.0
	if s.Backups.Last != nil {
		last = float64(s.Backups.Last.Unix())
	}
	give("portolan_backup_last_time_seconds", last)
	give("portolan_backup_last_bytes", float64(s.Backups.LastBytes))
	give("portolan_backup_schedules", float64(s.Backups.Schedules))
	overdue := 0.0
	if s.Backups.Due != nil {
		overdue = max(0, f.now().Sub(*s.Backups.Due).Seconds())
	}
	give("portolan_backup_overdue_seconds", overdue)
	give("portolan_backup_files", float64(s.Backups.Files))
	for _, c := range s.Certificates {
		give("portolan_certificate_end_time_seconds", float64(c.NotAfter.Unix()), c.Name)
		give("portolan_certificate_days_left", c.NotAfter.Sub(f.now()).Hours()/24, c.Name)
	}
	f.fleet(s.Fleet, give)
	sum := int64(0)
	for configuration, n := range s.Space.NearlyFull {
		sum += n
		give("portolan_networks_nearly_full", float64(n), configuration)
	}
	give("portolan_networks_nearly_full_all", float64(sum))
	for _, one := range s.Space.Fullest {
		give("portolan_network_used_ratio", one.Share(), one.Configuration, one.Range)
	}
	s.Space.DHCP.collect(give)
}

// fleet sends the figures of the fleet.
func (f *statusFigures) fleet(now fleet.Figures, give func(name string, value float64, labels ...string)) {
	for status, n := range now.Statuses {
		give("portolan_service_points", float64(n), status)
	}
	for status, n := range now.Updates {
		give("portolan_service_point_updates", float64(n), status)
	}
	for status, n := range now.Rollouts {
		give("portolan_rollouts", float64(n), status)
	}
	for least, n := range now.Silent {
		give("portolan_service_points_silent", float64(n), least)
	}
	for name, statuses := range now.Applications {
		for status, n := range statuses {
			give("portolan_applications", float64(n), name, status)
		}
	}
	give("portolan_service_points_connected", float64(now.Connected))
	give("portolan_service_points_away", float64(now.Disconnected))
}
