package dhcp

import (
	"cmp"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"portolan/internal/base/space"
	"portolan/internal/engine/event"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
	"portolan/internal/manager/ipam"
	"portolan/internal/wire/dhcpdata"
	"portolan/internal/wire/dhcplease"
)

// ObservationReporter applies the records that DHCP servers send about refused clients and other servers.
type ObservationReporter struct {
	api *resource.API
	// Refused is called with the numbers of refused messages by reason. A transaction that is repeated counts again.
	Refused func(reason string, n int64)
}

// NewObservationReporter returns a reporter.
func NewObservationReporter(a *resource.API) *ObservationReporter {
	return &ObservationReporter{api: a, Refused: func(string, int64) {}}
}

// Decode parses a record.
func (r *ObservationReporter) Decode(text json.RawMessage) (any, error) {
	var o dhcplease.Observation
	if err := json.Unmarshal(text, &o); err != nil {
		return nil, err
	}
	return o, o.Check()
}

// Apply applies records of a service point, as returned by Decode. Records of a service point without a server are dropped, because no
// user could see them.
func (r *ObservationReporter) Apply(tx *store.Tx, servicePoint string, records []any) error {
	server, err := ServerOfPoint(tx, servicePoint)
	if err != nil || server == nil {
		return err
	}
	w := &refusedWriter{tx: tx, api: r.api, server: server.Clone(), networks: map[int64]*store.Resource{}, full: map[int64]bool{}}
	for _, one := range records {
		o, ok := one.(dhcplease.Observation)
		if !ok {
			return fmt.Errorf("%T is not an observation", one)
		}
		for _, c := range o.Counts {
			if err := w.count(c); err != nil {
				return err
			}
			r.Refused(c.Reason, c.Count)
		}
		for _, c := range o.Refused {
			if err := w.refused(c); err != nil {
				return err
			}
		}
		for _, s := range o.Others {
			if err := w.other(s); err != nil {
				return err
			}
		}
		for _, n := range o.Names {
			if err := w.name(n); err != nil {
				return err
			}
		}
		for _, c := range o.Clones {
			if err := w.clone(c); err != nil {
				return err
			}
		}
		for _, s := range o.ClockSteps {
			if err := w.clockStep(s); err != nil {
				return err
			}
		}
	}
	return w.limit()
}

// refusedWriter stores the observations of one server in a transaction.
type refusedWriter struct {
	tx     *store.Tx
	api    *resource.API
	server *store.Resource
	// networks caches networks by id; those that do not exist are nil. full are the resources with new refused clients.
	networks map[int64]*store.Resource
	full     map[int64]bool
}

// parentOf returns the resource that shows the clients of a network: the network, or the server. refs are the references of the rows.
func (w *refusedWriter) parentOf(network int64) (parent int64, refs string, err error) {
	refs = "server:" + strconv.FormatInt(w.server.ID, 10)
	row, known := w.networks[network]
	if !known && network > 0 {
		found, err := w.tx.Get(network)
		if err != nil && !store.IsNotFound(err) {
			return 0, "", err
		}
		if err == nil && found.Collection == "networks" && found.Configuration == w.server.Configuration {
			row = found.Clone()
		}
		w.networks[network] = row
	}
	if row == nil {
		return w.server.ID, refs, nil
	}
	return row.ID, "network:" + strconv.FormatInt(row.ID, 10) + "," + refs, nil
}

// encode returns the body of an object with all members.
func (w *refusedWriter) encode(o schema.Object) (string, error) {
	lw := &leaseWriter{api: w.api}
	_, body, err := lw.encode(o)
	return body, err
}

// now returns a reported time; the time of the manager if the clock of the server is ahead.
func (w *refusedWriter) now(seconds int64) time.Time {
	return time.Unix(min(seconds, w.tx.Now().Unix()), 0)
}

// refused stores a refused client, or adds to the number of its messages.
func (w *refusedWriter) refused(c dhcplease.Refused) error {
	parent, refs, err := w.parentOf(c.Network)
	if err != nil {
		return err
	}
	w.full[parent] = true
	x := &RefusedClient{Reason: c.Reason, Explanation: reasonText(c.Reason), MessageType: cleaned(c.Message), Count: c.Count,
		FirstDateTime: w.now(c.First), LastDateTime: w.now(c.Last), MACAddress: hardwareText(c.MAC),
		ClientIdentifier: strings.ToUpper(c.ClientID), HostName: cleaned(c.HostName), CircuitID: shownText(c.CircuitID),
		RemoteID: shownText(c.RemoteID), VendorClassIdentifier: shownText(c.VendorClass), RelayAddress: c.Relay, RequestedAddress: c.Requested}
	x.Type = "RefusedClient"
	identity := strings.Join([]string{strconv.FormatInt(w.server.ID, 10), x.MACAddress, x.ClientIdentifier, c.Reason}, " ")
	var id int64
	var text string
	err = w.tx.QueryRow("SELECT id, body FROM dhcp_refused_client WHERE parent = ? AND identity = ?", parent, identity).Scan(&id, &text)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	if there := err == nil; there {
		var before struct {
			Count         int64
			FirstDateTime time.Time
		}
		if err := json.Unmarshal([]byte(text), &before); err != nil {
			return fmt.Errorf("refused client %d: %w", id, err)
		}
		x.Count, x.FirstDateTime = before.Count+c.Count, before.FirstDateTime
		body, err := w.encode(x)
		if err != nil {
			return err
		}
		return w.tx.Write("UPDATE dhcp_refused_client SET body = ?, refs = ?, last = ?, version = version + 1 WHERE id = ?", body, refs,
			x.LastDateTime.Unix(), id)
	}
	body, err := w.encode(x)
	if err != nil {
		return err
	}
	if id, err = w.tx.NewID(); err != nil {
		return err
	}
	return w.tx.Write("INSERT INTO dhcp_refused_client (id, parent, configuration, version, refs, body, identity, last) "+
		"VALUES (?, ?, ?, 1, ?, ?, ?, ?)", id, parent, w.server.Configuration, refs, body, identity, x.LastDateTime.Unix())
}

