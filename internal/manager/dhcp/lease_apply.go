package dhcp

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"time"

	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
	"portolan/internal/manager/ipam"
	"portolan/internal/manager/telemetry"
)

// leaseChange is a reported change of a lease.
type leaseChange struct {
	// state is the state after the change. start is the time of the lease or of its end. began is the beginning of the lease, also at its
	// end; the zero time if it is unknown.
	state        string
	start, began time.Time
	// end is the expiration of a lease that lasts. held reports that an operator has ended the lease, and that the server does not lease the
	// address to another client until end.
	end     time.Time
	held    bool
	network int64
	address netip.Addr
	prefix  int
	// listed says that the change comes from a list of all leases of a server. stranger says that the hardware address is that of a machine
	// that uses the abandoned address without a lease.
	listed, stranger bool
	// reason is the reason of an end (LeaseSpan.EndReason).
	reason   string
	mac      string
	clientID string
	hostName string
	circuit  string
	remote   string
	link     string
	iaid     string
	vendor   string
	params   []int64
}

// lasts reports whether a client has the address after the change.
func (c *leaseChange) lasts() bool { return c.state == stateAllocated || c.state == stateLeased }

// storedLease is a row of a lease, and the identity of its client.
type storedLease struct {
	id, version, span, server, parent int64
	there                             bool
	state, mac, clientID              string
	iaid                              uint32
	prefix                            int
	start                             time.Time
	body                              string
}

// leaseWriter applies reported changes of one server in a transaction.
type leaseWriter struct {
	tx            *store.Tx
	api           *resource.API
	server        int64
	configuration int64
	pages         *pages
	counts        *leaseCounts
	// networks caches the spans of networks, by id; those that do not exist are nil. deployed is Reporter.Serves, and served its results.
	networks map[int64]*store.Resource
	deployed func(tx *store.Tx, server, network int64) (bool, error)
	served   map[int64]bool
	// snapshot is the snapshot that is being received; 0 if there is none.
	snapshot int64
	// abandoned are the addresses that became abandoned; dropped is the number of changes of addresses that are in no network.
	abandoned []leaseChange
	dropped   int
	// confirmed are the networks with imported leases that the server has confirmed.
	confirmed map[int64]bool
	// recalled are the networks with lost leases. lost is true after the last part of a list of a server that has lost leases.
	recalled map[int64]bool
	lost     bool
	// actions are the pending actions on leases of the configuration, once actionsRead is true.
	actions     []pendingAction
	actionsRead bool
	// activities take the events for the destinations of servers, by server; nil for a server that sends none.
	activities map[int64]*telemetry.Activity
}

func newLeaseWriter(tx *store.Tx, api *resource.API, server *store.Resource) *leaseWriter {
	return &leaseWriter{tx: tx, api: api, server: server.ID, configuration: server.Configuration, pages: newPages(tx, server.Configuration),
		counts: newLeaseCounts(tx), networks: map[int64]*store.Resource{}, served: map[int64]bool{}, confirmed: map[int64]bool{},
		recalled: map[int64]bool{}, activities: map[int64]*telemetry.Activity{}}
}

// networkOf returns the id of the network that contains an address: the reported one if it does, else the one that has the address now. It
// returns 0 if there is none.
func (w *leaseWriter) networkOf(reported int64, a netip.Addr) (int64, error) {
	key := store.AddrKey(a)
	contains := func(r *store.Resource) bool {
		return r != nil && r.Configuration == w.configuration && string(r.Low) <= string(key) && string(key) <= string(r.High)
	}
	row, known := w.networks[reported]
	if !known && reported > 0 {
		found, err := w.tx.Get(reported)
		if err != nil && !store.IsNotFound(err) {
			return 0, err
		}
		if err == nil && found.Collection == "networks" {
			row = found.Clone()
		}
		w.networks[reported] = row
	}
	if contains(row) {
		return row.ID, nil
	}
	found, err := w.tx.ReadFirst(store.Query{From: store.Resources, Where: store.All{store.InCollection("networks"),
		store.Compare{Field: configurationColumn, Op: "eq", Value: w.configuration},
		store.Compare{Field: lowColumn, Op: "le", Value: key},
		store.Compare{Field: store.Field{Kind: store.ColumnSpan, Path: []string{"high"}}, Op: "ge", Value: key}}})
	if err != nil || found == nil {
		return 0, err
	}
	return found.ID, nil
}

