package ipam_test

import (
	"fmt"
	"strings"
	"testing"

	"portolan/internal/manager/ipam"
	"portolan/internal/testkit/apitest"
)

// TestDefaultMarksOfRanges checks the water marks of DHCPAlertSettings: they apply to ranges without such a mark, at once at a change of
// the usage and with a check of all ranges at a change of the settings.
func TestDefaultMarksOfRanges(t *testing.T) {
	m := startConcurrent(t)
	_, _, _, _, network := m.Basics()
	settings := "/api/v2/settings/" + m.Want(200, "GET", "/api/v2/settings?"+apitest.Filter("type:'DHCPAlertSettings'"), "").Text("data.0.id")
	set := func(body string) { t.Helper(); m.Want(200, "PATCH", settings, body, apitest.MergePatch) }
	for body, field := range map[string]string{`{"lowWaterMark":50,"highWaterMark":40}`: "lowWaterMark", `{"highWaterMark":101}`: "highWaterMark",
		`{"pollingInterval":"PT59S"}`: "pollingInterval", `{"pollingInterval":"P2D"}`: "pollingInterval"} {
		r := m.Do("PATCH", settings, body, apitest.MergePatch)
		if r.StatusCode != 400 || !strings.Contains(r.Text("message"), field) {
			t.Errorf("%s is answered with %s", body, r.Body)
		}
	}
	m.Work(ipam.NewRangeChecker(m.Store, apitest.Log()).Run)
	ranges := "/api/v2/networks/" + network + "/ranges"
	plain := m.ID(ranges, `{"type":"IPv4DHCPRange","range":"10.0.0.10-10.0.0.19","name":"plain"}`)
	own := m.ID(ranges, `{"type":"IPv4DHCPRange","range":"10.0.0.20-10.0.0.29","name":"own","highWaterMark":90}`)
	told := func(id, want string) {
		t.Helper()
		apitest.Eventually(t, want, func() bool {
			return m.Want(200, "GET", "/api/v2/events?filter=source.id:"+id+"&orderBy=desc(id)&limit=1", "").Text("data.0.message") == want
		})
	}
	assign := func(id string, n int) (last string) {
		t.Helper()
		for range n {
			last = m.ID("/api/v2/networks/"+network+"/addresses", `{"type":"IPv4Address","state":"STATIC"}`, "x-portolan-within: "+id)
		}
		return last
	}
	message := func(name, how string, used int) string {
		span := map[string]string{"plain": "10.0.0.10-10.0.0.19", "own": "10.0.0.20-10.0.0.29"}[name]
		return fmt.Sprintf("The usage of IPv4DHCPRange %s %s is %s: %d of 10 addresses, %d%%", span, name, how, used, 10*used)
	}
	assign(own, 5)
	last := assign(plain, 5)
	set(`{"highWaterMark":40,"pollingInterval":"PT1M"}`)
	told(plain, message("plain", "above its high water mark", 5))
	m.Want(204, "DELETE", "/api/v2/addresses/"+last, "")
	told(plain, message("plain", "between its water marks again", 4))
	set(`{"lowWaterMark":45,"highWaterMark":80}`)
	told(plain, message("plain", "below its low water mark", 4))
	assign(plain, 5)
	told(plain, message("plain", "above its high water mark", 9))
	set(`{"lowWaterMark":null,"highWaterMark":null}`)
	told(plain, message("plain", "between its water marks again", 9))
	if n := m.Want(200, "GET", "/api/v2/events?filter=source.id:"+own+"&total=true", "").Text("totalCount"); n != "0" {
		t.Errorf("a range with a mark of its own has %s events", n)
	}
	m.Verify()
}
