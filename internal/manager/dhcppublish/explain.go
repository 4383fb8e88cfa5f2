package dhcppublish

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
	"portolan/internal/manager/dhcp"
	"portolan/internal/wire/dhcpdata"
)

// Explanation is the answer of a server to a client, with the object that each part comes from.
type Explanation struct {
	// Server is the server that answers, and Network the network of the client.
	Server  ExplainedObject `json:"server"`
	Network ExplainedObject `json:"network"`
	// Planned reports whether the current settings were asked, not the deployed ones.
	Planned bool `json:"planned"`
	// Reply is OFFER, in DHCPv6 ADVERTISE, or null if the client gets no answer. Reason is the reason for no answer, or for no address.
	Reply  *string `json:"reply"`
	Reason *string `json:"reason"`
	// Address is the offered address; null if there is none. Range and Reservation are the ids of the objects that it comes from. Of a
	// delegated prefix, Address is the first address, and PrefixLength the length; PrefixLength is null for an address.
	Address      *string `json:"address"`
	PrefixLength *int64  `json:"prefixLength"`
	Range        *int64  `json:"range"`
	Reservation  *int64  `json:"reservation"`
	// LeaseTime is in seconds.
	LeaseTime *int64 `json:"leaseTime"`
	// Classes are the classes of the client.
	Classes []string `json:"classes"`
	// Options are the options of the answer.
	Options []ExplainedOption `json:"options"`
	// Steps are the rules that were examined, in order.
	Steps []ExplainedStep `json:"steps"`
}

// ExplainedObject is an object of an explanation.
type ExplainedObject struct {
	ID   int64  `json:"id"`
	Name string `json:"name"`
}

// ExplainedOption is an option of the answer: its value in hexadecimal digits, and the object that it is set at.
type ExplainedOption struct {
	Code  int            `json:"code"`
	Name  string         `json:"name"`
	Value string         `json:"value"`
	From  ExplainedPlace `json:"from"`
}

// ExplainedPlace is the object that a value is set at. Level is the kind of the object, or default.
type ExplainedPlace struct {
	Level string `json:"level"`
	ID    int64  `json:"id"`
	Name  string `json:"name"`
}

// ExplainedStep is a rule that was examined, with its result.
type ExplainedStep struct {
	Rule   string         `json:"rule"`
	Result string         `json:"result"`
	From   ExplainedPlace `json:"from"`
}

// placeOf returns a source for an explanation.
func placeOf(s dhcpdata.Source) ExplainedPlace { return ExplainedPlace{string(s.Level), s.ID, s.Name} }

// Explain returns what a client would get: by the same function as the server, over the same content, with the leases that the server has
// reported. It asks about a network that the caller sees. A relay or an option can select another network, which the caller must see as
// well.
func Explain(tx *store.Tx, a *resource.API, caller resource.Caller, q Question) (e Explanation, err error) {
	network, err := q.network(tx, a, caller)
	if err != nil {
		return e, err
	}
	e, in, err := explainIn(tx, a, network, q)
	if err != nil {
		return Explanation{}, err
	}
	if in != 0 && in != network.ID {
		q.Network = in
		if network, err = q.network(tx, a, caller); err == nil {
			e, _, err = explainIn(tx, a, network, q)
		}
	}
	if err == nil && e.Address != nil { // a network on the same link can have the address
		var holder *store.Resource
		holder, err = tx.Holding(network.Configuration, "networks", netip.MustParseAddr(*e.Address))
		if err == nil {
			_, err = a.Visible(tx, holder.ID, caller)
		} else if store.IsNotFound(err) { // the network is deployed, and deleted since
			err = nil
		}
	}
	if problem.IsNotFound(err) {
		err = problem.Query("network", "the relay, an option, or the address of the client leads to a network that you cannot see")
	}
	if err != nil {
		return Explanation{}, err
	}
	return e, nil
}

