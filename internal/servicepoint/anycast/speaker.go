// Package anycast adds anycast addresses to this machine and announces them to neighboring routers by BGP (RFC 4271), with GoBGP. It
// accepts no routes from neighbors. It depends on neither the manager nor the applications.
package anycast

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"strings"
	"sync"
	"time"

	"portolan/internal/wire/checkin"

	"github.com/osrg/gobgp/v4/api"
	"github.com/osrg/gobgp/v4/pkg/apiutil"
	"github.com/osrg/gobgp/v4/pkg/packet/bgp"
	"github.com/osrg/gobgp/v4/pkg/server"
)

// Speaker is a BGP speaker. Its methods are safe for concurrent use.
type Speaker struct {
	log *slog.Logger
	// changed is called when a neighbor's session starts or ends.
	changed func()

	mu sync.Mutex
	// The following fields are guarded by mu. bgp is nil while BGP is off.
	bgp       *server.BgpServer
	settings  checkin.AnycastService
	watching  context.CancelFunc
	neighbors map[netip.Addr]Neighbor
	announced map[netip.Addr]*apiutil.Path
}

// Neighbor is the state of a BGP neighbor.
type Neighbor struct {
	// Established reports a running session, Before an earlier one. Since is the time of the last change of Established.
	Established, Before bool
	Since               time.Time
	// Why contains the state of the session (RFC 4271 section 8.2.2) and the reason for the end of the last one.
	Why string
}

// New creates a speaker without neighbors. changed is called when a session starts or ends.
func New(log *slog.Logger, changed func()) *Speaker {
	return &Speaker{log: log, changed: changed, announced: map[netip.Addr]*apiutil.Path{}}
}

// connectRetry is the time between two connection attempts, in seconds.
const connectRetry = 5

// Set replaces the settings and neighbors. If anything changed it restarts BGP without announcements, and returns true.
func (s *Speaker) Set(ctx context.Context, settings checkin.AnycastService) (moved bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bgp != nil && s.settings.Equal(settings) {
		return false, nil
	}
	s.stop()
	speaks := server.NewBgpServer(server.LoggerOption(slog.New(warningsOnly{s.log.Handler()}), nil))
	go speaks.Serve()
	if err := speaks.StartBgp(ctx, &api.StartBgpRequest{Global: &api.Global{Asn: settings.AutonomousSystemNumber,
		RouterId: settings.RouterID, ListenPort: -1}}); err != nil {
		speaks.Stop()
		return true, fmt.Errorf("start BGP: %w", err)
	}
	s.bgp, s.settings, s.neighbors, s.watching = speaks, settings, map[netip.Addr]Neighbor{}, func() {}
	if err := s.addNeighbors(ctx, speaks, settings); err != nil {
		s.stop()
		return true, err
	}
	return true, nil
}

// addNeighbors adds the neighbors. The caller holds mu.
func (s *Speaker) addNeighbors(ctx context.Context, speaks *server.BgpServer, settings checkin.AnycastService) error {
	// Only local routes are accepted, no routes of neighbors: this machine is not a router.
	own := &api.Policy{Name: "own", Statements: []*api.Statement{{Name: "own",
		Conditions: &api.Conditions{RouteType: api.Conditions_ROUTE_TYPE_LOCAL},
		Actions:    &api.Actions{RouteAction: api.RouteAction_ROUTE_ACTION_ACCEPT}}}}
	if err := speaks.AddPolicy(ctx, &api.AddPolicyRequest{Policy: own}); err != nil {
		return err
	}
	if err := speaks.SetPolicyAssignment(ctx, &api.SetPolicyAssignmentRequest{Assignment: &api.PolicyAssignment{Name: "global",
		Direction: api.PolicyDirection_POLICY_DIRECTION_IMPORT, Policies: []*api.Policy{own},
		DefaultAction: api.RouteAction_ROUTE_ACTION_REJECT}}); err != nil {
		return err
	}
	watch, cancel := context.WithCancel(context.Background())
	s.watching = cancel
	if err := speaks.WatchEvent(watch, server.WatchEventMessageCallbacks{OnPeerUpdate: func(e *apiutil.WatchEventMessage_PeerEvent,
		_ time.Time) {
		s.recordState(speaks, e.Peer)
	}}, server.WatchPeer()); err != nil {
		return err
	}
	for _, n := range settings.Neighbors {
		addr, err := netip.ParseAddr(n.Address)
		if err != nil {
			return err
		}
		s.neighbors[addr] = Neighbor{Since: time.Now(), Why: "no answer yet"}
		family := &api.Family{Afi: api.Family_AFI_IP, Safi: api.Family_SAFI_UNICAST}
		if addr.Is6() {
			family.Afi = api.Family_AFI_IP6
		}
		peer := &api.Peer{Conf: &api.PeerConf{NeighborAddress: n.Address, PeerAsn: n.AutonomousSystemNumber, AuthPassword: n.Password()},
			Transport: &api.Transport{RemotePort: uint32(n.Port)}, //nolint:gosec // 0 to 65535
			Timers: &api.Timers{Config: &api.TimersConfig{ConnectRetry: connectRetry, IdleHoldTimeAfterReset: connectRetry,
				HoldTime: uint64(settings.HoldTimeInterval), KeepaliveInterval: uint64(settings.KeepAliveInterval)}}, //nolint:gosec // seconds
			AfiSafis: []*api.AfiSafi{{Config: &api.AfiSafiConfig{Family: family, Enabled: true}}}}
		if n.HopLimit > 1 && n.AutonomousSystemNumber != settings.AutonomousSystemNumber {
			peer.EbgpMultihop = &api.EbgpMultihop{Enabled: true, MultihopTtl: uint32(n.HopLimit)} //nolint:gosec // up to 255
		}
		if err := speaks.AddPeer(ctx, &api.AddPeerRequest{Peer: peer}); err != nil {
			return fmt.Errorf("neighbor %s: %w", n.Address, err)
		}
	}
	return nil
}

