package servicepoint

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"portolan/internal/servicepoint/anycast"
	"portolan/internal/wire/checkin"
)

// announcer puts the anycast addresses of applications on this machine, and tells routers of those whose application is healthy.
type announcer struct {
	state   state
	log     *slog.Logger
	speaker bgpSpeaker
	// wanted gives what is to run, healthy whether an application is well, and routerID an address that names this machine.
	wanted   func() checkin.Desired
	healthy  func(id string) bool
	routerID func() string
	// changed is called when what is reported has changed.
	changed func()
	// wake has a token when something may be different.
	wake chan struct{}
	// put are the addresses that were put on the interface here; forgot says that it is not known which were before. They belong to run.
	put    []string
	forgot bool

	mu sync.Mutex
	// What follows is guarded by mu: the addresses as they are reported, and what is wrong.
	addresses []checkin.NodeAddress
	wrong     []string
}

// bgpSpeaker tells routers of addresses: an anycast.Speaker, whose methods these are. It is an interface for tests in virtual time, in
// which no real connection can be (docs/decisions.md).
type bgpSpeaker interface {
	Set(ctx context.Context, settings checkin.AnycastService) (moved bool, err error)
	Neighbors() map[netip.Addr]anycast.Neighbor
	Announce(addr netip.Addr) error
	Withdraw(addr netip.Addr) error
	Announced(addr netip.Addr) bool
	Stop()
}

const (
	anycastFile = "anycast.json"
	// lookEvery is how often it is looked for neighbors that have been away for long, awayTime how long that is.
	lookEvery = 5 * time.Second
	awayTime  = 30 * time.Second
)

func (a *Agent) newAnnouncer() *announcer {
	n := &announcer{state: a.state, log: a.log, wanted: a.supervisor.toRun, healthy: a.supervisor.isHealthy, changed: a.move,
		wake: make(chan struct{}, 1), routerID: func() string {
			node, err := a.host.node("")
			if err != nil {
				return ""
			}
			prefix, _ := netip.ParsePrefix(node.IPv4CIDRAddress) // empty where there is none
			if !prefix.IsValid() {
				return ""
			}
			return prefix.Addr().String()
		}}
	n.speaker = anycast.New(a.log, n.look)
	return n
}

// look lets it look soon.
func (n *announcer) look() {
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// run announces and withdraws until ctx ends. Then neighbors are told good-bye, and the addresses go, unless another agent is about to take
// the applications over.
func (n *announcer) run(ctx context.Context) {
	text, err := os.ReadFile(filepath.Join(n.state.dir, anycastFile))
	if err == nil {
		err = json.Unmarshal(text, &n.put)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		n.log.Error("which anycast addresses were put on this machine is forgotten: those that are wanted are taken for ours", "error", err)
		n.forgot = true
	}
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		n.reconcile(ctx, n.wanted())
		select {
		case <-ctx.Done():
		case <-n.wake:
		case <-tick.C:
		}
	}
	n.speaker.Stop()
	if !errors.Is(context.Cause(ctx), ErrSwitch) {
		n.keepOnly(nil)
	}
}

// reconcile makes what is announced follow what is to run and how it is.
func (n *announcer) reconcile(ctx context.Context, d checkin.Desired) {
	var wrong []string
	fault := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf("anycast: "+format, args...)) }
	var all []string
	if d.Anycast == nil {
		n.speaker.Stop()
	} else {
		settings := *d.Anycast
		if settings.RouterID == "" {
			settings.RouterID = n.routerID()
		}
		if settings.RouterID == "" {
			fault("a routerId is needed: this machine has no IPv4 address that could be one")
		} else if moved, err := n.speaker.Set(ctx, settings); err != nil {
			fault("%v", err)
		} else if moved {
			n.log.Info("BGP is spoken", "autonomousSystemNumber", settings.AutonomousSystemNumber, "neighbors", len(settings.Neighbors))
		}
		for _, one := range d.Applications {
			all = append(all, one.Anycast...)
		}
	}
	n.keepOnly(all)
	var shown []checkin.NodeAddress
	for _, one := range d.Applications {
		for _, text := range one.Anycast {
			up, err := n.announce(text, n.healthy(one.ID))
			if err != nil {
				fault("%v", err)
			}
			shown = append(shown, checkin.NodeAddress{Type: checkin.Anycast, IPAddress: text, IsUseByAppID: &one.ID, IsUp: &up})
		}
	}
	neighbors := n.speaker.Neighbors()
	alone := len(all) > 0 // no neighbor is told of the addresses
	for _, how := range neighbors {
		alone = alone && !how.Established
	}
	for addr, how := range neighbors {
		switch {
		case how.Established:
		case alone && how.Before:
			fault("no neighbor has a session, and the addresses are down: neighbor %s has none since %s: %s", addr,
				how.Since.UTC().Format(time.RFC3339), how.Why)
		case time.Since(how.Since) > awayTime:
			fault("neighbor %s is not established: %s", addr, how.Why)
		}
	}
	slices.Sort(wrong)
	n.show(shown, wrong)
}