// explainIn is Explain for one network. in is the network of the client by the decision; 0 if there is none.
func explainIn(tx *store.Tx, a *resource.API, network *store.Resource, q Question) (e Explanation, in int64, err error) {
	v6 := network.Type == "IPv6Network"
	if q.Relay.IsValid() && q.Relay.Is6() != v6 {
		return e, 0, problem.Query("relay", "must be an %s address, not %s", family(v6), q.Relay)
	}
	if q.Prefix && !v6 {
		return e, 0, problem.Query("prefix", "must not be set for IPv4Network %d: only DHCPv6 delegates prefixes", network.ID)
	}
	if q.Requested.IsValid() && q.Requested.Is6() != v6 {
		return e, 0, problem.Query("requested", "must be an %s address, not %s", family(v6), q.Requested)
	}
	decide := q.decide
	if v6 {
		decide = q.decide6
	}
	answer, err := decide(network)
	if err != nil {
		return e, 0, err
	}
	server, units, err := unitsFor(tx, a, network, q.Planned)
	if err != nil {
		return e, 0, err
	}
	content, err := dhcpdata.Compile(units, nil)
	if err != nil {
		return e, 0, problem.BadRequest("InvalidDeploymentData", "the settings of server %s cannot be served: %v",
			problem.Describe(server.ID, server.Name), err)
	}
	leases := &reportedLeases{tx: tx, configuration: network.Configuration, v6: v6}
	if leases.pair, err = readPair(tx, a, content, server.ID, network.ID); err != nil {
		return e, 0, err
	}
	e = Explanation{Server: ExplainedObject{server.ID, server.Name}, Network: ExplainedObject{network.ID, network.Name}, Planned: q.Planned,
		Classes: []string{}, Options: []ExplainedOption{}, Steps: []ExplainedStep{}}
	in = answer(&e, content, leases, tx.Now().Unix())
	return e, in, leases.err
}

// answerer fills in an explanation with the decision on a message, and returns the network of the client.
type answerer func(e *Explanation, c *dhcpdata.Content, leases *reportedLeases, now int64) (network int64)

// decide returns the answer to a DISCOVER.
func (q Question) decide(network *store.Resource) (answerer, error) {
	facts, err := q.facts(network)
	return func(e *Explanation, c *dhcpdata.Content, leases *reportedLeases, now int64) int64 {
		d := dhcpdata.Decide(c, facts, leases, now)
		e.Classes = append(e.Classes, d.Classes...)
		if d.Reply == dhcpdata.Offer {
			reply := "OFFER"
			e.Reply = &reply
		}
		e.addReason(d.Reason)
		if d.Address.IsValid() {
			e.addAddress(d.Address, d.LeaseTime, d.Pool, d.Reservation)
		}
		for _, o := range d.Options {
			e.Options = append(e.Options, ExplainedOption{int(o.Code), o.Name, hex.EncodeToString(o.Value), placeOf(o.From)})
		}
		e.addSteps(d.Steps)
		id := facts.Options[61]
		if len(id) == 0 {
			id = facts.Hardware
		}
		leases.pair.addTo(e, id)
		return d.Network
	}, err
}

// addReason sets the reason, if there is one.
func (e *Explanation) addReason(r dhcpdata.Reason) {
	if r != dhcpdata.Served {
		reason := string(r)
		e.Reason = &reason
	}
}

// addAddress sets the address, its lease time in seconds, and the objects that it comes from; 0 if there are none.
func (e *Explanation) addAddress(a netip.Addr, seconds uint32, pool, reservation int64) {
	text, length := a.String(), int64(seconds)
	e.Address, e.LeaseTime = &text, &length
	if pool != 0 {
		e.Range = &pool
	}
	if reservation != 0 {
		e.Reservation = &reservation
	}
}

// addSteps adds the rules that were examined.
func (e *Explanation) addSteps(steps []dhcpdata.Step) {
	for _, s := range steps {
		e.Steps = append(e.Steps, ExplainedStep{s.Rule, s.Result, placeOf(s.From)})
	}
}

