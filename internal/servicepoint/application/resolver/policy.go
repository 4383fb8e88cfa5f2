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

// action is the action of a policy rule.
type action uint8

const (
	passThrough action = iota // answer normally
	nameError                 // answer NXDOMAIN
	noData                    // answer NODATA
	drop                      // do not answer
	tcpOnly                   // answer truncated over UDP
	localData                 // answer with the records of the rule
)

// actions are the names of the actions in metrics and logs.
var actions = [...]string{passThrough: "passthru", nameError: "nxdomain", noData: "nodata", drop: "drop", tcpOnly: "tcp-only",
	localData: "data"}

// rule is the action of a policy. data are the records for the action localData.
type rule struct {
	action action
	ttl    uint32
	data   []zonedata.Record
}

// The last label of a trigger name selects its type; all other triggers are query names.
const (
	clientTrigger = "\x0drpz-client-ip"
	answerTrigger = "\x06rpz-ip"
	serverTrigger = "\x08rpz-nsip"
	nsTrigger     = "\x0brpz-nsdname"
)

// policyZone is a response policy zone (RPZ, as in BIND). It contains rules for query names, clients, addresses and name servers.
type policyZone struct {
	// apex is the name in wire format, name the same as text.
	apex, name string

	mu sync.RWMutex
	// The following fields are guarded by mu. names are the rules by query name, servers by name of the name server. Keys are in wire format
	// without the last byte and in lower case; a key that starts with * matches all names below it.
	names, servers map[string]rule
	// clients are the rules by client address, answers by address in an answer, serverAt by address of a name server.
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

// prefixRules are rules by prefix.
type prefixRules struct {
	rules map[netip.Prefix]rule
	// lengths are the prefix lengths in use, now or before, for IPv4 and IPv6, the longest first.
	lengths [2][]int
}

func family(a netip.Addr) int {
	if a.Is4() {
		return 0
	}
	return 1
}

// find returns the rule of the longest prefix that contains an address.
func (p *prefixRules) find(a netip.Addr) (rule, bool) {
	a = a.Unmap()
	for _, bits := range p.lengths[family(a)] {
		if r, ok := p.rules[netip.PrefixFrom(a, bits).Masked()]; ok {
			return r, true
		}
	}
	return rule{}, false
}

// addLength adds the length of a prefix.
func (p *prefixRules) addLength(prefix netip.Prefix) {
	all := &p.lengths[family(prefix.Addr())]
	if i, there := slices.BinarySearchFunc(*all, prefix.Bits(), func(a, b int) int { return b - a }); !there {
		*all = slices.Insert(*all, i, prefix.Bits())
	}
}

// ruleOf returns the rule of a record in a policy zone.
func ruleOf(r zonedata.Record) rule {
	is := rule{action: localData, ttl: r.TTL()}
	if r.Type() == dns.TypeCNAME {
		switch target := string(r.Data()); strings.ToLower(target) {
		case "\x00":
			is.action = nameError
		case "\x01*\x00":
			is.action = noData
		case "\x0crpz-passthru\x00":
			is.action = passThrough
		case "\x08rpz-drop\x00":
			is.action = drop
		case "\x0crpz-tcp-only\x00":
			is.action = tcpOnly
		}
	}
	if is.action == localData {
		is.data = []zonedata.Record{r}
	}
	return is
}

// overrideOf returns the rule that replaces all rules of a policy.
func overrideOf(kind, target string) (rule, error) {
	is := rule{ttl: overrideTTL}
	switch kind {
	case "ALLOWLIST":
		is.action = passThrough
		return is, nil
	case "BLOCKLIST":
		is.action = nameError
		return is, nil
	case "BLACKHOLE":
		is.action = noData
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
		return is, fmt.Errorf("%q cannot be the target of a redirection: %w", target, err)
	}
	is.action, is.data = localData, []zonedata.Record{record}
	return is, nil
}

// overrideTTL is the TTL of answers of an override in seconds.
const overrideTTL = 300

// add adds a record to a zone that is not in use yet.
func (z *policyZone) add(r zonedata.Record) { z.applyRecord(r, true) }

// changedAtOnce is the number of names that change under one lock, which takes some hundred microseconds.
const changedAtOnce = 256

// change removes and adds records. Each name changes atomically; queries may see a partly applied change.
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
				z.applyRecord(r, false)
			}
			for _, r := range one.added {
				z.applyRecord(r, true)
			}
		}
		z.mu.Unlock()
	}
}

// size returns the number of rules.
func (z *policyZone) size() int {
	z.mu.RLock()
	defer z.mu.RUnlock()
	return len(z.names) + len(z.servers) + len(z.clients.rules) + len(z.answers.rules) + len(z.serverAt.rules)
}

