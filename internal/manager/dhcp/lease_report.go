package dhcp

import (
	"cmp"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"portolan/internal/base/space"
	"portolan/internal/engine/event"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
	"portolan/internal/wire/dhcplease"
)

// Reporter applies the records that DHCP servers send about leases.
type Reporter struct {
	api *resource.API
	// Applied is called with the numbers of applied events and renewals, and of records of addresses in no network. A transaction that is
	// repeated counts again.
	Applied func(events, renewals, dropped int)
	// Serves reports whether a network is deployed to a server. Without it, a server changes the leases of other servers only by events that
	// are newer.
	Serves func(tx *store.Tx, server, network int64) (bool, error)
	// Missing is called if records of a server are missing: its journal is not the one that was known, or a record does not follow the last
	// one. It requests the list of all leases.
	Missing func(tx *store.Tx, server *store.Resource) error
	// Restored is called for a network whose imported leases are all confirmed. It deploys the network again.
	Restored func(tx *store.Tx, configuration, network int64) error
}

// NewReporter returns a reporter.
func NewReporter(a *resource.API) *Reporter {
	return &Reporter{api: a, Applied: func(int, int, int) {}, Serves: func(*store.Tx, int64, int64) (bool, error) { return true, nil },
		Missing:  func(*store.Tx, *store.Resource) error { return nil },
		Restored: func(*store.Tx, int64, int64) error { return nil }}
}

// Decode parses a record.
func (r *Reporter) Decode(text json.RawMessage) (any, error) {
	var record dhcplease.Record
	if err := json.Unmarshal(text, &record); err != nil {
		return nil, err
	}
	if record.Sequence > math.MaxInt64 {
		return nil, errors.New("the sequence is too large")
	}
	return record, record.Check()
}

// Apply applies records of a node of a service point, as returned by Decode. Records that were applied before are skipped. Records of a
// service point without a server are dropped, because no user could see them.
func (r *Reporter) Apply(tx *store.Tx, servicePoint string, node int64, records []any) error {
	server, err := ServerOfPoint(tx, servicePoint)
	if err != nil {
		return err
	}
	if server == nil {
		r.Applied(0, 0, len(records))
		return nil
	}
	w := newLeaseWriter(tx, r.api, server)
	w.deployed = r.Serves
	mark, err := readMark(tx, server.ID, node)
	if err != nil {
		return err
	}
	w.snapshot = mark.snapshot
	renewals, missing := 0, false
	for _, one := range records {
		record, ok := one.(dhcplease.Record)
		if !ok {
			return fmt.Errorf("%T is not a record about leases", one)
		}
		sequence := int64(record.Sequence) //nolint:gosec // Decode limits it
		if record.Journal == mark.journal && sequence <= mark.sequence {
			continue
		}
		missing = missing || !mark.precedes(record)
		mark.journal, mark.sequence = record.Journal, sequence
		n, err := w.record(record)
		if err != nil {
			return err
		}
		if s := record.Snapshot; s != nil && s.Last && s.Lost {
			mark.lost = int64(s.ID & math.MaxInt64) //nolint:gosec // without the sign
		}
		renewals += n
	}
	mark.snapshot = w.snapshot
	if err := errors.Join(w.pages.write(), w.counts.write(), mark.write(tx, server.ID, node), w.reportAbandoned(),
		w.importsEnd(r.Restored), w.recallsEnd(r.Restored, r.Missing)); err != nil {
		return err
	}
	r.Applied(len(records), renewals, w.dropped)
	if missing {
		return r.Missing(tx, server)
	}
	return nil
}

// ServerOfPoint returns the server that is linked to a service point; nil if there is none.
func ServerOfPoint(tx *store.Tx, servicePoint string) (*store.Resource, error) {
	return tx.ReadFirst(store.Query{From: store.Resources, Where: store.All{store.InCollection("servers"),
		store.Compare{Field: store.Field{Kind: store.Text, Path: []string{"servicePoint"}}, Op: "eq", Value: servicePoint}}})
}

// leaseMark is the position in the journal of a server.
type leaseMark struct {
	journal            string
	sequence, snapshot int64
	// lost is the ID of the last list of a server that had lost leases.
	lost int64
}

