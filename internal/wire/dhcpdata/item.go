package dhcpdata

import (
	"encoding/hex"
	"encoding/json"
	"net/netip"
)

// Item is an entry of a unit: Server, Network, Pool, Reservation, Class, Subclass, MACPool, MACAddress, Option, Service, Pair, Zone or
// Order.
type Item interface {
	// letter returns the letter of the record of the item.
	letter() byte
	// check returns an error if the item is invalid by itself.
	check() error
}

// Server is the server itself. It is in ServerUnit, once.
type Server struct {
	ID            int64  `json:"id"`
	Name          string `json:"name"`
	Configuration int64  `json:"configuration"`
	// Addresses are the addresses of the interfaces with the roles. The first one of a family identifies the server for remote networks.
	Addresses []netip.Addr `json:"addresses,omitempty"`
	// DUID is the identifier of the server in DHCPv6. It does not change if the server moves to another machine.
	DUID Hex `json:"duid,omitempty"`
	// Others are the ids of the other DHCP servers of the configuration, and OtherAddresses the addresses that identify them to clients.
	Others         []int64      `json:"others,omitempty"`
	OtherAddresses []netip.Addr `json:"otherAddresses,omitempty"`
	// Snapshot requests all leases again: the server sends them when the number has grown.
	Snapshot int64 `json:"snapshot,omitempty"`
	// Restored is the ID of the last list of a server that had lost leases: the content has the orders to restore those that it lacked.
	Restored int64 `json:"restored,omitempty"`
}

// Network is a network that the server serves. It is in the network's unit, once.
type Network struct {
	ID     int64        `json:"id"`
	Name   string       `json:"name,omitempty"`
	Prefix netip.Prefix `json:"prefix"`
	// Gateway is the gateway, which is never leased. It becomes option 3 if no router option is in effect.
	Gateway netip.Addr `json:"gateway,omitzero"`
	// Shared identifies the shared network; 0 if the network is alone. A client may receive an address of any network of a shared network.
	Shared     int64  `json:"shared,omitempty"`
	SharedName string `json:"sharedName,omitempty"`
	// Pair is the id of the Pair that serves the network; 0 if the server is alone.
	Pair int64 `json:"pair,omitempty"`
	// Identifier is the address of the server for this network; the server identifier of DHCPv4. It may be invalid for networks that the
	// server reaches by an interface of its own.
	Identifier netip.Addr `json:"identifier,omitzero"`
}

// Pool is a range of a network without its exclusions and without static, reserved and gateway addresses.
type Pool struct {
	ID   int64  `json:"id"`
	Name string `json:"name,omitempty"`
	// Ranges are the addresses, sorted and without overlaps.
	Ranges []Interval `json:"ranges"`
	// Whole is the range with its exclusions and the addresses in use: its options apply to reservations in it. The zero value means Ranges.
	Whole Interval `json:"whole,omitzero"`
	// Probed are static addresses in Ranges. They are leased only after a conflict probe (splitAroundStaticAddresses false).
	Probed []Interval `json:"probed,omitempty"`
	// DelegatedLength is the length of the prefixes that the pool delegates (IPv6); 0 if it contains addresses.
	DelegatedLength int `json:"delegatedLength,omitempty"`
	// LowWaterMark and HighWaterMark are percentages; 0 means no mark.
	LowWaterMark  int `json:"lowWaterMark,omitempty"`
	HighWaterMark int `json:"highWaterMark,omitempty"`
}

// Reservation is an address that only one client receives. ID and Name are those of the address resource.
type Reservation struct {
	ID      int64      `json:"id"`
	Name    string     `json:"name,omitempty"`
	Address netip.Addr `json:"address"`
	// PrefixLength is the length of a reserved prefix (IPv6 prefix delegation); 0 for an address.
	PrefixLength int `json:"prefixLength,omitempty"`
	// MAC, ClientID and DUID identify the client. A client that matches any of them has the reservation.
	MAC      Hex `json:"mac,omitempty"`
	ClientID Hex `json:"clientId,omitempty"`
	DUID     Hex `json:"duid,omitempty"`
	// HostName is the name for use-host-decl-names and for updates of DNS.
	HostName string `json:"hostName,omitempty"`
}

// Class is a client class. It is in the class's unit, once. Exactly one of Match and If is set.
type Class struct {
	ID   int64  `json:"id"`
	Name string `json:"name"`
	// Match is a data expression. A client belongs to the subclass whose value equals it.
	Match *Expression `json:"match,omitempty"`
	// If is a condition. A client belongs to the class if it is true.
	If *Expression `json:"if,omitempty"`
}

