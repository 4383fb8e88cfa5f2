package dhcppair

import (
	"net/netip"
)

// Phase is the stored state of a server.
type Phase string

// The phases. A server that recovers leases nothing until it has the records of its partner.
const (
	Operating   Phase = ""
	PartnerDown Phase = "partner-down"
	Recover     Phase = "recover"
)

// The states of a pair as they are shown (RFC 8156 section 8.2).
const (
	StateStartup       = "STARTUP"
	StateWaiting       = "WAITING-FOR-PARTNER" // the pair is new, and its servers have not met
	StateNormal        = "NORMAL"
	StateInterrupted   = "COMMUNICATIONS-INTERRUPTED"
	StateResolving     = "RESOLUTION-INTERRUPTED" // connected, and the records are exchanged
	StatePartnerDown   = "PARTNER-DOWN"
	StateRecover       = "RECOVER"
	StateRecoverWait   = "RECOVER-WAIT"
	StateRecoverDone   = "RECOVER-DONE"
	startupSeconds     = 3
	defaultUnacked     = 2000
	maxBindingsMessage = 200
)

// Config are the settings of a pair. MCLT and Override are in seconds.
type Config struct {
	Side     Side
	MCLT     int64
	Split    int
	Override int64
	// MaxUnacked is the maximum number of bindings that are sent and not acknowledged; 0 means the default.
	MaxUnacked int
}

// Status is the stored state of a server in a pair. Known is true after the servers have met once.
type Status struct {
	Known bool  `json:"known,omitempty"`
	Phase Phase `json:"phase,omitempty"`
	// Since is the start of the phase. Lost is true if the server has lost records: it waits for MCLT before it leases anything.
	Since int64 `json:"since,omitempty"`
	Lost  bool  `json:"lost,omitempty"`
	// Declaration and Downed are the numbers of the last declarations of an operator that were followed: that the partner is down, and that
	// this server was declared down at the partner.
	Declaration int64 `json:"declaration,omitempty"`
	Downed      int64 `json:"downed,omitempty"`
}

// Hello is the first message of each side.
type Hello struct {
	Version int    `json:"version"`
	Side    Side   `json:"side"`
	Journal string `json:"journal"`
	Known   bool   `json:"known,omitempty"`
	Phase   Phase  `json:"phase,omitempty"`
	Lost    bool   `json:"lost,omitempty"`
	MCLT    int64  `json:"mclt"`
	// Clock is the time of the sender in Unix milliseconds, to show the difference.
	Clock int64 `json:"clock"`
}

// Asked is a question of the owner whether an address is free, or the answer. Version is the version of the record of the owner. Rest is
// the time after which it can ask again.
type Asked struct {
	Address netip.Addr `json:"address"`
	Version uint32     `json:"version"`
	Yes     bool       `json:"yes,omitempty"`
	Rest    int64      `json:"rest,omitempty"`
}

// Ack acknowledges the bindings of a message. Rejected are the positions of those that the receiver has not accepted.
type Ack struct {
	Sequence uint64 `json:"sequence"`
	Rejected []int  `json:"rejected,omitempty"`
}

// Message is a message between the servers of a pair.
type Message struct {
	Hello    *Hello    `json:"hello,omitempty"`
	Sequence uint64    `json:"sequence,omitempty"`
	Bindings []Binding `json:"bindings,omitempty"`
	Ack      *Ack      `json:"ack,omitempty"`
	Ask      []Asked   `json:"ask,omitempty"`
	Answer   []Asked   `json:"answer,omitempty"`
	// Done reports that all records were sent and acknowledged. Recovered reports that the server is ready to serve, and Normal that the
	// receiver may.
	Done      bool `json:"done,omitempty"`
	Recovered bool `json:"recovered,omitempty"`
	Normal    bool `json:"normal,omitempty"`
	// Need are networks whose addresses of the sender are used up. Clock is the time of the sender in Unix milliseconds.
	Need  []int64 `json:"need,omitempty"`
	Clock int64   `json:"clock,omitempty"`
}

// Records are the records of a server.
type Records interface {
	// Record returns the record of an address, as NewRecord if there is none.
	Record(a netip.Addr) Record
	// Data describes the client of an address.
	Data(a netip.Addr) []byte
}

// Change is a change of a record. Data is the description of a client that replaces that of the record, nil otherwise. Freed is true if the
// address became free by agreement, Conflict if both servers had leased it to different clients: the primary decides and reports it. Rival
// is then the description of the client of the partner if it has lost the address.
type Change struct {
	Address  netip.Addr
	Record   Record
	Data     []byte
	Rival    []byte
	Freed    bool
	Conflict bool
	// Unstored is true for a change that need not be stored: without it the server is only more careful.
	Unstored bool
}

// Effects are the tasks of the caller. It stores the changes and the status on the disk first, and then sends the messages.
type Effects struct {
	Changes  []Change
	Status   *Status
	Messages []Message
	// All requires that the caller calls MarkAll with all addresses of the pair.
	All bool
	// Need are networks whose addresses the partner has used up.
	Need []int64
}

// Machine is the state of a server in a pair. It is not safe for concurrent use.
type Machine struct {
	config  Config
	status  Status
	journal string
	started int64
	// leases is true if the server had leases of the pair's networks when it started.
	leases bool

	// The following fields are those of a connection. own is the phase of the server in its hello.
	connected, sentDone, gotDone, sentRecovered, gotRecovered, normal, marking bool
	recovers, theyRecover                                                      bool
	peer                                                                       *Hello
	// synced is the journal of the partner that has all records except the dirty ones.
	synced       string
	wasConnected bool // the servers have been connected since the start

	// dirty are the addresses whose records the partner lacks, queue contains them in order. sent are those that wait for the
	// acknowledgement, and batches the messages by sequence number.
	dirty    map[netip.Addr]bool
	queue    []netip.Addr
	sent     map[netip.Addr]uint64
	batches  map[uint64][]sentBinding
	sequence uint64
	// wanted are the addresses to ask about, with the time; asked are those that were asked about.
	wanted map[netip.Addr]int64
	asked  map[netip.Addr]bool
}

