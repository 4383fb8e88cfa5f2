package resolver

import (
	"bytes"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"

	dns "portolan/internal/base/dnsmsg"
	"portolan/internal/wire/zonedata"
)

// action is what is done with a question.
type action uint8

const (
	passes   action = iota // it is answered as ever
	notThere               // there is no such name (NXDOMAIN)
	nothing                // the name has nothing of the kind (NODATA)
	drops                  // it is not answered
	tcpOnly                // over UDP it is told to ask over TCP
	local                  // it is answered with the records of the rule
)

// actions are their names, as they are counted and logged.
var actions = [...]string{passes: "passthru", notThere: "nxdomain", nothing: "nodata", drops: "drop", tcpOnly: "tcp-only", local: "data"}

// rule is what a policy does; data are the records of a local one.
type rule struct {
	action action
	ttl    uint32
	data   []zonedata.Record
}

// What the last label of a trigger's name says that it is about; all others are the names that are asked for.
const (
	clientTrigger = "\x0drpz-client-ip"
	answerTrigger = "\x06rpz-ip"
	serverTrigger = "\x08rpz-nsip"
	nsTrigger     = "\x0brpz-nsdname"
)

// policyZone is a response policy zone: what is answered for some names, clients, addresses and name servers (RPZ, as BIND has it).
type policyZone struct {
	// apex is its name in wire form, name the same as text.
	apex, name string

	mu sync.RWMutex
	// What follows is guarded by mu. names are the rules by names that are asked for, servers by names of name servers: in wire form without
	// the last byte, in lower case; one that begins with * is for all below it.
	names, servers map[string]rule
	// clients are the rules by addresses that ask, answers by those in answers, serverAt by those of name servers.
	clients, answers, serverAt prefixRules
	soa                        dns.RR
}

func newPolicyZone(name string) (*policyZone, error) {
	apex, err := zonedata.WireName(name)
	if err != nil {
		return nil, err
	}
	return &policyZone{apex: apex, name: name, names: map[string]rule{}, servers: map[string]rule{}}, nil
}

// prefixRules are rules by prefixes.
type prefixRules struct {
	rules map[netip.Prefix]rule
	// lengths are those that there are, or were, of IPv4 and of IPv6, the longest first.
	lengths [2][]int
}

func family(a netip.Addr) int {
	if a.Is4() {
		return 0
	}
	return 1
}

// find gives the rule of the longest prefix that an address lies in.
func (p *prefixRules) find(a netip.Addr) (rule, bool) {
	a = a.Unmap()
	for _, bits := range p.lengths[family(a)] {
		if r, ok := p.rules[netip.PrefixFrom(a, bits).Masked()]; ok {
			return r, true
		}
	}
	return rule{}, false
}

// note has prefixes of a length looked for.
func (p *prefixRules) note(prefix netip.Prefix) {
	all := &p.lengths[family(prefix.Addr())]
	if i, there := slices.BinarySearchFunc(*all, prefix.Bits(), func(a, b int) int { return b - a }); !there {
		*all = slices.Insert(*all, i, prefix.Bits())
	}
}

// ruleOf gives what a record of a policy does.
func ruleOf(r zonedata.Record) rule {
	is := rule{action: local, ttl: r.TTL()}
	if r.Type() == dns.TypeCNAME {
		switch target := string(r.Data()); strings.ToLower(target) {
		case "\x00":
			is.action = notThere
		case "\x01*\x00":
			is.action = nothing
		case "\x0crpz-passthru\x00":
			is.action = passes
		case "\x08rpz-drop\x00":
			is.action = drops
		case "\x0crpz-tcp-only\x00":
			is.action = tcpOnly
		}
	}
	if is.action == local {
		is.data = []zonedata.Record{r}
	}
	return is
}

// overrideOf gives what is done instead of what the records of a policy say.
func overrideOf(kind, target string) (rule, error) {
	is := rule{ttl: overrideTTL}
	switch kind {
	case "ALLOWLIST":
		is.action = passes
		return is, nil
	case "BLOCKLIST":
		is.action = notThere
		return is, nil
	case "BLACKHOLE":
		is.action = nothing
		return is, nil
	}
	head := dns.RR_Header{Name: ".", Rrtype: dns.TypeCNAME, Class: dns.ClassINET, Ttl: overrideTTL}
	var rr dns.RR = &dns.CNAME{Hdr: head, Target: dns.Fqdn(target)}
	if a, err := netip.ParseAddr(target); err == nil && a.Is4() {
		head.Rrtype = dns.TypeA
		rr = &dns.A{Hdr: head, A: a.AsSlice()}
	} else if err == nil {
		head.Rrtype = dns.TypeAAAA
		rr = &dns.AAAA{Hdr: head, AAAA: a.AsSlice()}
	}
	record, err := zonedata.NewRecord(rr)
	if err != nil {
		return is, fmt.Errorf("%q is no target of a redirection: %w", target, err)
	}
	is.action, is.data = local, []zonedata.Record{record}
	return is, nil
}

