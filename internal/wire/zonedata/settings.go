package zonedata

import "net/netip"

// Settings are what a server is to know beside the data of its zones. They are the same bytes wherever they are the same.
type Settings struct {
	// Views are in the order in which a client is compared with them: the first that lets it in answers.
	Views []View `json:"views"`
	Zones []Zone `json:"zones"`
	// Keys are those that messages may be signed with.
	Keys []SigningKey `json:"keys,omitempty"`
}

// SigningKey is a key that messages are signed with (RFC 8945).
type SigningKey struct {
	// Name is absolute, with its last dot, in lower case; so is Algorithm, such as hmac-sha256.
	Name      string `json:"name"`
	Algorithm string `json:"algorithm"`
	Secret    []byte `json:"secret"`
}

// View is a view as a server serves it.
type View struct {
	ID   int64  `json:"id"`
	Name string `json:"name"`
	// Clients are those that the view is for; nil means all.
	Clients []Match `json:"clients,omitempty"`
	// Recursion is how names are answered that the server has no zone for; nil where no role says so.
	Recursion *Recursion `json:"recursion,omitempty"`
	// Policies are the response policy zones of the view: the first one that says something of a question decides.
	Policies []Policy `json:"policies,omitempty"`
}

// Recursion is how names are answered that a server has no zone for: by asking others.
type Recursion struct {
	// Clients are those that are answered; nil means all of the view.
	Clients []Match `json:"clients,omitempty"`
	// Forwarders are the servers that are asked; none where the server finds out by itself, or as it is set up.
	Forwarders []netip.AddrPort `json:"forwarders,omitempty"`
	// Only says that nobody else is asked where those do not answer.
	Only bool `json:"only,omitempty"`
	// Closed says that no names are answered but those of Zones: no role says that others are.
	Closed bool `json:"closed,omitempty"`
	// Zones are asked elsewhere.
	Zones []Forwarded `json:"zones,omitempty"`
}

// Forwarded is a zone whose names are asked elsewhere.
type Forwarded struct {
	// Name is absolute, with its last dot, in lower case.
	Name string `json:"name"`
	// To are the servers that are asked; Only says that nobody else is where those do not answer. Stub says that they answer for the zone.
	To   []netip.AddrPort `json:"to"`
	Only bool             `json:"only,omitempty"`
	Stub bool             `json:"stub,omitempty"`
}

// Policy is a response policy zone.
type Policy struct {
	// Zone is its ID among the zones.
	Zone string `json:"zone"`
	// Override, where it is not empty, is what is done instead of what its records say: ALLOWLIST, BLOCKLIST, BLACKHOLE or REDIRECT, that to
	// Target, a name or an address.
	Override string `json:"override,omitempty"`
	Target   string `json:"target,omitempty"`
}

// Zone is a zone as a server serves it.
type Zone struct {
	// ID names the zone in this database, View is the id of its view.
	ID   string `json:"id"`
	View int64  `json:"view"`
	// Name is absolute, with its last dot, in lower case.
	Name string `json:"name"`
	// Query and Transfer are who may ask, and who may have all of it; nil means all for the one, and nobody for the other.
	Query    []Match `json:"query,omitempty"`
	Transfer []Match `json:"transfer,omitempty"`
	// Update are who may change the zone by messages (RFC 2136); nil means nobody.
	Update []Match `json:"update,omitempty"`
	// Notify are the servers that are told when the zone has changed (RFC 1996).
	Notify []netip.AddrPort `json:"notify,omitempty"`
	// Copied says that others have made the zone. Primaries are the servers that it is copied from, which may say that it has changed.
	Copied    bool         `json:"copied,omitempty"`
	Primaries []netip.Addr `json:"primaries,omitempty"`
	// Void says that nobody knows just now what the zone holds: questions for it are answered with SERVFAIL.
	Void bool `json:"void,omitempty"`
	// Signing is how the zone is signed; nil where it is not.
	Signing *Signing `json:"signing,omitempty"`
}

// Signing is how a zone is signed where it is answered from (RFC 4035). Its DNSKEY records are part of its data.
type Signing struct {
	// Keys are those that sign.
	Keys []ZoneKey `json:"keys"`
	// Validity is for how long a signature holds, and Renewal how long before its end it is made anew, in seconds.
	Validity int64 `json:"validity"`
	Renewal  int64 `json:"renewal"`
	// Hashed has NSEC3 records say what is not there (RFC 5155), without salt, in one round; else NSEC records do.
	Hashed bool `json:"hashed,omitempty"`
}

// ZoneKey is a key that records of a zone are signed with.
type ZoneKey struct {
	// Flags are those of its DNSKEY record: 257 of a key that signs keys, 256 of one that signs the rest.
	Flags     uint16 `json:"flags"`
	Algorithm uint8  `json:"algorithm"`
	// Public is as in a DNSKEY record, Private as in a file of BIND.
	Public  string `json:"public"`
	Private string `json:"private"`
}

// Match is an element of a list of clients; the first element that a client matches decides.
type Match struct {
	// Not refuses those who match.
	Not bool `json:"not,omitempty"`
	// Prefix is where the client is; Key is the name of the key that it signs with; List is a list that lets it in. An element with none of
	// these matches nobody.
	Prefix netip.Prefix `json:"prefix,omitzero"`
	Key    string       `json:"key,omitempty"`
	List   []Match      `json:"list,omitempty"`
}

// Client is somebody who asks.
type Client struct {
	Address netip.Addr
	// Key is the name of the key that the message is signed with, as that of a SigningKey; empty where it is not.
	Key string
}

// Allows reports whether a list lets a client in. A list that is nil says nothing: otherwise is the answer then.
func Allows(list []Match, client Client, otherwise bool) bool {
	if list == nil {
		return otherwise
	}
	client.Address = client.Address.Unmap()
	for _, m := range list {
		// A list within a list that refuses the client is one that it does not match, as BIND has it.
		if m.Prefix.IsValid() && m.Prefix.Contains(client.Address) || m.Key != "" && m.Key == client.Key ||
			m.List != nil && Allows(m.List, client, false) {
			return !m.Not
		}
	}
	return false
}
