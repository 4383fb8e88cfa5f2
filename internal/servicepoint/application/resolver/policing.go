package resolver

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	dns "portolan/internal/base/dnsmsg"
	"portolan/internal/wire/zonedata"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/nonwriter"
	"github.com/coredns/coredns/request"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// policed counts the answers that policies have changed or allowed.
var policed = promauto.NewCounterVec(prometheus.CounterOpts{Name: "portolan_resolver_policy_answers_total",
	Help: "Queries that matched a rule of a response policy, by policy and action."}, []string{"policy", "action"})

// policies is the name of the plugin. It is before the cache in the chain, so it also handles cached answers.
const policies = "policies"

// policing applies the response policies of the client's view.
type policing struct {
	next     plugin.Handler
	resolver *resolver
}

// Name returns the name of the plugin.
func (p *policing) Name() string { return policies }

// ServeDNS calls the next plugin, unless a role or a policy decides otherwise.
func (p *policing) ServeDNS(ctx context.Context, w dns.ResponseWriter, m *dns.Msg) (int, error) {
	w = recursiveWriter{w}
	if len(m.Question) != 1 {
		return plugin.NextOrFailure(p.Name(), p.next, ctx, w, m)
	}
	if m.Question[0].Qclass != dns.ClassINET { // only class IN is supported
		return refuse(w, m)
	}
	q := &policedQuestion{p: p, ctx: ctx, w: w, m: m, r: request.Request{W: w, Req: m}}
	if c := p.resolver.content.Load(); len(c.views) > 0 {
		client, err := netip.ParseAddr(q.r.IP())
		if err != nil {
			return dns.RcodeServerFailure, err
		}
		q.client = client.Unmap()
		at := c.viewFor(q.client)
		if at < 0 && c.resolves() { // the roles do not permit this client
			return refuse(w, m)
		}
		if at >= 0 {
			v := c.views[at]
			if v.Recursion != nil && !zonedata.Allows(v.Recursion.Clients, zonedata.Client{Address: q.client}, true) {
				return refuse(w, m)
			}
			q.policies = v.policies
		}
	}
	name, err := zonedata.WireName(m.Question[0].Name)
	if err != nil || len(q.policies) == 0 && !p.resolver.hasZones.Load() {
		return plugin.NextOrFailure(p.Name(), p.next, ctx, w, m)
	}
	q.name = name[:len(name)-1]
	return q.answer()
}

// recursiveWriter sets the flags of a resolver's answers: RA is set and AA is not.
type recursiveWriter struct{ dns.ResponseWriter }

func (w recursiveWriter) WriteMsg(m *dns.Msg) error {
	m.RecursionAvailable, m.Authoritative = true, false
	return w.ResponseWriter.WriteMsg(m)
}

// refuse answers REFUSED to a client that is not permitted.
func refuse(w dns.ResponseWriter, m *dns.Msg) (int, error) {
	return dns.RcodeRefused, w.WriteMsg(withExtendedError(new(dns.Msg).SetRcode(m, dns.RcodeRefused), m, dns.ExtendedErrorCodeProhibited))
}

// policedQuestion is a query that is subject to policies.
type policedQuestion struct {
	p        *policing
	ctx      context.Context //nolint:containedctx // lives as long as the query
	w        dns.ResponseWriter
	m        *dns.Msg
	r        request.Request
	client   netip.Addr
	name     string
	policies []activePolicy
	// known are the answers to further queries for this one. deadline is the deadline of further queries, set at the first one.
	known    map[dns.Question]*dns.Msg
	deadline time.Time
}

// match is a matching rule of a policy. name is the owner for its records, and before are the answer's records that lead to that name.
type match struct {
	policy  activePolicy
	rule    rule
	trigger string
	name    string
	before  []dns.RR
}