// Subclass is a value of a class with Match.
type Subclass struct {
	ID    int64  `json:"id"`
	Name  string `json:"name,omitempty"`
	Value Hex    `json:"value"`
}

// MACPool is a set of hardware addresses. It is in the pool's unit, at most once.
type MACPool struct {
	ID   int64  `json:"id"`
	Name string `json:"name"`
	// Deny is true for the pool whose members are never served.
	Deny bool `json:"deny,omitempty"`
}

// MACAddress is a hardware address in a MAC pool, or one with options.
type MACAddress struct {
	ID   int64  `json:"id"`
	Name string `json:"name,omitempty"`
	MAC  Hex    `json:"mac"`
}

// Level is the kind of the object that an option or a service option is set at.
type Level string

// The levels, the least specific one first (dhcp.md 1.3).
const (
	AtDefault       Level = "default"
	AtConfiguration Level = "configuration"
	AtServerGroup   Level = "serverGroup"
	AtServer        Level = "server"
	AtBlock         Level = "block"
	AtNetwork       Level = "network"
	AtRange         Level = "range"
	AtMACPool       Level = "macPool"
	AtClass         Level = "class"
	AtSubclass      Level = "subclass"
	AtMACAddress    Level = "macAddress"
	AtAddress       Level = "address"
)

// Source is the object that a value comes from, for explanations.
type Source struct {
	Level Level  `json:"level"`
	ID    int64  `json:"id"`
	Name  string `json:"name,omitempty"`
}

// Option is a client option in effect at an object of the unit. The manager merges the levels from the configuration to the server into
// ServerUnit, and those from the blocks to the network into the unit of the network: there is one option for each Code, Vendor and
// family at an object.
type Option struct {
	// At is the id of the pool, reservation, subclass or MAC address; 0 for the object of the unit.
	At int64 `json:"at,omitempty"`
	V6 bool  `json:"v6,omitempty"`
	// Code is the code of the option. With Vendor it is the code of a sub-option.
	Code uint16 `json:"code"`
	// Vendor is the identifier of a vendor profile: the option is part of option 43 of clients whose option 60 begins with it.
	Vendor string `json:"vendor,omitempty"`
	Name   string `json:"name"`
	// Value is the value as it is sent.
	Value Hex    `json:"value"`
	From  Source `json:"from"`
}

// Service is a service option in effect at an object of the unit; the levels are merged as those of Option. FindService describes each
// name.
type Service struct {
	At    int64           `json:"at,omitempty"`
	V6    bool            `json:"v6,omitempty"`
	Name  string          `json:"name"`
	Value json.RawMessage `json:"value"`
	From  Source          `json:"from"`
}

// Pair is a failover pair of this server and a partner. It is in ServerUnit. Its id is that of the partner's server.
type Pair struct {
	ID   int64  `json:"id"`
	Name string `json:"name,omitempty"`
	// Primary is true if this server is the primary of the pair.
	Primary bool `json:"primary,omitempty"`
	// Partner is the id of the partner's server, and Endpoint its address and port.
	Partner     int64          `json:"partner"`
	PartnerName string         `json:"partnerName,omitempty"`
	Endpoint    netip.AddrPort `json:"endpoint"`
	// PartnerKey is the SHA-256 of the public key that the partner must have; empty while it is not known.
	PartnerKey Hex `json:"partnerKey,omitempty"`
	// MCLT, Override and MaxResponseDelay are in seconds. Split is the share of the primary of 256.
	MCLT              uint32 `json:"mclt"`
	Split             int    `json:"split"`
	Override          uint32 `json:"override"`
	MaxUnackedUpdates uint32 `json:"maxUnackedUpdates,omitempty"`
	MaxResponseDelay  uint32 `json:"maxResponseDelay,omitempty"`
	// PartnerDown is true if an operator declared that the partner does not run. Declaration numbers the declarations.
	PartnerDown bool  `json:"partnerDown,omitempty"`
	Declaration int64 `json:"declaration,omitempty"`
	// DeclaredDown is the number of the declaration that this server does not run, at the partner: see dhcppair.Machine.
	DeclaredDown int64 `json:"declaredDown,omitempty"`
}

