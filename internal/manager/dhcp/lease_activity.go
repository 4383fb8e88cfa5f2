package dhcp

import (
	"time"

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

// log adds the events of a change to those of the server's DHCPActivityService. same is true if the client of the stored lease is that of
// the change.
func (w *leaseWriter) log(l storedLease, c leaseChange, same bool) error {
	if !w.activityRead {
		var err error
		if w.activity, err = telemetry.ActivityOf(w.tx, w.api, w.server); err != nil {
			return err
		}
		w.activityRead = true
	}
	if !w.activity.Wants(c.address.Is6()) {
		return nil
	}
	e := activityEvent{Kind: "LEASE_BEGIN", Time: c.start.UTC(), Server: w.server, Network: c.network, Address: c.address.String(),
		PrefixLength: c.prefix, MACAddress: c.mac, ClientIdentifier: c.clientID, IAID: c.iaid, HostName: c.hostName, CircuitID: c.circuit,
		RemoteID: c.remote}
	if c.link != "" {
		e.CircuitID = c.link
	}
	lasted := l.state == stateAllocated || l.state == stateLeased
	switch {
	case c.lasts() && lasted && same: // a renewal
		return nil
	case c.lasts():
		if lasted {
			ended := activityEvent{Kind: "LEASE_END", Time: e.Time, Server: w.server, Network: c.network, Address: e.Address,
				PrefixLength: l.prefix, MACAddress: l.mac, ClientIdentifier: l.clientID, EndReason: "REPLACED"}
			if err := w.activity.Add(ended); err != nil {
				return err
			}
		}
		expires := c.end.UTC()
		e.Expires = &expires
	case c.state == stateAbandoned && l.state != stateAbandoned:
		e.Kind, e.EndReason = "ADDRESS_ABANDONED", c.reason
	case lasted:
		e.Kind, e.EndReason = "LEASE_END", c.reason
	default:
		return nil
	}
	return w.activity.Add(e)
}
