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

// announcer adds the anycast addresses of applications to this machine, and announces those of healthy applications to routers.
type announcer struct {
	state   state
	log     *slog.Logger
	speaker bgpSpeaker
	// wanted returns the desired state. healthy reports whether an application is healthy. routerID returns an address that identifies this
	// machine.
	wanted   func() checkin.Desired
	healthy  func(id string) bool
	routerID func() string
	// changed is called when the report has changed.
	changed func()
	// wake contains a token when reconcile must run.
	wake chan struct{}
	// added are the addresses that the service point added to the interface. isListLost reports that the list of earlier ones is lost. Only
	// run uses both.
	added      []string
	isListLost bool

	mu sync.Mutex
	// The reported addresses and error conditions are guarded by mu.
	addresses  []checkin.NodeAddress
	conditions []string
}

// bgpSpeaker announces addresses to routers. The implementation is anycast.Speaker. The interface exists for tests in virtual time, where
// real connections are not possible (docs/decisions.md).
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
	// neighborCheckInterval is the interval of checks for neighbors without a session. maxDownTime is the time without a session that is
	// reported.
	neighborCheckInterval = 5 * time.Second
	maxDownTime           = 30 * time.Second
)

func (a *Agent) newAnnouncer() *announcer {
	n := &announcer{state: a.state, log: a.log, wanted: a.supervisor.desiredState, healthy: a.supervisor.isHealthy, changed: a.notifyChange,
		wake: make(chan struct{}, 1), routerID: func() string {
			node, err := a.host.node("")
			if err != nil {
				return ""
			}
			prefix, _ := netip.ParsePrefix(node.IPv4CIDRAddress) // empty if the node has no IPv4 address
			if !prefix.IsValid() {
				return ""
			}
			return prefix.Addr().String()
		}}
	n.speaker = anycast.New(a.log, n.notify)
	return n
}

// notify wakes run.
func (n *announcer) notify() {
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// run announces and withdraws addresses until ctx ends. Then it closes the BGP sessions and removes the addresses, unless another agent
// will take over the applications.
func (n *announcer) run(ctx context.Context) {
	text, err := os.ReadFile(filepath.Join(n.state.dir, anycastFile))
	if err == nil {
		err = json.Unmarshal(text, &n.added)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		n.log.Error("list of anycast addresses unreadable, wanted addresses treated as own", "error", err)
		n.isListLost = true
	}
	tick := time.NewTicker(neighborCheckInterval)
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
		n.removeExcept(nil)
	}
}

// reconcile updates the addresses and announcements to the desired state and the health of the applications.
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
			fault("set routerId: this machine has no IPv4 address to use as the router ID")
		} else if moved, err := n.speaker.Set(ctx, settings); err != nil {
			fault("%v", err)
		} else if moved {
			n.log.Info("BGP started", "autonomousSystemNumber", settings.AutonomousSystemNumber, "neighbors", len(settings.Neighbors))
		}
		for _, one := range d.Applications {
			all = append(all, one.Anycast...)
		}
	}
	n.removeExcept(all)
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
	alone := len(all) > 0 // true if no neighbor has a session, so that no address is announced
	for _, how := range neighbors {
		alone = alone && !how.Established
	}
	for addr, how := range neighbors {
		switch {
		case how.Established:
		case alone && how.Before:
			fault("no neighbor has a session, and the addresses are down: neighbor %s has none since %s: %s", addr,
				how.Since.UTC().Format(time.RFC3339), how.Why)
		case time.Since(how.Since) > maxDownTime:
			fault("neighbor %s is not established: %s", addr, how.Why)
		}
	}
	slices.Sort(wrong)
	n.setReport(shown, wrong)
}

// setReport stores the reported addresses and error conditions.
func (n *announcer) setReport(addresses []checkin.NodeAddress, wrong []string) {
	text := func(addresses []checkin.NodeAddress, wrong []string) string {
		b, err := json.Marshal([]any{addresses, wrong})
		if err != nil {
			return err.Error()
		}
		return string(b)
	}
	n.mu.Lock()
	moved := text(n.addresses, n.conditions) != text(addresses, wrong)
	n.addresses, n.conditions = addresses, wrong
	n.mu.Unlock()
	if moved {
		n.changed()
	}
}

// report returns the reported addresses and error conditions.
func (n *announcer) report() ([]checkin.NodeAddress, []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.addresses, n.conditions
}

// announce adds an address to the interface, and announces it if its application is healthy, else withdraws it. up reports whether a
// router has received it.
func (n *announcer) announce(text string, healthy bool) (up bool, err error) {
	addr, err := netip.ParseAddr(text)
	if err != nil {
		return false, err
	}
	if err := n.addAddress(addr, text); err != nil {
		return false, errors.Join(fmt.Errorf("add %s to %s: %w", text, checkin.AnycastInterface, err), n.speaker.Withdraw(addr))
	}
	if !healthy {
		return false, n.speaker.Withdraw(addr)
	}
	err = n.speaker.Announce(addr)
	return err == nil && n.speaker.Announced(addr), err
}

// addAddress adds an address to the interface if it is missing: a reboot or an administrator may have removed it. An address that another
// program added stays under the control of that program.
func (n *announcer) addAddress(addr netip.Addr, text string) error {
	there, err := anycast.IsAssigned(addr)
	mine := slices.Contains(n.added, text)
	if err != nil || there && (mine || !n.isListLost) {
		return err
	}
	if !mine {
		if err := n.storeAdded(append(slices.Clone(n.added), text)); err != nil {
			return err
		}
	}
	if err := anycast.Assign(addr); err != nil {
		return errors.Join(err, n.storeAdded(slices.DeleteFunc(slices.Clone(n.added), func(one string) bool { return one == text })))
	}
	return nil
}

// storeAdded stores the list of added addresses on the disk before they are added.
func (n *announcer) storeAdded(put []string) error {
	text, err := json.Marshal(put)
	if err == nil {
		err = n.state.write(anycastFile, text)
	}
	if err == nil {
		n.added = put
	}
	return err
}

// removeExcept removes the addresses that were added here and are not in wanted.
func (n *announcer) removeExcept(wanted []string) {
	var left []string
	for _, text := range n.added {
		if slices.Contains(wanted, text) {
			left = append(left, text)
			continue
		}
		addr, err := netip.ParseAddr(text)
		if err == nil {
			err = errors.Join(n.speaker.Withdraw(addr), anycast.Unassign(addr))
		}
		if err != nil {
			n.log.Error("remove anycast address failed", "address", text, "error", err)
			left = append(left, text)
			continue
		}
		n.log.Info("anycast address removed", "address", text)
	}
	if len(left) != len(n.added) {
		if err := n.storeAdded(left); err != nil {
			n.log.Error("store anycast addresses failed", "error", err)
		}
	}
}
