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

// Times of telling others of changes: how long one may take to answer, how often it is told, and how long it is waited between, which
// doubles (RFC 1996 section 3.6).
const (
	notifyTime  = 3 * time.Second
	notifyTries = 6
	notifyPause = time.Second
	// mostNotices is how many are told at a time.
	mostNotices = 32
)

// notice is what somebody is to be told: that a zone has changed.
type notice struct {
	zone   string
	target netip.AddrPort
}

// notifier tells other servers that zones have changed (RFC 1996). What has to be told again meanwhile is told once.
type notifier struct {
	log *slog.Logger
	// from gives the address to tell a target from: servers believe those that they copy from.
	from func(target netip.Addr) netip.Addr
	ctx  context.Context //nolint:containedctx // it is that of the notifier's life
	turn chan struct{}
	all  sync.WaitGroup

	mu sync.Mutex
	// What follows is guarded by mu. due holds what is being told, and whether it has changed again since.
	due map[notice]bool
}

func newNotifier(ctx context.Context, log *slog.Logger, from func(netip.Addr) netip.Addr) *notifier {
	return &notifier{log: log, from: from, ctx: ctx, turn: make(chan struct{}, mostNotices), due: map[notice]bool{}}
}

// changed tells of the zones whose serials are others than before, and those who are to be told for the first time.
func (n *notifier) changed(before map[string]uint32, after *served) {
	for _, v := range after.views {
		for _, z := range v.zones {
			z.mu.RLock()
			serial := z.serial
			z.mu.RUnlock()
			if had, there := before[z.of.ID]; there && had == serial {
				continue
			}
			for _, target := range z.of.Notify {
				n.add(notice{z.of.Name, target})
			}
		}
	}
}

// serials gives the serials of all zones, by their ids.
func (s *served) serials() map[string]uint32 {
	all := map[string]uint32{}
	for id, z := range s.zones {
		z.mu.RLock()
		all[id] = z.serial
		z.mu.RUnlock()
	}
	return all
}

// add has a notice told.
func (n *notifier) add(one notice) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, there := n.due[one]; there {
		n.due[one] = true
		return
	}
	n.due[one] = false
	n.all.Go(func() { n.tell(one) })
}

// tell tells until it is answered, or has not been too often.
func (n *notifier) tell(one notice) {
	for again := true; again && n.ctx.Err() == nil; {
		pause := notifyPause
		for try := 1; ; try++ {
			err := n.send(one)
			if err == nil || n.ctx.Err() != nil {
				break
			}
			if try == notifyTries {
				n.log.Warn("a server does not answer that a zone has changed", "zone", one.zone, "server", one.target, "error", err)
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
		if again = n.due[one]; again {
			n.due[one] = false
		} else {
			delete(n.due, one)
		}
		n.mu.Unlock()
	}
}

// send tells once.
func (n *notifier) send(one notice) error {
	select {
	case n.turn <- struct{}{}:
		defer func() { <-n.turn }()
	case <-n.ctx.Done():
		return n.ctx.Err()
	}
	m := new(dns.Msg)
	m.SetNotify(one.zone)
	dialer := &net.Dialer{Timeout: notifyTime}
	if from := n.from(one.target.Addr()); from.IsValid() {
		dialer.LocalAddr = net.UDPAddrFromAddrPort(netip.AddrPortFrom(from, 0))
	}
	client := dns.Client{Timeout: notifyTime, Dialer: dialer}
	answer, _, err := client.ExchangeContext(n.ctx, m, one.target.String())
	if err == nil && answer.Rcode != dns.RcodeSuccess {
		return errors.New("it answers " + dns.RcodeToString[answer.Rcode])
	}
	return err
}
