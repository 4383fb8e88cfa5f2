package test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"portolan/internal/testkit/snmpagent"
)

// TestDiscoveryCommand runs a policy against a switch by the command, and lists, rejects and accepts its findings.
func TestDiscoveryCommand(t *testing.T) {
	t.Parallel()
	agent := snmpagent.Start(t, snmpagent.Switch)
	m := serve(t, "", "--sweep")
	m.setEnvironment()
	m.portolan("create", "configuration", "name=main")
	m.portolan("create", "block", "--in", "configurations/main", "range=10.0.0.0/8")
	m.portolan("create", "network", "--in", "blocks/10.0.0.0/8", "range=10.0.0.0/24")
	m.ends(2, "select findings by their ids", "discovery", "accept")
	m.portolan("create", "IPv4ReconciliationPolicy", "--in", "networks/10.0.0.0/24", "enabled=true", "discoveryMethod=SNMP",
		"startDateTime="+time.Now().AddDate(1, 0, 0).UTC().Format(time.RFC3339), "frequency=P1D", "packetsPerSecond=10000",
		fmt.Sprintf(`seedRouterAddresses=["%s"]`, agent.Addr()),
		fmt.Sprintf(`snmp={"version":"v2c","port":%d,"communities":["%s"]}`, agent.Port(), snmpagent.Community))
	policy := strings.TrimPrefix(m.portolan("list", "reconciliationPolicies", "-o", "name"), "reconciliationPolicies/")
	m.says([]string{"1 device read", "open finding"}, "discovery", "run", policy)
	m.says([]string{"DONE"}, "discovery", "runs", policy)
	m.says([]string{"UNKNOWN_ADDRESS", "10.0.0.7"}, "discovery", "findings")
	m.says([]string{"10.0.0.7", "02-00-5E-00-53-07"}, "discovery", "seen", "10.0.0.7")
	m.says([]string{"10.0.0.7"}, "discovery", "seen", "02:00:5e:00:53:07")
	m.says([]string{"10.0.0.7"}, "discovery", "seen", "networks/10.0.0.0/24")
	m.ends(0, "no observations", "discovery", "seen", "nothing.example")
	m.says([]string{"would be accepted"}, "discovery", "accept", "--kind", "UNKNOWN_ADDRESS", "--dry-run")
	if text := m.portolan("list", "addresses", "--filter", "address:'10.0.0.7'", "--total"); text != "0" {
		t.Errorf("the dry run created %s addresses", text)
	}
	m.says([]string{"rejected"}, "discovery", "reject", "--policy", policy)
	m.ends(0, "no findings", "discovery", "findings")
	m.says([]string{"REJECTED"}, "discovery", "findings", "--state", "all")
	var found []struct {
		ID      json.Number
		Address string
	}
	if err := json.Unmarshal([]byte(m.portolan("discovery", "findings", "--state", "REJECTED", "-o", "json")), &found); err != nil {
		t.Fatal(err)
	}
	for _, one := range found {
		if one.Address == "10.0.0.7" {
			m.says([]string{"1 finding accepted"}, "discovery", "accept", one.ID.String())
		}
	}
	if text := m.portolan("get", "addresses/10.0.0.7"); !strings.Contains(text, "STATIC") || !strings.Contains(text, "lastSeenDateTime") {
		t.Errorf("the accepted address is\n%s", text)
	}
}
