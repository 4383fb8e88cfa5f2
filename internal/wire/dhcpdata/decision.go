package dhcpdata

import (
	"fmt"
	"net/netip"
)

// The types of DHCPv4 messages.
const (
	Discover uint8 = iota + 1
	Offer
	Request
	Decline
	Ack
	Nak
	Release
	Inform
)

// BOOTP is the Reply of a decision that answers a BOOTP request. It is not a message type.
const BOOTP uint8 = 255

// Action is the change of the leases that a decision requires.
type Action uint8

// The actions. ActOffer holds the address for the client. ActCommit leases it: the lease is stored before the reply is sent. ActRenew sends
// the rest of the lease and stores nothing. ActWithdraw drops the offer to the client. ActDecline abandons the address, and ActRelease ends
// its lease.
const (
	ActNothing Action = iota
	ActOffer
	ActCommit
	ActRenew
	ActWithdraw
	ActDecline
	ActRelease
)

// Reason is the reason for a missing reply or a NAK. Refused clients are counted by it.
type Reason string

// The reasons. docs/dhcp.md lists them.
const (
	Served            Reason = ""
	NoNetwork         Reason = "no-network"
	BadMessage        Reason = "bad-message"
	OtherServer       Reason = "other-server"
	UnknownVSS        Reason = "unknown-vss"
	DeniedPool        Reason = "denied-mac-pool"
	DeniedClass       Reason = "denied-class"
	UnknownClient     Reason = "unknown-client"
	BootingOff        Reason = "booting-off"
	BOOTPOff          Reason = "bootp-off"
	MinSecs           Reason = "min-secs"
	ClassLimit        Reason = "class-lease-limit"
	Exhausted         Reason = "no-free-address"
	NoRange           Reason = "no-range"
	WrongNetwork      Reason = "wrong-network"
	NotLeased         Reason = "not-leased"
	LeasedToOther     Reason = "leased-to-other"
	ReservedForOther  Reason = "reserved-for-other"
	HasReservation    Reason = "has-reservation"
	NotServedAddress  Reason = "address-not-served"
	EndedByOperator   Reason = "ended-by-operator"
	DeclinesOff       Reason = "declines-off"
	NotHolder         Reason = "not-holder"
	IPv6OnlyPreferred Reason = "ipv6-only-preferred"
	NoAutoConfigure   Reason = "no-address-auto-configure"
	OwnedByPartner    Reason = "owned-by-partner"
)

// Sent is an option of a reply with the object that it comes from.
type Sent struct {
	Code  uint8
	Name  string
	Value []byte
	From  Source
}

// Step is a step of an explanation.
type Step struct {
	// Rule names the rule that was examined, and Result states its result.
	Rule   string `json:"rule"`
	Result string `json:"result"`
	// From is the object that decided, if there is one.
	From Source `json:"from,omitzero"`
}

// Decision is the result of Decide.
type Decision struct {
	// Reply is the message type of the reply; 0 if there is none. Reason is the reason for no reply, for a NAK, or for a reply without an
	// address.
	Reply  uint8
	Action Action
	Reason Reason
	// Network, Pool and Reservation are the ids of the objects that the address comes from; 0 if there are none.
	Network, Pool, Reservation int64
	// Address is the address of the client; not valid if the reply has none.
	Address netip.Addr
	// Client is the identity that holds the lease.
	Client string
	// LeaseTime is in seconds; Infinite for a lease without an end. Expires and Start are the times of the lease in Unix seconds.
	LeaseTime      uint32
	Start, Expires int64
	// Wanted is the end of the lease without the limit of a failover pair.
	Wanted int64
	// Secs is the time in seconds for which the client has tried.
	Secs uint32
	// Ends are the addresses of other leases of the client that end with this action.
	Ends []netip.Addr
	// Counted are the ids of the classes and subclasses whose limit the lease counts for.
	Counted []int64
	// Probe requires that the address is probed before the offer. ProbeSeconds is the time to wait for an answer.
	Probe        bool
	ProbeSeconds uint32
	// AbandonSeconds is the time that a declined address, or one that answered the probe, is not leased.
	AbandonSeconds uint32
	// ServerID is the address that the server identifies itself by.
	ServerID netip.Addr
	// Options are the options of the reply in the order of the request, without the message type.
	Options []Sent
	// NextServer, File and ServerName are siaddr, file and sname.
	NextServer netip.Addr
	File       string
	ServerName string
	// Broadcast requires a broadcast reply on the link.
	Broadcast bool
	// Classes are the names of the classes of the client. HostName is the name that the client sends, cleaned.
	Classes  []string
	HostName string
	// Names are the records in DNS for the address; nil if there are none.
	Names *Names
	// Steps explain the decision, if Facts.Explain is set.
	Steps []Step
}

