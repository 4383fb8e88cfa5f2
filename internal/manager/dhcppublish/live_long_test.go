package dhcppublish_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"portolan/internal/testkit/apitest"
	"portolan/internal/wire/dhcpdata"
)

// TestLongLiveChanges prints the time from a change of a live network with 20,000 reservations to the content of the service point, and
// the octets that it sends: for a reservation, a member of a MAC pool, and an option.
func TestLongLiveChanges(t *testing.T) {
	apitest.Long(t)
	m := startAlone(t)
	p := m.dhcpServer()
	at := "/api/v2/networks/" + p.network
	m.Want(200, "PATCH", at, `{"range":"10.0.0.0/17","dynamicUpdateEnabled":true}`, apitest.MergePatch)
	for i := range 20_000 {
		m.Want(201, "POST", at+"/addresses", fmt.Sprintf(`{"type":"IPv4Address","address":"10.0.%d.%d","state":"DHCP_RESERVED",`+
			`"macAddress":{"address":"00005e%06x"}}`, 1+i/250, 1+i%250, i))
	}
	pool := m.ID("/api/v2/configurations/"+p.configuration+"/macPools", `{"type":"MACPool","name":"guests","instantDeploymentEnabled":true}`)
	p.deploys()
	network := dhcpdata.NetworkUnit(apitest.Number(t, p.network))
	for kind, change := range map[string]func(i int) (unit, text string){
		"a reservation": func(i int) (unit, text string) {
			text = fmt.Sprintf("10.0.120.%d", 1+i)
			m.ID(at+"/addresses", fmt.Sprintf(`{"type":"IPv4Address","address":"%s","state":"DHCP_RESERVED","macAddress":{"address":"02005e%06x"}}`,
				text, i))
			return network, text
		},
		"a member of a MAC pool": func(i int) (unit, text string) {
			text = fmt.Sprintf("04005e%06x", i)
			m.ID("/api/v2/configurations/"+p.configuration+"/macAddresses", `{"address":"`+text+`","macPool":{"id":`+pool+`}}`)
			return dhcpdata.MACPoolUnit(apitest.Number(t, pool)), text
		},
		"an option": func(i int) (unit, text string) {
			p.option("networks/"+p.network, "default-lease-time", fmt.Sprint(20_000+i))
			return network, fmt.Sprint(20_000 + i)
		},
	} {
		var times []time.Duration
		octets := 0
		for i := range 100 {
			if kind == "an option" && i > 0 {
				all := m.Want(200, "GET", at+"/deploymentOptions", "")
				m.Want(204, "DELETE", "/api/v2/deploymentOptions/"+all.Text("data.0.id"), "")
			}
			unit, text := change(i)
			began := time.Now()
			apitest.Eventually(t, kind, func() bool {
				octets = max(octets, p.fetch())
				return strings.Contains(strings.Join(p.items(unit), "\n"), text)
			})
			times = append(times, time.Since(began))
		}
		slices.Sort(times)
		t.Logf("%s: p50 %v, p99 %v (goal 1s), at most %d octets (goal 65536)", kind, times[50].Round(time.Millisecond),
			times[98].Round(time.Millisecond), octets)
	}
}
