package main

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"portolan/client"
	"portolan/internal/base/snmpwalk"
	"portolan/internal/manager/discovery"
	"portolan/internal/manager/server"
)

// demoPolicy is the name of the reconciliation policy of the demo. It is disabled: the demo probes no network.
const demoPolicy = "quay scan"

// The scan of the demo covers demoScanned networks of the block 10.0.0.0/16, from 10.0.2.0/24 on, with demoScanHosts hosts each.
const (
	demoFirstScanned, demoScanned = 2, 4
	demoScanHosts                 = 54
)

// demoMAC returns the hardware address of the host at an address of the scanned networks.
func demoMAC(network, host int) string { return fmt.Sprintf("02-00-5E-20-%02X-%02X", network, host) }

// policy adds the reconciliation policy, and the hardware address of a host.
func (s *story) policy(ctx context.Context, api *client.Client) error {
	block, err := s.findOne(ctx, api, "blocks", "range:'10.0.0.0/16'")
	if err != nil {
		return err
	}
	s.add("POST", fmt.Sprintf("blocks/%d/reconciliationPolicies", block), map[string]any{"type": "IPv4ReconciliationPolicy",
		"name": demoPolicy, "enabled": false, "discoveryMethod": "SNMP_PINGSWEEP", "startDateTime": "2026-01-01T01:00:00Z",
		"frequency": "PT1H", "seedRouterAddresses": []string{"10.0.2.1"}, "notSeenDays": 0, "dnsServers": []string{"127.0.0.2"},
		"snmp": map[string]any{"version": "v2c", "communities": []string{"public"}}})
	host, err := s.findOne(ctx, api, "addresses", "address:'10.0.2.10'")
	if err != nil {
		return err
	}
	s.add("PATCH", fmt.Sprintf("addresses/%d", host), map[string]any{"macAddress": map[string]any{"address": "02-00-5E-21-02-0A"}})
	return nil
}

// demoDiscovery stores the scan of the demo as a run of its policy: when each address was seen last and at which port, and differences of
// all kinds, to accept or reject. It does nothing if the policy has a run.
func demoDiscovery(ctx context.Context, m *server.Manager, api *client.Client) error {
	ids, err := api.IDs(ctx, "reconciliationPolicies", "name:'"+demoPolicy+"'", 1)
	if err != nil || len(ids) == 0 { // the user deleted the policy
		return err
	}
	if runs, err := api.IDs(ctx, fmt.Sprintf("reconciliationPolicies/%d/reconciliationRuns", ids[0]), "", 1); err != nil || len(runs) > 0 {
		return err
	}
	return m.RecordScan(ctx, ids[0], demoScan(m.Store.Now()))
}

// demoScan returns the scan of the demo. The same time gives the same scan.
func demoScan(now time.Time) discovery.Scan {
	scan := discovery.Scan{Pinged: demoScanned * 254, Devices: map[netip.Addr]*snmpwalk.Device{
		netip.AddrFrom4([4]byte{10, 0, 2, 1}): {Name: "quay-router-1", Description: "Router of the quay", Location: "North basin",
			IsRouter: true},
		netip.AddrFrom4([4]byte{10, 0, 2, 2}): {Name: "quay-switch-1", Description: "Switch of the quay", Location: "North basin"},
	}}
	for n := demoFirstScanned; n < demoFirstScanned+demoScanned; n++ {
		for host := 1; host <= demoScanHosts+1; host++ {
			vlan := int64(101 + n)
			x := &discovery.Observation{Address: netip.AddrFrom4([4]byte{10, 0, byte(n), byte(host)}), MACAddress: demoMAC(n, host),
				Methods: []string{"NEIGHBOR", "PING"}, Router: "quay-router-1", RouterPort: fmt.Sprintf("vlan%d", vlan), VLAN: &vlan,
				Switch: fmt.Sprintf("quay-switch-%d", n-demoFirstScanned+1), SwitchPort: fmt.Sprintf("ge-0/0/%d", host),
				FirstSeenDateTime: now.Add(-demoPeriod - time.Duration(n*host)*time.Hour)}
			if host%20 == 17 { // such hosts are silent
				x.LastSeenDateTime = now.Add(-time.Duration(8+host) * 24 * time.Hour)
				scan.Earlier = append(scan.Earlier, x)
				continue
			}
			if host == 12 && n == demoFirstScanned {
				x.HostName = "tide-display.harbour.example"
			}
			scan.Seen = append(scan.Seen, x)
		}
	}
	for i, stranger := range []struct{ address, name string }{{"10.0.2.90", ""}, {"10.0.2.91", ""},
		{"10.0.3.140", "unknown-camera.harbour.example"},
		{"10.0.4.200", ""}, {"10.0.90.7", ""}} { // the last one is in no network
		scan.Seen = append(scan.Seen, &discovery.Observation{Address: netip.MustParseAddr(stranger.address), HostName: stranger.name,
			MACAddress: fmt.Sprintf("02-00-5E-22-00-%02X", i+1), Methods: []string{"NEIGHBOR"}, Router: "quay-router-1", RouterPort: "vlan199",
			Switch: "quay-switch-1", SwitchPort: fmt.Sprintf("ge-0/1/%d", i+1)})
	}
	return scan
}
