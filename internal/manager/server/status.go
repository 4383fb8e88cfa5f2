package server

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"portolan/internal/engine/store"
	"portolan/internal/manager/backup"
	"portolan/internal/manager/fleet"
	"portolan/internal/manager/history"
	"portolan/internal/manager/ipam"
)

// Status is the state of a manager and its data. /api/v2/status returns it, portolan status prints it and /metrics exports it.
type Status struct {
	// Version is the version of the manager, Go that of its compiler, Host its machine, Address the address of its APIs.
	Version string    `json:"version"`
	Go      string    `json:"go"`
	Host    string    `json:"host"`
	Address string    `json:"address"`
	Since   time.Time `json:"since"`
	// FreeBytes is the free space on the disk of the data directory; nil without a data directory or if it is unknown.
	FreeBytes *int64        `json:"freeBytes"`
	Database  store.Figures `json:"database"`
	// Indexes is the state of the indexes that definitions of user-defined fields request.
	Indexes IndexStatus    `json:"indexes"`
	History HistoryStatus  `json:"history"`
	Backups backup.Figures `json:"backups"`
	Fleet   fleet.Figures  `json:"fleet"`
	Space   SpaceStatus    `json:"space"`
	// Certificates are the certificates of the manager, and the first TLS certificates of applications that expire soon or have expired.
	Certificates []CertificateStatus `json:"certificates"`
	// MasterKey reports whether a master key seals the keys of secrets. Without one, the keys are stored next to the data.
	MasterKey bool `json:"masterKey"`
	// Incomplete reports that the database could not be read. Unknown values are omitted or 0.
	Incomplete bool `json:"incomplete,omitempty"`
	// Alarms are the problems that need action, the most severe first.
	Alarms []Alarm `json:"alarms"`
}

// HistoryStatus is the backlog of the background work on the history.
type HistoryStatus struct {
	// Due is the number of transactions not chained yet, Unsigned the number of chain links after the last signed head.
	Due      int64 `json:"due"`
	Unsigned int64 `json:"unsigned"`
	// TextsDue is the number of resources whose texts in the trigram index are out of date.
	TextsDue int64 `json:"textsDue"`
}

// IndexStatus is the state of the indexes of user-defined fields.
type IndexStatus struct {
	// Missing is the number of requested indexes that do not exist yet. Queries that need them scan all resources.
	Missing int `json:"missing"`
	// Fault is the reason why the last attempt of this manager to create an index failed; empty after success or without an attempt.
	Fault string `json:"fault,omitempty"`
}

// SpaceStatus lists where free addresses run out.
type SpaceStatus struct {
	// Mark is the utilization of a nearly full network, in percent.
	Mark int `json:"mark"`
	// NearlyFull is the number of nearly full networks by configuration name. Fullest lists up to maxFullest of them, the fullest first.
	NearlyFull map[string]int64 `json:"nearlyFull"`
	Fullest    []FullNetwork    `json:"fullest"`
	// DHCP is the state of leases and DHCP ranges.
	DHCP DHCPStatus `json:"dhcp"`
}

// FullNetwork is a network that is nearly full.
type FullNetwork struct {
	Configuration string `json:"configuration"`
	ipam.Full
}

// CertificateStatus is a certificate and its expiry time.
type CertificateStatus struct {
	// Name is authority, check-in or api, or the application and the service point: "dns-resolver-service on buoy".
	Name     string    `json:"name"`
	NotAfter time.Time `json:"notAfter"`
	// Renewed reports whether the manager renews the certificate automatically.
	Renewed bool `json:"renewed"`
	// ServicePoint is the id of the service point whose application has the certificate; omitted for certificates of the manager.
	ServicePoint string `json:"servicePoint,omitempty"`
}

// Alarm is a problem that needs action.
type Alarm struct {
	// Severity is CRITICAL or WARNING.
	Severity string `json:"severity"`
	// What describes the problem, Do the remedy, each as sentences. Command is a command for it; omitted without one.
	What    string `json:"what"`
	Do      string `json:"do"`
	Command string `json:"command,omitempty"`
	// Links are the pages of the console that show or correct the problem.
	Links []AlarmLink `json:"links"`
}

