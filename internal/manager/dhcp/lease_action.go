package dhcp

import (
	"errors"
	"net/netip"
	"time"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
	"portolan/internal/manager/ipam"
)

// The actions on a lease, and the states of an action.
const (
	ActionEnd     = "END_LEASE"
	ActionClear   = "CLEAR_ADDRESS"
	actionReserve = "RESERVE"
	ActionPending = "PENDING"
	actionDone    = "DONE"
	actionVain    = "NO_EFFECT"
)

// LeaseActions is the name of the collection of actions on leases.
const LeaseActions = "leaseActions"

// registerLeaseActions declares the collection of actions on leases. An action is performed by the server of the network. It is not
// undone, so it has no history.
func registerLeaseActions(r *resource.Registry) {
	r.Collection(resource.Collection{Name: LeaseActions, Parents: []string{"networks"}, Unpublished: true, Hidden: true, Unlogged: true,
		NoSearch: true}, &LeaseAction{})
	r.DeclareUnlinked(resource.FurtherSub{Below: "networks", Name: LeaseActions, Item: LeaseActions, Types: []string{"LeaseAction"}})
}

// LeaseAction is an action on the lease of an address.
type LeaseAction struct {
	schema.Head `head:"readOnly"`
	// Configuration is the configuration that contains the address.
	Configuration schema.Ref `api:"configuration,readOnly" column:"configuration" ref:"Configuration"`
	// Address is the leased or abandoned address.
	Address netip.Addr `api:"address,required,createOnly"`
	// Action is the action: END_LEASE ends the lease, CLEAR_ADDRESS makes an abandoned address free, and RESERVE reserves the address for
	// the client of the lease.
	Action string `api:"action,required,createOnly" enum:"END_LEASE|CLEAR_ADDRESS|RESERVE"`
	// State is PENDING until the server has performed the action. It is NO_EFFECT if the address had no lease any more.
	State string `api:"state,readOnly,index" enum:"PENDING|DONE|NO_EFFECT"`
	// LeaseDateTime is the beginning of the lease that END_LEASE ends. The server ends no other lease of the address.
	LeaseDateTime time.Time `api:"leaseDateTime,readOnly"`
	// CreationDateTime is the time of the request.
	CreationDateTime time.Time `api:"creationDateTime,readOnly"`
	// Reservation is the address that RESERVE created or changed.
	Reservation schema.Ref `api:"reservation,readOnly" ref:"IPv4Address|IPv6Address" onDelete:"clear"`
}

// BeforeWrite rejects an action that the lease of the address does not allow. RESERVE is performed at once.
func (x *LeaseAction) BeforeWrite(c *resource.Change) error {
	if !c.IsRequested() || !c.IsCreation() {
		return nil
	}
	network, err := c.ReadParent(x.Parent)
	if err != nil {
		return err
	}
	w := newLeaseWriter(c.Tx, c.API, &store.Resource{Configuration: network.Configuration})
	l, err := w.read(x.Address.Unmap())
	if err != nil {
		return err
	}
	if !l.there || l.parent != network.ID {
		return problem.NotFound("address: %s has no lease in network %d", x.Address, network.ID)
	}
	lasts := l.state == stateAllocated || l.state == stateLeased
	switch {
	case x.Action != ActionClear && !lasts:
		return problem.Conflict("ResourceConflictsWithOther", "address: %s is %s and has no lease", x.Address, l.state)
	case x.Action == ActionClear && l.state != stateAbandoned:
		return problem.Conflict("ResourceConflictsWithOther", "address: %s is %s and not abandoned", x.Address, l.state)
	}
	if x.Action == actionReserve && l.prefix > 0 {
		return problem.Conflict("ResourceConflictsWithOther", "address: %s/%d is a delegated prefix, and a prefix cannot be reserved for a "+
			"client: it keeps the prefix as long as it renews the lease", x.Address, l.prefix)
	}
	x.Address, x.State, x.CreationDateTime = x.Address.Unmap(), ActionPending, c.Tx.Now()
	if x.Action == ActionEnd {
		x.LeaseDateTime = l.start
	}
	if err := deleteOldActions(c, network.ID); err != nil {
		return err
	}
	if x.Action != actionReserve {
		return x.perform(c, w, l)
	}
	x.State = actionDone
	if x.Reservation.ID, err = reserve(c, network, x.Address, l); err != nil {
		return err
	}
	return nil
}

