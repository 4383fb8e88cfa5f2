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

// policed counts the answers that policies have changed, or let through.
var policed = promauto.NewCounterVec(prometheus.CounterOpts{Name: "portolan_resolver_policy_answers_total",
	Help: "Questions for which a rule of a response policy matched, by policy and by what it does."}, []string{"policy", "action"})

// policies is the name of the plugin. What comes from a cache is policed, too.
const policies = "policies"

// policing answers as the policies of the client's view say.
type policing struct {
	next plugin.Handler
	of   *resolver
}

// Name is the name of the plugin.
func (p *policing) Name() string { return policies }

// ServeDNS answers by the next one, unless a role or a policy says otherwise.
func (p *policing) ServeDNS(ctx context.Context, w dns.ResponseWriter, m *dns.Msg) (int, error) {
	w = resolved{w}
	if len(m.Question) != 1 {
		return plugin.NextOrFailure(p.Name(), p.next, ctx, w, m)
	}
	if m.Question[0].Qclass != dns.ClassINET { // nobody has names of another class, and policies speak of none
		return refuse(w, m)
	}
	q := &policedQuestion{p: p, ctx: ctx, w: w, m: m, r: request.Request{W: w, Req: m}}
	if c := p.of.content.Load(); len(c.views) > 0 {
		client, err := netip.ParseAddr(q.r.IP())
		if err != nil {
			return dns.RcodeServerFailure, err
		}
		q.client = client.Unmap()
		v := c.viewFor(q.client)
		if v == nil && c.resolves() || // for whom is said, and it is not for this client
			v != nil && v.Recursion != nil && !zonedata.Allows(v.Recursion.Clients, zonedata.Client{Address: q.client}, true) {
			return refuse(w, m)
		}
		if v != nil {
			q.policies = v.policies
		}
	}
	name, err := zonedata.WireName(m.Question[0].Name)
	if err != nil || len(q.policies) == 0 && !p.of.asksZones.Load() {
		return plugin.NextOrFailure(p.Name(), p.next, ctx, w, m)
	}
	q.name = name[:len(name)-1]
	return q.answer()
}

// resolved writes answers as a resolver does: it recurses, and has no authority.
type resolved struct{ dns.ResponseWriter }

func (w resolved) WriteMsg(m *dns.Msg) error {
	m.RecursionAvailable, m.Authoritative = true, false
	return w.ResponseWriter.WriteMsg(m)
}

// refuse answers a client that is not answered.
func refuse(w dns.ResponseWriter, m *dns.Msg) (int, error) {
	return dns.RcodeRefused, w.WriteMsg(explained(new(dns.Msg).SetRcode(m, dns.RcodeRefused), m, dns.ExtendedErrorCodeProhibited))
}

// policedQuestion is a question that is answered by policies.
type policedQuestion struct {
	p        *policing
	ctx      context.Context //nolint:containedctx // it lives as long as the question
	w        dns.ResponseWriter
	m        *dns.Msg
	r        request.Request
	client   netip.Addr
	name     string
	policies []activePolicy
	// known are the answers to further questions that were asked for it; until is when the last one may be, from the first one on.
	known map[dns.Question]*dns.Msg
	until time.Time
}

// match is what a policy says of a question. before are the records of the answer that lead to the name that it is about.
type match struct {
	policy  activePolicy
	rule    rule
	trigger string
	name    string
	before  []dns.RR
}

// answer answers. The first policy that says something decides; one that is about answers has them looked up first.
func (q *policedQuestion) answer() (int, error) {
	found := len(q.policies)
	var is match
	for i, policy := range q.policies {
		if does, ok := policy.ofQuestion(q.client, q.name); ok {
			found, is = i, match{policy: policy, rule: does, trigger: "question", name: q.m.Question[0].Name}
			break
		}
	}
	looks := false
	for _, policy := range q.policies[:found] {
		answers, _ := policy.looks()
		looks = looks || answers
	}
	if found < len(q.policies) && !looks {
		return q.do(is, nil, 0)
	}
	answer, code, err := q.ask(q.m)
	if answer == nil {
		return code, err
	}
	if err := q.complete(answer); err != nil {
		return dns.RcodeServerFailure, err
	}
	other, ok, err := q.ofAnswer(answer, q.policies[:found], found == len(q.policies))
	if err != nil { // a policy may say something of it, and cannot be asked
		return dns.RcodeServerFailure, err
	}
	if ok {
		return q.do(other, answer, code)
	}
	if found < len(q.policies) {
		return q.do(is, answer, code)
	}
	return code, q.w.WriteMsg(answer)
}