// answer answers the query. The first policy that matches decides. A policy with rules for answers requires that the query is resolved
// first.
func (q *policedQuestion) answer() (int, error) {
	found := len(q.policies)
	var is match
	for i, policy := range q.policies {
		if does, ok := policy.ruleForQuestion(q.client, q.name); ok {
			found, is = i, match{policy: policy, rule: does, trigger: "question", name: q.m.Question[0].Name}
			break
		}
	}
	looks := false
	for _, policy := range q.policies[:found] {
		answers, _ := policy.ruleKinds()
		looks = looks || answers
	}
	if found < len(q.policies) && !looks {
		return q.applyRule(is, nil, 0)
	}
	answer, code, err := q.ask(q.m)
	if answer == nil {
		return code, err
	}
	if err := q.followAliases(answer); err != nil {
		return dns.RcodeServerFailure, err
	}
	other, ok, err := q.matchAnswer(answer, q.policies[:found], found == len(q.policies))
	if err != nil { // a policy could match, but its data is not available
		return dns.RcodeServerFailure, err
	}
	if ok {
		return q.applyRule(other, answer, code)
	}
	if found < len(q.policies) {
		return q.applyRule(is, answer, code)
	}
	return code, q.w.WriteMsg(answer)
}

// maxAliases is the maximum number of aliases that are followed across servers.
const maxAliases = 8

// followAliases resolves the last alias of an answer if the queried server did not. The servers of a zone know only that zone, but its
// aliases can lead out of it.
func (q *policedQuestion) followAliases(answer *dns.Msg) error {
	kind := q.m.Question[0].Qtype
	for range maxAliases {
		if kind == dns.TypeCNAME || kind == dns.TypeANY || answer.Rcode != dns.RcodeSuccess || len(answer.Answer) == 0 ||
			!q.p.resolver.hasZones.Load() {
			return nil
		}
		target := ""
		for _, rr := range answer.Answer {
			if alias, is := rr.(*dns.CNAME); is {
				target = alias.Target
			}
		}
		for _, rr := range answer.Answer {
			if target == "" || rr.Header().Rrtype == kind {
				return nil
			}
		}
		more, err := q.lookUp(target, kind)
		if err != nil {
			return err
		}
		answer.Rcode, answer.Ns = more.Rcode, more.Ns
		answer.AuthenticatedData = answer.AuthenticatedData && more.AuthenticatedData
		if len(more.Answer) == 0 {
			return nil
		}
		answer.Answer = append(answer.Answer, more.Answer...)
	}
	return nil
}

// ask resolves a query with the next plugin. answer is nil if there is none; code and err explain why.
func (q *policedQuestion) ask(m *dns.Msg) (answer *dns.Msg, code int, err error) {
	w := nonwriter.New(q.w)
	code, err = plugin.NextOrFailure(q.p.Name(), q.p.next, q.ctx, w, m)
	return w.Msg, code, err
}

// matchAnswer returns the first match of policies with an answer. Names that the answer's aliases lead to are checked only if names is
// set; otherwise the query has already decided.
func (q *policedQuestion) matchAnswer(answer *dns.Msg, policies []activePolicy, names bool) (is match, ok bool, err error) {
	var servers []nameServer
	asked := false
	for _, policy := range policies {
		if does, at, ok := policy.ruleForChain(answer); names && ok {
			alias, _ := answer.Answer[at].(*dns.CNAME) // ruleForChain returns the index of a CNAME
			return match{policy, does, "question", alias.Target, answer.Answer[:at+1]}, true, nil
		}
		for _, rr := range answer.Answer {
			if a, is := addressOf(rr); is {
				if does, ok := policy.ruleForAddress(a); ok {
					return match{policy, does, "address", q.m.Question[0].Name, nil}, true, nil
				}
			}
		}
		if _, about := policy.ruleKinds(); !about {
			continue
		}
		if !asked {
			if servers, err = q.serversOf(answer, policies); err != nil {
				return is, false, err
			}
			asked = true
		}
		for _, server := range servers {
			if does, ok := policy.ruleForServer(server.name, server.addresses); ok {
				return match{policy, does, "name server", q.m.Question[0].Name, nil}, true, nil
			}
		}
	}
	return is, false, nil
}

// ruleForChain returns the rule for the first name that aliases of an answer lead to, and the index of the alias.
func (z activePolicy) ruleForChain(answer *dns.Msg) (does rule, at int, ok bool) {
	for i, rr := range answer.Answer {
		alias, is := rr.(*dns.CNAME)
		if !is {
			continue
		}
		name, err := zonedata.WireName(alias.Target)
		if err != nil {
			continue
		}
		if does, ok := z.ruleForName(name[:len(name)-1]); ok {
			return does, i, true
		}
	}
	return does, 0, false
}

