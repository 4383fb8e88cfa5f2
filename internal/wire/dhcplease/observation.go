package dhcplease

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"unicode/utf8"

	"portolan/internal/base/problem"
)

// Observations is the kind of the records about clients that got no address and about other DHCP servers. Each record is an Observation in
// JSON. The oldest records are dropped while the manager cannot be reached.
const Observations = "dhcp-observations"

// Observation contains the events of a server since its last observation.
type Observation struct {
	// Refused are the last clients without an answer, or with a NAK. Counts are the numbers of such messages.
	Refused []Refused      `json:"refused,omitempty"`
	Counts  []RefusedCount `json:"counts,omitempty"`
	// Others are DHCP servers other than this one.
	Others []OtherServer `json:"others,omitempty"`
	// Names are notices about the names of clients in DNS.
	Names []NameNotice `json:"names,omitempty"`
	// Clones are clients whose identifier several machines use.
	Clones []Clone `json:"clones,omitempty"`
	// ClockSteps are the steps of the clock of the machine.
	ClockSteps []ClockStep `json:"clockSteps,omitempty"`
}

// Clone is a client whose lease two machines renew in turn: they have one client identifier or DUID, and get one address.
type Clone struct {
	Network int64      `json:"network"`
	Address netip.Addr `json:"address"`
	// ClientID or DUID is set, in hexadecimal digits. MACs are the hardware addresses.
	ClientID string    `json:"clientId,omitempty"`
	DUID     string    `json:"duid,omitempty"`
	MACs     [2]string `json:"macs"`
}

// ClockStep is a step of the clock by a number of seconds, less than 0 for one into the past. At is the time after it, in Unix seconds.
type ClockStep struct {
	Seconds int64 `json:"seconds"`
	At      int64 `json:"at"`
}

// Limits of an observation.
const (
	MaxRefused = 100
	maxCounts  = 1000
	maxOthers  = 100
	maxNames   = 100
	maxClones  = 100
	// MaxClockSteps is the maximum number of steps of the clock.
	MaxClockSteps = 10
	maxReason     = 64
	// maxMessages is the maximum number of messages: sums of many observations do not overflow.
	maxMessages = 1 << 40
)

// Refused is a client that was refused for a reason.
type Refused struct {
	// Network is the id of the network of the client; 0 if no served network contains it.
	Network int64  `json:"network,omitempty"`
	Reason  string `json:"reason"`
	// Message is the type of the last message.
	Message string `json:"message"`
	// Count is the number of messages, and First and Last are their times in Unix seconds by the clock of the server.
	Count int64 `json:"count"`
	First int64 `json:"first"`
	Last  int64 `json:"last"`
	// MAC, ClientID, HostName, CircuitID, RemoteID and VendorClass are those of Lease. ClientID is the DUID of a client of DHCPv6.
	MAC         string `json:"mac,omitempty"`
	ClientID    string `json:"clientId,omitempty"`
	HostName    string `json:"hostName,omitempty"`
	CircuitID   string `json:"circuitId,omitempty"`
	RemoteID    string `json:"remoteId,omitempty"`
	VendorClass string `json:"vendorClass,omitempty"`
	// Relay is the address of the relay, and Requested the address that the client asked for.
	Relay     netip.Addr `json:"relay,omitzero"`
	Requested netip.Addr `json:"requested,omitzero"`
}

// RefusedCount is a number of messages that were refused for a reason. Network is 0 if it is not known.
type RefusedCount struct {
	Network int64  `json:"network,omitempty"`
	Reason  string `json:"reason"`
	Count   int64  `json:"count"`
}

// OtherServer is a DHCP server that answers clients in a network. Network is 0 if it is not known.
type OtherServer struct {
	Network int64 `json:"network,omitempty"`
	// Address is the server identifier or the source of the message, DUID that of a server of DHCPv6, and MAC its hardware address, if the
	// server heard it itself.
	Address netip.Addr `json:"address,omitzero"`
	DUID    string     `json:"duid,omitempty"`
	MAC     string     `json:"mac,omitempty"`
	// Message is the type of the message: OFFER or ACK of the other server, or REQUEST of a client that chose it.
	Message string `json:"message"`
	// Last is the time in Unix seconds.
	Last int64 `json:"last"`
}

// The kinds of notices about names: the servers of a zone do not answer, and answer again; another client has a name, and a name was
// refused.
const (
	ZoneDelayed  = "DELAYED"
	ZoneResumed  = "RESUMED"
	NameConflict = "CONFLICT"
	NameRefused  = "REFUSED"
)

