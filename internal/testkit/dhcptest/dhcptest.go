// Package dhcptest writes what a DHCP server would report into the database of a manager: leases with their history, refused clients, and
// samples for a forecast. Tests and pictures of the console use it in place of a service point.
package dhcptest

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
	"portolan/internal/manager/dhcp"
	"portolan/internal/wire/dhcpdata"
	"portolan/internal/wire/dhcplease"

	"github.com/klauspost/compress/zstd"
)

// Fill reports as a service point with a server. The network has the id given and contains first, the first address of a range; the
// clients get every address of the first two thirds of size addresses.
func Fill(ctx context.Context, a *resource.API, servicePoint string, network int64, first netip.Addr, size int) error {
	now := a.Store.Now().Truncate(time.Second)
	var records []any
	sequence := uint64(0)
	add := func(kind dhcplease.Kind, at time.Time, l dhcplease.Lease) {
		sequence++
		records = append(records, dhcplease.Record{Journal: "sample", Sequence: sequence, At: at.UnixMilli(),
			Event: &dhcplease.Event{Kind: kind, Lease: l}})
	}
	names := []string{"crane-display", "gate-scanner", "office-pc", "", "weighbridge", "camera"}
	address := first
	const steps = 4
	leased := size * 2 / 3
	apply := func() error {
		err := a.Store.Update(ctx, store.Author{}, func(tx *store.Tx) error {
			return dhcp.NewReporter(a).Apply(tx, servicePoint, 1, records)
		})
		records = nil
		return err
	}
	for n := range leased {
		start := now.Add(-time.Duration(leased-n) * 20 * time.Minute)
		l := dhcplease.Lease{Network: network, Address: address, Start: start.Unix(), Expires: now.Add(time.Duration(n+2) * time.Hour).Unix(),
			MAC: fmt.Sprintf("00005e0053%02x", n%256), HostName: names[n%len(names)], CircuitID: fmt.Sprintf("%x", fmt.Sprintf("ge-0/0/%d", n%48)),
			VendorClass: "4d53465420352e30", Parameters: []int{1, 3, 6, 15}}
		earlier := l
		earlier.MAC, earlier.Start = fmt.Sprintf("00005e0054%02x", n%256), start.Add(-30*time.Hour).Unix()
		add(dhcplease.Begin, start.Add(-30*time.Hour), earlier)
		add(dhcplease.Expire, start.Add(-2*time.Hour), earlier)
		add(dhcplease.Begin, start, l)
		switch n % 17 {
		case 5:
			add(dhcplease.Release, now.Add(-time.Hour), l)
		case 11:
			add(dhcplease.Decline, now.Add(-2*time.Hour), l)
		}
		address = address.Next()
		if (n+1)%max(1, leased/steps) == 0 {
			if err := apply(); err != nil {
				return err
			}
			step := (n + 1) / max(1, leased/steps)
			if _, err := dhcp.SampleRanges(ctx, a.Store.Update, now.Add(time.Duration(step-steps)*2*time.Hour)); err != nil {
				return err
			}
		}
	}
	if err := apply(); err != nil {
		return err
	}
	return a.Store.Update(ctx, store.Author{}, func(tx *store.Tx) error {
		return dhcp.NewObservationReporter(a).Apply(tx, servicePoint, []any{observation(network, now)})
	})
}

// observation returns refused clients of a network, and one in no network.
func observation(network int64, now time.Time) dhcplease.Observation {
	o := dhcplease.Observation{Counts: []dhcplease.RefusedCount{{Network: network, Reason: "no-free-address", Count: 211},
		{Network: network, Reason: "denied-mac-pool", Count: 48}, {Network: network, Reason: "unknown-client", Count: 5},
		{Reason: "no-network", Count: 17}}}
	for n, reason := range []string{"no-free-address", "denied-mac-pool", "no-free-address", "unknown-client", "no-network"} {
		r := dhcplease.Refused{Network: network, Reason: reason, Message: "DISCOVER", Count: int64(40 - 7*n),
			First: now.Add(-time.Duration(n+1) * time.Hour).Unix(), Last: now.Add(-time.Duration(n) * 11 * time.Minute).Unix(),
			MAC: fmt.Sprintf("00005e0055%02x", n), HostName: "phone", CircuitID: "67652d302f302f3132"}
		if reason == "no-network" {
			r.Network, r.Relay = 0, netip.MustParseAddr("192.0.2.1")
		}
		o.Refused = append(o.Refused, r)
	}
	return o
}

// Deploy stores that a network is deployed to a server, with a unit that has no records: the live deployment reads it.
func Deploy(ctx context.Context, s *store.Store, server, network int64) error {
	packer, err := zstd.NewWriter(nil)
	if err != nil {
		return err
	}
	unit, err := dhcpdata.NewUnit(dhcpdata.NetworkUnit(network), nil)
	if err != nil {
		return err
	}
	return s.Update(ctx, store.Author{}, func(tx *store.Tx) error {
		return tx.Write("INSERT INTO dhcp_unit (server, unit, hash, records) VALUES (?, ?, ?, ?)", server, unit.ID, unit.Hash,
			packer.EncodeAll([]byte("[]"), nil))
	})
}
