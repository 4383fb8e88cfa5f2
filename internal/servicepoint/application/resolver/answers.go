package resolver

import (
	"context"
	"sync/atomic"

	dns "portolan/internal/base/dnsmsg"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
)

// answered is the name of the plugin that counts the answers of CoreDNS.
const answered = "answered"

// answerCounts counts answers by the lower four bits of their response code.
type answerCounts [16]atomic.Int64

func (c *answerCounts) add(code int) { c[code&15].Add(1) }

// byCode returns the numbers of answers by the name of their response code, without those that are 0.
func (c *answerCounts) byCode() map[string]int64 {
	all := map[string]int64{}
	for code := range c {
		if n := c[code].Load(); n > 0 {
			all[dns.RcodeToString[code]] = n
		}
	}
	return all
}

// answerCounter counts the answers of the plugins after it. Health checks of the resolver itself are not counted.
type answerCounter struct {
	next   plugin.Handler
	counts *answerCounts
}

// Name returns the name of the plugin.
func (a *answerCounter) Name() string { return answered }

// ServeDNS calls the next plugin and counts its answer.
func (a *answerCounter) ServeDNS(ctx context.Context, w dns.ResponseWriter, m *dns.Msg) (int, error) {
	if isOwnQuery(w, m) {
		return plugin.NextOrFailure(answered, a.next, ctx, w, m)
	}
	recorder := dnstest.NewRecorder(w)
	code, err := plugin.NextOrFailure(answered, a.next, ctx, recorder, m)
	if recorder.Msg == nil { // CoreDNS writes the error answer later
		a.counts.add(code)
	} else {
		a.counts.add(recorder.Rcode)
	}
	return code, err
}