// sentBinding is a binding that waits for its acknowledgement.
type sentBinding struct {
	address netip.Addr
	version uint32
	horizon int64
}

// New returns the machine of a server that starts. journal identifies its disk, leases reports that it has leases of the pair's networks,
// and damaged that some of its records are lost.
func New(c Config, s Status, journal string, now int64, leases, damaged bool) *Machine {
	if c.MaxUnacked <= 0 {
		c.MaxUnacked = defaultUnacked
	}
	m := &Machine{config: c, status: s, journal: journal, started: now, leases: leases, dirty: map[netip.Addr]bool{},
		wanted: map[netip.Addr]int64{}}
	if damaged {
		m.status.Phase, m.status.Since, m.status.Lost = Recover, now, true
	}
	m.reset()
	return m
}

// Configure replaces the settings. The side of a server does not change.
func (m *Machine) Configure(c Config) {
	if c.MaxUnacked <= 0 {
		c.MaxUnacked = defaultUnacked
	}
	m.config = c
}

// Config returns the settings.
func (m *Machine) Config() Config { return m.config }

// Status returns what has to be stored.
func (m *Machine) Status() Status { return m.status }

// reset ends the state of a connection.
func (m *Machine) reset() {
	m.connected, m.sentDone, m.gotDone, m.sentRecovered, m.gotRecovered = false, false, false, false, false
	m.normal, m.marking, m.recovers, m.theyRecover, m.peer = false, false, false, false, nil
	for a := range m.sent {
		m.Mark(a)
	}
	m.sent, m.batches = map[netip.Addr]uint64{}, map[uint64][]sentBinding{}
	for a := range m.asked {
		m.wanted[a] = 0
	}
	m.asked = map[netip.Addr]bool{}
}

// Connected starts a connection, and returns the hello. clock is the time in Unix milliseconds.
func (m *Machine) Connected(clock int64) Message {
	m.reset()
	m.connected = true
	s := m.status
	return Message{Hello: &Hello{Version: 1, Side: m.config.Side, Journal: m.journal, Known: s.Known, Phase: s.Phase, Lost: s.Lost,
		MCLT: m.config.MCLT, Clock: clock}}
}

// Disconnected ends a connection.
func (m *Machine) Disconnected() { m.reset() }

// IsConnected reports whether the partner has sent its hello.
func (m *Machine) IsConnected() bool { return m.peer != nil }

// IsNormal reports whether both servers are connected and have the records of each other.
func (m *Machine) IsNormal() bool { return m.normal }

// Serving reports whether the server may lease addresses.
func (m *Machine) Serving(now int64) bool {
	switch m.status.Phase {
	case Recover:
		return false
	case PartnerDown:
		return !m.status.Lost || m.status.Since+m.config.MCLT <= now
	case Operating:
	}
	switch {
	case !m.status.Known && !m.leases:
		return false
	case !m.wasConnected && now < m.started+startupSeconds:
		return false
	}
	return true
}

// State returns the state to show.
func (m *Machine) State(now int64) string {
	switch {
	case m.status.Phase == PartnerDown:
		return StatePartnerDown
	case m.status.Phase == Recover && m.sentRecovered:
		return StateRecoverDone
	case m.status.Phase == Recover && m.sentDone && m.gotDone:
		return StateRecoverWait
	case m.status.Phase == Recover:
		return StateRecover
	case m.normal:
		return StateNormal
	case m.peer != nil:
		return StateResolving
	case !m.status.Known && !m.leases:
		return StateWaiting
	case !m.wasConnected && now < m.started+startupSeconds:
		return StateStartup
	}
	return StateInterrupted
}

// Declare follows the declaration of an operator that the partner is down, unless the servers are connected. It reports whether the status
// changed.
func (m *Machine) Declare(number, now int64) bool {
	if number <= m.status.Declaration {
		return false
	}
	m.status.Declaration = number
	if m.connected && m.peer != nil || m.status.Phase == PartnerDown {
		return true
	}
	lost := m.status.Phase == Recover && m.status.Lost || !m.status.Known && !m.leases
	m.status.Known, m.status.Phase, m.status.Since, m.status.Lost = true, PartnerDown, now, lost
	return true
}

// FollowDeclaration follows the declaration at the partner that this server is down: it leases nothing until it has the records of the
// partner.
func (m *Machine) FollowDeclaration(number, now int64) bool {
	if number <= m.status.Downed {
		return false
	}
	m.status.Downed = number
	if m.connected && m.peer != nil || m.status.Phase == Recover {
		return true
	}
	m.status.Phase, m.status.Since = Recover, now
	return true
}

// Pending returns the number of records that the partner has not acknowledged.
func (m *Machine) Pending() int { return len(m.dirty) + len(m.sent) }

// Mark notes that the record of an address has changed, so that it is sent.
func (m *Machine) Mark(a netip.Addr) {
	if !m.dirty[a] {
		m.dirty[a] = true
		m.queue = append(m.queue, a)
	}
}

// MarkAll notes that all records have to be sent.
func (m *Machine) MarkAll(all []netip.Addr) {
	for _, a := range all {
		m.Mark(a)
	}
	m.marking = false
}

// NoteEnded notes that the lease of an address of this server has ended, so that the partner is asked whether it is free.
func (m *Machine) NoteEnded(a netip.Addr) {
	if _, known := m.wanted[a]; !known && !m.asked[a] {
		m.wanted[a] = 0
	}
}