// unitsFor returns the server of a network and its content: the deployed one, or with planned the one of the current settings.
func unitsFor(tx *store.Tx, a *resource.API, network *store.Resource, planned bool) (*store.Resource, dhcpdata.Units, error) {
	servers, err := ServersOf(tx, network.ID)
	if err != nil {
		return nil, nil, err
	}
	if !planned {
		if len(servers) == 0 {
			return nil, nil, problem.NotFound("network %d is not deployed to a DHCP server: run a full deployment of %s, or ask about the "+
				"planned settings", network.ID, serviceOf(network.Type == "IPv6Network"))
		}
		row, err := tx.Get(servers[0])
		if err != nil {
			return nil, nil, err
		}
		units, err := unitsOf(tx, servers[0])
		return row.Clone(), units, err
	}
	row, err := plannedServer(tx, a, network)
	if err != nil {
		return nil, nil, err
	}
	c, err := newCompiler(tx, a, row, network.Type == "IPv6Network")
	if err != nil {
		return nil, nil, err
	}
	if err := c.compileAll(); err != nil {
		return nil, nil, err
	}
	if faults := c.texts(true); len(faults) > 0 {
		return nil, nil, problem.BadRequest("InvalidDeploymentData", "the settings of server %s cannot be served: %s",
			problem.Describe(row.ID, row.Name), strings.Join(faults, "; "))
	}
	units, err := (Service{API: a, V6: c.v6}).units(c, nil)
	return row, units, err
}

// plannedServer returns the server of the role in effect for a network.
func plannedServer(tx *store.Tx, a *resource.API, network *store.Resource) (*store.Resource, error) {
	c := &compiler{tx: tx, api: a, configuration: network.Configuration, server: network}
	c.init()
	if err := c.readCommon(); err != nil {
		return nil, err
	}
	chain, err := c.chain(network)
	if err != nil {
		return nil, err
	}
	role := c.roleOf(chain)
	if role == nil || len(role.RoleInterfaces) == 0 {
		return nil, problem.NotFound("network %d has no DHCP role: create one at the network or at a block above it", network.ID)
	}
	row, err := tx.Get(c.interfaces[role.RoleInterfaces[0].ID].server)
	if err != nil {
		return nil, err
	}
	return row.Clone(), nil
}

// reportedLeases are the leases that servers have reported. A decision has no error, so err keeps the first one.
type reportedLeases struct {
	tx            *store.Tx
	configuration int64
	v6            bool
	err           error
	// lookups is the number of addresses that were looked up.
	lookups int
	// pair is the failover pair of the network; nil without one.
	pair *pairOfExplained
}

// fail keeps the first error.
func (l *reportedLeases) fail(err error) {
	if err != nil && l.err == nil {
		l.err = fmt.Errorf("read leases: %w", err)
	}
}

// state returns a reported lease.
func (l *reportedLeases) state(found dhcp.Holder, there bool, err error) (s dhcpdata.LeaseState, ok bool) {
	if l.fail(err); err != nil || !there {
		return s, false
	}
	s = dhcpdata.LeaseState{Network: found.Network, Address: found.Address, Hardware: found.Hardware,
		Client:  dhcpdata.Identity(1, found.Hardware, found.ClientID),
		Expires: found.Expires.Unix()}
	if l.v6 {
		s.Client = dhcpdata.Identity6(found.Prefix, found.IAID, found.ClientID)
	}
	switch {
	case found.Abandoned:
		s.State = dhcpdata.Abandoned
	case found.Leased, found.Ended:
		s.State, s.Ended = dhcpdata.Leased, found.Ended
	}
	return s, true
}

// Lease implements dhcpdata.Leases.
func (l *reportedLeases) Lease(a netip.Addr) (dhcpdata.LeaseState, bool) {
	if l.lookups++; l.lookups > maxLookups {
		l.fail(problem.New(503, "ExplanationTooLong", "the range is nearly full: the explanation would read more than %d leases; read the "+
			"leases of the range instead", maxLookups))
		return dhcpdata.LeaseState{}, false
	}
	return l.state(dhcp.HolderAt(l.tx, l.configuration, a))
}

// ClientLease implements dhcpdata.Leases. A lease comes before a former one, and both before an abandoned address.
func (l *reportedLeases) ClientLease(network int64, client string) (found dhcpdata.LeaseState, ok bool) {
	rank := map[dhcpdata.State]int{dhcpdata.Leased: 2, dhcpdata.Free: 1}
	for _, s := range l.listOf(client) {
		if s.Network == network && (!ok || cmp.Or(cmp.Compare(rank[s.State], rank[found.State]), cmp.Compare(s.Expires, found.Expires)) > 0) {
			found, ok = s, true
		}
	}
	return found, ok
}

