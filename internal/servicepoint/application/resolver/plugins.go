package resolver

import (
	"context"
	"crypto/tls"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	dns "portolan/internal/base/dnsmsg"

	"github.com/coredns/caddy"
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/metrics"
)

// starting contains the data that plugins need of a configuration in addition to the Corefile.
type starting struct {
	resolver   *resolver
	generation *generation
	// upstreams is the plugin of that name; nil if it is not used.
	upstreams *upstreamAsker
	// tls is the TLS configuration of listeners; nil if there are none. It is not in the Corefile, because private keys must not be written
	// to a file.
	tls *tls.Config
}

// global is global state, because CoreDNS has a global table of plugins whose setup functions receive only a text. starts is the
// configuration that they set up. A process runs one resolver, which starts one configuration at a time.
var global struct {
	register sync.Once
	starts   atomic.Pointer[starting]
}

// activate makes the plugins set up this configuration. The first call registers the plugins.
func (s *starting) activate() {
	global.starts.Store(s)
	global.register.Do(registerPlugins)
}

// registerPlugins adds the plugins of the resolver to CoreDNS at their places in the chain.
func registerPlugins() {
	chain := slices.Concat([]string{stopServing}, dnsserver.Directives, []string{startServing})
	chain[slices.Index(chain, "prometheus")] = metricsPlugin
	chain = slices.Insert(chain, slices.Index(chain, metricsPlugin), answered)
	chain = slices.Insert(chain, slices.Index(chain, "cache")+1, uncached)
	chain = slices.Insert(chain, slices.Index(chain, "forward"), upstreams)
	dnsserver.Directives = slices.Insert(chain, slices.Index(chain, "cache"), policies)
	plugin.Register(stopServing, func(c *caddy.Controller) error {
		g := global.starts.Load().generation
		g.config = dnsserver.GetConfig(c)
		g.config.ListenHosts = nil // CoreDNS opens no sockets itself
		c.OnShutdown(g.stop)
		return nil
	})
	plugin.Register(startServing, func(c *caddy.Controller) error {
		c.OnStartup(global.starts.Load().generation.start)
		return nil
	})
	plugin.Register("tls", func(c *caddy.Controller) error {
		dnsserver.GetConfig(c).TLSConfig = global.starts.Load().tls.Clone()
		return nil
	})
	plugin.Register("log", func(c *caddy.Controller) error {
		c.Next()
		every, err := strconv.ParseUint(c.RemainingArgs()[0], 10, 32)
		if err != nil {
			return plugin.Error("log", err)
		}
		q := &queryLog{every: every, log: global.starts.Load().resolver.log}
		global.starts.Load().generation.settings.log = q
		dnsserver.GetConfig(c).AddPlugin(func(next plugin.Handler) plugin.Handler {
			q.next = next
			return q
		})
		return nil
	})
	plugin.Register(answered, func(c *caddy.Controller) error {
		p := &answerCounter{counts: &global.starts.Load().resolver.answers}
		dnsserver.GetConfig(c).AddPlugin(func(next plugin.Handler) plugin.Handler {
			p.next = next
			return p
		})
		return nil
	})
	plugin.Register(policies, func(c *caddy.Controller) error {
		p := &policing{resolver: global.starts.Load().resolver}
		dnsserver.GetConfig(c).AddPlugin(func(next plugin.Handler) plugin.Handler {
			p.next = next
			return p
		})
		return nil
	})
	plugin.Register(uncached, func(c *caddy.Controller) error {
		dnsserver.GetConfig(c).AddPlugin(func(next plugin.Handler) plugin.Handler {
			return plugin.HandlerFunc(func(ctx context.Context, w dns.ResponseWriter, m *dns.Msg) (int, error) {
				setUncached(ctx)
				return plugin.NextOrFailure(uncached, next, ctx, w, m)
			})
		})
		return nil
	})
	plugin.Register(upstreams, func(c *caddy.Controller) error {
		u := global.starts.Load().upstreams
		if u == nil {
			return nil
		}
		c.OnShutdown(u.close)
		dnsserver.GetConfig(c).AddPlugin(func(next plugin.Handler) plugin.Handler {
			u.next = next
			return u
		})
		return nil
	})
	plugin.Register(metricsPlugin, func(c *caddy.Controller) error {
		m := metrics.New("")
		m.AddZone(".")
		dnsserver.GetConfig(c).AddPlugin(func(next plugin.Handler) plugin.Handler {
			m.Next = next
			return m
		})
		return nil
	})
}
