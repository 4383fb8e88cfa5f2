package fleet

import (
	"context"
	"database/sql"
	"encoding/json"
	"time"

	"portolan/internal/base/problem"
	"portolan/internal/engine/store"
	"portolan/internal/wire/checkin"
)

// Instance is a fleet service point as the API shows it (spec.md 2.1).
type Instance struct {
	ID               string         `json:"id"`
	Name             string         `json:"name"`
	Description      *string        `json:"description,omitempty"`
	Status           string         `json:"status"`
	LastSeen         int64          `json:"lastSeen"`
	ConnectionStatus string         `json:"connectionStatus"`
	Version          string         `json:"version"`
	TargetVersion    string         `json:"targetVersion,omitempty"`
	UpdateStatus     string         `json:"updateStatus"`
	ErrorConditions  []string       `json:"errorConditions"`
	Nodes            []checkin.Node `json:"nodes"`
	Applications     []Application  `json:"applications"`
	// Labels are a Portolan extension; they are omitted if there are none.
	Labels map[string]string `json:"labels,omitempty"`
	// UpdateError is the reason why the last update failed, if updateStatus is UPDATE_FAILED (a Portolan extension). The service point runs
	// its previous release.
	UpdateError string `json:"updateError,omitempty"`

	proxy    *checkin.ProxySettings
	platform string
	// machine, dnsServers and ntpServers are shown only for the v4 kind.
	machine    *checkin.Machine
	anycast    *checkin.AnycastService
	nodeCount  int64
	dnsServers []string
	ntpServers string
	// revision changes whenever a list shows something else for the service point, except its presence (migrations/*/0018).
	revision int64
}

// Detail is a single service point, with the fields that the list omits (reference/fleet.md).
type Detail struct {
	Instance
	Nodes []DetailNode `json:"nodes"`
	// HTTPProxySettings is null if no proxy is set.
	HTTPProxySettings *checkin.ProxySettings `json:"httpProxySettings"`
	// Platform is the platform of its programs, such as linux/amd64 (a Portolan extension). It is omitted until reported.
	Platform string `json:"platform,omitempty"`
	// Anycast are the anycast settings (a Portolan extension). They are omitted if there are none.
	Anycast *checkin.AnycastService `json:"anycast,omitempty"`
	// NodeCount is the number of nodes that it may have (a Portolan extension).
	NodeCount int64 `json:"nodeCount"`
	// Pending means that the desired state has changed, and that the service point, or one of its connected nodes, has not stored it yet (a
	// Portolan extension).
	Pending bool `json:"pending"`
}

// DetailNode is a node with its DNS servers; they are an empty array if there are none.
type DetailNode struct {
	checkin.Node
	DNSServers []string `json:"dnsServers"`
	// ConnectionStatus, LastSeen (in Unix milliseconds) and Version are a Portolan extension. Only service points that may have several
	// nodes have them.
	ConnectionStatus string `json:"connectionStatus,omitempty"`
	LastSeen         int64  `json:"lastSeen,omitempty"`
	Version          string `json:"version,omitempty"`
}

const selectInstances = "SELECT s.id, s.name, s.description, s.status, s.update_status, s.version, s.target_version, s.update_reason, " +
	"s.platform, s.ntp_servers, s.anycast, s.node_count, s.key_expires, s.revision, " +
	"coalesce(p.last_seen, 0), coalesce(p.connected, 0), coalesce(r.body, '') " +
	"FROM service_point s LEFT JOIN presence p ON p.service_point = s.id LEFT JOIN report r ON r.service_point = s.id "

// scanner reads the rows of selectInstances.
type scanner struct {
	service *Service
	now     time.Time
}

// scanner returns a scanner for all rows of an answer.
func (s *Service) scanner() scanner { return scanner{s, s.now()} }

// localContact returns this manager's last contact with a service point; ok is false if there is none.
func (s *Service) localContact(id string) (h contact, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h, ok = s.contacts[id]
	return h, ok
}