// count adds to the number of refused messages of the day.
func (w *refusedWriter) count(c dhcplease.RefusedCount) error {
	parent, refs, err := w.parentOf(c.Network)
	if err != nil {
		return err
	}
	day := dayOf(w.tx.Now())
	x := &RefusedCount{Reason: c.Reason, Explanation: reasonText(c.Reason), DateTime: time.Unix(day*secondsOfDay, 0), Count: c.Count}
	x.Type = "RefusedCount"
	identity := strings.Join([]string{strconv.FormatInt(w.server.ID, 10), c.Reason, strconv.FormatInt(day, 10)}, " ")
	var id, n int64
	err = w.tx.QueryRow("SELECT id, n FROM dhcp_refused_count WHERE parent = ? AND identity = ?", parent, identity).Scan(&id, &n)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	x.Count += n
	there := err == nil
	body, err := w.encode(x)
	if err != nil {
		return err
	}
	if there {
		return w.tx.Write("UPDATE dhcp_refused_count SET body = ?, n = ?, version = version + 1 WHERE id = ?", body, x.Count, id)
	}
	if id, err = w.tx.NewID(); err != nil {
		return err
	}
	return w.tx.Write("INSERT INTO dhcp_refused_count (id, parent, configuration, version, refs, body, identity, day, n) "+
		"VALUES (?, ?, ?, 1, ?, ?, ?, ?, ?)", id, parent, w.server.Configuration, refs, body, identity, day, x.Count)
}

// limit deletes the oldest refused clients of resources with more than dhcplease.MaxRefused.
func (w *refusedWriter) limit() error {
	parents := make([]int64, 0, len(w.full))
	for id := range w.full {
		parents = append(parents, id)
	}
	slices.Sort(parents)
	for _, id := range parents {
		if err := w.tx.Write("DELETE FROM dhcp_refused_client WHERE parent = ? AND id NOT IN (SELECT id FROM dhcp_refused_client "+
			"WHERE parent = ? ORDER BY last DESC, id DESC LIMIT ?)", id, id, dhcplease.MaxRefused); err != nil {
			return err
		}
	}
	return nil
}

// engineReasons are the reasons of the engine of a server, which no decision has.
var engineReasons = map[string]string{"overloaded": "The disk of the server does not keep up.",
	"too-many-offers":     "Too many clients ask at the same time, in total or through one relay.",
	"leases-not-restored": "The server has lost leases, and waits until the manager has restored them.",
	"journal-full":        "The server cannot store leases: its disk is full or damaged.",
	"foreign-source":      "A message without a relay is neither from the link nor from the address that the client names.",
	"no-destination":      "The system did not report the destination of a packet.",
	"receive-failed":      "A socket cannot be read; the server reads it again after a pause.",
	"send-failed":         "The reply could not be sent.",
	"too-long":            "A DHCPv4 packet has more than 4,096 octets."}

// IsReason reports whether a reason is known.
func IsReason(reason string) bool { return reasonText(reason) != "" }

// reasonText returns the meaning of a reason; empty for an unknown one.
func reasonText(reason string) string {
	return cmp.Or(dhcpdata.ReasonTexts()[dhcpdata.Reason(reason)], engineReasons[reason])
}

// other adds an event about another DHCP server, unless it is a server of the configuration.
func (w *refusedWriter) other(s dhcplease.OtherServer) error {
	known, err := w.isOwn(s)
	if err != nil || known {
		return err
	}
	parent, _, err := w.parentOf(s.Network)
	if err != nil {
		return err
	}
	service, name := "DHCPv4", s.DUID
	if s.Address.IsValid() {
		name = s.Address.String()
	} else {
		service = "DHCPv6"
	}
	if mac := hardwareText(s.MAC); mac != "" {
		name += " (" + mac + ")"
	}
	row, where := w.networks[s.Network], "a network that "+w.server.Name+" does not serve"
	if row == nil && s.Address.IsValid() {
		found, err := ipam.NetworkOf(w.tx, w.server.Configuration, s.Address)
		if err != nil && !store.IsNotFound(err) {
			return err
		}
		if err == nil {
			row, parent = found.Clone(), found.ID
		}
	}
	source := w.server.Name
	if row != nil {
		whole := space.Range{Low: store.KeyAddr(row.Low), High: store.KeyAddr(row.High)}
		where, source = strings.TrimSpace("network "+whole.String()+" "+row.Name), cmp.Or(row.Name, source)
	}
	how := "Clients have chosen it."
	if s.Message == "OFFER" || s.Message == "ACK" {
		how = "It answers clients."
	}
	return event.Add(w.tx, event.Event{EventType: "WARNING", Category: "DHCP_ALERT", Subcategory: service, SourceName: source,
		Message: fmt.Sprintf("Another DHCP server is in %s: %s. %s It is not a server of this configuration.", where, name, how)}, parent)
}