// AlarmLink is a page of the console.
type AlarmLink struct {
	Name string `json:"name"`
	Path string `json:"path"`
}

const (
	critical = "CRITICAL"
	warning  = "WARNING"
)

// maxFullest is the maximum number of networks that are listed and used as metric labels.
const maxFullest = 20

// Thresholds of alarms.
const (
	lateBackup      = time.Hour
	certificateSoon = 14 * 24 * time.Hour
	longLog         = 1 << 30
	behindStandby   = 64 << 20
	littleRoom      = 1 << 30
)

// remembered caches a value for a limited time.
type remembered[T any] struct {
	mu   sync.Mutex
	at   time.Time
	last T
}

// get returns the cached value, or a new one from read if the cached value is older than life.
func (k *remembered[T]) get(life time.Duration, read func() (T, error)) (T, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.at.IsZero() && time.Since(k.at) < life {
		return k.last, nil
	}
	value, err := read()
	if err == nil {
		k.last, k.at = value, time.Now()
	}
	return value, err
}

// statusLife is the cache lifetime of a status, spaceLife that of its figures on networks, which take longest to read.
const (
	statusLife = 2 * time.Second
	spaceLife  = time.Minute
	// statusTime is the time limit for reading a status.
	statusTime = 15 * time.Second
)

// status returns the status of the manager, from the cache if it is recent.
func (m *Manager) status(ctx context.Context) (Status, error) {
	return m.statusKept.get(statusLife, func() (Status, error) {
		reading, end := context.WithTimeout(context.WithoutCancel(ctx), statusTime) // other callers wait even if the first one has gone
		defer end()
		return m.readStatus(reading)
	})
}

// readStatus reads the status. If the database is FULL, DAMAGED or AWAY, it returns the readable part with the resulting alarms.
func (m *Manager) readStatus(ctx context.Context) (s Status, err error) {
	is, since, _ := m.Store.Condition()
	if is == store.Unreachable { // a database that hangs would delay each request
		err = m.answers(ctx)
	}
	if err == nil {
		s, err = m.readWholeStatus(ctx)
	}
	if err == nil {
		return s, nil
	}
	if errors.Is(err, context.DeadlineExceeded) {
		_ = m.answers(context.WithoutCancel(ctx)) // which notices that the database is away
	}
	is, since, _ = m.Store.Condition()
	if is == store.Ready {
		return s, err
	}
	m.log.WarnContext(ctx, "status collection failed", "error", err)
	s.Incomplete, s.Database.Condition, s.Database.Since = true, is, &since
	if s.Space.NearlyFull == nil {
		s.Space = SpaceStatus{Mark: m.options.NearlyFull, NearlyFull: map[string]int64{}, Fullest: []FullNetwork{},
			DHCP: DHCPStatus{Leases: map[string]map[string]int64{}, Ranges: []FullRange{}}}
	}
	s.Alarms = s.alarms(m.now())
	return s, nil
}

// answers asks whether the database answers, for readyTime at most, and has the store notice where it does not.
func (m *Manager) answers(ctx context.Context) error {
	ctx, end := context.WithTimeout(ctx, readyTime)
	defer end()
	return m.Store.Ready(ctx)
}

