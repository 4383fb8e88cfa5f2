package anycast

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"portolan/internal/wire/checkin"

	"github.com/osrg/gobgp/v4/api"
	"github.com/osrg/gobgp/v4/pkg/apiutil"
	"github.com/osrg/gobgp/v4/pkg/packet/bgp"
	"github.com/osrg/gobgp/v4/pkg/server"
)

// router is a BGP neighbor on loopback that records the routes it receives.
type router struct {
	bgp  *server.BgpServer
	port int

	mu sync.Mutex
	// routes are the next hops by prefix. They are guarded by mu.
	routes map[string]string
}

func newRouter(t *testing.T, at, password string) *router {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(at, "0"))
	if err != nil {
		t.Skipf("no %s here: %v", at, err)
	}
	r := &router{bgp: server.NewBgpServer(), port: l.Addr().(*net.TCPAddr).Port, routes: map[string]string{}}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	go r.bgp.Serve()
	if err := r.bgp.StartBgp(t.Context(), &api.StartBgpRequest{Global: &api.Global{Asn: 65000, RouterId: "192.0.2.1",
		ListenPort: int32(r.port), ListenAddresses: []string{at}}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.bgp.Stop)
	var families []*api.AfiSafi
	for _, afi := range []api.Family_Afi{api.Family_AFI_IP, api.Family_AFI_IP6} {
		families = append(families, &api.AfiSafi{Config: &api.AfiSafiConfig{Enabled: true,
			Family: &api.Family{Afi: afi, Safi: api.Family_SAFI_UNICAST}}})
	}
	if err := r.bgp.AddPeer(t.Context(), &api.AddPeerRequest{Peer: &api.Peer{Conf: &api.PeerConf{NeighborAddress: at, PeerAsn: 65001,
		AuthPassword: password}, Transport: &api.Transport{PassiveMode: true}, AfiSafis: families}}); err != nil {
		t.Fatal(err)
	}
	if err := r.bgp.WatchEvent(context.WithoutCancel(t.Context()), server.WatchEventMessageCallbacks{OnBestPath: func(paths []*apiutil.Path,
		_ time.Time) {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, p := range paths {
			if delete(r.routes, p.Nlri.String()); p.Withdrawal {
				continue
			}
			for _, a := range p.Attrs {
				switch a := a.(type) {
				case *bgp.PathAttributeNextHop:
					r.routes[p.Nlri.String()] = a.Value.String()
				case *bgp.PathAttributeMpReachNLRI:
					r.routes[p.Nlri.String()] = a.Nexthop.String()
				}
			}
		}
	}}, server.WatchBestPath(true)); err != nil {
		t.Fatal(err)
	}
	// The router announces a route that the speaker must not accept.
	path, err := pathTo(netip.MustParseAddr("203.0.113.7"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.bgp.AddPath(apiutil.AddPathRequest{Paths: []*apiutil.Path{path}}); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *router) route(prefix string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.routes[prefix]
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !holds(); time.Sleep(10 * time.Millisecond) { // polling interval
		if time.Now().After(deadline) {
			t.Fatalf("it never was so that %s", what)
		}
	}
}

// TestSpeaker checks that a router receives an address over IPv4 and IPv6 until it is withdrawn or the speaker stops. The speaker accepts
// no routes of the router.
func TestSpeaker(t *testing.T) {
	for _, c := range []struct{ at, address, prefix, password string }{
		{"127.0.0.1", "198.51.100.53", "198.51.100.53/32", ""},
		{"127.0.0.1", "198.51.100.53", "198.51.100.53/32", "a password"},
		{"::1", "2001:db8::53", "2001:db8::53/128", ""},
	} {
		t.Run(c.at+" "+c.password, func(t *testing.T) {
			r := newRouter(t, c.at, c.password)
			s := New(slog.New(slog.DiscardHandler), func() {})
			settings := checkin.AnycastService{Protocol: checkin.BGP, AutonomousSystemNumber: 65001, RouterID: "192.0.2.2", KeepAliveInterval: 1,
				HoldTimeInterval: 3, Neighbors: []checkin.BGPNeighbor{{Address: c.at, AutonomousSystemNumber: 65000, Port: r.port,
					AuthenticationPassword: &c.password}}}
			if moved, err := s.Set(t.Context(), settings); err != nil || !moved {
				t.Fatal(moved, err)
			}
			if moved, err := s.Set(t.Context(), settings); err != nil || moved {
				t.Errorf("the same settings again: %v, %v", moved, err)
			}
			address := netip.MustParseAddr(c.address)
			if err := s.Announce(address); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the router has the route", func() bool { return r.route(c.prefix) == c.at })
			eventually(t, "the neighbor is established", func() bool { return s.Neighbors()[netip.MustParseAddr(c.at)].Established })
			if !s.Announced(address) {
				t.Error("what is announced is not said to be")
			}
			began := time.Now()
			if err := s.Withdraw(address); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the route is gone", func() bool { return r.route(c.prefix) == "" })
			t.Logf("withdrawn after %v", time.Since(began))
			if s.Announced(address) {
				t.Error("a withdrawn route is reported as announced")
			}
			if err := s.Announce(address); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the router has the route again", func() bool { return r.route(c.prefix) == c.at })
			learned := 0
			if err := s.bgp.ListPath(apiutil.ListPathRequest{TableType: api.TableType_TABLE_TYPE_GLOBAL, Family: bgp.RF_IPv4_UC},
				func(n bgp.NLRI, _ []*apiutil.Path) {
					if n.String() == "203.0.113.7/32" {
						learned++
					}
				}); err != nil || learned > 0 {
				t.Errorf("%d routes were learned, %v", learned, err)
			}
			s.Stop()
			eventually(t, "the route went with the speaker", func() bool { return r.route(c.prefix) == "" })
		})
	}
}