// overrideTTL is the time to live of what is answered instead of what records say, in seconds.
const overrideTTL = 300

// add takes in a record of a zone that nobody asks yet.
func (z *policyZone) add(r zonedata.Record) { z.each(r, true) }

// changedAtOnce is how many names change while questions wait: some hundred microseconds of work.
const changedAtOnce = 256

// change takes records out, and others in. Each name changes atomically; questions may see a partly applied change.
func (z *policyZone) change(removed, added []zonedata.Record) {
	type records struct{ removed, added []zonedata.Record }
	names, all := map[string]int{}, []records{}
	of := func(r zonedata.Record) *records {
		at, there := names[string(r.Owner())]
		if !there {
			at, all = len(all), append(all, records{})
			names[string(r.Owner())] = at
		}
		return &all[at]
	}
	for _, r := range removed {
		one := of(r)
		one.removed = append(one.removed, r)
	}
	for _, r := range added {
		one := of(r)
		one.added = append(one.added, r)
	}
	for some := range slices.Chunk(all, changedAtOnce) {
		z.mu.Lock()
		for _, one := range some {
			for _, r := range one.removed {
				z.each(r, false)
			}
			for _, r := range one.added {
				z.each(r, true)
			}
		}
		z.mu.Unlock()
	}
}

// size is how many rules there are.
func (z *policyZone) size() int {
	z.mu.RLock()
	defer z.mu.RUnlock()
	return len(z.names) + len(z.servers) + len(z.clients.rules) + len(z.answers.rules) + len(z.serverAt.rules)
}

// each takes a record in, or out. z.mu is held for writing, or nobody else has the zone yet.
func (z *policyZone) each(r zonedata.Record, in bool) {
	owner := r.Owner()
	if len(owner) <= len(z.apex) { // its apex
		if r.Type() == dns.TypeSOA && in {
			z.soa, _ = r.RR() // it is shown; one that cannot be read is not
		}
		return
	}
	switch r.Type() {
	case dns.TypeRRSIG, dns.TypeNSEC, dns.TypeNSEC3, dns.TypeDNSKEY, dns.TypeDS, dns.TypeNS: // of the zone, and no rules
		return
	}
	trigger := string(owner[:len(owner)-len(z.apex)])
	for _, one := range []struct {
		label string
		rules *prefixRules
	}{{clientTrigger, &z.clients}, {answerTrigger, &z.answers}, {serverTrigger, &z.serverAt}} {
		rest, is := cutLabel(trigger, one.label)
		if !is {
			continue
		}
		prefix, ok := triggerPrefix(rest)
		if !ok {
			return
		}
		if one.rules.rules == nil {
			one.rules.rules = map[netip.Prefix]rule{}
		}
		changeRule(one.rules.rules, prefix, r, in)
		one.rules.note(prefix)
		return
	}
	if rest, is := cutLabel(trigger, nsTrigger); is && rest != "" {
		changeRule(z.servers, rest, r, in)
		return
	}
	changeRule(z.names, trigger, r, in)
}

// cutLabel takes the last label, with its length, off labels in wire form. What only ends in its bytes is another label.
func cutLabel(labels, last string) (rest string, ok bool) {
	for at := 0; at < len(labels); {
		next := at + 1 + int(labels[at])
		if next == len(labels) {
			return labels[:at], labels[at:] == last
		}
		at = next
	}
	return "", false
}

// changeRule takes a record into the rule of a trigger, or out of it.
func changeRule[K comparable](rules map[K]rule, trigger K, r zonedata.Record, in bool) {
	is, there := rules[trigger]
	one := ruleOf(r)
	switch {
	case in && there && is.action == local && one.action == local:
		is.data = append(slices.Clone(is.data), one.data...) // answers may read the one before
		rules[trigger] = is
	case in:
		rules[trigger] = one
	case there && is.action == local && one.action == local:
		is.data = slices.DeleteFunc(slices.Clone(is.data), func(o zonedata.Record) bool { return bytes.Equal(o, r) })
		if rules[trigger] = is; len(is.data) == 0 {
			delete(rules, trigger)
		}
	case there && is.action == one.action:
		delete(rules, trigger)
	}
}