// perform ends a lease whose server never returns, and that no other server could end. Otherwise a server performs the action.
func (x *LeaseAction) perform(c *resource.Change, w *leaseWriter, l storedLease) error {
	if exist, err := w.hasPerformer(l); err != nil || exist {
		return err
	}
	x.State, w.server = actionDone, l.server
	return errors.Join(w.end(&store.Resource{Low: store.AddrKey(x.Address)}, c.Tx.Now(), endedReason), w.pages.write(), w.counts.write())
}

// reserve reserves an address for the client of its lease, and returns the id of the reservation.
func reserve(c *resource.Change, network *store.Resource, a netip.Addr, l storedLease) (int64, error) {
	had, err := ipam.AddressAt(c.Tx, network.ID, a)
	switch {
	case err == nil && l.state == stateLeased:
		return 0, problem.Conflict("ResourceAlreadyExists", "address: %s is already reserved (%s %d)", a, had.Type, had.ID)
	case err == nil:
		_, err := c.Following(clientFields...).Change(had, l.setClient("DHCP_RESERVED"))
		return had.ID, err
	case !store.IsNotFound(err):
		return 0, err
	}
	return createFor(c, network, a, l, "DHCP_RESERVED")
}

// clientFields are the fields of an address that describe its client.
var clientFields = []string{"state", "macAddress", "clientIdentifier", "reservedUsing"}

// setClient returns a function that sets the state of an address, and its client to that of the lease.
func (l storedLease) setClient(state string) func(o schema.Object) {
	mac, identifier := schema.Ref{By: l.mac}, schema.Ref{}
	if l.mac == "" {
		identifier.By = "0x" + l.clientID
	}
	return func(o schema.Object) {
		switch x := o.(type) {
		case *ipam.IPv4Address:
			if x.State, x.MACAddress = state, mac; state == "DHCP_RESERVED" {
				x.ClientIdentifier = identifier
			}
		case *ipam.IPv6Address:
			x.State, x.MACAddress, x.ReservedUsing = state, mac, "MAC_ADDRESS"
			if l.clientID != "" {
				x.MACAddress, x.ClientIdentifier, x.ReservedUsing = schema.Ref{}, schema.Ref{By: l.clientID}, "CLIENT_DUID"
			}
		}
	}
}

// createFor creates an address for the client of a lease, and returns its id.
func createFor(c *resource.Change, network *store.Resource, a netip.Addr, l storedLease, state string) (int64, error) {
	t := c.API.TypeNamed("IPv4Address")
	if a.Is6() {
		t = c.API.TypeNamed("IPv6Address")
	}
	o := t.New()
	l.setClient(state)(o)
	h := schema.HeadOf(o)
	h.Type, h.Parent, h.Config = t.Name, network.ID, network.Configuration
	switch x := o.(type) {
	case *ipam.IPv4Address:
		x.Address = a
	case *ipam.IPv6Address:
		x.Address = a
	}
	row, err := c.Following(append(clientFields, "address")...).Create(t, o)
	if err != nil {
		return 0, err
	}
	return row.ID, nil
}

// keepActions is how long performed actions are listed.
const keepActions = 24 * time.Hour

// deleteOldActions deletes the old actions of a network.
func deleteOldActions(c *resource.Change, network int64) error {
	return c.Each(store.All{store.InCollection(LeaseActions), store.HasParent(network)}, func(row *store.Resource, o schema.Object) error {
		x, ok := o.(*LeaseAction)
		if !ok || x.State == ActionPending || c.Tx.Now().Sub(x.CreationDateTime) < keepActions {
			return nil
		}
		return c.Following().Delete(row)
	})
}

// ordered records that the server has performed an action.
func (w *leaseWriter) ordered(id int64, changed bool) error {
	row, err := w.tx.Get(id)
	if store.IsNotFound(err) || err == nil && row.Collection != LeaseActions {
		return nil
	}
	if err != nil {
		return err
	}
	if mine, err := w.answersFor(row); err != nil || !mine {
		return err
	}
	c := &resource.Change{Tx: w.tx, API: w.api}
	_, err = c.Following().Change(row, func(o schema.Object) {
		if x, ok := o.(*LeaseAction); ok && x.State == ActionPending {
			if x.State = actionDone; !changed {
				x.State = actionVain
			}
		}
	})
	return err
}
