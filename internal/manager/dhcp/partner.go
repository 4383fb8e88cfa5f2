package dhcp

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"portolan/internal/base/problem"
	"portolan/internal/engine/event"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
	"portolan/internal/wire/dhcplease"
)

// The collections of failover partners and of declarations about them.
const (
	Partners       = "dhcpPartners"
	PartnerActions = "dhcpPartnerActions"
)

// The states of a declaration. The server that follows it is in the state PARTNER-DOWN until it has met its partner again.
const (
	PartnerPending  = "PENDING"
	PartnerDeclared = "DECLARED"
	partnerDone     = "DONE"
	partnerVain     = "NO_EFFECT"
)

// The states of a server in a failover pair, as servers report them.
const (
	pairNormal = "NORMAL"
	pairDown   = "PARTNER-DOWN"
)

// registerPartners declares the collections of failover partners, which servers report, and of declarations about them. Both have no
// history.
func registerPartners(r *resource.Registry) {
	r.Collection(resource.Collection{Name: Partners, Parents: []string{"servers"}, Unpublished: true, Hidden: true, Unlogged: true,
		NoSearch: true},
		&DHCPPartner{})
	r.DeclareUnlinked(resource.FurtherSub{Below: "servers", Name: Partners, Item: Partners})
	r.Collection(resource.Collection{Name: PartnerActions, Parents: []string{"servers"}, Unpublished: true, Hidden: true, Unlogged: true,
		NoSearch: true}, &DHCPPartnerAction{})
	r.DeclareUnlinked(resource.FurtherSub{Below: "servers", Name: PartnerActions, Item: PartnerActions, Types: []string{"DHCPPartnerAction"}})
}

// DHCPPartner is a failover pair of a DHCP server, as the server reports it.
type DHCPPartner struct {
	schema.Head `head:"readOnly" post:"no"`
	// Configuration is the configuration that contains the server.
	Configuration schema.Ref `api:"configuration,readOnly" column:"configuration" ref:"Configuration"`
	// Partner is the server of the partner.
	Partner schema.Ref `api:"partner,readOnly" ref:"Server|HAServer" onDelete:"cascade"`
	// State is the state of the server in the pair (RFC 8156), such as NORMAL, COMMUNICATIONS-INTERRUPTED, PARTNER-DOWN or RECOVER.
	State string `api:"state,readOnly"`
	// StateDateTime is the time when the state began, by the clock of the server.
	StateDateTime time.Time `api:"stateDateTime,readOnly"`
	// Connected reports whether the servers are connected.
	Connected bool `api:"connected,readOnly"`
	// LastContactDateTime is the time of the last message of the partner, by the clock of the server.
	LastContactDateTime time.Time `api:"lastContactDateTime,readOnly"`
	// ReportDateTime is the time of the last report of the server. A server reports every 20 seconds.
	ReportDateTime time.Time `api:"reportDateTime,readOnly"`
	// ClockDifference is the clock of the partner minus that of the server, in milliseconds.
	ClockDifference int64 `api:"clockDifference,readOnly"`
	// PendingUpdates is the number of records that the partner has not acknowledged.
	PendingUpdates int64 `api:"pendingUpdates,readOnly"`
	// Conflicts is the number of addresses that both servers had leased, since the start of the server. The primary of the pair counts them.
	Conflicts int64 `api:"conflicts,readOnly"`
	// Mclt is the maximum client lead time in seconds.
	Mclt int64 `api:"mclt,readOnly"`
	// Port is the port at which the server accepts its partner, if it is the secondary of the pair.
	Port int64 `api:"port,readOnly"`
	// KeyFingerprint is the SHA-256 of the public key of the server, which the partner requires.
	KeyFingerprint string `api:"keyFingerprint,readOnly"`
}