// show notes what is reported.
func (n *announcer) show(addresses []checkin.NodeAddress, wrong []string) {
	text := func(addresses []checkin.NodeAddress, wrong []string) string {
		b, err := json.Marshal([]any{addresses, wrong})
		if err != nil {
			return err.Error()
		}
		return string(b)
	}
	n.mu.Lock()
	moved := text(n.addresses, n.wrong) != text(addresses, wrong)
	n.addresses, n.wrong = addresses, wrong
	n.mu.Unlock()
	if moved {
		n.changed()
	}
}

// now gives the addresses as they are reported, and what is wrong.
func (n *announcer) now() ([]checkin.NodeAddress, []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.addresses, n.wrong
}

// announce puts an address on the interface, and announces it or not; it reports whether a router is told of it.
func (n *announcer) announce(text string, healthy bool) (up bool, err error) {
	addr, err := netip.ParseAddr(text)
	if err != nil {
		return false, err
	}
	if err := n.place(addr, text); err != nil {
		return false, errors.Join(fmt.Errorf("%s could not be put on %s: %w", text, checkin.AnycastInterface, err), n.speaker.Withdraw(addr))
	}
	if !healthy {
		return false, n.speaker.Withdraw(addr)
	}
	err = n.speaker.Announce(addr)
	return err == nil && n.speaker.Announced(addr), err
}

// place puts an address on the interface, where it is not: it may have gone with the machine, or have been taken off by somebody. One that
// somebody else has put there stays theirs.
func (n *announcer) place(addr netip.Addr, text string) error {
	there, err := anycast.There(addr)
	mine := slices.Contains(n.put, text)
	if err != nil || there && (mine || !n.forgot) {
		return err
	}
	if !mine {
		if err := n.keep(append(slices.Clone(n.put), text)); err != nil {
			return err
		}
	}
	if err := anycast.Put(addr); err != nil {
		return errors.Join(err, n.keep(slices.DeleteFunc(slices.Clone(n.put), func(one string) bool { return one == text })))
	}
	return nil
}

// keep notes on the disk which addresses are put on the interface here, before they are.
func (n *announcer) keep(put []string) error {
	text, err := json.Marshal(put)
	if err == nil {
		err = n.state.write(anycastFile, text)
	}
	if err == nil {
		n.put = put
	}
	return err
}

// keepOnly takes the addresses off that were put here and are not among these.
func (n *announcer) keepOnly(wanted []string) {
	var left []string
	for _, text := range n.put {
		if slices.Contains(wanted, text) {
			left = append(left, text)
			continue
		}
		addr, err := netip.ParseAddr(text)
		if err == nil {
			err = errors.Join(n.speaker.Withdraw(addr), anycast.Take(addr))
		}
		if err != nil {
			n.log.Error("taking an anycast address off this machine", "address", text, "error", err)
			left = append(left, text)
			continue
		}
		n.log.Info("an anycast address was taken off this machine", "address", text)
	}
	if len(left) != len(n.put) {
		if err := n.keep(left); err != nil {
			n.log.Error("noting which anycast addresses are on this machine", "error", err)
		}
	}
}