// Infinite is the LeaseTime of a lease without an end.
const Infinite uint32 = 0xffffffff

// decider holds the state of one decision.
type decider struct {
	c      *Content
	f      *Facts
	leases Leases
	now    int64
	d      *Decision

	// candidates are the networks that the client may receive an address of, the most suitable one first.
	candidates []*network
	clientID   []byte
	requested  netip.Addr
	serverID   netip.Addr // of the request
	member     member
	classes    []matched
	requests   [256]bool
	fqdn       clientFQDN
	named      named
	// scopes is the memory for the layers of a usual decision, and used the number of its elements in use.
	scopes [4 * usualLayers]*scope
	used   int
}

// matched is a class of the client, with its subclass if it has one.
type matched struct {
	*class
	subclass *subclass
}

// note adds a step to the explanation.
func (d *decider) note(from Source, rule, format string, args ...any) {
	if d.f.Explain {
		d.d.Steps = append(d.d.Steps, Step{Rule: rule, Result: fmt.Sprintf(format, args...), From: from})
	}
}

// refuse ends the decision without a reply.
func (d *decider) refuse(reason Reason, from Source) {
	d.d.Reply, d.d.Action, d.d.Reason, d.d.Address = 0, ActNothing, reason, netip.Addr{}
	d.note(from, "reply", "no reply: %s", reason)
}

// company describes the networks of the link of a network, for explanations.
func (n *network) company(count int) string {
	if n.Shared == 0 {
		return "the network of the link"
	}
	return fmt.Sprintf("one of %d networks of the shared network %s", count, n.SharedName)
}

func (n *network) source() Source { return Source{Level: AtNetwork, ID: n.ID, Name: n.Name} }
func (p *pool) source() Source    { return Source{Level: AtRange, ID: p.ID, Name: p.Name} }
func (r *reservation) source() Source {
	return Source{Level: AtAddress, ID: r.ID, Name: r.Address.String()}
}

// layers is the list of the scopes in effect for a client, the most specific one first.
type layers []*scope

// service returns a service option; nil if none is set.
func (l layers) service(name string) *setting {
	for _, one := range l {
		if s := one.services[name]; s != nil {
			return s
		}
	}
	return nil
}

func (l layers) flag(name string, unset bool) bool {
	if s := l.service(name); s != nil {
		return s.flag
	}
	return unset
}

func (l layers) number(name string, unset uint32) uint32 {
	if s := l.service(name); s != nil {
		return s.number
	}
	return unset
}

// option returns a client option; nil if none is set.
func (l layers) option(key optionKey) *Option {
	for _, one := range l {
		if o := one.options[key]; o != nil {
			return o
		}
	}
	return nil
}

// usualLayers is the usual number of scopes for an address.
const usualLayers = 4

// layers returns the scopes for an address of a network. p and r may be nil.
func (d *decider) layers(n *network, p *pool, r *reservation) layers {
	var all layers
	if d.used < len(d.scopes) {
		all = d.scopes[d.used : d.used : d.used+usualLayers]
		d.used += usualLayers
	}
	add := func(s *scope) {
		if s != nil {
			all = append(all, s)
		}
	}
	if r != nil {
		add(r.own)
	}
	add(d.member.own)
	for _, one := range d.classes {
		if one.subclass != nil {
			add(one.subclass.own)
		}
	}
	for _, one := range d.classes {
		add(one.own)
	}
	if d.member.pool != nil {
		add(d.member.pool.own)
	}
	if p != nil {
		add(p.scope)
	} else {
		add(n.scope)
	}
	return all
}
