package dhcp

import (
	"net/netip"
	"time"

	"portolan/internal/base/space"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// leaseRows and spanRows are the tables of leases and of their spans. They have the columns of resources.
const (
	leaseRows store.Source = "dhcp_lease"
	spanRows  store.Source = "dhcp_lease_span"
)

// The states of a lease. An allocated lease belongs to a range, a leased one to a reserved address.
const (
	stateAllocated = "DHCP_ALLOCATED"
	stateLeased    = "DHCP_LEASED"
	stateFree      = "DHCP_FREE"
	stateAbandoned = "DHCP_ABANDONED"
)

// registerLeases declares the collections of leases and of their spans. DHCP servers report both.
func registerLeases(r *resource.Registry) {
	r.Extension(newLeaseExtension())
	r.Rule(resource.Rule{Types: []string{"IPv4DHCPRange", "IPv6DHCPRange"}, AfterWrite: func(c *resource.Change) error {
		if err := keepOrphans(c); err != nil {
			return err
		}
		return recountRange(c.Tx, schema.HeadOf(c.New).ID) // the answer shows the usage
	}})
	r.Collection(resource.Collection{Name: "leases", From: leaseRows, Guard: resource.Along, Hidden: true, Complete: completeLeases,
		Numerous: true, Fleeting: true,
		Conditions: map[string]func(*schema.Node) (store.Expr, error){"leaseExpirationDateTime": whereExpires,
			"prefix": wherePrefix(leaseRows)}}, &DHCPv4Lease{}, &DHCPv6Lease{})
	r.Collection(resource.Collection{Name: "leaseSpans", From: spanRows, Guard: resource.Along, Hidden: true, Numerous: true,
		Unpublished: true, Complete: completeSpans,
		Conditions: map[string]func(*schema.Node) (store.Expr, error){"prefix": wherePrefix(spanRows)}}, &LeaseSpan{})
	r.Computed(resource.ComputedSub{Below: "addresses", Name: "leases", Where: ofAddress})
	r.Computed(resource.ComputedSub{Below: "addresses", Name: "leaseSpans", Items: []string{"leaseSpans"}, Where: ofAddress})
	for _, above := range []string{"blocks", "networks", "ranges"} {
		r.Computed(resource.ComputedSub{Below: above, Name: "leases", Where: filterByParent})
		r.Computed(resource.ComputedSub{Below: above, Name: "leaseSpans", Items: []string{"leaseSpans"}, Where: filterByParent})
	}
	r.Computed(resource.ComputedSub{Below: "macAddresses", Name: "leaseSpans", Items: []string{"leaseSpans"}, Where: ofHardware})
}

// Lease has the common fields of IPv4 and IPv6 leases.
type Lease struct {
	// Configuration is the configuration that contains the lease.
	Configuration schema.Ref `api:"configuration,readOnly" column:"configuration" ref:"Configuration"`
	// Network is the network that contains the address.
	Network schema.Ref `api:"network,readOnly" column:"parent" ref:"IPv4Network|IPv6Network"`
	// Server is the server that assigned the address.
	Server schema.Ref `api:"server,readOnly" ref:"Server|HAServer" filterColumn:"server"`
	// ServerConnectionStatus is the connection of the server's service point: a server that is not connected has not reported renewals and
	// ends since; null for a lease without a server, and for users who do not see the server.
	ServerConnectionStatus string `api:"serverConnectionStatus,computed" enum:"CONNECTED|NOT_CONNECTED" of:"server"`
	// Address is the address that was leased.
	Address netip.Addr `api:"address,readOnly,span"`
	// State is the state of the lease.
	State string `api:"state,readOnly,index" enum:"DHCP_ALLOCATED|DHCP_LEASED|DHCP_FREE|DHCP_ABANDONED"`
	// LeaseDateTime is when the address was leased.
	LeaseDateTime time.Time `api:"leaseDateTime,readOnly,index"`
	// LeaseExpirationDateTime is when the lease expires. Servers report renewals once a minute. A lease that an operator has ended is
	// DHCP_FREE, and has the time until which its address is not leased to another client. Leases can be filtered by it, not ordered.
	LeaseExpirationDateTime time.Time `api:"leaseExpirationDateTime,computed"`
	// MACAddress is the hardware address of the client.
	MACAddress string `api:"macAddress,readOnly,hardware,index"`
	// ClientIdentifier is the client identifier (RFC 2132) or the DUID (RFC 8415) of the client, in hexadecimal digits.
	ClientIdentifier string `api:"clientIdentifier,readOnly,index"`
	// HostName is the name that the client sent.
	HostName string `api:"hostName,readOnly,index"`
	// RemoteID is the remote id of the relay agent (RFC 3046, RFC 4649).
	RemoteID string `api:"remoteId,readOnly,index"`

	prefix int
}

// Span returns the address as first and last address, or the delegated prefix.
func (x *Lease) Span() (low, high netip.Addr) {
	if x.prefix == 0 {
		return x.Address, x.Address
	}
	r := space.FromPrefix(netip.PrefixFrom(x.Address, x.prefix))
	return r.Low, r.High
}

// DHCPv4Lease is the lease of an IPv4 address to a client.
type DHCPv4Lease struct {
	schema.Head `head:"readOnly" post:"no"`
	Lease
	// CircuitID is the circuit id of the relay agent (RFC 3046).
	CircuitID string `api:"circuitId,readOnly,index"`
	// VendorClassIdentifier is the vendor class of the client.
	VendorClassIdentifier string `api:"vendorClassIdentifier,readOnly,index"`
	// ParameterRequestList lists the options that the client requested.
	ParameterRequestList []int64 `api:"parameterRequestList,readOnly"`
}

// DHCPv6Lease is the lease of an IPv6 address or prefix to a client.
type DHCPv6Lease struct {
	schema.Head `head:"readOnly" post:"no"`
	Lease
	// PrefixLength is the length of a delegated prefix; null for an address.
	PrefixLength *int64 `api:"prefixLength,readOnly"`
	// Prefix is the delegated prefix; null for an address. The filter contains finds the prefix that contains an address or prefix.
	Prefix string `api:"prefix,readOnly,computed"`
	// IdentityAssociationIdentifier is the IAID (RFC 8415).
	IdentityAssociationIdentifier string `api:"identityAssociationIdentifier,readOnly,index"`
	// InterfaceID is the interface id of the relay agent (RFC 8415).
	InterfaceID string `api:"interfaceId,readOnly,index"`
}

// LeaseSpan is the time during which a client had an address. Spans are kept for the dhcpTransactionRetentionPeriod of AuditDataSettings.
type LeaseSpan struct {
	schema.Head `head:"readOnly" post:"no"`
	// Configuration is the configuration that contains the address.
	Configuration schema.Ref `api:"configuration,readOnly" column:"configuration" ref:"Configuration"`
	// Network is the network that contains the address.
	Network schema.Ref `api:"network,readOnly" column:"parent" ref:"IPv4Network|IPv6Network"`
	// Server is the server that assigned the address.
	Server schema.Ref `api:"server,readOnly" ref:"Server|HAServer" filterColumn:"server"`
	// Address is the address, or the first address of a delegated prefix.
	Address netip.Addr `api:"address,readOnly,span"`
	// Prefix is the delegated prefix; null for an address. The filter contains finds the prefix that contains an address or prefix.
	Prefix string `api:"prefix,readOnly,computed"`
	// StartDateTime is when the client received the address.
	StartDateTime time.Time `api:"startDateTime,readOnly,index"`
	// EndDateTime is when the client lost the address; null while it has the address.
	EndDateTime time.Time `api:"endDateTime,readOnly,index"`
	// EndReason is the reason of the end: EXPIRED, RELEASED, DECLINED, CONFLICT, REPLACED by another client, or ENDED by a user.
	EndReason string `api:"endReason,readOnly" enum:"EXPIRED|RELEASED|DECLINED|CONFLICT|REPLACED|ENDED"`
	// MACAddress is the hardware address of the client.
	MACAddress string `api:"macAddress,readOnly,hardware,index"`
	// ClientIdentifier is the client identifier or the DUID of the client, in hexadecimal digits.
	ClientIdentifier string `api:"clientIdentifier,readOnly,index"`
	// HostName is the name that the client sent.
	HostName string `api:"hostName,readOnly,index"`
	// CircuitID and RemoteID are the port and the relay agent of the client (RFC 3046).
	CircuitID string `api:"circuitId,readOnly,index"`
	RemoteID  string `api:"remoteId,readOnly,index"`

	prefix int
}

// Span returns the address as first and last address, or the delegated prefix.
func (x *LeaseSpan) Span() (low, high netip.Addr) {
	return (&Lease{Address: x.Address, prefix: x.prefix}).Span()
}

// The columns of the tables that conditions use.
var (
	lowColumn           = store.Field{Kind: store.ColumnSpan, Path: []string{"low"}}
	configurationColumn = store.Field{Kind: store.ColumnInt, Path: []string{"configuration"}}
)

// filterByParent returns the condition for the rows of the addresses in a block, network or range.
func filterByParent(_ *store.Tx, _ *resource.API, above *store.Resource) (store.Expr, error) {
	return store.All{store.Compare{Field: configurationColumn, Op: "eq", Value: above.Configuration},
		store.Compare{Field: lowColumn, Op: "ge", Value: above.Low}, store.Compare{Field: lowColumn, Op: "le", Value: above.High}}, nil
}

// ofAddress returns the condition for the rows of one address.
func ofAddress(_ *store.Tx, _ *resource.API, above *store.Resource) (store.Expr, error) {
	return store.All{store.Compare{Field: configurationColumn, Op: "eq", Value: above.Configuration},
		store.Compare{Field: lowColumn, Op: "eq", Value: above.Low}}, nil
}

// ofHardware returns the condition for the spans of one hardware address.
func ofHardware(_ *store.Tx, a *resource.API, above *store.Resource) (store.Expr, error) {
	o, err := a.Object(above)
	if err != nil {
		return nil, err
	}
	return store.All{store.Compare{Field: configurationColumn, Op: "eq", Value: above.Configuration},
		store.Compare{Field: store.Field{Kind: store.Text, Path: []string{"macAddress"}, Indexed: true}, Op: "eq",
			Value: a.TypeNamed(above.Type).TextOf(o, "address")}}, nil
}