// addressOf returns the address in an A or AAAA record.
func addressOf(rr dns.RR) (a netip.Addr, ok bool) {
	switch x := rr.(type) {
	case *dns.A:
		a, ok = netip.AddrFromSlice(x.A)
	case *dns.AAAA:
		a, ok = netip.AddrFromSlice(x.AAAA)
	}
	return a.Unmap(), ok
}

// nameServer is a name server: its name in wire format without the last byte, and its addresses.
type nameServer struct {
	name      string
	addresses []netip.Addr
}

// Limits of further queries: the number of name servers per zone, the number of queries, and their total time. maxCheckedLabels is the
// number of labels above a name that are always checked for a zone cut one by one.
const (
	maxServers       = 13
	maxLookUps       = 120
	lookUpTime       = 2 * time.Second
	maxCheckedLabels = 8
)

// serversOf returns the name servers of the zones that contain the query's name and the targets of its aliases.
func (q *policedQuestion) serversOf(answer *dns.Msg, policies []activePolicy) (all []nameServer, err error) {
	names := []string{q.m.Question[0].Name}
	for _, rr := range answer.Answer {
		if alias, is := rr.(*dns.CNAME); is && !slices.Contains(names, alias.Target) {
			names = append(names, alias.Target)
		}
	}
	byAddress := slices.ContainsFunc(policies, activePolicy.hasServerAddressRules)
	for _, name := range names {
		some, err := q.nameServers(name, byAddress)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

// nameServers returns the name servers of the zone that contains a name, with their addresses if a policy has rules for those. It returns
// an error if they cannot be resolved. Otherwise the operator of a zone could avoid the policies.
func (q *policedQuestion) nameServers(name string, byAddress bool) (all []nameServer, err error) {
	for {
		answer, err := q.lookUp(name, dns.TypeNS)
		if err != nil {
			return nil, err
		}
		for _, rr := range answer.Answer {
			ns, is := rr.(*dns.NS)
			if !is || len(all) >= maxServers {
				continue
			}
			packed, err := zonedata.WireName(ns.Ns)
			if err != nil {
				continue
			}
			one := nameServer{name: packed[:len(packed)-1]}
			if byAddress {
				if one.addresses, err = q.addresses(ns.Ns); err != nil {
					return nil, err
				}
			}
			all = append(all, one)
		}
		at, end := dns.NextLabel(name, 0)
		if len(all) > 0 || end {
			return all, nil
		}
		above := name[at:]
		// The SOA names the zone. Near the name each label is checked nevertheless, because the answer may be forged.
		for _, rr := range answer.Ns {
			soa, is := rr.(*dns.SOA)
			if is && dns.IsSubDomain(soa.Hdr.Name, above) && dns.CountLabel(above)-dns.CountLabel(soa.Hdr.Name) > maxCheckedLabels {
				above = soa.Hdr.Name
			}
		}
		name = above
	}
}

// addresses resolves the addresses of a name server.
func (q *policedQuestion) addresses(server string) (all []netip.Addr, err error) {
	for _, kind := range []uint16{dns.TypeA, dns.TypeAAAA} {
		answer, err := q.lookUp(server, kind)
		if err != nil {
			return nil, err
		}
		for _, rr := range answer.Answer {
			if a, is := addressOf(rr); is {
				all = append(all, a)
			}
		}
	}
	return all, nil
}

// lookUp resolves a further query.
func (q *policedQuestion) lookUp(name string, kind uint16) (*dns.Msg, error) {
	m := new(dns.Msg)
	m.SetQuestion(name, kind)
	if answer := q.known[m.Question[0]]; answer != nil {
		return answer, nil
	}
	if q.known == nil {
		q.known, q.deadline = map[dns.Question]*dns.Msg{}, time.Now().Add(lookUpTime)
	}
	if len(q.known) >= maxLookUps {
		return nil, fmt.Errorf("the answer for %s requires more than %d further queries", q.m.Question[0].Name, maxLookUps)
	}
	if time.Now().After(q.deadline) {
		return nil, fmt.Errorf("further queries for %s take longer than %s", q.m.Question[0].Name, lookUpTime)
	}
	answer, code, err := q.ask(m)
	switch {
	case err != nil:
		return nil, err
	case answer == nil:
		return nil, fmt.Errorf("look up %s: %s", name, dns.RcodeToString[code])
	case answer.Rcode != dns.RcodeSuccess && answer.Rcode != dns.RcodeNameError:
		return nil, fmt.Errorf("look up %s: %s", name, dns.RcodeToString[answer.Rcode])
	}
	q.known[m.Question[0]] = answer
	return answer, nil
}

// applyRule applies a rule. answer is the unchanged answer; nil if the query was not resolved.
func (q *policedQuestion) applyRule(is match, answer *dns.Msg, code int) (int, error) {
	setUncached(q.ctx)
	does := is.rule
	if does.action == tcpOnly && q.r.Proto() != "udp" {
		does.action = passThrough
	}
	policed.WithLabelValues(is.policy.name, actions[is.rule.action]).Inc()
	q.p.resolver.logMatch(q, is)
	switch does.action {
	case drop:
		return dns.RcodeSuccess, nil // no answer is sent
	case passThrough:
		if answer == nil {
			return plugin.NextOrFailure(q.p.Name(), q.p.next, q.ctx, q.w, q.m)
		}
		return code, q.w.WriteMsg(answer)
	}
	reply := new(dns.Msg).SetReply(q.m)
	reply.RecursionAvailable = true
	reply.Answer = slices.Clone(is.before)
	why := dns.ExtendedErrorCodeBlocked
	switch does.action {
	case nameError:
		reply.Rcode = dns.RcodeNameError
	case tcpOnly:
		reply.Truncated, reply.Answer = true, nil
	case localData:
		why = dns.ExtendedErrorCodeForgedAnswer
		if err := q.addRuleRecords(reply, is); err != nil {
			return dns.RcodeServerFailure, err
		}
	}
	if soa := is.policy.authority(); soa != nil {
		soa.Header().Ttl = does.ttl
		reply.Extra = append(reply.Extra, soa)
	}
	return reply.Rcode, q.w.WriteMsg(withExtendedError(reply, q.m, why))
}

// addRuleRecords adds the records of a rule to a reply, and the target of an alias among them.
func (q *policedQuestion) addRuleRecords(reply *dns.Msg, is match) error {
	kind := q.m.Question[0].Qtype
	for _, data := range is.rule.data {
		rr, err := data.RR()
		if err != nil {
			return fmt.Errorf("a record of the policy %s: %w", is.policy.name, err)
		}
		rr.Header().Name = is.name
		if alias, is := rr.(*dns.CNAME); is && kind != dns.TypeCNAME {
			if rest, all := strings.CutPrefix(alias.Target, "*."); all { // the query's name replaces the asterisk
				alias.Target = rr.Header().Name + rest
			}
			if _, err := zonedata.WireName(alias.Target); err != nil { // the name is too long (RFC 6672 section 2.2)
				reply.Rcode = dns.RcodeYXDomain
				return nil //nolint:nilerr // the response code reports it
			}
			answer, err := q.lookUp(alias.Target, kind)
			if err != nil {
				return err
			}
			reply.Answer = append(append(reply.Answer, alias), answer.Answer...)
			return nil
		}
		if kind == rr.Header().Rrtype || kind == dns.TypeANY {
			reply.Answer = append(reply.Answer, rr)
		}
	}
	return nil
}

// withExtendedError adds an extended DNS error to a reply (RFC 8914) if the client uses EDNS.
func withExtendedError(reply, m *dns.Msg, why uint16) *dns.Msg {
	if opt := m.IsEdns0(); opt != nil {
		reply.SetEdns0(replySize, opt.Do())
		reply.IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_EDE{InfoCode: why}}
	}
	return reply
}

// replySize is the advertised UDP size in bytes.
const replySize = 1232

// logMatch logs a policy match if the query log is enabled.
func (r *resolver) logMatch(q *policedQuestion, is match) {
	if !r.logsQueries.Load() {
		return
	}
	r.log.Info("response policy applied", "client", q.client, "name", q.r.Name(), "type", q.r.Type(), "policy", is.policy.name,
		"trigger", is.trigger, "action", actions[is.rule.action])
}