// applyRecord adds or removes a record. The caller holds z.mu for writing, or the zone is not in use yet.
func (z *policyZone) applyRecord(r zonedata.Record, in bool) {
	owner := r.Owner()
	if len(owner) <= len(z.apex) { // at the apex
		if r.Type() == dns.TypeSOA && in {
			z.soa, _ = r.RR() // shown in answers; an invalid SOA is not
		}
		return
	}
	switch r.Type() {
	case dns.TypeRRSIG, dns.TypeNSEC, dns.TypeNSEC3, dns.TypeDNSKEY, dns.TypeDS, dns.TypeNS: // data of the zone itself, not rules
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
		one.rules.addLength(prefix)
		return
	}
	if rest, is := cutLabel(trigger, nsTrigger); is && rest != "" {
		changeRule(z.servers, rest, r, in)
		return
	}
	changeRule(z.names, trigger, r, in)
}

// cutLabel removes the last label from labels in wire format. It compares whole labels, not only their bytes.
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

// changeRule adds a record to the rule of a trigger or removes it.
func changeRule[K comparable](rules map[K]rule, trigger K, r zonedata.Record, in bool) {
	is, there := rules[trigger]
	one := ruleOf(r)
	switch {
	case in && there && is.action == localData && one.action == localData:
		is.data = append(slices.Clone(is.data), one.data...) // answers may still use the old slice
		rules[trigger] = is
	case in:
		rules[trigger] = one
	case there && is.action == localData && one.action == localData:
		is.data = slices.DeleteFunc(slices.Clone(is.data), func(o zonedata.Record) bool { return bytes.Equal(o, r) })
		if rules[trigger] = is; len(is.data) == 0 {
			delete(rules, trigger)
		}
	case there && is.action == one.action:
		delete(rules, trigger)
	}
}

// triggerPrefix parses a prefix in a trigger: its length, then its bytes or 16-bit groups in reverse order. zz replaces a run of zero
// groups.
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
	return p, p == p.Masked() // reject a second spelling of the same prefix, because removing one would remove both
}

// findRule returns the rule of a name: its own, or that of the closest wildcard.
func findRule(rules map[string]rule, name string) (rule, bool) {
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

// ruleForQuestion returns the rule for a client, or for a query name in wire format without its last byte.
func (z activePolicy) ruleForQuestion(client netip.Addr, name string) (rule, bool) {
	z.mu.RLock()
	defer z.mu.RUnlock()
	if r, ok := z.clients.find(client); ok {
		return z.effectiveRule(r), true
	}
	r, ok := findRule(z.names, name)
	return z.effectiveRule(r), ok
}

// ruleForName returns the rule for a name that an answer's aliases lead to.
func (z activePolicy) ruleForName(name string) (rule, bool) {
	z.mu.RLock()
	defer z.mu.RUnlock()
	r, ok := findRule(z.names, name)
	return z.effectiveRule(r), ok
}

// ruleForAddress returns the rule for an address in an answer.
func (z activePolicy) ruleForAddress(a netip.Addr) (rule, bool) {
	z.mu.RLock()
	defer z.mu.RUnlock()
	r, ok := z.answers.find(a)
	return z.effectiveRule(r), ok
}

// ruleForServer returns the rule for a name server, by its name or one of its addresses.
func (z activePolicy) ruleForServer(name string, addresses []netip.Addr) (rule, bool) {
	z.mu.RLock()
	defer z.mu.RUnlock()
	if r, ok := findRule(z.servers, name); ok {
		return z.effectiveRule(r), true
	}
	for _, a := range addresses {
		if r, ok := z.serverAt.find(a); ok {
			return z.effectiveRule(r), true
		}
	}
	return rule{}, false
}

// effectiveRule returns the rule to apply for a matching rule.
func (z activePolicy) effectiveRule(r rule) rule {
	if z.override != nil {
		return *z.override
	}
	return r
}

// ruleKinds reports whether the policy has rules for answers, and for name servers.
func (z activePolicy) ruleKinds() (answers, servers bool) {
	z.mu.RLock()
	defer z.mu.RUnlock()
	servers = len(z.servers)+len(z.serverAt.rules) > 0
	return servers || len(z.answers.rules) > 0, servers
}

// dependsOnMore reports whether the policy decides by more than a question and its answer: by the client, or by name servers.
func (z activePolicy) dependsOnMore(client netip.Addr) bool {
	z.mu.RLock()
	defer z.mu.RUnlock()
	_, named := z.clients.find(client)
	return named || len(z.servers)+len(z.serverAt.rules) > 0
}

// hasServerAddressRules reports whether the policy has rules for addresses of name servers.
func (z activePolicy) hasServerAddressRules() bool {
	z.mu.RLock()
	defer z.mu.RUnlock()
	return len(z.serverAt.rules) > 0
}

// authority returns the SOA of the policy, which identifies the policy in an answer; nil if there is none.
func (z activePolicy) authority() dns.RR {
	z.mu.RLock()
	defer z.mu.RUnlock()
	if z.soa == nil {
		return nil
	}
	return dns.Copy(z.soa)
}
