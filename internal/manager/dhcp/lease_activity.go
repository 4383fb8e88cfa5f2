package dhcp

import (
	"cmp"
	"fmt"
	"net/netip"
	"time"

	"portolan/internal/engine/store"
	"portolan/internal/manager/telemetry"
)

// activityEvent is the beginning or the end of a lease, or the abandonment of an address, as it is sent to the destination of a server's
// DHCPActivityService (docs/dhcp.md).
type activityEvent struct {
	// Kind is LEASE_BEGIN, LEASE_END or ADDRESS_ABANDONED.
	Kind string    `json:"kind"`
	Time time.Time `json:"time"`
	// Server and Network are ids.
	Server  int64  `json:"server"`
	Network int64  `json:"network"`
	Address string `json:"address"`
	// PrefixLength is that of a delegated prefix.
	PrefixLength     int    `json:"prefixLength,omitempty"`
	MACAddress       string `json:"macAddress,omitempty"`
	ClientIdentifier string `json:"clientIdentifier,omitempty"`
	IAID             string `json:"identityAssociationIdentifier,omitempty"`
	HostName         string `json:"hostName,omitempty"`
	CircuitID        string `json:"circuitId,omitempty"`
	RemoteID         string `json:"remoteId,omitempty"`
	// Expires is the expiration of a lease that begins, EndReason the reason of an end (LeaseSpan.EndReason).
	Expires   *time.Time `json:"leaseExpirationDateTime,omitempty"`
	EndReason string     `json:"endReason,omitempty"`
}

// addActivity adds the events of a change to those of the DHCPActivityService of the server. same is true if the client of the stored
// lease is that of the change. An end is an event of the server that had the lease, also if its partner reports it.
func (w *leaseWriter) addActivity(l storedLease, c leaseChange, same bool) error {
	lasted := l.state == stateAllocated || l.state == stateLeased
	if lasted && !(c.lasts() && same) {
		if err := w.addEnd(l, c); err != nil {
			return err
		}
	}
	e := activityEvent{Kind: "LEASE_BEGIN", Time: c.start.UTC(), Server: w.server, Network: c.network, Address: c.address.String(),
		PrefixLength: c.prefix, MACAddress: c.mac, ClientIdentifier: c.clientID, IAID: c.iaid, HostName: c.hostName,
		CircuitID: cmp.Or(c.link, c.circuit), RemoteID: c.remote}
	switch {
	case c.lasts() && !(lasted && same): // otherwise a renewal
		expires := c.end.UTC()
		e.Expires = &expires
	case c.state == stateAbandoned && l.state != stateAbandoned:
		e.Kind, e.EndReason = "ADDRESS_ABANDONED", c.reason
	default:
		return nil
	}
	return w.send(w.server, c.address, e)
}

// addEnd adds the end of a stored lease.
func (w *leaseWriter) addEnd(l storedLease, c leaseChange) error {
	var body store.Object
	if err := body.Read([]byte(l.body)); err != nil {
		return fmt.Errorf("lease %d: %w", l.id, err)
	}
	e := activityEvent{Kind: "LEASE_END", Time: c.start.UTC(), Server: cmp.Or(l.server, w.server), Network: c.network,
		Address: c.address.String(), PrefixLength: l.prefix, MACAddress: l.mac, ClientIdentifier: l.clientID,
		IAID: textOf(&body, "identityAssociationIdentifier"), HostName: textOf(&body, "hostName"),
		CircuitID: cmp.Or(textOf(&body, "interfaceId"), textOf(&body, "circuitId")), RemoteID: textOf(&body, "remoteId"),
		EndReason: cmp.Or(c.reason, "REPLACED")}
	return w.send(e.Server, c.address, e)
}

// send adds an event to those of the service of a server.
func (w *leaseWriter) send(server int64, a netip.Addr, e activityEvent) error {
	x, read := w.activities[server]
	if !read {
		var err error
		if x, err = telemetry.ActivityOf(w.tx, w.api, server); err != nil {
			return err
		}
		w.activities[server] = x
	}
	if !x.Wants(a.Is6()) {
		return nil
	}
	return x.Add(e)
}