// read returns the lease of an address.
func (w *leaseWriter) read(a netip.Addr) (l storedLease, err error) {
	err = l.scan(w.tx.QueryRow("SELECT "+leaseColumns+" FROM dhcp_lease WHERE configuration = ? AND low = ?", w.configuration,
		store.AddrKey(a)).Scan, new([]byte))
	if errors.Is(err, sql.ErrNoRows) {
		return storedLease{}, nil
	}
	return l, err
}

// leaseColumns are the columns that storedLease.scan reads.
const leaseColumns = "low, id, version, span, server, parent, state, body"

// scan reads a row of a lease, and its address into low.
func (l *storedLease) scan(scan func(...any) error, low *[]byte) error {
	if err := scan(low, &l.id, &l.version, &l.span, &l.server, &l.parent, &l.state, &l.body); err != nil {
		return err
	}
	l.there = true
	var body store.Object
	if err := body.Read([]byte(l.body)); err != nil {
		return fmt.Errorf("lease %d: %w", l.id, err)
	}
	l.mac, l.clientID = textOf(&body, "macAddress"), textOf(&body, "clientIdentifier")
	if iaid, wrong := strconv.ParseUint(textOf(&body, "identityAssociationIdentifier"), 10, 32); wrong == nil {
		l.iaid = uint32(iaid)
	}
	if n, wrong := strconv.Atoi(string(body.Get("prefixLength"))); wrong == nil {
		l.prefix = n
	}
	var err error
	if start := textOf(&body, "leaseDateTime"); start != "" {
		l.start, err = time.Parse(time.RFC3339, start)
	}
	return err
}

// textOf returns a text of a body; empty for null.
func textOf(body *store.Object, name string) (text string) {
	if json.Unmarshal(body.Get(name), &text) != nil { // not a text
		return ""
	}
	return text
}

// change applies a change. Changes of one address arrive in order; a change that is older than the stored lease, from the other server of a
// pair, only completes the history.
func (w *leaseWriter) change(c leaseChange) error {
	network, err := w.networkOf(c.network, c.address)
	if err != nil {
		return err
	}
	if c.network = network; network == 0 {
		w.dropped++
		return nil
	}
	l, err := w.read(c.address)
	if err != nil {
		return err
	}
	same := l.there && l.mac == c.mac && l.clientID == c.clientID && (l.prefix == c.prefix || !c.lasts())
	if isLatest, err := w.isLatest(l, c, same); err != nil || !isLatest {
		if err == nil {
			err = w.complete(l, c, same)
		}
		return err
	}
	var continued endedSpan
	if same && c.lasts() {
		var isOld bool
		if continued, isOld, err = w.continuedSpan(l, c); err != nil || isOld {
			return err
		}
	}
	if c.state == stateAbandoned && l.state != stateAbandoned {
		w.abandoned = append(w.abandoned, c)
	}
	if err := w.addActivity(l, c, same); err != nil {
		return err
	}
	if err := w.count(l, c); err != nil {
		return err
	}
	if !c.lasts() {
		return w.finish(l, c)
	}
	if l.span != 0 && !same {
		if err := w.closeSpan(l.span, c.start, "REPLACED"); err != nil {
			return err
		}
		l.span = 0
	}
	if continued.id != 0 {
		if l.span, err = continued.id, w.openSpan(continued.id); err != nil {
			return err
		}
	}
	if l.span == 0 || !same {
		if l.span, err = w.writeSpan(0, c, time.Time{}, ""); err != nil {
			return err
		}
	} else if l.span, err = w.writeSpan(l.span, c, time.Time{}, ""); err != nil {
		return err
	}
	if err := w.pages.set(c.address, c.end); err != nil {
		return err
	}
	return w.writeLease(l, c)
}

// count changes the numbers of leases.
func (w *leaseWriter) count(l storedLease, c leaseChange) error {
	ipam.LeasesChanged(w.tx, c.network)
	key := store.AddrKey(c.address)
	if l.there {
		if l.server == w.server && l.parent == c.network && l.state == c.state {
			return nil
		}
		if err := w.counts.add(l.server, l.parent, key, l.state, -1); err != nil {
			return err
		}
	}
	return w.counts.add(w.server, c.network, key, c.state, 1)
}