func (m *Manager) readWholeStatus(ctx context.Context) (s Status, err error) {
	s = Status{Version: m.options.Version, Go: runtime.Version(), Host: m.Address.Manager.Hostname, Address: m.URL(), Since: m.since,
		Certificates: m.certificates(), MasterKey: len(m.options.MasterKeys) > 0}
	if s.FreeBytes, err = freeBytes(m.options.Data); err != nil {
		m.log.Warn("free disk space not readable", "error", err)
	}
	if s.Database, err = m.Store.Figures(ctx); err != nil {
		return s, err
	}
	if s.Fleet, err = m.Fleet.Figures(ctx); err != nil {
		return s, err
	}
	if s.History.TextsDue, err = m.Store.CountPendingTexts(ctx); err != nil {
		return s, err
	}
	if s.Indexes, err = m.indexStatus(ctx); err != nil {
		return s, err
	}
	if err := m.Store.Read(ctx, func(tx *store.Tx) (err error) {
		if s.History.Due, err = tx.CountUnlinked(); err == nil {
			s.History.Unsigned, err = history.Unsigned(tx)
		}
		if err == nil {
			s.Backups, err = backup.FiguresOf(tx, m.Address)
		}
		return err
	}); err != nil {
		return s, err
	}
	if s.Space, err = m.spaceKept.get(spaceLife, func() (SpaceStatus, error) { return m.readSpace(ctx) }); err != nil {
		m.log.WarnContext(ctx, "nearly full networks not determined", "error", err) // all else is worth knowing
	}
	if applications, err := m.applicationCertificates(ctx); err != nil {
		m.log.WarnContext(ctx, "certificates of applications not read", "error", err)
	} else {
		s.Certificates = append(s.Certificates, applications...)
	}
	s.Alarms = s.alarms(m.now())
	return s, nil
}

// certificatesLife is the cache lifetime of the certificates of applications.
const certificatesLife = 10 * time.Second

// applicationCertificates returns the first TLS certificates of applications that expire soon or have expired.
func (m *Manager) applicationCertificates(ctx context.Context) ([]CertificateStatus, error) {
	return m.certificatesKept.get(certificatesLife, func() (all []CertificateStatus, err error) {
		found, err := m.Fleet.Certificates(ctx, m.now().Add(certificateSoon))
		for _, c := range found[:min(len(found), maxFullest)] {
			all = append(all, CertificateStatus{Name: c.Application + " on " + c.Name, NotAfter: c.NotAfter, ServicePoint: c.ServicePoint})
		}
		return all, err
	})
}

// now is the time of the database's clock.
func (m *Manager) now() time.Time { return m.Store.Now() }

// readSpace finds the networks that are nearly full.
func (m *Manager) readSpace(ctx context.Context) (s SpaceStatus, err error) {
	s = SpaceStatus{Mark: m.options.NearlyFull, NearlyFull: map[string]int64{}, Fullest: []FullNetwork{}}
	return s, m.Store.Lists(ctx, func(tx *store.Tx) (err error) {
		if s.DHCP, err = readDHCP(tx, s.Mark); err != nil {
			return err
		}
		return tx.List(store.Query{From: store.Resources, Where: store.InCollection(m.Address.Scope.Name)}, func(row *store.Resource) error {
			full, err := ipam.Fullest(tx, row.ID, float64(s.Mark)/100)
			if err != nil {
				return err
			}
			s.NearlyFull[row.Name] = int64(len(full))
			for _, one := range full[:min(len(full), maxFullest)] {
				s.Fullest = append(s.Fullest, FullNetwork{Configuration: row.Name, Full: one})
			}
			slices.SortStableFunc(s.Fullest, func(x, y FullNetwork) int { return cmp.Compare(y.Share(), x.Share()) })
			s.Fullest = s.Fullest[:min(len(s.Fullest), maxFullest)]
			return nil
		})
	})
}

// certificates are those that the manager shows, and its authority's.
func (m *Manager) certificates() (all []CertificateStatus) {
	all = append(all, CertificateStatus{Name: "authority", NotAfter: m.authority.NotAfter()})
	if own := m.certificate.Load(); own != nil && own.Leaf != nil {
		all = append(all, CertificateStatus{Name: "check-in", NotAfter: own.Leaf.NotAfter, Renewed: true})
	}
	if m.files != nil {
		if pair, err := m.files.get(nil); err == nil {
			if leaf, err := x509.ParseCertificate(pair.Certificate[0]); err == nil {
				all = append(all, CertificateStatus{Name: "api", NotAfter: leaf.NotAfter})
			}
		}
	}
	return all
}

// freeBytes returns the disk space in dir that is available to the user of the manager; nil if dir is empty.
func freeBytes(dir string) (*int64, error) {
	if dir == "" {
		return nil, nil
	}
	if _, err := os.Stat(dir); err != nil {
		return nil, err
	}
	return store.FreeBytes(dir)
}
