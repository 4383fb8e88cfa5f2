package snmpwalk

import (
	"cmp"
	"context"
	"errors"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"portolan/internal/testkit/snmpagent"
)

// TestMain answers snmpd if it started the program, and runs the tests otherwise.
func TestMain(m *testing.M) {
	snmpagent.Answer()
	os.Exit(m.Run())
}

// startAgent starts snmpd with tables of a switch, and waits until it answers.
func startAgent(t *testing.T) netip.AddrPort {
	t.Helper()
	at := snmpagent.Start(t, snmpagent.Switch)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		_, err := Read(ctx, Target{Address: at, Version: V2c, Communities: []string{snmpagent.Community}, Timeout: time.Second, Retries: 1,
			MaxRows: 1})
		if err == nil {
			return at
		}
		if ctx.Err() != nil {
			t.Fatalf("snmpd does not answer: %v", err)
		}
	}
}

// TestReadAgent reads snmpd of net-snmp with each version, and compares the tables.
func TestReadAgent(t *testing.T) {
	at := startAgent(t)
	for name, target := range map[string]Target{
		"v1":  {Version: V1, Communities: []string{"harbour"}},
		"v2c": {Version: V2c, Communities: []string{"wrong", "harbour"}, Timeout: time.Second, Retries: 1},
		"authPriv": {Version: V3, Usernames: []string{"watch"}, IsAuthenticated: true, IsEncrypted: true, AuthenticationProtocol: "SHA",
			AuthenticationPassphrase: "authphrase", PrivacyProtocol: "AES128", PrivacyPassphrase: "privphrase"},
		"authNoPriv": {Version: V3, Usernames: []string{"nobody", "looks"}, IsAuthenticated: true, AuthenticationProtocol: "MD5",
			AuthenticationPassphrase: "authphrase"},
	} {
		t.Run(name, func(t *testing.T) {
			target.Address, target.WithDevices = at, name != "authNoPriv"
			target.Timeout = cmp.Or(target.Timeout, 10*time.Second)
			packets := 0
			target.Pace = func(context.Context) error { packets++; return nil }
			d, err := Read(t.Context(), target)
			if err != nil {
				t.Fatal(err)
			}
			if len(d.Problems) > 0 || d.Name != "quay-switch" || d.Location != "Quay 1" || d.Description == "" {
				t.Errorf("the device is %+v", d)
			}
			port := Interface{Name: "ge-0/0/1", Description: "port one", Alias: "crane 4", MAC: "02-00-5E-00-00-01", Speed: 10_000_000_000,
				IsUp: true}
			if len(d.Interfaces) != 2 || d.Interfaces[1] != port || d.PortName(1) != "ge-0/0/1" || d.PortName(2) != "port two" {
				t.Errorf("the interfaces are %+v", d.Interfaces)
			}
			neighbours := []Neighbour{
				{netip.MustParseAddr("10.0.0.7"), "02-00-5E-00-53-07", 1},
				{netip.MustParseAddr("10.0.0.9"), "02-00-5E-00-53-09", 1},
				{netip.MustParseAddr("2001:db8::7"), "02-00-5E-00-53-07", 1},
			}
			if !slices.Equal(d.Neighbours, neighbours) {
				t.Errorf("the neighbours are %v", d.Neighbours)
			}
			if !slices.Equal(d.Stations, []Station{{MAC: "02-00-5E-00-53-07", Interface: 1, VLAN: 20}}) {
				t.Errorf("the stations are %v", d.Stations)
			}
			var devices []netip.Addr
			if target.WithDevices {
				for _, a := range []string{"10.0.0.250", "10.0.0.251", "127.0.0.2", "127.0.0.3"} {
					devices = append(devices, netip.MustParseAddr(a))
				}
			}
			if !slices.Equal(d.Devices, devices) {
				t.Errorf("the neighbouring devices are %v", d.Devices)
			}
			if packets < 20 {
				t.Errorf("%d packets were paced", packets)
			}
		})
	}
	for name, target := range map[string]Target{
		"community": {Version: V2c, Communities: []string{"wrong"}},
		"user":      {Version: V3, Usernames: []string{"nobody"}},
		"passphrase": {Version: V3, Usernames: []string{"watch"}, IsAuthenticated: true, AuthenticationProtocol: "SHA",
			AuthenticationPassphrase: "not this one"},
	} {
		target.Address, target.Timeout, target.Retries = at, 200*time.Millisecond, 1
		if d, err := Read(t.Context(), target); err == nil {
			t.Errorf("a wrong %s reads %+v", name, d)
		}
	}
	stop := errors.New("stopped")
	target := Target{Address: at, Version: V2c, Communities: []string{"harbour"}, Pace: func(context.Context) error { return stop }}
	if _, err := Read(t.Context(), target); !errors.Is(err, stop) {
		t.Errorf("a failing pace gives %v", err)
	}
	target.Pace, target.MaxRows, target.Timeout = nil, 1, 10*time.Second
	if d, err := Read(t.Context(), target); err != nil ||
		!strings.Contains(strings.Join(d.Problems, "; "), errTruncated.Error()) {
		t.Errorf("long tables: %v, %v", d, err)
	}
}
