package server

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"portolan/internal/manager/figures"
	"portolan/internal/testkit/apitest"
	"portolan/internal/wire/stream"
)

// TestFigures checks that the usage of a network is measured and answered with its metric, that rights apply, that counters of service
// points become rates, and that bad requests are refused with their parameter.
func TestFigures(t *testing.T) {
	m := startOnce(t, func(o *Options) { o.FigureBytes = 64 << 20 })
	configuration := m.ID("/api/v2/configurations", `{"name":"main"}`)
	block := m.ID("/api/v2/configurations/"+configuration+"/blocks", `{"type":"IPv4Block","range":"10.0.0.0/8"}`)
	network := m.ID("/api/v2/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"10.1.0.0/30"}`)
	other := m.ID("/api/v2/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"10.2.0.0/24"}`)
	s := &figureSampler{m: m.Manager, counters: map[counterKey]counterValue{}}
	now := m.now().Truncate(time.Minute)
	measure := func(at time.Time) {
		t.Helper()
		if err := s.measure(t.Context(), at, true); err != nil {
			t.Fatal(err)
		}
	}
	measure(now.Add(-10 * time.Minute))
	m.ID("/api/v2/networks/"+network+"/addresses", `{"type":"IPv4Address","address":"10.1.0.2","state":"STATIC"}`)
	measure(now.Add(-5 * time.Minute))
	measure(now.Add(-4 * time.Minute)) // networks are measured every five minutes
	r := m.Want(200, "GET", "/api/v2/figures?object=networks/"+network+"&step=60", "")
	if r.Text("metrics.0.name") != "utilization" || r.Text("metrics.0.unit") != "ratio" || r.Text("metrics.0.lines.0.mean.0") != "0.5" ||
		r.Text("metrics.0.lines.0.mean.1") != "1" || strings.Count(string(r.Body), `"at":[`) != 1 {
		t.Errorf("the figures are %s", r.Body)
	}
	r = m.Want(200, "GET", "/api/v2/figures?object=manager&metric=requests,servicePoints", "")
	if !strings.Contains(string(r.Body), `"name":"requests"`) || strings.Contains(string(r.Body), `"name":"alarms"`) {
		t.Errorf("the figures of the manager are %s", r.Body)
	}
	for query, field := range map[string]string{"object=network/1": "object", "object=networks": "object", "object=manager/1": "object",
		"object=networks/x": "object", "object=manager&metric=utilization": "metric", "object=manager&from=yesterday": "from",
		"object=manager&to=2020-01-01T00:00:00Z&from=2021-01-01T00:00:00Z": "from", "object=manager&step=0": "step",
		"object=manager&from=2020-01-01T00:00:00Z&step=60": "step"} {
		m.Refused(400, "InvalidQueryParameterValue", field, "GET", "/api/v2/figures?"+query, "")
	}
	m.Want(404, "GET", "/api/v2/figures?object=networks/1", "")
	m.Want(404, "GET", "/api/v2/figures?object=networks/"+block, "")
	m.Want(404, "GET", "/api/v2/figures?object=servicePoints/none", "")
	carol := m.ID("/api/v2/users", `{"name":"carol","email":"carol@example.net","accessType":"API","securityPrivilege":"NO_ACCESS",`+
		`"password":"a-long-password"}`)
	auth := apitest.BasicAuth("carol", "a-long-password")
	m.ID("/api/v2/accessRights", `{"userScope":{"id":`+carol+`},"resource":{"id":`+network+`},"defaultAccessLevel":"VIEW"}`)
	if r := m.Want(200, "GET", "/api/v2/figures?object=networks/"+network, "", auth); r.Text("metrics.0.name") != "utilization" {
		t.Errorf("carol sees %s", r.Body)
	}
	m.Want(404, "GET", "/api/v2/figures?object=networks/"+other, "", auth)
	m.Refused(403, "AccessDenied", "figures of the manager", "GET", "/api/v2/figures?object=manager", "", auth)
}

// TestRates checks that counters become rates, that a counter that begins anew counts from zero, and that a value that did not arrive
// again counts once.
func TestRates(t *testing.T) {
	t.Parallel()
	s := &figureSampler{counters: map[counterKey]counterValue{}}
	begin := time.Unix(1_800_000_000, 0)
	for i, one := range []struct {
		after, value, rate float64
		ok                 bool
	}{{0, 600, 0, false}, {60, 1200, 10, true}, {60, 1200, 0, false}, {120, 60, 1, true}, {3720, 60, 0, true}} {
		at := begin.Add(time.Duration(one.after) * time.Second)
		rate, ok := s.rate(counterKey{"a", "1/b", stream.Queries, "NOERROR"}, at, one.value)
		if rate != one.rate || ok != one.ok {
			t.Errorf("%d: %v, %v", i, rate, ok)
		}
	}
}

// TestForecast checks that networks are listed by their utilization and by their growth, for those who see them.
func TestForecast(t *testing.T) {
	m := startOnce(t, func(o *Options) { o.FigureBytes = 64 << 20 })
	configuration := m.ID("/api/v2/configurations", `{"name":"main"}`)
	block := m.ID("/api/v2/configurations/"+configuration+"/blocks", `{"type":"IPv4Block","range":"10.0.0.0/8"}`)
	ids := []string{}
	for _, name := range []string{"10.1.0.0/24", "10.2.0.0/24", "10.3.0.0/24"} {
		ids = append(ids, m.ID("/api/v2/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"`+name+`"}`))
	}
	now := m.now()
	if err := m.FillFigures(t.Context(), 28*24*time.Hour, func(at time.Time) (all []figures.Sample) {
		days := now.Sub(at).Hours() / 24
		for i, share := range []float64{0.9, 0.8 - 0.02*days, 0.2} { // full, filling and empty
			all = append(all, figures.Sample{Metric: "utilization", Object: "networks/" + ids[i], Value: max(0, share)})
		}
		return append(all, figures.Sample{Metric: "utilization", Object: "networks/1", Value: 1})
	}); err != nil {
		t.Fatal(err)
	}
	r := m.Want(200, "GET", "/api/v2/spaceForecast", "")
	if r.Text("fullest.0.id") != ids[0] || r.Text("filling.0.id") != ids[1] || r.Text("filling.1.id") != "" {
		t.Errorf("the forecast is %s", r.Body)
	}
	if days := r.Text("filling.0.fullInDays"); !strings.HasPrefix(days, "10.") && !strings.HasPrefix(days, "9.") {
		t.Errorf("the network is full in %s days", days)
	}
	m.ID("/api/v2/users", `{"name":"carol","email":"carol@example.net","accessType":"API","securityPrivilege":"NO_ACCESS","password":"a-long-password"}`)
	if r := m.Want(200, "GET", "/api/v2/spaceForecast", "", apitest.BasicAuth("carol", "a-long-password")); r.Text("fullest.0.id") != "" {
		t.Errorf("carol sees %s", r.Body)
	}
}

// TestNoFigures checks the answer of a manager without figures.
func TestNoFigures(t *testing.T) {
	m := startOnce(t)
	m.Refused(503, "FiguresDisabled", "--data", "GET", "/api/v2/figures?object=manager", "")
	m.Refused(503, "FiguresDisabled", "--data", "GET", "/api/v2/spaceForecast", "")
}

// TestFiguresAtServer checks that a manager sends its samples to a Prometheus-compatible server.
func TestFiguresAtServer(t *testing.T) {
	got := make(chan string, 10)
	there := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if got <- r.URL.Path + " " + r.Header.Get("Content-Encoding"); r.URL.Path != "/api/v1/write" {
			_, _ = w.Write([]byte(`{"status":"success","data":{"result":[]}}`))
		}
	}))
	defer there.Close()
	m := startOnce(t, func(o *Options) { o.FiguresURL = mustURL(t, there.URL) })
	s := &figureSampler{m: m.Manager, counters: map[counterKey]counterValue{}}
	if err := s.measure(t.Context(), m.now(), true); err != nil {
		t.Fatal(err)
	}
	if is := <-got; is != "/api/v1/write snappy" {
		t.Errorf("the server got %s", is)
	}
	m.Want(200, "GET", "/api/v2/figures?object=manager", "")
	if is := <-got; !strings.HasPrefix(is, "/api/v1/query_range") {
		t.Errorf("the server got %s", is)
	}
}

func mustURL(t *testing.T, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}