// finish applies the end of a lease, or the abandonment of an address.
func (w *leaseWriter) finish(l storedLease, c leaseChange) error {
	if l.span != 0 {
		if err := w.closeSpan(l.span, c.start, c.reason); err != nil {
			return err
		}
	}
	if l.span == 0 && l.state == stateFree && c.state == stateFree && !c.start.Before(l.start) {
		span, err := w.endedSpan(c.address, l.start)
		if err == nil && span.reason == expiredReason && c.start.Before(span.stop) { // the server reports an earlier end than the one stored
			err = w.closeSpan(span.id, c.start, c.reason)
		}
		if err != nil {
			return err
		}
	}
	set := func() error { return w.pages.clear(c.address) }
	if c.state == stateAbandoned || c.held {
		set = func() error { return w.pages.set(c.address, c.end) }
	}
	if err := set(); err != nil {
		return err
	}
	l.span = 0
	if c.stranger && c.state == stateFree {
		c.mac = "" // the machine never had a lease
	}
	if !l.there || c.stranger {
		return w.writeLease(l, c)
	}
	var body store.Object // the client stays, so that the lease shows the last one
	if err := body.Read([]byte(l.body)); err != nil {
		return err
	}
	body.Set("state", schema.AppendString(nil, c.state))
	return w.tx.Write("UPDATE dhcp_lease SET state = ?, span = 0, body = ?, version = version + 1, server = ?, parent = ?,"+
		" snapshot = ? WHERE id = ?", c.state, string(body.Text()), w.server, c.network, w.snapshot, l.id)
}

// writeLease creates or replaces the row of a lease.
func (w *leaseWriter) writeLease(l storedLease, c leaseChange) error {
	common := Lease{Address: c.address, prefix: c.prefix, State: c.state, MACAddress: c.mac, ClientIdentifier: c.clientID,
		HostName: c.hostName, RemoteID: c.remote, LeaseDateTime: c.start}
	if !c.lasts() {
		common.LeaseDateTime = time.Time{}
	}
	var o schema.Object
	if c.address.Is4() {
		x := &DHCPv4Lease{Lease: common, CircuitID: c.circuit, VendorClassIdentifier: c.vendor, ParameterRequestList: c.params}
		x.Type, o = "DHCPv4Lease", x
	} else {
		x := &DHCPv6Lease{Lease: common, IdentityAssociationIdentifier: c.iaid, InterfaceID: c.link}
		if x.Type, o = "DHCPv6Lease", x; c.prefix != 0 {
			length := int64(c.prefix)
			x.PrefixLength = &length
		}
	}
	row, body, err := w.encode(o)
	if err != nil {
		return err
	}
	if l.there {
		return w.tx.Write("UPDATE dhcp_lease SET type = ?, parent = ?, high = ?, version = version + 1, refs = ?, body = ?, state = ?,"+
			" server = ?, span = ?, snapshot = ? WHERE id = ?", row.Type, c.network, row.High, w.refs(), body, c.state, w.server, l.span,
			w.snapshot, l.id)
	}
	id, err := w.tx.NewID()
	if err != nil {
		return err
	}
	return w.tx.Write("INSERT INTO dhcp_lease (id, type, parent, configuration, low, high, version, refs, body, state, server, span,"+
		" snapshot) VALUES (?, ?, ?, ?, ?, ?, 1, ?, ?, ?, ?, ?, ?)", id, row.Type, c.network, w.configuration, row.Low, row.High, w.refs(), body,
		c.state, w.server, l.span, w.snapshot)
}