// mostAliases is how many aliases are followed that lead from one server to another.
const mostAliases = 8

// complete adds what the last alias of an answer leads to, where whoever was asked does not know that: a zone is asked of its own servers,
// and leads out of it.
func (q *policedQuestion) complete(answer *dns.Msg) error {
	kind := q.m.Question[0].Qtype
	for range mostAliases {
		if kind == dns.TypeCNAME || kind == dns.TypeANY || answer.Rcode != dns.RcodeSuccess || len(answer.Answer) == 0 ||
			!q.p.of.asksZones.Load() {
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

// ask has a question answered by the next plugin; the answer is nil where there is none, and code and err say why.
func (q *policedQuestion) ask(m *dns.Msg) (answer *dns.Msg, code int, err error) {
	w := nonwriter.New(q.w)
	code, err = plugin.NextOrFailure(q.p.Name(), q.p.next, q.ctx, w, m)
	return w.Msg, code, err
}

// ofAnswer gives what the first of some policies says of an answer that says something. Names that the answer leads to are looked at where
// names says so: of others the question has decided.
func (q *policedQuestion) ofAnswer(answer *dns.Msg, policies []activePolicy, names bool) (is match, ok bool, err error) {
	var servers []nameServer
	asked := false
	for _, policy := range policies {
		if does, at, ok := policy.ofChain(answer); names && ok {
			alias, _ := answer.Answer[at].(*dns.CNAME) // as ofChain says
			return match{policy, does, "question", alias.Target, answer.Answer[:at+1]}, true, nil
		}
		for _, rr := range answer.Answer {
			if a, is := addressOf(rr); is {
				if does, ok := policy.ofAddress(a); ok {
					return match{policy, does, "address", q.m.Question[0].Name, nil}, true, nil
				}
			}
		}
		if _, about := policy.looks(); !about {
			continue
		}
		if !asked {
			if servers, err = q.serversOf(answer, policies); err != nil {
				return is, false, err
			}
			asked = true
		}
		for _, server := range servers {
			if does, ok := policy.ofServer(server.name, server.addresses); ok {
				return match{policy, does, "name server", q.m.Question[0].Name, nil}, true, nil
			}
		}
	}
	return is, false, nil
}

// ofChain gives the rule of the first name that aliases of an answer lead to, and which of its records does.
func (z activePolicy) ofChain(answer *dns.Msg) (does rule, at int, ok bool) {
	for i, rr := range answer.Answer {
		alias, is := rr.(*dns.CNAME)
		if !is {
			continue
		}
		name, err := zonedata.WireName(alias.Target)
		if err != nil {
			continue
		}
		if does, ok := z.ofName(name[:len(name)-1]); ok {
			return does, i, true
		}
	}
	return does, 0, false
}

// addressOf gives the address that a record has.
func addressOf(rr dns.RR) (a netip.Addr, ok bool) {
	switch x := rr.(type) {
	case *dns.A:
		a, ok = netip.AddrFromSlice(x.A)
	case *dns.AAAA:
		a, ok = netip.AddrFromSlice(x.AAAA)
	}
	return a.Unmap(), ok
}

// nameServer is a name server: its name in wire form without the last byte, and its addresses.
type nameServer struct {
	name      string
	addresses []netip.Addr
}

// How many name servers of a zone are looked at, how many further questions one may lead to, until when, and how many labels above a name
// its zone is looked for one by one, whatever is said of where that begins.
const (
	mostServers = 13
	mostLookUps = 120
	lookUpTime  = 2 * time.Second
	fewLabels   = 8
)

// serversOf finds the name servers of the zones that the name lies in, and those that its aliases lead to.
func (q *policedQuestion) serversOf(answer *dns.Msg, policies []activePolicy) (all []nameServer, err error) {
	names := []string{q.m.Question[0].Name}
	for _, rr := range answer.Answer {
		if alias, is := rr.(*dns.CNAME); is && !slices.Contains(names, alias.Target) {
			names = append(names, alias.Target)
		}
	}
	byAddress := slices.ContainsFunc(policies, activePolicy.looksAtServers)
	for _, name := range names {
		some, err := q.nameServers(name, byAddress)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

// nameServers finds the name servers of the zone that a name lies in, with their addresses where a policy has rules about those. It fails
// where they cannot be found out: whoever serves a zone could keep them from being looked at else.
func (q *policedQuestion) nameServers(name string, byAddress bool) (all []nameServer, err error) {
	for {
		answer, err := q.lookUp(name, dns.TypeNS)
		if err != nil {
			return nil, err
		}
		for _, rr := range answer.Answer {
			ns, is := rr.(*dns.NS)
			if !is || len(all) >= mostServers {
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
		for _, rr := range answer.Ns { // which says at once where the zone begins; near by it is looked all the same: who says it may lie
			soa, is := rr.(*dns.SOA)
			if is && dns.IsSubDomain(soa.Hdr.Name, above) && dns.CountLabel(above)-dns.CountLabel(soa.Hdr.Name) > fewLabels {
				above = soa.Hdr.Name
			}
		}
		name = above
	}
}

// addresses looks up the addresses of a name server.
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

// lookUp gives what the next plugin answers to a further question.
func (q *policedQuestion) lookUp(name string, kind uint16) (*dns.Msg, error) {
	m := new(dns.Msg)
	m.SetQuestion(name, kind)
	if answer := q.known[m.Question[0]]; answer != nil {
		return answer, nil
	}
	if q.known == nil {
		q.known, q.until = map[dns.Question]*dns.Msg{}, time.Now().Add(lookUpTime)
	}
	if len(q.known) >= mostLookUps {
		return nil, fmt.Errorf("the answer for %s takes more than %d further questions", q.m.Question[0].Name, mostLookUps)
	}
	if time.Now().After(q.until) {
		return nil, fmt.Errorf("further questions for %s take longer than %s", q.m.Question[0].Name, lookUpTime)
	}
	answer, code, err := q.ask(m)
	switch {
	case err != nil:
		return nil, err
	case answer == nil:
		return nil, fmt.Errorf("looking up %s: %s", name, dns.RcodeToString[code])
	case answer.Rcode != dns.RcodeSuccess && answer.Rcode != dns.RcodeNameError:
		return nil, fmt.Errorf("looking up %s: %s", name, dns.RcodeToString[answer.Rcode])
	}
	q.known[m.Question[0]] = answer
	return answer, nil
}

// do does what a policy says. answer is what would be answered else; nil where nobody was asked.
func (q *policedQuestion) do(is match, answer *dns.Msg, code int) (int, error) {
	does := is.rule
	if does.action == tcpOnly && q.r.Proto() != "udp" {
		does.action = passes
	}
	policed.WithLabelValues(is.policy.name, actions[is.rule.action]).Inc()
	q.p.of.tell(q, is)
	switch does.action {
	case drops:
		return dns.RcodeSuccess, nil // nothing is written
	case passes:
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
	case notThere:
		reply.Rcode = dns.RcodeNameError
	case tcpOnly:
		reply.Truncated, reply.Answer = true, nil
	case local:
		why = dns.ExtendedErrorCodeForgedAnswer
		if err := q.forge(reply, is); err != nil {
			return dns.RcodeServerFailure, err
		}
	}
	if soa := is.policy.authority(); soa != nil {
		soa.Header().Ttl = does.ttl
		reply.Extra = append(reply.Extra, soa)
	}
	return reply.Rcode, q.w.WriteMsg(explained(reply, q.m, why))
}

// forge adds the records of a rule to a reply, and what an alias among them leads to.
func (q *policedQuestion) forge(reply *dns.Msg, is match) error {
	kind := q.m.Question[0].Qtype
	for _, data := range is.rule.data {
		rr, err := data.RR()
		if err != nil {
			return fmt.Errorf("a record of the policy %s: %w", is.policy.name, err)
		}
		rr.Header().Name = is.name
		if alias, is := rr.(*dns.CNAME); is && kind != dns.TypeCNAME {
			if rest, all := strings.CutPrefix(alias.Target, "*."); all { // the name goes before it
				alias.Target = rr.Header().Name + rest
			}
			if _, err := zonedata.WireName(alias.Target); err != nil { // there is no room for the name (RFC 6672 section 2.2)
				reply.Rcode = dns.RcodeYXDomain
				return nil //nolint:nilerr // the answer says it
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

// explained says in a reply why it is what it is (RFC 8914), to those who understand that.
func explained(reply, m *dns.Msg, why uint16) *dns.Msg {
	if opt := m.IsEdns0(); opt != nil {
		reply.SetEdns0(replySize, opt.Do())
		reply.IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_EDE{InfoCode: why}}
	}
	return reply
}

// replySize is what is said that may be sent over UDP, in bytes.
const replySize = 1232

// tell logs that a policy has changed an answer, where queries are logged.
func (r *resolver) tell(q *policedQuestion, is match) {
	if !r.logsQueries.Load() {
		return
	}
	r.log.Info("response policy", "client", q.client, "name", q.r.Name(), "type", q.r.Type(), "policy", is.policy.name,
		"trigger", is.trigger, "action", actions[is.rule.action])
}
