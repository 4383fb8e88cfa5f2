package dhcp

import (
	"net/netip"
	"time"

	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// refusedRows and refusedCountRows are the tables of refused clients and of the numbers of refused messages. They have the columns of
// resources.
const (
	refusedRows      store.Source = "dhcp_refused_client"
	refusedCountRows store.Source = "dhcp_refused_count"
)

// registerRefused declares the collections of refused clients. DHCP servers report them.
func registerRefused(r *resource.Registry) {
	r.Extension(newRefusedExtension())
	r.Collection(resource.Collection{Name: "refusedClients", From: refusedRows, Guard: resource.Along, Hidden: true, Numerous: true,
		Unpublished: true}, &RefusedClient{})
	r.Collection(resource.Collection{Name: "refusedCounts", From: refusedCountRows, Guard: resource.Along, Hidden: true, Numerous: true,
		Unpublished: true}, &RefusedCount{})
	for _, above := range []string{"networks", "servers"} {
		r.Computed(resource.ComputedSub{Below: above, Name: "refusedClients", Items: []string{"refusedClients"}, Where: directlyBelow})
		r.Computed(resource.ComputedSub{Below: above, Name: "refusedCounts", Items: []string{"refusedCounts"}, Where: directlyBelow})
	}
}

// directlyBelow returns the condition for the rows of a network, or of a server for clients in no network.
func directlyBelow(_ *store.Tx, _ *resource.API, above *store.Resource) (store.Expr, error) {
	return store.HasParent(above.ID), nil
}

// RefusedClient is a client that a DHCP server did not answer, or answered with a NAK, for a reason. The last 100 clients of a network are
// kept for seven days.
type RefusedClient struct {
	schema.Head `head:"readOnly" post:"no"`
	// Configuration is the configuration that contains the network.
	Configuration schema.Ref `api:"configuration,readOnly" column:"configuration" ref:"Configuration"`
	// Network is the network of the client; null if the server serves no network that contains it.
	Network schema.Ref `api:"network,readOnly" ref:"IPv4Network|IPv6Network" filterColumn:"network"`
	// Server is the server that refused the client.
	Server schema.Ref `api:"server,readOnly" ref:"Server|HAServer" filterColumn:"server"`
	// Reason is the reason, such as no-free-address. docs/dhcp.md lists the reasons.
	Reason string `api:"reason,readOnly"`
	// Explanation is the meaning of the reason.
	Explanation string `api:"explanation,readOnly"`
	// MessageType is the type of the last message, such as DISCOVER.
	MessageType string `api:"messageType,readOnly"`
	// Count is the number of refused messages.
	Count int64 `api:"count,readOnly"`
	// FirstDateTime and LastDateTime are the times of the first and of the last message.
	FirstDateTime time.Time `api:"firstDateTime,readOnly"`
	LastDateTime  time.Time `api:"lastDateTime,readOnly"`
	// MACAddress is the hardware address of the client.
	MACAddress string `api:"macAddress,readOnly,hardware,index"`
	// ClientIdentifier is the client identifier or the DUID of the client, in hexadecimal digits.
	ClientIdentifier string `api:"clientIdentifier,readOnly"`
	// HostName is the name that the client sent.
	HostName string `api:"hostName,readOnly"`
	// CircuitID and RemoteID are the port and the relay agent of the client.
	CircuitID string `api:"circuitId,readOnly"`
	RemoteID  string `api:"remoteId,readOnly"`
	// VendorClassIdentifier is the vendor class of the client.
	VendorClassIdentifier string `api:"vendorClassIdentifier,readOnly"`
	// RelayAddress is the address of the relay agent.
	RelayAddress netip.Addr `api:"relayAddress,readOnly"`
	// RequestedAddress is the address that the client asked for.
	RequestedAddress netip.Addr `api:"requestedAddress,readOnly"`
}

// RefusedCount is the number of messages that a DHCP server refused on a day for a reason. Numbers are kept for seven days.
type RefusedCount struct {
	schema.Head `head:"readOnly" post:"no"`
	// Configuration is the configuration that contains the network.
	Configuration schema.Ref `api:"configuration,readOnly" column:"configuration" ref:"Configuration"`
	// Network is the network; null for clients in no served network.
	Network schema.Ref `api:"network,readOnly" ref:"IPv4Network|IPv6Network" filterColumn:"network"`
	// Server is the server that refused the messages.
	Server schema.Ref `api:"server,readOnly" ref:"Server|HAServer" filterColumn:"server"`
	// Reason is the reason.
	Reason string `api:"reason,readOnly"`
	// Explanation is the meaning of the reason.
	Explanation string `api:"explanation,readOnly"`
	// DateTime is the beginning of the day, in UTC.
	DateTime time.Time `api:"dateTime,readOnly"`
	// Count is the number of messages.
	Count int64 `api:"count,readOnly"`
}
