package dhcp

import (
	"bytes"
	"fmt"
	"net/netip"
	"slices"

	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// leaseMembers are the members of an address that show its lease; the members of the lease have the same names.
var leaseMembers = []string{"leaseDateTime", "remoteId", "circuitId", "vendorClassIdentifier", "parameterRequestList",
	"identityAssociationIdentifier", "interfaceId"}

// reservedState is the state of a reserved address in a body. reservedPart is the part of it that is searched: its first letter is rare in
// bodies, which makes the search fast.
var reservedState, reservedPart = []byte(`"DHCP_RESERVED"`), []byte("HCP_RESERVED")

// Complete adds the values of their leases to the bodies of reserved addresses.
func (*Leases) Complete(tx *store.Tx, rows []*store.Resource) error {
	var body, lease store.Object
	all := map[int64]*pages{}
	for _, r := range rows {
		if !bytes.Contains(r.Body, reservedPart) { // most addresses, whose members need not be read
			continue
		}
		if err := body.Read(r.Body); err != nil {
			return err
		}
		if string(body.Get("state")) != string(reservedState) {
			continue
		}
		a, err := netip.ParseAddr(textOf(&body, "address"))
		if err != nil {
			return fmt.Errorf("address %d: %w", r.ID, err)
		}
		if all[r.Configuration] == nil {
			all[r.Configuration] = newPages(tx, r.Configuration)
		}
		w := &leaseWriter{tx: tx, configuration: r.Configuration, pages: all[r.Configuration]}
		l, err := w.read(a)
		if err != nil {
			return err
		}
		if l.state != stateLeased && l.state != stateAllocated {
			continue
		}
		if err := lease.Read([]byte(l.body)); err != nil {
			return err
		}
		for _, name := range leaseMembers {
			if value := lease.Get(name); value != nil {
				body.Set(name, slices.Clone(value))
			}
		}
		end, err := w.pages.end(a)
		if err != nil {
			return err
		}
		if !end.IsZero() {
			body.Set("leaseExpirationDateTime", schema.AppendString(nil, schema.FormatTime(end)))
		}
		r.Body = body.Text()
	}
	return nil
}