// scan reads one row.
func (c scanner) scan(scan func(...any) error) (Instance, error) {
	var i Instance
	var description sql.NullString
	var expires, lastSeen, connected int64
	var reported, reason, anycast string
	if err := scan(&i.ID, &i.Name, &description, &i.Status, &i.UpdateStatus, &i.Version, &i.TargetVersion, &reason, &i.platform,
		&i.ntpServers, &anycast, &i.nodeCount, &expires, &i.revision, &lastSeen, &connected, &reported); err != nil {
		return i, err
	}
	if description.Valid {
		i.Description = &description.String
	}
	i.Status = statusAt(i.Status, expires, c.now)
	i.LastSeen, i.ConnectionStatus = c.lastContact(i.ID, lastSeen, connected == 1)
	var r checkin.Report
	if reported != "" {
		if err := json.Unmarshal([]byte(reported), &r); err != nil {
			return i, err
		}
	}
	i.Applications, i.proxy, i.ErrorConditions, i.Labels = []Application{}, r.HTTPProxySettings, []string{}, map[string]string{}
	if i.Status == Unhealthy {
		i.ErrorConditions = append(i.ErrorConditions, r.ErrorConditions...)
	}
	if i.UpdateStatus == checkin.UpdateFailed { // it stays healthy, in its previous release
		i.UpdateError = reason
	}
	var err error
	if i.anycast, err = readAnycast(anycast); err != nil {
		return i, err
	}
	i.machine = r.Machine
	if len(r.Nodes) > 0 {
		i.dnsServers = r.Nodes[0].DNSServers
	}
	if i.Nodes = r.Nodes; i.Nodes == nil {
		i.Nodes = []checkin.Node{}
	}
	for n := range i.Nodes {
		if i.Nodes[n].Addresses == nil {
			i.Nodes[n].Addresses = []checkin.NodeAddress{}
		}
	}
	return i, nil
}

// lastContact returns the last contact of a service point, in Unix milliseconds and never later than now, and its connection status. It
// combines the contact at this manager with the written one, anywhere. noted means that the database has the service point as connected.
func (c scanner) lastContact(id string, anywhere int64, noted bool) (lastSeen int64, connection string) {
	now := c.now.UnixMilli()
	if h, ok := c.service.localContact(id); ok {
		anywhere, noted = max(anywhere, c.now.Add(-time.Since(h.time)).UnixMilli()), true
	}
	lastSeen = min(anywhere, now)
	if lastSeen > 0 && noted && now-lastSeen <= c.service.silence().Milliseconds() {
		return lastSeen, Connected
	}
	return lastSeen, NotConnected
}

// silence is the time without contact after which a service point is no longer CONNECTED.
func (s *Service) silence() time.Duration { return checkin.MissedIntervals * s.interval }

// statusAt returns the status at a time: WAITING becomes EXPIRED when the key expires.
func statusAt(status string, expires int64, now time.Time) string {
	if status == Waiting && expires <= now.Unix() {
		return Expired
	}
	return status
}

// List calls fn for the service points that match a filter, in the order of their names.
func (s *Service) List(ctx context.Context, f Filter, fn func(Instance) error) error {
	return s.eachPage(ctx, f, func(c scanner, tx *store.Tx, page []listKey) error {
		ids := make([]any, len(page))
		for i, k := range page {
			ids[i] = k.id
		}
		all, err := c.listed(tx, ids)
		for i := range all {
			if err == nil && f.matches(&all[i]) {
				err = fn(all[i])
			}
		}
		return err
	})
}

// listed reads service points in the form of a list, in the order of their names.
func (c scanner) listed(tx *store.Tx, ids []any) ([]Instance, error) {
	page, err := c.read(tx, "WHERE s.id IN ("+placeholders(len(ids))+") ORDER BY s.name", ids)
	for _, i := range page {
		for n := range i.Nodes {
			i.Nodes[n].DNSServers, i.Nodes[n].DiagnosticsURL = nil, ""
		}
	}
	return page, err
}