// listOf returns the leases of a client.
func (l *reportedLeases) listOf(client string) (all []dhcpdata.LeaseState) {
	var mac, identifier []byte
	if l.v6 {
		_, identifier, _ = dhcpdata.ParseIdentity6(client)
	} else if rest, is := strings.CutPrefix(client, "c"); is {
		identifier = []byte(rest)
	} else if len(client) > 2 {
		mac = []byte(client[2:])
	}
	held, err := dhcp.HoldersOf(l.tx, l.configuration, mac, identifier)
	for _, one := range held {
		if s, ok := l.state(one, true, nil); ok && s.Client == client {
			all = append(all, s)
		}
	}
	l.fail(err)
	return all
}

// HardwareLeases implements dhcpdata.Leases.
func (l *reportedLeases) HardwareLeases(network int64, hardware []byte) (all []dhcpdata.LeaseState) {
	held, err := dhcp.HoldersOf(l.tx, l.configuration, hardware, nil)
	for _, one := range held {
		if s, ok := l.state(one, true, nil); ok && s.Network == network {
			all = append(all, s)
		}
	}
	l.fail(err)
	return all
}

// OtherLeases implements dhcpdata.Leases.
func (l *reportedLeases) OtherLeases(network int64, client string) []dhcpdata.LeaseState {
	return slices.DeleteFunc(l.listOf(client), func(s dhcpdata.LeaseState) bool { return s.Network == network })
}

// maxExplored is the maximum number of addresses that are offered to a decision, explorePage the number of leases in one query, and
// maxLookups the maximum number of addresses that are looked up one by one.
const (
	maxExplored = 1 << 16
	explorePage = 1000
	maxLookups  = 20_000
)

// NextFree implements dhcpdata.Leases. The order of the server is not known here, so the first free address is returned.
func (l *reportedLeases) NextFree(_, _ int64, ranges []dhcpdata.Interval, abandoned bool, usable func(netip.Addr) bool) (netip.Addr, bool) {
	examined := 0
	leasable := func(a netip.Addr) bool {
		if !usable(a) {
			return false
		}
		held, there, err := dhcp.HolderAt(l.tx, l.configuration, a)
		l.fail(err)
		return err == nil && !(there && held.Ended)
	}
	for _, r := range ranges {
		for from, more := r.First, true; more; {
			all, err := dhcp.HoldersIn(l.tx, l.configuration, from, r.Last, explorePage)
			if err != nil {
				l.fail(err)
				return netip.Addr{}, false
			}
			last := r.Last
			if more = len(all) == explorePage; more {
				last = all[len(all)-1].Address
			}
			if a, ok := firstFree(from, last, all, abandoned, leasable, &examined); ok || examined >= maxExplored {
				return a, ok
			}
			from = last.Next()
			more = more && from.IsValid() && from.Compare(r.Last) <= 0
		}
	}
	return netip.Addr{}, false
}

// firstFree returns the first address from first to last that is usable and not held; with abandoned the first one that is abandoned. It
// counts the addresses that usable examines.
func firstFree(first, last netip.Addr, held []dhcp.Holder, abandoned bool, usable func(netip.Addr) bool, examined *int) (netip.Addr, bool) {
	for a := first; a.IsValid() && a.Compare(last) <= 0 && *examined < maxExplored; a = a.Next() {
		there := len(held) > 0 && held[0].Address == a
		free := !there || !held[0].Leased && !held[0].Abandoned
		if abandoned {
			if !there { // continues at the next lease
				if len(held) == 0 {
					break
				}
				a = held[0].Address
			}
			free = held[0].Abandoned
			there = true
		}
		if there {
			held = held[1:]
		}
		if !free {
			continue
		}
		*examined++
		if usable(a) {
			return a, true
		}
	}
	return netip.Addr{}, false
}

// Exhausted implements dhcpdata.Leases.
func (l *reportedLeases) Exhausted(int64) bool { return false }

// CountUsed implements dhcpdata.Leases.
func (l *reportedLeases) CountUsed(pool int64) uint64 {
	used, err := dhcp.CountUsed(l.tx, pool)
	l.fail(err)
	return used
}

// Members implements dhcpdata.Leases. The numbers of the server are not known here.
func (l *reportedLeases) Members(int64, string) int { return 0 }
