package test

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/osrg/gobgp/v4/api"
	"github.com/osrg/gobgp/v4/pkg/apiutil"
	"github.com/osrg/gobgp/v4/pkg/packet/bgp"
	"github.com/osrg/gobgp/v4/pkg/server"
)

// routerVariable is the environment variable that makes this program a router. Its value is the router's address and that of its neighbor.
const routerVariable = "PORTOLAN_TEST_ROUTER"

// route runs a router. It prints each route that it learns as "+ PREFIX NEXT-HOP" and each withdrawal as "- PREFIX", with the time in
// front.
func route(addresses string) error {
	var own, neighbor string
	if _, err := fmt.Sscan(addresses, &own, &neighbor); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	r := server.NewBgpServer()
	go r.Serve()
	if err := r.StartBgp(ctx, &api.StartBgpRequest{Global: &api.Global{Asn: 65000, RouterId: own, ListenPort: 179,
		ListenAddresses: []string{own}}}); err != nil {
		return err
	}
	if err := r.WatchEvent(ctx, server.WatchEventMessageCallbacks{OnBestPath: func(paths []*apiutil.Path, _ time.Time) {
		for _, p := range paths {
			at := time.Now().UTC().Format(time.RFC3339Nano)
			if p.Withdrawal {
				fmt.Println(at, "-", p.Nlri)
				continue
			}
			for _, a := range p.Attrs {
				if next, ok := a.(*bgp.PathAttributeNextHop); ok {
					fmt.Println(at, "+", p.Nlri, next.Value)
				}
			}
		}
	}}, server.WatchBestPath(true)); err != nil {
		return err
	}
	err := r.AddPeer(ctx, &api.AddPeerRequest{Peer: &api.Peer{Conf: &api.PeerConf{NeighborAddress: neighbor, PeerAsn: 65001,
		AuthPassword: "a password"}, Transport: &api.Transport{PassiveMode: true}}})
	if err != nil {
		return err
	}
	<-ctx.Done()
	return r.StopBgp(context.WithoutCancel(ctx), &api.StopBgpRequest{})
}

// beRouter runs a router and exits if routerVariable is set.
func beRouter() {
	if addresses := os.Getenv(routerVariable); addresses != "" {
		if err := route(addresses); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
}