// read reads service points with their labels and applications.
func (c scanner) read(tx *store.Tx, where string, args []any) (page []Instance, err error) {
	places := map[string]int{}
	var ids []any
	if err := tx.Each(func(scan func(...any) error) error {
		i, err := c.scan(scan)
		places[i.ID] = len(page)
		page, ids = append(page, i), append(ids, i.ID)
		return err
	}, selectInstances+where, args...); err != nil || len(page) == 0 {
		return page, err
	}
	if err := readLabels(tx, page, places, ids); err != nil {
		return nil, err
	}
	return page, tx.Each(func(scan func(...any) error) error {
		d, err := scanApplication(scan)
		if err == nil {
			i := &page[places[d.servicePoint]]
			if d.AnycastIPAddress = anycastAddresses(d, nil); i.ConnectionStatus == Connected {
				d.AnycastIPAddress = anycastAddresses(d, i.Nodes)
			}
			i.Applications = append(i.Applications, d.Application)
		}
		return err
	}, selectApplications+"WHERE service_point IN ("+placeholders(len(ids))+") ORDER BY created, id", ids...)
}

// Get returns one service point.
func (s *Service) Get(ctx context.Context, id string) (d Detail, err error) {
	c := s.scanner()
	var rows []node
	err = s.store.View(ctx, func(tx *store.Tx) (err error) {
		if rows, err = readNodes(tx, id); err != nil {
			return err
		}
		one, err := c.read(tx, "WHERE s.id = ?", []any{id})
		if err == nil && len(one) == 0 {
			return UnknownProblem(id)
		}
		if err != nil {
			return err
		}
		d.Instance = one[0]
		var desired, acknowledged int64
		err = tx.QueryRow("SELECT desired, acknowledged FROM service_point WHERE id = ?", id).Scan(&desired, &acknowledged)
		d.Pending = acknowledged < desired
		return err
	})
	d.Nodes, d.HTTPProxySettings, d.Platform = []DetailNode{}, d.proxy, d.platform
	d.Anycast, d.NodeCount = shownAnycast(d.anycast), d.nodeCount
	for _, n := range d.Instance.Nodes {
		d.Nodes = append(d.Nodes, DetailNode{Node: n, DNSServers: append([]string{}, n.DNSServers...)})
	}
	first := 0 // index in the machines of all nodes, in the order of mergeReports
	for _, n := range rows {
		for ; n.report != nil && first < len(d.Nodes) && len(n.report.Nodes) > 0; n.report.Nodes = n.report.Nodes[1:] {
			one := &d.Nodes[first]
			one.ConnectionStatus, one.LastSeen, one.Version = NotConnected, n.lastSeen, n.report.Version
			if n.connected {
				one.ConnectionStatus = Connected
			}
			first++
		}
	}
	return d, err
}

// UnknownProblem returns the problem of a service point that does not exist.
func UnknownProblem(id string) error {
	return problem.NotFound("fleet service point %q does not exist", id)
}

// Delete deletes a service point. Its certificate is rejected from then on with ServicePointDeleted, so that its machines stop their
// applications.
func (s *Service) Delete(ctx context.Context, id string) error {
	err := s.change(ctx, func(tx *store.Tx) error {
		tx.Touch(store.Detail(topic, id))
		if err := addPointHistory(tx, id, "DELETE_SERVICE_POINT", "Deleted service point %s"); err != nil {
			return err
		}
		if err := s.markSpent(tx, id); err != nil {
			return err
		}
		n, err := tx.Exec("DELETE FROM service_point WHERE id = ?", id)
		if err != nil {
			return err
		}
		if n == 0 {
			return UnknownProblem(id)
		}
		if err := tx.Write("INSERT INTO deleted_service_point (id) VALUES (?) ON CONFLICT DO NOTHING", id); err != nil {
			return err
		}
		for _, table := range []string{"application", "presence", "report", "fleet_event", "label", "wanted_log", "node", "lineage", "stream",
			"figure_report"} {
			if err := tx.Write("DELETE FROM "+table+" WHERE service_point = ?", id); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		s.forget(id)
	}
	return err
}
