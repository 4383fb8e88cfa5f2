package snmpwalk

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gosnmp/gosnmp"
)

// TestForwardingTablesByVLAN reads a switch whose forwarding tables have a community for each VLAN. Its VLAN 30 does not answer.
func TestForwardingTablesByVLAN(t *testing.T) {
	row := func(oid string, kind gosnmp.Asn1BER, value any) gosnmp.SnmpPDU {
		return gosnmp.SnmpPDU{Name: oid, Type: kind, Value: value}
	}
	tables := map[string][]gosnmp.SnmpPDU{
		"harbour": {
			row(".1.3.6.1.2.1.1.5.0", gosnmp.OctetString, "quay-switch"),
			row(bridgeTable+".2.0.94.0.83.7", gosnmp.Integer, 11), // without a VLAN
			row(bridgeStatus+".2.0.94.0.83.7", gosnmp.Integer, learnedStatus),
			row(vtpVLANState+".1.1", gosnmp.Integer, 2), row(vtpVLANState+".1.20", gosnmp.Integer, 1),
			row(vtpVLANState+".1.30", gosnmp.Integer, 1), row(vtpVLANState+".1.40", gosnmp.Integer, 1),
			row(vtpVLANState+".1.1002", gosnmp.Integer, 1)},
		"harbour@20": {
			row(bridgePort+".11", gosnmp.Integer, 7),
			row(bridgeTable+".2.0.94.0.83.7", gosnmp.Integer, 11), row(bridgeTable+".2.0.94.0.83.8", gosnmp.Integer, 11),
			row(bridgeStatus+".2.0.94.0.83.7", gosnmp.Integer, learnedStatus), row(bridgeStatus+".2.0.94.0.83.8", gosnmp.Integer, 4)},
		"harbour@40": {
			row(bridgePort+".12", gosnmp.Integer, 8),
			row(bridgeTable+".2.0.94.0.83.7", gosnmp.Integer, 12), row(bridgeStatus+".2.0.94.0.83.7", gosnmp.Integer, learnedStatus)},
	}
	at := startFake(t, func(r *gosnmp.SnmpPacket) []byte {
		rows, ok := tables[r.Community]
		if !ok {
			return nil
		}
		asked, _ := parseOID(r.Variables[0].Name)
		next := slices.IndexFunc(rows, func(v gosnmp.SnmpPDU) bool {
			oid, _ := parseOID(v.Name)
			order := slices.Compare(oid, asked)
			return order > 0 && !isGet(r) || order == 0 && isGet(r)
		})
		if next < 0 {
			return reply(r, 0, gosnmp.SnmpPDU{Name: r.Variables[0].Name, Type: gosnmp.EndOfMibView})
		}
		return reply(r, 0, rows[next])
	})
	target := Target{Address: at, Version: V2c, Communities: []string{"harbour"}, Timeout: time.Second, Retries: 1}
	for byVLAN, want := range map[bool][]Station{
		false: {{MAC: "02-00-5E-00-53-07"}},
		true:  {{MAC: "02-00-5E-00-53-07", Interface: 7, VLAN: 20}, {MAC: "02-00-5E-00-53-07", Interface: 8, VLAN: 40}},
	} {
		target.ByVLAN = byVLAN
		d, err := Read(t.Context(), target)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(d.Stations, want) {
			t.Errorf("by VLAN %v: the stations are %v", byVLAN, d.Stations)
		}
		if problems := strings.Join(d.Problems, "; "); byVLAN != strings.Contains(problems, "VLAN 30: ") {
			t.Errorf("by VLAN %v: the problems are %q", byVLAN, problems)
		}
	}
	v3 := Target{Version: V3, Context: "core"}
	if one, credential := v3.vlanTarget("watch", 20); one.Context != "vlan-20" || credential != "watch" || v3.Context != "core" {
		t.Errorf("the access data of a VLAN are %+v, %s", one, credential)
	}
}