// precedes reports whether a record follows the position: nothing between them is missing.
func (m leaseMark) precedes(r dhcplease.Record) bool {
	if m.journal == r.Journal {
		return r.Previous <= uint64(m.sequence) //nolint:gosec // a sequence is not negative
	}
	return m.journal == "" && r.Previous == 0
}

func readMark(tx *store.Tx, server, node int64) (m leaseMark, err error) {
	err = tx.QueryRow("SELECT journal, sequence, snapshot, lost FROM dhcp_lease_mark WHERE server = ? AND node = ?", server, node).
		Scan(&m.journal, &m.sequence, &m.snapshot, &m.lost)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return m, err
}

func (m leaseMark) write(tx *store.Tx, server, node int64) error {
	return tx.Write("INSERT INTO dhcp_lease_mark (server, node, journal, sequence, snapshot, lost) VALUES (?, ?, ?, ?, ?, ?)"+
		" ON CONFLICT (server, node) DO UPDATE SET journal = excluded.journal, sequence = excluded.sequence, snapshot = excluded.snapshot,"+
		" lost = excluded.lost", server, node, m.journal, m.sequence, m.snapshot, m.lost)
}

// record applies a record, and returns the number of renewals.
func (w *leaseWriter) record(r dhcplease.Record) (renewals int, err error) {
	switch {
	case r.Renewals != nil:
		all, err := dhcplease.Unpack(r.Renewals.Packed)
		if err != nil {
			return 0, err
		}
		return len(all), w.renew(all, time.UnixMilli(r.At))
	case r.Snapshot != nil:
		return 0, w.takeSnapshot(r)
	case r.Pair != nil:
		return 0, w.pair(r.Pair)
	}
	c, changes := changeOf(r.Event, time.UnixMilli(r.At))
	if changes {
		err = w.change(c)
	}
	if err != nil || r.Event.Order == 0 {
		return 0, err
	}
	if imported, err := w.confirm(r.Event.Order, c.address); err != nil || imported {
		return 0, err
	}
	return 0, w.ordered(r.Event.Order, changes)
}

// takeSnapshot applies a part of the list of all leases of the server. After the last part, leases that are not in the list end.
func (w *leaseWriter) takeSnapshot(r dhcplease.Record) error {
	id := int64(r.Snapshot.ID & math.MaxInt64) //nolint:gosec // without the sign
	if w.snapshot = id; id == 0 {
		w.snapshot = 1
	}
	for _, l := range r.Snapshot.Leases {
		kind := dhcplease.Change
		if l.Abandoned {
			kind = dhcplease.Abandon
		}
		c, _ := changeOf(&dhcplease.Event{Kind: kind, Lease: l}, time.UnixMilli(r.At))
		c.listed = true
		if err := w.change(c); err != nil {
			return err
		}
	}
	if !r.Snapshot.Last {
		return nil
	}
	var gone []leaseChange
	if err := w.tx.Each(func(scan func(...any) error) error {
		var low []byte
		var network int64
		if err := scan(&low, &network); err != nil {
			return err
		}
		at := time.UnixMilli(r.At)
		gone = append(gone, leaseChange{state: stateFree, address: store.KeyAddr(low), network: network, start: at, began: at,
			reason: expiredReason})
		return nil
	}, "SELECT low, parent FROM dhcp_lease WHERE server = ? AND snapshot <> ? AND state <> ?", w.server, w.snapshot, stateFree); err != nil {
		return err
	}
	for _, c := range gone {
		restores := false
		var err error
		if r.Snapshot.Lost {
			restores, err = w.recall(c.address)
		}
		if err == nil && !restores {
			err = w.change(c)
		}
		if err != nil {
			return err
		}
	}
	w.snapshot, w.lost = 0, w.lost || r.Snapshot.Lost
	return nil
}

// endOf returns the end of a lease. An infinite lease ends at the last time of a page.
func endOf(seconds int64) time.Time { return time.Unix(min(seconds, infinite), 0) }

// expiredReason and endedReason are the reasons of the end of a lease that expired, and of one that a user has ended.
const expiredReason, endedReason = "EXPIRED", "ENDED"

// reasons are the reasons of spans, by the event that ends them.
var reasons = map[dhcplease.Kind]string{dhcplease.Expire: expiredReason, dhcplease.Release: "RELEASED", dhcplease.End: endedReason,
	dhcplease.Conflict: "CONFLICT", dhcplease.Decline: "DECLINED", dhcplease.Abandon: "CONFLICT"}

