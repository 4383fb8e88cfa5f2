package dhcp

import (
	"time"

	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// registerLeases declares the collection of leases. Nothing makes any until DHCP is served.
func registerLeases(r *resource.Registry) {
	r.Collection(resource.Collection{Name: "leases", Parents: []string{"addresses"}}, &DHCPv4Lease{}, &DHCPv6Lease{})
	for _, above := range []string{"blocks", "networks", "ranges"} {
		r.Computed(resource.ComputedSub{Below: above, Name: "leases", Find: leasesWithin})
	}
}

// Lease has the common fields of IPv4 and IPv6 leases.
type Lease struct {
	// Configuration is the configuration that contains the lease.
	Configuration schema.Ref `api:"configuration,readOnly" column:"configuration" ref:"Configuration"`
	// Address is the address that was leased.
	Address schema.Ref `api:"address,readOnly" column:"parent" ref:"IPv4Address|IPv6Address"`
	// State is the state of the lease.
	State string `api:"state,readOnly" enum:"DHCP_ALLOCATED|DHCP_LEASED|DHCP_FREE|DHCP_ABANDONED"`
	// LeaseDateTime is when the address was leased.
	LeaseDateTime time.Time `api:"leaseDateTime,readOnly"`
	// LeaseExpirationDateTime is when the lease expires.
	LeaseExpirationDateTime time.Time `api:"leaseExpirationDateTime,readOnly"`
}

// DHCPv4Lease is the lease of an IPv4 address to a client.
type DHCPv4Lease struct {
	schema.Head `head:"readOnly" post:"no"`
	Lease
}

// DHCPv6Lease is the lease of an IPv6 address to a client.
type DHCPv6Lease struct {
	schema.Head `head:"readOnly" post:"no"`
	Lease
}

// leasesWithin returns the leases of the addresses in a block, network or range.
func leasesWithin(tx *store.Tx, _ *resource.API, above *store.Resource) (ids []int64, err error) {
	low, high := store.Field{Kind: store.ColumnSpan, Path: []string{"low"}}, store.Field{Kind: store.ColumnSpan, Path: []string{"high"}}
	inside := store.All{store.InCollection("addresses"),
		store.Compare{Field: store.Field{Kind: store.ColumnInt, Path: []string{"configuration"}}, Op: "eq", Value: above.Configuration},
		store.Compare{Field: low, Op: "ge", Value: above.Low}, store.Compare{Field: high, Op: "le", Value: above.High}}
	err = tx.List(store.Query{From: store.Resources, Where: store.All{store.InCollection("leases"),
		store.Through{Ref: "parent", Column: true, Where: inside}}}, func(r *store.Resource) error {
		ids = append(ids, r.ID)
		return nil
	})
	return ids, err
}