// DHCPPartnerAction is a declaration of a user about the failover partner of a server.
type DHCPPartnerAction struct {
	schema.Head `head:"readOnly"`
	// Configuration is the configuration that contains the server.
	Configuration schema.Ref `api:"configuration,readOnly" column:"configuration" ref:"Configuration"`
	// Partner is the server of the partner.
	Partner schema.Ref `api:"partner,required,createOnly" ref:"Server|HAServer" onDelete:"cascade"`
	// Action is the declaration: PARTNER_DOWN states that the partner does not run. The server then uses the addresses of the partner too,
	// after the maximum client lead time.
	Action string `api:"action,required,createOnly" enum:"PARTNER_DOWN"`
	// Force accepts the declaration although the partner reports to the manager, or the server has lost its leases. Two clients may then have
	// the same address.
	Force bool `api:"force,createOnly"`
	// State is PENDING until the server has followed the declaration, and DECLARED until it has met its partner again, DONE afterwards. It is
	// NO_EFFECT if the servers were connected.
	State string `api:"state,readOnly,index" enum:"PENDING|DECLARED|DONE|NO_EFFECT"`
	// CreationDateTime is the time of the request.
	CreationDateTime time.Time `api:"creationDateTime,readOnly"`
}

// partnerSilence is the time without a report after which a server counts as down.
const partnerSilence = 60 * time.Second

// BeforeWrite rejects a declaration that the reports of the servers contradict.
func (x *DHCPPartnerAction) BeforeWrite(c *resource.Change) error {
	if !c.IsRequested() || !c.IsCreation() {
		return nil
	}
	own, err := partnerOf(c.Tx, c.API, x.Parent, x.Partner.ID)
	if err != nil {
		return err
	}
	if own == nil {
		return problem.NotFound("partner: server %d has not reported a failover pair with server %d", x.Parent, x.Partner.ID)
	}
	other, err := partnerOf(c.Tx, c.API, x.Partner.ID, x.Parent)
	if err != nil {
		return err
	}
	now := c.Tx.Now()
	conflict := func(format string, args ...any) error {
		return problem.Conflict("ResourceConflictsWithOther", "partner: "+format, args...)
	}
	switch {
	case own.Connected && now.Sub(own.ReportDateTime) < partnerSilence:
		return conflict("the servers are connected (%s)", own.State)
	case own.State == pairDown:
		return conflict("server %d is in the state PARTNER-DOWN already", x.Parent)
	case !x.Force && other != nil && now.Sub(other.ReportDateTime) < partnerSilence:
		return conflict("server %d has reported %d seconds ago, so it runs. Stop it, or set force: two clients may then have one address",
			x.Partner.ID, int(now.Sub(other.ReportDateTime).Seconds()))
	case !x.Force && own.State != "COMMUNICATIONS-INTERRUPTED" && own.State != "STARTUP":
		return conflict("server %d is in the state %s and lacks leases of its partner. Set force to accept that two clients may have one address",
			x.Parent, own.State)
	}
	x.State, x.CreationDateTime = PartnerPending, now
	return c.Each(store.All{store.InCollection(PartnerActions), store.HasParent(x.Parent)}, func(row *store.Resource, o schema.Object) error {
		if y, ok := o.(*DHCPPartnerAction); !ok || y.State == PartnerPending || y.State == PartnerDeclared ||
			now.Sub(y.CreationDateTime) < keepActions {
			return nil
		}
		return c.Following().Delete(row)
	})
}

// AfterWrite records the declaration as an event.
func (x *DHCPPartnerAction) AfterWrite(c *resource.Change) error {
	if !c.IsCreation() {
		return nil
	}
	server, partner, err := names(c.Tx, x.Parent, x.Partner.ID)
	if err != nil {
		return err
	}
	forced := ""
	if x.Force {
		forced = " by force"
	}
	return event.Add(c.Tx, event.Event{EventType: "WARNING", Category: "SERVER_HIGH_AVAILABILITY", Subcategory: "DHCP", SourceName: server,
		Message: fmt.Sprintf("The failover partner %s of DHCP server %s was declared down%s.", partner, server, forced)}, x.Parent)
}

// names returns the names of two servers.
func names(tx *store.Tx, one, two int64) (first, second string, err error) {
	a, err := tx.Get(one)
	if err != nil {
		return "", "", err
	}
	first = a.Name
	b, err := tx.Get(two)
	if err != nil {
		return "", "", err
	}
	return first, b.Name, nil
}