// recordState records the state of a neighbor.
func (s *Speaker) recordState(of *server.BgpServer, peer apiutil.Peer) {
	s.mu.Lock()
	addr := peer.Conf.NeighborAddress
	before, known := s.neighbors[addr]
	established := peer.State.SessionState == bgp.BGP_FSM_ESTABLISHED
	moved := s.bgp == of && known && before.Established != established
	if s.bgp == of && known {
		now := Neighbor{Established: established, Before: before.Before || before.Established, Since: before.Since,
			Why: strings.TrimPrefix(peer.State.SessionState.String(), "BGP_FSM_")}
		if text := peer.State.DisconnectMessage; text != "" {
			now.Why += ", " + text
		}
		if moved {
			now.Since = time.Now()
			s.log.Info("BGP neighbor state changed", "neighbor", addr, "established", established, "state", now.Why)
		}
		s.neighbors[addr] = now
	}
	s.mu.Unlock()
	if moved {
		s.changed()
	}
}

// Neighbors returns the states of the neighbors.
func (s *Speaker) Neighbors() map[netip.Addr]Neighbor {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.neighbors)
}

// Announce announces an address. It does nothing if the address is already announced or BGP is off.
func (s *Speaker) Announce(addr netip.Addr) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, done := s.announced[addr]; done || s.bgp == nil {
		return nil
	}
	path, err := pathTo(addr)
	if err != nil {
		return err
	}
	answers, err := s.bgp.AddPath(apiutil.AddPathRequest{Paths: []*apiutil.Path{path}})
	for _, a := range answers {
		err = errors.Join(err, a.Error)
	}
	if err != nil {
		return fmt.Errorf("announce %s: %w", addr, err)
	}
	s.announced[addr] = path
	s.log.Info("anycast address announced", "address", addr)
	return nil
}

// Withdraw withdraws the announcement of an address. It does nothing if the address is not announced.
func (s *Speaker) Withdraw(addr netip.Addr) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	path, there := s.announced[addr]
	if !there {
		return nil
	}
	if err := s.bgp.DeletePath(apiutil.DeletePathRequest{Paths: []*apiutil.Path{path}}); err != nil {
		return fmt.Errorf("withdraw %s: %w", addr, err)
	}
	delete(s.announced, addr)
	s.log.Info("anycast address withdrawn", "address", addr)
	return nil
}

// Announced reports whether an address is announced to at least one neighbor of its family with a session.
func (s *Speaker) Announced(addr netip.Addr) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, there := s.announced[addr]; !there {
		return false
	}
	for neighbor, how := range s.neighbors {
		if how.Established && neighbor.Is4() == addr.Is4() {
			return true
		}
	}
	return false
}

// Stop closes all sessions; the neighbors then delete the announced routes.
func (s *Speaker) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stop()
}

// stop stops BGP. The caller holds mu.
func (s *Speaker) stop() {
	if s.bgp == nil {
		return
	}
	s.watching()
	s.bgp.Stop()
	s.bgp, s.neighbors, s.announced = nil, nil, map[netip.Addr]*apiutil.Path{}
}

// pathTo returns the route to one address through this machine.
func pathTo(addr netip.Addr) (*apiutil.Path, error) {
	prefix, err := bgp.NewIPAddrPrefix(netip.PrefixFrom(addr, addr.BitLen()))
	if err != nil {
		return nil, err
	}
	path := &apiutil.Path{Family: bgp.RF_IPv4_UC, Nlri: prefix, Attrs: []bgp.PathAttributeInterface{bgp.NewPathAttributeOrigin(0)}}
	var next bgp.PathAttributeInterface
	if addr.Is4() {
		next, err = bgp.NewPathAttributeNextHop(netip.IPv4Unspecified())
	} else {
		path.Family = bgp.RF_IPv6_UC
		next, err = bgp.NewPathAttributeMpReachNLRI(path.Family, []bgp.PathNLRI{{NLRI: prefix}}, netip.IPv6Unspecified())
	}
	path.Attrs = append(path.Attrs, next)
	return path, err
}

// warningsOnly drops log messages of GoBGP below the level warning.
type warningsOnly struct{ slog.Handler }

// WithAttrs and WithGroup keep the filter.
func (q warningsOnly) WithAttrs(attrs []slog.Attr) slog.Handler {
	return warningsOnly{q.Handler.WithAttrs(attrs)}
}
func (q warningsOnly) WithGroup(name string) slog.Handler {
	return warningsOnly{q.Handler.WithGroup(name)}
}

// Enabled reports whether a level is logged.
func (q warningsOnly) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && q.Handler.Enabled(ctx, level)
}
