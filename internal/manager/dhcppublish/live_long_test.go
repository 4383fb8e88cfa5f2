package dhcppublish_test

import (
	"fmt"
	"regexp"
	"slices"
	"testing"
	"time"

	"portolan/internal/testkit/apitest"
	"portolan/internal/wire/dhcpdata"
)

// TestLongLiveChanges prints the time from the response to a change of a live network with 20,000 reservations to the content of the
// service point: for a reservation, a member of a MAC pool, and an option. A change that sends more than 64 KiB is an error (reference
// dhcp.md section 8, row 6).
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
	for kind, change := range map[string]func(i int) (unit, item string){
		"a reservation": func(i int) (unit, item string) {
			text := fmt.Sprintf("10.0.120.%d", 1+i)
			m.ID(at+"/addresses", fmt.Sprintf(`{"type":"IPv4Address","address":"%s","state":"DHCP_RESERVED","macAddress":{"address":"02005e%06x"}}`,
				text, i))
			return network, `"` + text + `"`
		},
		"a member of a MAC pool": func(i int) (unit, item string) {
			text := fmt.Sprintf("04005e%06x", i)
			m.ID("/api/v2/configurations/"+p.configuration+"/macAddresses", `{"address":"`+text+`","macPool":{"id":`+pool+`}}`)
			return dhcpdata.MACPoolUnit(apitest.Number(t, pool)), text
		},
		"an option": func(i int) (unit, item string) {
			p.option("networks/"+p.network, "default-lease-time", fmt.Sprint(20_000+i))
			return network, fmt.Sprintf(`:%d\b`, 20_000+i) // ids have six digits
		},
	} {
		var times []time.Duration
		octets := 0
		for i := range 100 {
			if kind == "an option" && i > 0 {
				all := m.Want(200, "GET", at+"/deploymentOptions", "")
				m.Want(204, "DELETE", "/api/v2/deploymentOptions/"+all.Text("data.0.id"), "")
			}
			unit, item := change(i)
			pattern := regexp.MustCompile(item)
			began := time.Now()
			apitest.Eventually(t, kind, func() bool {
				octets = max(octets, p.fetch())
				return slices.ContainsFunc(p.items(unit), pattern.MatchString)
			})
			times = append(times, time.Since(began))
		}
		slices.Sort(times)
		if octets > 64<<10 {
			t.Errorf("%s: a change sends %d octets, more than 65536", kind, octets)
		}
		t.Logf("%s: p50 %v, p99 %v (goal 1s), at most %d octets", kind, times[50].Round(time.Millisecond),
			times[98].Round(time.Millisecond), octets)
	}
}