// changeOf returns the change that an event at a time reports; changes is false if it reports none.
func changeOf(e *dhcplease.Event, at time.Time) (c leaseChange, changes bool) {
	l := e.Lease
	began := time.Unix(l.Start, 0)
	c = leaseChange{state: stateAllocated, start: began, began: began, end: endOf(l.Expires), network: l.Network, address: l.Address,
		prefix: l.PrefixLength, mac: hardwareText(l.MAC), clientID: strings.ToUpper(cmp.Or(l.DUID, l.ClientID)), hostName: cleaned(l.HostName),
		circuit: shownText(l.CircuitID), remote: shownText(l.RemoteID), link: shownText(l.InterfaceID), vendor: shownText(l.VendorClass)}
	c.stranger = l.Stranger
	for _, p := range l.Parameters {
		c.params = append(c.params, int64(p))
	}
	if l.DUID != "" {
		c.iaid = strconv.FormatUint(uint64(l.IAID), 10)
	}
	if l.Reservation != 0 {
		c.state = stateLeased
	}
	switch e.Kind {
	case dhcplease.Begin, dhcplease.Change:
		return c, true
	case dhcplease.Ordered:
		return c, false
	case dhcplease.Decline, dhcplease.Abandon:
		c.state = stateAbandoned
	case dhcplease.Expire, dhcplease.Release, dhcplease.End, dhcplease.Conflict, dhcplease.Clear:
		c.state = stateFree
	}
	c.reason, c.start = reasons[e.Kind], at
	c.held = e.Kind == dhcplease.End && c.end.After(at)
	if expires := time.Unix(l.Expires, 0); e.Kind == dhcplease.Expire && expires.Before(at) {
		c.start = expires
	}
	return c, true
}

// hardwareText returns the shown form of a hardware address in hexadecimal digits.
func hardwareText(digits string) string {
	mac, err := hex.DecodeString(digits)
	if err != nil || len(mac) == 0 {
		return ""
	}
	return space.FormatHardware(mac)
}

// shownText returns octets in hexadecimal digits as text if they are printable ASCII, else as 0x and the digits.
func shownText(digits string) string {
	data, err := hex.DecodeString(digits)
	if err != nil || len(data) == 0 {
		return ""
	}
	if slices.ContainsFunc(data, func(b byte) bool { return b < ' ' || b > '~' }) {
		return "0x" + strings.ToUpper(digits)
	}
	return string(data)
}

// cleaned returns a text without control characters.
func cleaned(text string) string {
	return strings.ToValidUTF8(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, text), "")
}

// maxNamedAddresses is the maximum number of addresses that an event lists.
const maxNamedAddresses = 10

// abandonedGroup is a network and the reason why addresses in it became abandoned.
type abandonedGroup struct {
	network int64
	reason  string
}

// reportAbandoned adds one event for each network and reason with addresses that became abandoned.
func (w *leaseWriter) reportAbandoned() error {
	addresses := map[abandonedGroup][]string{}
	var groups []abandonedGroup
	for _, c := range w.abandoned {
		group := abandonedGroup{c.network, c.reason}
		if addresses[group] == nil {
			groups = append(groups, group)
		}
		text := c.address.String()
		if c.stranger && c.mac != "" {
			text += " (" + c.mac + ")"
		}
		addresses[group] = append(addresses[group], text)
	}
	for _, group := range groups {
		all := addresses[group]
		list := strings.Join(all[:min(len(all), maxNamedAddresses)], ", ")
		if more := len(all) - maxNamedAddresses; more > 0 {
			list += fmt.Sprintf(" and %d more", more)
		}
		service, name := "DHCPv4", ""
		if strings.Contains(all[0], ":") {
			service = "DHCPv6"
		}
		if row := w.networks[group.network]; row != nil {
			name = row.Name
		}
		message := fmt.Sprintf("Abandoned addresses: %s. A client found another machine at the address and declined it.", list)
		if group.reason == reasons[dhcplease.Abandon] {
			message = fmt.Sprintf("Abandoned addresses: %s. Another machine without a lease answers at the address.", list)
		}
		if err := event.Add(w.tx, event.Event{EventType: "WARNING", Category: "DHCP_ALERT", Subcategory: service, SourceName: name,
			Message: message}, group.network); err != nil {
			return err
		}
	}
	return nil
}