// triggerPrefix reads a prefix as triggers have it: its length, then its bytes, or its groups of 16 bits, the last one first; zz stands for
// groups that are zero.
func triggerPrefix(labels string) (p netip.Prefix, ok bool) {
	var parts []string
	for at := 0; at < len(labels); at += 1 + int(labels[at]) {
		parts = append(parts, labels[at+1:at+1+int(labels[at])])
	}
	if len(parts) < 2 {
		return p, false
	}
	bits, err := strconv.Atoi(parts[0])
	if err != nil {
		return p, false
	}
	slices.Reverse(parts)
	parts = parts[:len(parts)-1]
	text := strings.Join(parts, ".")
	if i := slices.Index(parts, "zz"); len(parts) != 4 || i >= 0 {
		if i >= 0 {
			text = strings.Join(parts[:i], ":") + "::" + strings.Join(parts[i+1:], ":")
		} else {
			text = strings.Join(parts, ":")
		}
	}
	a, err := netip.ParseAddr(text)
	if err != nil || a.Zone() != "" || bits < 1 || bits > a.BitLen() {
		return p, false
	}
	p = netip.PrefixFrom(a, bits)
	return p, p == p.Masked() // of two names of one prefix one could not go without the other
}

// named gives the rule of a name: its own, else that of the nearest name above it that stands for all below.
func named(rules map[string]rule, name string) (rule, bool) {
	if len(rules) == 0 {
		return rule{}, false
	}
	if r, ok := rules[name]; ok {
		return r, true
	}
	for name != "" {
		name = name[1+int(name[0]):]
		if r, ok := rules["\x01*"+name]; ok {
			return r, true
		}
	}
	return rule{}, false
}

// ofQuestion gives the rule of a client or of a name that is asked for, in wire form without its last byte.
func (z activePolicy) ofQuestion(client netip.Addr, name string) (rule, bool) {
	z.mu.RLock()
	defer z.mu.RUnlock()
	if r, ok := z.clients.find(client); ok {
		return z.does(r), true
	}
	r, ok := named(z.names, name)
	return z.does(r), ok
}

// ofName gives the rule of a name that an answer leads to.
func (z activePolicy) ofName(name string) (rule, bool) {
	z.mu.RLock()
	defer z.mu.RUnlock()
	r, ok := named(z.names, name)
	return z.does(r), ok
}

// ofAddress gives the rule of an address in an answer.
func (z activePolicy) ofAddress(a netip.Addr) (rule, bool) {
	z.mu.RLock()
	defer z.mu.RUnlock()
	r, ok := z.answers.find(a)
	return z.does(r), ok
}

// ofServer gives the rule of a name server, by its name or by one of its addresses.
func (z activePolicy) ofServer(name string, addresses []netip.Addr) (rule, bool) {
	z.mu.RLock()
	defer z.mu.RUnlock()
	if r, ok := named(z.servers, name); ok {
		return z.does(r), true
	}
	for _, a := range addresses {
		if r, ok := z.serverAt.find(a); ok {
			return z.does(r), true
		}
	}
	return rule{}, false
}

// does gives what is done where a rule matches.
func (z activePolicy) does(r rule) rule {
	if z.override != nil {
		return *z.override
	}
	return r
}

// looks reports whether the policy has rules about answers, and about name servers.
func (z activePolicy) looks() (answers, servers bool) {
	z.mu.RLock()
	defer z.mu.RUnlock()
	servers = len(z.servers)+len(z.serverAt.rules) > 0
	return servers || len(z.answers.rules) > 0, servers
}

// looksAtServers reports whether the policy has rules about the addresses of name servers.
func (z activePolicy) looksAtServers() bool {
	z.mu.RLock()
	defer z.mu.RUnlock()
	return len(z.serverAt.rules) > 0
}

// authority gives the SOA of the policy, which says by whom an answer was changed; nil where it has none.
func (z activePolicy) authority() dns.RR {
	z.mu.RLock()
	defer z.mu.RUnlock()
	if z.soa == nil {
		return nil
	}
	return dns.Copy(z.soa)
}