// Zone is the target of updates of the names of clients. It is in ServerUnit.
type Zone struct {
	ID int64 `json:"id"`
	// Name is absolute, in lower case, with the final dot. V6 is true for a target of the names of clients of DHCPv6.
	Name string `json:"name"`
	V6   bool   `json:"v6,omitempty"`
	// Primary and Secondary are the DNS servers that accept updates.
	Primary   netip.Addr `json:"primary"`
	Secondary netip.Addr `json:"secondary,omitzero"`
	// KeyName, KeyAlgorithm and KeySecret sign the updates by TSIG, in the form of messages: absolute names in lower case. They are empty
	// for updates that are not signed.
	KeyName      string `json:"keyName,omitempty"`
	KeyAlgorithm string `json:"keyAlgorithm,omitempty"`
	KeySecret    Hex    `json:"keySecret,omitempty"`
}

// Order is an action on an address of the network. The server performs each order once, and reports it as an event with the id.
type Order struct {
	ID      int64      `json:"id"`
	Address netip.Addr `json:"address"`
	Action  string     `json:"action"`
	// Start is the beginning of the lease that EndLease ends, in Unix seconds: a late order never ends the lease of another client. 0 means
	// any lease.
	Start int64 `json:"start,omitempty"`
	// Lease is the lease that RestoreLease gives to the server.
	Lease *RestoredLease `json:"lease,omitempty"`
}

// RestoredLease is a lease that another server has granted. Times are in Unix seconds.
type RestoredLease struct {
	// PrefixLength is the length of a delegated prefix; 0 for an address.
	PrefixLength int `json:"prefixLength,omitempty"`
	// Start is the time of the last request of the client, and Expires the end. InfiniteTime means that there is no end.
	Start   int64 `json:"start"`
	Expires int64 `json:"expires"`
	// Abandoned is true for an address that must not be leased until Expires. It has no client.
	Abandoned bool `json:"abandoned,omitempty"`
	// HardwareType, Hardware, ClientID, DUID and IAID identify the client.
	HardwareType uint8  `json:"hardwareType,omitempty"`
	Hardware     Hex    `json:"hardware,omitempty"`
	ClientID     Hex    `json:"clientId,omitempty"`
	DUID         Hex    `json:"duid,omitempty"`
	IAID         uint32 `json:"iaid,omitempty"`
	HostName     string `json:"hostName,omitempty"`
	// CircuitID and RemoteID are those of the relay, and VendorClass is that of the client.
	CircuitID   Hex `json:"circuitId,omitempty"`
	RemoteID    Hex `json:"remoteId,omitempty"`
	VendorClass Hex `json:"vendorClass,omitempty"`
}

// Identity returns the identity of the client (Identity, Identity6); empty for an abandoned address.
func (l *RestoredLease) Identity(v6 bool) string {
	switch {
	case l.Abandoned:
		return ""
	case v6:
		return Identity6(l.PrefixLength > 0, l.IAID, l.DUID)
	}
	return Identity(l.HardwareType, l.Hardware, l.ClientID)
}

// Actions of an Order: EndLease ends the lease of the address. The address is in quarantine until the end that the client knows, and the
// client gets a NAK at its next renewal. ClearAddress makes an abandoned address free. RestoreLease leases the address to the client of the
// lease, unless the server has a newer lease of the address.
const (
	EndLease     = "endLease"
	ClearAddress = "clearAddress"
	RestoreLease = "restoreLease"
)

// Hex is a sequence of octets, which is encoded as hexadecimal digits.
type Hex []byte

// MarshalText implements encoding.TextMarshaler.
func (h Hex) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, h), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (h *Hex) UnmarshalText(text []byte) (err error) {
	*h, err = hex.AppendDecode(nil, text)
	return err
}

func (h Hex) String() string { return hex.EncodeToString(h) }

func (Server) letter() byte      { return 'S' }
func (Network) letter() byte     { return 'N' }
func (Pool) letter() byte        { return 'P' }
func (Reservation) letter() byte { return 'R' }
func (Class) letter() byte       { return 'C' }
func (Subclass) letter() byte    { return 'U' }
func (MACPool) letter() byte     { return 'M' }
func (MACAddress) letter() byte  { return 'A' }
func (Option) letter() byte      { return 'O' }
func (Service) letter() byte     { return 'V' }
func (Pair) letter() byte        { return 'F' }
func (Zone) letter() byte        { return 'Z' }
func (Order) letter() byte       { return 'Q' }