// ofPartner returns the condition for the rows of a collection below a server about a partner.
func ofPartner(collection string, server, partner int64) store.Expr {
	return store.All{store.InCollection(collection), store.HasParent(server),
		store.LinksTo{Targets: []int64{partner}, Field: "partner"}}
}

// partnerOf returns what a server has reported about its partner; nil if it has not.
func partnerOf(tx *store.Tx, a *resource.API, server, partner int64) (*DHCPPartner, error) {
	row, err := tx.ReadFirst(store.Query{From: store.Resources, Where: ofPartner(Partners, server, partner)})
	if err != nil || row == nil {
		return nil, err
	}
	o, err := a.Object(row)
	if err != nil {
		return nil, err
	}
	x, _ := o.(*DHCPPartner)
	return x, nil
}

// IsWithoutPartner reports whether a server leases addresses without its failover partner, which was declared down.
func IsWithoutPartner(tx *store.Tx, a *resource.API, server, partner int64) (bool, error) {
	own, err := partnerOf(tx, a, server, partner)
	return own != nil && own.State == pairDown && !own.Connected, err
}

// PairState is the part of the content of a server in a failover pair that does not come from its role.
type PairState struct {
	// Key is the fingerprint of the key of the partner in hexadecimal digits; empty if it is not known.
	Key string
	// Port is the port of the partner; 0 if it is not known.
	Port uint16
	// Declaration is the id of the declaration that the partner is down, 0 if there is none. Downed is that of the declaration at the partner
	// that this server is down.
	Declaration, Downed int64
}

// PairStateOf returns the state of the pair of a server and its partner.
func PairStateOf(tx *store.Tx, a *resource.API, server, partner int64) (s PairState, err error) {
	other, err := partnerOf(tx, a, partner, server)
	if err != nil {
		return s, err
	}
	if other != nil {
		s.Key, s.Port = other.KeyFingerprint, uint16(other.Port) //nolint:gosec // it is one
	}
	each := func(at, of int64, fn func(x *DHCPPartnerAction)) error {
		var rows []*store.Resource
		if err := tx.List(store.Query{From: store.Resources, Where: ofPartner(PartnerActions, at, of)}, func(r *store.Resource) error {
			rows = append(rows, r.Clone())
			return nil
		}); err != nil {
			return err
		}
		for _, row := range rows {
			o, err := a.Object(row)
			if err != nil {
				return err
			}
			if x, ok := o.(*DHCPPartnerAction); ok {
				fn(x)
			}
		}
		return nil
	}
	if err := each(server, partner, func(x *DHCPPartnerAction) {
		if x.State == PartnerPending {
			s.Declaration = max(s.Declaration, x.ID)
		}
	}); err != nil {
		return s, err
	}
	err = each(partner, server, func(x *DHCPPartnerAction) {
		if x.State == PartnerPending || x.State == PartnerDeclared {
			s.Downed = max(s.Downed, x.ID)
		}
	})
	return s, err
}

// pair applies the report of a server about its pair.
func (w *leaseWriter) pair(p *dhcplease.Pair) error {
	partner, err := w.tx.Get(p.Partner)
	if store.IsNotFound(err) || err == nil && partner.Collection != "servers" {
		return nil // it was deleted
	}
	if err != nil {
		return err
	}
	before, err := partnerOf(w.tx, w.api, w.server, p.Partner)
	if err != nil {
		return err
	}
	set := func(o schema.Object) {
		x, ok := o.(*DHCPPartner)
		if !ok {
			return
		}
		x.State, x.Connected, x.ClockDifference, x.PendingUpdates = p.State, p.Connected, p.SkewMillis, p.Pending
		x.Conflicts, x.Mclt, x.KeyFingerprint, x.Port = p.Conflicts, p.MCLT, p.Key, int64(p.Port)
		x.StateDateTime, x.ReportDateTime = time.Unix(p.Since, 0), w.tx.Now()
		if p.Contact > 0 {
			x.LastContactDateTime = time.Unix(p.Contact, 0)
		}
	}
	c := &resource.Change{Tx: w.tx, API: w.api}
	if before == nil {
		t := w.api.TypeNamed("DHCPPartner")
		x := &DHCPPartner{Partner: schema.Ref{ID: p.Partner}}
		x.Type, x.Parent, x.Config = t.Name, w.server, w.configuration
		set(x)
		if _, err := c.Following("partner").Create(t, x); err != nil {
			return err
		}
	} else {
		row, err := w.tx.Get(before.ID)
		if err != nil {
			return err
		}
		if _, err := c.Following().Change(row, set); err != nil {
			return err
		}
	}
	return w.pairChanged(before, p)
}

