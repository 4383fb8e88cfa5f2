package test

import (
	"path/filepath"
	"testing"
)

// TestDHCPImportsTwice imports large configurations of ISC dhcpd and Kea for a failover pair: with classes, subclasses, keys, zones,
// limits of lease times in pools, and option definitions. A second import changes nothing, the servers can be deployed, and clients get
// the answers of the file. The same file is imported into a second configuration, whose tags have the same names.
func TestDHCPImportsTwice(t *testing.T) {
	t.Parallel()
	for file, c := range map[string]struct {
		kind string
		asks map[string][]string // the start of the explanation by network, client and vendor class
	}{
		"quays.conf": {"dhcpd", map[string][]string{
			"server dhcp1 offers 172.20.7.10 for": {"networks/172.20.7.0/24", "00:00:5e:00:53:05"},
			"does not answer: denied-class":       {"networks/172.20.7.0/24", "00:00:5e:00:53:f1"},
			"classes: telephones":                 {"networks/172.20.5.0/24", "02:00:00:00:00:78", "--vendor-class", "PhoneX-1"},
			"does not answer: denied-mac-pool":    {"networks/192.0.2.0/24", "00:00:5e:00:53:05"},
			"offers 192.0.2.20 for 900 s":         {"networks/192.0.2.0/24", "02:00:00:00:00:79"}}},
		"meters4.json": {"kea", map[string][]string{
			"server dhcp1 offers 10.40.3.10 for": {"networks/10.40.3.0/24", "00:00:5e:00:54:06"},
			"does not answer: denied-class":      {"networks/10.40.3.0/24", "02:00:00:00:00:78"},
			"classes: modems":                    {"networks/10.40.3.0/24", "02:00:00:00:00:79", "--vendor-class", "docsis3"},
			"offers 10.40.1.64 for":              {"networks/10.40.1.0/24", "02:00:00:00:00:78"}}},
	} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			m := serve(t, "")
			m.setEnvironment()
			for _, configuration := range []string{"main", "other"} {
				id := m.id("/configurations", `{"name":"`+configuration+`"}`)
				for name, address := range map[string]string{"dhcp1": "172.20.0.2", "dhcp2": "172.20.1.2"} {
					m.id("/configurations/"+id+"/servers", `{"type":"Server","name":"`+name+`","profile":"PORTOLAN_SERVICE_POINT",`+
						`"interfaces":[{"managementAddress":"`+address+`"}]}`)
				}
				command := []string{"import", c.kind, filepath.Join("testdata", "dhcp", file), "--configuration", configuration, "--server", "dhcp1",
					"--partner", "dhcp2", "-y"}
				m.ends(0, ", transaction ", command...)
				m.ends(0, "no changes", command...)
				if configuration == "other" {
					continue
				}
				for says, ask := range c.asks {
					m.says([]string{says}, append([]string{"dhcp", "explain", "--planned"}, ask...)...)
				}
			}
			m.check()
		})
	}
}