// writeSpan creates a span, or replaces one with the id; stop is the zero time while the lease lasts. The start of an existing span stays.
func (w *leaseWriter) writeSpan(id int64, c leaseChange, stop time.Time, reason string) (int64, error) {
	x := &LeaseSpan{Address: c.address, prefix: c.prefix, StartDateTime: c.start, EndDateTime: stop, EndReason: reason, MACAddress: c.mac,
		ClientIdentifier: c.clientID, HostName: c.hostName, CircuitID: c.circuit, RemoteID: c.remote}
	if x.Type = "LeaseSpan"; c.link != "" {
		x.CircuitID = c.link
	}
	if id != 0 {
		var start int64
		if err := w.tx.QueryRow("SELECT start FROM dhcp_lease_span WHERE id = ?", id).Scan(&start); err != nil {
			return 0, err
		}
		x.StartDateTime = time.Unix(start, 0)
	}
	row, body, err := w.encode(x)
	if err != nil {
		return 0, err
	}
	if id != 0 {
		return id, w.tx.Write("UPDATE dhcp_lease_span SET body = ?, parent = ?, refs = ?, version = version + 1 WHERE id = ? AND body <> ?", body,
			c.network, w.refs(), id, body)
	}
	ended := int64(0)
	if !stop.IsZero() {
		ended = stop.Unix()
	}
	if id, err = w.tx.NewID(); err != nil {
		return 0, err
	}
	return id, w.tx.Write("INSERT INTO dhcp_lease_span (id, parent, configuration, low, high, version, refs, body, start, stop)"+
		" VALUES (?, ?, ?, ?, ?, 1, ?, ?, ?, nullif(?, 0))", id, c.network, w.configuration, row.Low, row.High, w.refs(), body, c.start.Unix(),
		ended)
}

// closeSpan stores the end of a span.
func (w *leaseWriter) closeSpan(id int64, stop time.Time, reason string) error {
	var text string
	if err := w.tx.QueryRow("SELECT body FROM dhcp_lease_span WHERE id = ?", id).Scan(&text); errors.Is(err, sql.ErrNoRows) {
		return nil // its retention is over
	} else if err != nil {
		return err
	}
	var body store.Object
	if err := body.Read([]byte(text)); err != nil {
		return fmt.Errorf("span %d: %w", id, err)
	}
	body.Set("endDateTime", schema.AppendString(nil, schema.FormatTime(stop)))
	body.Set("endReason", schema.AppendString(nil, reason))
	return w.tx.Write("UPDATE dhcp_lease_span SET body = ?, stop = ?, version = version + 1 WHERE id = ?", string(body.Text()), stop.Unix(),
		id)
}

// encode returns the row of an object, and its body with all members.
func (w *leaseWriter) encode(o schema.Object) (*store.Resource, string, error) {
	t := w.api.TypeNamed(schema.HeadOf(o).Type)
	row, err := t.Row(o, nil)
	if err != nil {
		return nil, "", err
	}
	body, err := t.AppendWhole(nil, row.Body)
	return row, string(body), err
}

// refs returns the references of the rows of the server. Imported leases have no server.
func (w *leaseWriter) refs() string {
	if w.server == 0 {
		return ""
	}
	return "server:" + strconv.FormatInt(w.server, 10)
}

// completeLeases adds the ends of leases to rows.
func completeLeases(tx *store.Tx, rows []*store.Resource) error {
	all := map[int64]*pages{}
	points := connections{tx: tx}
	var body store.Object
	for _, r := range rows {
		if err := body.Read(r.Body); err != nil {
			return err
		}
		connection, err := points.show(serverOf(r))
		if err != nil {
			return err
		}
		body.Set("serverConnectionStatus", connection)
		a, err := netip.ParseAddr(textOf(&body, "address"))
		if err != nil {
			return fmt.Errorf("lease %d: %w", r.ID, err)
		}
		if all[r.Configuration] == nil {
			all[r.Configuration] = newPages(tx, r.Configuration)
		}
		end, err := all[r.Configuration].end(a)
		if err != nil {
			return err
		}
		value := []byte("null")
		if !end.IsZero() {
			value = schema.AppendString(nil, schema.FormatTime(end))
		}
		body.Set("leaseExpirationDateTime", value)
		if length := body.Get("prefixLength"); r.Type == "DHCPv6Lease" {
			value = []byte("null")
			if bits, wrong := strconv.Atoi(string(length)); wrong == nil {
				value = schema.AppendString(nil, netip.PrefixFrom(a, bits).String())
			}
			body.Set("prefix", value)
		}
		r.Body = body.Text()
	}
	return nil
}