// contested returns the end of a message about n addresses that both servers had leased.
func contested(p *dhcplease.Pair, n int64) string {
	var all []string
	text := func(h dhcplease.Holder) string {
		name := cmp.Or(hardwareText(h.MAC), strings.ToUpper(h.DUID), strings.ToUpper(h.ClientID), "an unknown client")
		if host := cleaned(h.HostName); host != "" {
			name += " (" + host + ")"
		}
		return name
	}
	for _, one := range p.Contested {
		all = append(all, fmt.Sprintf("%s stays with %s, and %s gets a NAK at its next renewal", one.Address, text(one.Keeps), text(one.Loses)))
	}
	if len(all) == 0 {
		return "."
	}
	if n > int64(len(all)) {
		all = append(all, "the others are in the log of the server")
	}
	return ": " + strings.Join(all, "; ") + "."
}

// pairChanged adds the events of a report, and advances the declarations that the server has followed.
func (w *leaseWriter) pairChanged(before *DHCPPartner, p *dhcplease.Pair) error {
	if before == nil {
		before = &DHCPPartner{}
	}
	server, partner, err := names(w.tx, w.server, p.Partner)
	if err != nil {
		return err
	}
	add := func(kind, format string, args ...any) error {
		return event.Add(w.tx, event.Event{EventType: kind, Category: "SERVER_HIGH_AVAILABILITY", Subcategory: "DHCP", SourceName: server,
			Message: fmt.Sprintf(format, args...)}, w.server)
	}
	if before.State != p.State {
		kind := "WARNING"
		if p.State == pairNormal || before.State == "" {
			kind = "INFO"
		}
		if err := add(kind, "Failover of DHCP server %s with %s: %s, after %s.", server, partner, p.State,
			cmp.Or(before.State, "no report")); err != nil {
			return err
		}
	}
	if p.Conflicts > before.Conflicts {
		if err := add("ERROR", "DHCP servers %s and %s had leased %d addresses to different clients%s", server, partner,
			p.Conflicts-before.Conflicts, contested(p, p.Conflicts-before.Conflicts)); err != nil {
			return err
		}
	}
	c := &resource.Change{Tx: w.tx, API: w.api}
	return c.Each(ofPartner(PartnerActions, w.server, p.Partner), func(row *store.Resource, o schema.Object) error {
		x, ok := o.(*DHCPPartnerAction)
		if !ok {
			return nil
		}
		next := x.State
		switch {
		case x.State == PartnerPending && p.Declaration >= x.ID && p.State == pairDown:
			next = PartnerDeclared
		case x.State == PartnerPending && p.Declaration >= x.ID:
			next = partnerVain
		case x.State == PartnerDeclared && p.State != pairDown:
			next = partnerDone
		}
		if next == x.State {
			return nil
		}
		_, err := c.Following().Change(row, func(o schema.Object) {
			if y, ok := o.(*DHCPPartnerAction); ok {
				y.State = next
			}
		})
		return err
	})
}

// CountPartners returns the numbers of servers in failover pairs, by the state that they report.
func CountPartners(tx *store.Tx) (map[string]int64, error) {
	states := map[string]int64{}
	return states, tx.List(store.Query{From: store.Resources, Where: store.InCollection(Partners)}, func(r *store.Resource) error {
		return store.Members(r.Body, func(name, raw []byte) error {
			if string(name) == "state" {
				states[strings.Trim(string(raw), `"`)]++
			}
			return nil
		})
	})
}
