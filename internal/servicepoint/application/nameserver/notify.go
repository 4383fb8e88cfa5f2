package nameserver

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	dns "portolan/internal/base/dnsmsg"
)

// Timing of NOTIFY messages: the timeout, the number of attempts, and the first pause between them, which doubles (RFC 1996 section 3.6).
const (
	notifyTime  = 3 * time.Second
	notifyTries = 6
	notifyPause = time.Second
	// maxNotices is the maximum number of concurrent NOTIFY messages.
	maxNotices = 32
)

// notice identifies a NOTIFY message: a zone and a target server.
type notice struct {
	zone   string
	target netip.AddrPort
}

// notifier notifies other servers of changed zones (RFC 1996). Changes during a running notification cause one further notification.
type notifier struct {
	log *slog.Logger
	// sourceFor returns the source address for a target, because servers accept only their configured primaries.
	sourceFor func(target netip.Addr) netip.Addr
	ctx       context.Context //nolint:containedctx // the context of the notifier's lifetime
	slots     chan struct{}
	all       sync.WaitGroup

	mu sync.Mutex
	// The following fields are guarded by mu. running contains the running notifications, with true if the zone has changed again.
	running map[notice]bool
}

func newNotifier(ctx context.Context, log *slog.Logger, from func(netip.Addr) netip.Addr) *notifier {
	return &notifier{log: log, sourceFor: from, ctx: ctx, slots: make(chan struct{}, maxNotices), running: map[notice]bool{}}
}

// notifyChanged notifies the targets of zones.
func (n *notifier) notifyChanged(zones map[string]*servedZone) {
	for _, z := range zones {
		for _, target := range z.settings.Notify {
			n.add(notice{z.settings.Name, target})
		}
	}
}

// add starts a notification, or repeats the running one.
func (n *notifier) add(one notice) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, there := n.running[one]; there {
		n.running[one] = true
		return
	}
	n.running[one] = false
	n.all.Go(func() { n.deliver(one) })
}

// deliver sends a notification until it is answered or notifyTries have failed.
func (n *notifier) deliver(one notice) {
	for again := true; again && n.ctx.Err() == nil; {
		pause := notifyPause
		for try := 1; ; try++ {
			err := n.send(one)
			if err == nil || n.ctx.Err() != nil {
				break
			}
			if try == notifyTries {
				n.log.Warn("NOTIFY not answered", "zone", one.zone, "server", one.target, "error", err)
				break
			}
			timer := time.NewTimer(pause)
			select {
			case <-timer.C:
			case <-n.ctx.Done():
				timer.Stop()
			}
			pause *= 2
		}
		n.mu.Lock()
		if again = n.running[one]; again {
			n.running[one] = false
		} else {
			delete(n.running, one)
		}
		n.mu.Unlock()
	}
}

// send sends one NOTIFY message and waits for its answer.
func (n *notifier) send(one notice) error {
	select {
	case n.slots <- struct{}{}:
		defer func() { <-n.slots }()
	case <-n.ctx.Done():
		return n.ctx.Err()
	}
	m := new(dns.Msg)
	m.SetNotify(one.zone)
	dialer := &net.Dialer{Timeout: notifyTime}
	if from := n.sourceFor(one.target.Addr()); from.IsValid() {
		dialer.LocalAddr = net.UDPAddrFromAddrPort(netip.AddrPortFrom(from, 0))
	}
	client := dns.Client{Timeout: notifyTime, Dialer: dialer}
	answer, _, err := client.ExchangeContext(n.ctx, m, one.target.String())
	if err == nil && answer.Rcode != dns.RcodeSuccess {
		return errors.New("it returned " + dns.RcodeToString[answer.Rcode])
	}
	return err
}
