package zonedata

import "net/netip"

// Settings are the settings of a server besides the data of its zones. Equal settings have equal bytes in JSON.
type Settings struct {
	// Views are in the order of matching: the first view that allows a client answers it.
	Views []View `json:"views"`
	Zones []Zone `json:"zones"`
	// Keys are the keys that messages may be signed with.
	Keys []SigningKey `json:"keys,omitempty"`
}

// SigningKey is a key that messages are signed with (RFC 8945).
type SigningKey struct {
	// Name is absolute, with the final dot, in lower case; so is Algorithm, such as hmac-sha256.
	Name      string `json:"name"`
	Algorithm string `json:"algorithm"`
	Secret    []byte `json:"secret"`
}

// View is a view of a server.
type View struct {
	ID   int64  `json:"id"`
	Name string `json:"name"`
	// Clients are the clients of the view; nil means all.
	Clients []Match `json:"clients,omitempty"`
	// Recursion sets how other names are resolved; nil if no role sets it.
	Recursion *Recursion `json:"recursion,omitempty"`
	// Policies are the response policy zones of the view. The first one that matches a query decides.
	Policies []Policy `json:"policies,omitempty"`
}

// Recursion sets how a server resolves names outside of its zones.
type Recursion struct {
	// Clients are the clients that may use recursion; nil means all clients of the view.
	Clients []Match `json:"clients,omitempty"`
	// Forwarders are the servers that queries are forwarded to. If there are none, the server resolves names itself, or by its own
	// configuration.
	Forwarders []netip.AddrPort `json:"forwarders,omitempty"`
	// Only means that no other server is asked if the forwarders do not answer.
	Only bool `json:"only,omitempty"`
	// Closed means that only the names in Zones are resolved, because no role allows others.
	Closed bool `json:"closed,omitempty"`
	// Zones are forwarded to other servers.
	Zones []Forwarded `json:"zones,omitempty"`
}

// Forwarded is a zone whose names are resolved by other servers.
type Forwarded struct {
	// Name is absolute, with the final dot, in lower case.
	Name string `json:"name"`
	// To are the servers that are asked. Only means that no others are asked if these do not answer. Stub means that they are authoritative
	// for the zone.
	To   []netip.AddrPort `json:"to"`
	Only bool             `json:"only,omitempty"`
	Stub bool             `json:"stub,omitempty"`
}

// Policy is a response policy zone.
type Policy struct {
	// Zone is the ID of its zone in Settings.Zones.
	Zone string `json:"zone"`
	// Override replaces the actions of its records, unless empty: ALLOWLIST, BLOCKLIST, BLACKHOLE or REDIRECT. REDIRECT redirects to
	// Target, a name or an address.
	Override string `json:"override,omitempty"`
	Target   string `json:"target,omitempty"`
}

// Zone is a zone of a server.
type Zone struct {
	// ID identifies the zone in this database. View is the id of its view.
	ID   string `json:"id"`
	View int64  `json:"view"`
	// Name is absolute, with the final dot, in lower case.
	Name string `json:"name"`
	// Query lists the clients that may query the zone; nil means all. Transfer lists those that may transfer it; nil means none.
	Query    []Match `json:"query,omitempty"`
	Transfer []Match `json:"transfer,omitempty"`
	// Update lists the clients that may change the zone by dynamic update (RFC 2136); nil means none.
	Update []Match `json:"update,omitempty"`
	// Notify are the servers that are notified of changes (RFC 1996).
	Notify []netip.AddrPort `json:"notify,omitempty"`
	// Copied means that the zone is a copy from other servers. Primaries are the servers that it is copied from, and that may send NOTIFY.
	Copied    bool         `json:"copied,omitempty"`
	Primaries []netip.Addr `json:"primaries,omitempty"`
	// Void means that the content of the zone is currently unknown: queries are answered with SERVFAIL.
	Void bool `json:"void,omitempty"`
	// Signing sets how the zone is signed; nil if it is not signed.
	Signing *Signing `json:"signing,omitempty"`
}

// Signing sets how the server that answers for a zone signs it (RFC 4035). The DNSKEY records are part of the zone's data.
type Signing struct {
	// Keys are the keys that sign.
	Keys []ZoneKey `json:"keys"`
	// Validity is the validity of a signature, and Renewal the time before its end at which it is renewed, both in seconds.
	Validity int64 `json:"validity"`
	Renewal  int64 `json:"renewal"`
	// Hashed proves nonexistence with NSEC3 records (RFC 5155), without salt and additional iterations, instead of NSEC records.
	Hashed bool `json:"hashed,omitempty"`
}

// ZoneKey is a key that signs records of a zone.
type ZoneKey struct {
	// Flags are the flags of its DNSKEY record: 257 for a key-signing key, 256 for a zone-signing key.
	Flags     uint16 `json:"flags"`
	Algorithm uint8  `json:"algorithm"`
	// Public has the format of a DNSKEY record, Private that of a BIND key file.
	Public  string `json:"public"`
	Private string `json:"private"`
}

// Match is an element of a list of clients. The first element that matches a client decides.
type Match struct {
	// Not refuses the clients that match.
	Not bool `json:"not,omitempty"`
	// Prefix matches the client's address, Key the name of the key that the message is signed with, and List the clients that it allows. An
	// element without any of these matches no client.
	Prefix netip.Prefix `json:"prefix,omitzero"`
	Key    string       `json:"key,omitempty"`
	List   []Match      `json:"list,omitempty"`
}

// Client is the sender of a message.
type Client struct {
	Address netip.Addr
	// Key is the name of the SigningKey that the message is signed with; empty if it is not signed.
	Key string
}

// Allows reports whether a list allows a client. For a nil list it returns otherwise.
func Allows(list []Match, client Client, otherwise bool) bool {
	if list == nil {
		return otherwise
	}
	client.Address = client.Address.Unmap()
	for _, m := range list {
		// A nested list that refuses the client does not match, as in BIND.
		if m.Prefix.IsValid() && m.Prefix.Contains(client.Address) || m.Key != "" && m.Key == client.Key ||
			m.List != nil && Allows(m.List, client, false) {
			return !m.Not
		}
	}
	return false
}