// NameNotice is a notice about the names of clients in a zone. Name and Address are set for those about a name.
type NameNotice struct {
	Kind    string     `json:"kind"`
	Zone    string     `json:"zone"`
	Name    string     `json:"name,omitempty"`
	Address netip.Addr `json:"address,omitzero"`
	Reason  string     `json:"reason,omitempty"`
}

// check returns an error if a notice is invalid.
func (n NameNotice) check() error {
	switch n.Kind {
	case ZoneDelayed, ZoneResumed:
	case NameConflict, NameRefused:
		if n.Name == "" || !n.Address.IsValid() {
			return errors.New("has no name or no address")
		}
	default:
		return errors.New("has an unknown kind")
	}
	if n.Zone == "" {
		return errors.New("has no zone")
	}
	return checkTexts(n.Zone, n.Name, n.Reason)
}

// Check returns a problem if the observation is invalid.
func (o Observation) Check() error {
	if len(o.Refused) > MaxRefused || len(o.Counts) > maxCounts || len(o.Others) > maxOthers {
		return problem.Invalid("refused", "an observation has at most %d clients, %d numbers and %d servers", MaxRefused, maxCounts, maxOthers)
	}
	for i, r := range o.Refused {
		if err := checkTexts(r.Message, r.MAC, r.ClientID, r.HostName, r.CircuitID, r.RemoteID, r.VendorClass); err != nil {
			return problem.Invalid(fmt.Sprintf("refused[%d]", i), "%v", err)
		}
		if !isDigits(r.ClientID) {
			return problem.Invalid(fmt.Sprintf("refused[%d].clientId", i), "is not a list of octets in hexadecimal digits")
		}
		if !isReason(r.Reason) || r.Count < 1 || r.Count > maxMessages || r.Network < 0 || r.First < 0 || r.Last < r.First {
			return problem.Invalid(fmt.Sprintf("refused[%d]", i), "has an invalid reason, number or time")
		}
	}
	for i, c := range o.Counts {
		if !isReason(c.Reason) || c.Count < 1 || c.Count > maxMessages || c.Network < 0 {
			return problem.Invalid(fmt.Sprintf("counts[%d]", i), "has an invalid reason or number")
		}
	}
	if len(o.Names) > maxNames {
		return problem.Invalid("names", "an observation has at most %d notices about names", maxNames)
	}
	if len(o.Clones) > maxClones || len(o.ClockSteps) > MaxClockSteps {
		return problem.Invalid("clones", "an observation has at most %d clones and %d steps of the clock", maxClones, MaxClockSteps)
	}
	for i, c := range o.Clones {
		err := checkTexts(c.ClientID, c.DUID, c.MACs[0], c.MACs[1])
		switch {
		case err != nil:
		case !c.Address.IsValid() || c.Network < 0:
			err = errors.New("has no address, or an invalid network")
		case !isDigits(c.ClientID) || !isDigits(c.DUID) || !isDigits(c.MACs[0]) || !isDigits(c.MACs[1]) || c.ClientID+c.DUID == "":
			err = errors.New("has no identifier, or one that is not in hexadecimal digits")
		}
		if err != nil {
			return problem.Invalid(fmt.Sprintf("clones[%d]", i), "%v", err)
		}
	}
	for i, n := range o.Names {
		if err := n.check(); err != nil {
			return problem.Invalid(fmt.Sprintf("names[%d]", i), "%v", err)
		}
	}
	for i, s := range o.Others {
		if err := checkTexts(s.DUID, s.MAC, s.Message); err != nil {
			return problem.Invalid(fmt.Sprintf("others[%d]", i), "%v", err)
		}
		if !isDigits(s.DUID) {
			return problem.Invalid(fmt.Sprintf("others[%d].duid", i), "is not a list of octets in hexadecimal digits")
		}
		if !s.Address.IsValid() && s.DUID == "" || s.Network < 0 || s.Last < 0 {
			return problem.Invalid(fmt.Sprintf("others[%d]", i), "has no address, or an invalid time")
		}
	}
	return nil
}

// isDigits reports whether a text contains octets in hexadecimal digits. It may be empty.
func isDigits(text string) bool {
	_, err := hex.DecodeString(text)
	return err == nil
}

// isReason reports whether a text is a reason: lower-case words.
func isReason(text string) bool {
	for _, c := range text {
		if c != '-' && (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return text != "" && len(text) <= maxReason
}

func checkTexts(all ...string) error {
	for _, text := range all {
		if len(text) > maxIdentifier || !utf8.ValidString(text) {
			return fmt.Errorf("a text has %d octets, more than %d, or is not UTF-8", len(text), maxIdentifier)
		}
		for _, c := range text {
			if c == 0 {
				return fmt.Errorf("a text contains a NUL")
			}
		}
	}
	return nil
}
