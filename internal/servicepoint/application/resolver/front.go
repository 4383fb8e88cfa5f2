package resolver

import (
	"context"
	"net/netip"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"

	dns "portolan/internal/base/dnsmsg"
	"portolan/internal/wire/zonedata"

	"github.com/coredns/coredns/core/dnsserver"
)

// front answers the queries of a listener over UDP. It answers a query itself if CoreDNS has answered the same one from its cache, and if
// no rule, log or setting treats the client or the query otherwise. CoreDNS answers all others.
type front struct {
	generation *generation
	server     *dnsserver.Server
	// ctx is the context of queries to CoreDNS.
	ctx  context.Context //nolint:containedctx // the values of a server, without a lifetime
	hits hitCounters
}

// frontSettings are the parts of a configuration that decide about cached answers.
type frontSettings struct {
	// cache is nil if CoreDNS must see each query.
	cache    *packedCache
	allow    []netip.Prefix
	prefetch bool
	dns64    bool
	measured bool
	// log is the query log; nil if it is disabled.
	log *queryLog
}

// frontSettings returns the settings of a configuration. dnstap sends each message of CoreDNS, so it rules out answers from elsewhere.
func (c *Configuration) frontSettings() frontSettings {
	s := frontSettings{prefetch: c.Cache.Prefetch, dns64: c.DNS64 != "", measured: c.Metrics != ""}
	if c.Dnstap == "" {
		s.cache = newPackedCache(c.Cache.Entries)
	}
	for _, text := range c.Allow {
		s.allow = append(s.allow, netip.MustParsePrefix(text)) // checked before
	}
	return s
}

// verdict is the decision whether a client gets cached answers, and of which view.
type verdict struct {
	client netip.Addr
	// content is the content generation of the decision.
	content uint64
	view    uint16
	cached  bool
}

// verdictOf decides about a client. CoreDNS answers clients that are refused, that a rule of a policy names, or whose view has rules for
// name servers: these depend on more than the answer.
func (f *front) verdictOf(client netip.Addr, generation uint64) verdict {
	v := verdict{client: client, content: generation}
	if client.Zone() != "" ||
		len(f.generation.settings.allow) > 0 && !slices.ContainsFunc(f.generation.settings.allow, func(p netip.Prefix) bool {
			return p.Contains(client)
		}) {
		return v
	}
	c := f.generation.resolver.content.Load()
	if v.cached = true; len(c.views) == 0 {
		return v
	}
	at := c.viewFor(client)
	if at < 0 {
		v.cached = !c.resolves()
		return v
	}
	of := c.views[at]
	v.view = uint16(at + 1) //nolint:gosec // there are not that many
	v.cached = at < 1<<16-1 && (of.Recursion == nil || zonedata.Allows(of.Recursion.Clients, zonedata.Client{Address: client}, true)) &&
		!slices.ContainsFunc(of.policies, func(p activePolicy) bool { return p.dependsOnMore(client) })
	return v
}

// clientSlots is the number of clients whose verdict a reader remembers.
const clientSlots = 256

// recallVerdict returns the verdict about a client, from the reader's memory if it is there.
func (r *packetReader) recallVerdict(f *front, client netip.Addr, generation uint64) *verdict {
	bytes := client.As16()
	slot := &r.clients[(uint(bytes[15])*31+uint(bytes[14])*17+uint(bytes[13])*7+uint(bytes[7]))%clientSlots]
	if r.verdictsOf != f {
		r.verdictsOf, r.clients = f, [clientSlots]verdict{}
		*slot = f.verdictOf(client, generation)
	} else if slot.client != client || slot.content != generation {
		*slot = f.verdictOf(client, generation)
	}
	return slot
}

// cachedAnswer returns the cached answer to a query, in a buffer; nil if CoreDNS must answer. A panic costs only the shortcut.
func (f *front) cachedAnswer(r *packetReader, m, buf []byte, client netip.AddrPort, generation uint64, now int64) (out []byte) {
	s := &f.generation.settings
	q := &r.query
	if s.cache == nil || !q.parse(m) || s.dns64 && q.kind == dns.TypeAAAA {
		return nil
	}
	defer func() {
		if p := recover(); p != nil {
			f.generation.log.Error("panic while answering a query", "panic", p, "stack", string(debug.Stack()))
			out = nil
		}
	}()
	address := client.Addr().Unmap()
	v := r.recallVerdict(f, address, generation)
	if !v.cached {
		return nil
	}
	q.setView(v.view)
	a := s.cache.find(q.key)
	if a == nil || a.content != generation || now >= a.expires || s.prefetch && a.leavesToPrefetch(now) {
		return nil
	}
	if out = q.write(buf, m, a, now); out == nil {
		return nil
	}
	f.hits.count(f, q, a, len(m), address, now)
	if s.log != nil && s.log.isSampled() {
		s.log.write(address.String(), "udp", q.text(), typeText(q.kind), int(out[3]&15), a.size, time.Duration(clock()-now))
	}
	return out
}

// passing is a query that CoreDNS answers. Its answer can be cached unless uncached is set.
type passing struct {
	query      packedQuery
	generation uint64
	uncached   atomic.Bool
}

// passingKey is the key of a passing in a context.
type passingKey struct{}

// setUncached prevents that the answer to the query of a context is cached: an upstream or a rule of a policy has decided about it.
func setUncached(ctx context.Context) {
	if p, is := ctx.Value(passingKey{}).(*passing); is {
		p.uncached.Store(true)
	}
}

// store caches an answer that comes from the cache of CoreDNS.
func (f *front) store(p *passing, m *dns.Msg, client netip.Addr) {
	if p.uncached.Load() || m.Truncated || m.Rcode != dns.RcodeSuccess && m.Rcode != dns.RcodeNameError || len(m.Question) != 1 {
		return
	}
	v := f.verdictOf(client, p.generation)
	if !v.cached {
		return
	}
	a, err := pack(m, clock())
	if err != nil || a == nil || a.ttl < 2 { // CoreDNS reports an answer that cannot be packed
		return
	}
	p.query.setView(v.view)
	a.key, a.content = string(p.query.key), p.generation
	cache := f.generation.settings.cache
	if previous := cache.find(p.query.key); previous != nil {
		a.adoptQueries(previous)
	}
	cache.put(a, a.stored)
}
