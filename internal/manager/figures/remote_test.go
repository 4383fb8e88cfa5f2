package figures

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/s2"
	"github.com/prometheus/prometheus/prompb"
)

// promServer is a server with the HTTP API of Prometheus that decodes what it receives with the types of Prometheus.
type promServer struct {
	mu sync.Mutex
	// got are the samples as NAME OBJECT BY INSTANCE VALUE, queries the queries. status answers writes; guarded by mu.
	got, queries []string
	status       int
}

func (p *promServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.URL.Path != "/prometheus/api/v1/write" {
		p.queries = append(p.queries, r.FormValue("query"))
		_, _ = fmt.Fprintf(w, `{"status":"success","data":{"result":[{"metric":{"metric":"portolan_figure_queries","object":"manager",`+
			`"by":"NOERROR"},"values":[[%d,"12.5"],[%[1]d.0,"12.5"]],"value":[1,"0.25"]}]}}`, begin.Unix()+60)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err == nil {
		body, err = s2.Decode(nil, body)
	}
	var all prompb.WriteRequest
	if err == nil {
		err = all.Unmarshal(body)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if p.status != 0 {
		http.Error(w, "not now", p.status)
		return
	}
	for _, s := range all.Timeseries {
		labels := map[string]string{}
		for _, l := range s.Labels {
			labels[l.Name] = l.Value
		}
		p.got = append(p.got, fmt.Sprint(labels["__name__"], " ", labels["object"], " ", labels["by"], " ", labels["instance"], " ",
			s.Samples[0].Value, " ", s.Samples[0].Timestamp))
	}
}

// TestRemote checks that samples arrive at a Prometheus-compatible server, also those of a time when it was down, that refused ones do not
// block later ones, and that its answers become lines.
func TestRemote(t *testing.T) {
	t.Parallel()
	p := &promServer{status: http.StatusServiceUnavailable}
	there := httptest.NewServer(p)
	defer there.Close()
	base, err := url.Parse(there.URL + "/prometheus")
	if err != nil {
		t.Fatal(err)
	}
	c := &clock{begin}
	r := NewRemote(base, "one", there.Client(), func() time.Time { return c.now })
	send := func(after time.Duration, status int, fails bool) {
		t.Helper()
		p.mu.Lock()
		p.status = status
		p.mu.Unlock()
		err := r.Append(t.Context(), begin.Add(after), []Sample{{"queries", Manager, "NOERROR", 12.5}, {"requests", Manager, "address", 1}})
		if (err != nil) != fails {
			t.Errorf("after %v: %v", after, err)
		}
	}
	send(0, http.StatusServiceUnavailable, true)
	send(time.Minute, 0, false)
	send(2*time.Minute, http.StatusBadRequest, true)
	send(3*time.Minute, 0, false)
	at := begin.UnixMilli()
	want := []string{}
	for _, minute := range []int64{0, 1, 3} {
		want = append(want, fmt.Sprint("portolan_figure_queries manager NOERROR  12.5 ", at+minute*60_000),
			fmt.Sprint("portolan_figure_requests manager address one 1 ", at+minute*60_000))
	}
	if fmt.Sprint(p.got) != fmt.Sprint(want) {
		t.Errorf("the server got\n%q, not\n%q", p.got, want)
	}
	if _, sent, lost := r.Usage(); sent != 6 || lost != 2 {
		t.Errorf("%d samples were sent and %d lost", sent, lost)
	}
	c.now = begin.Add(time.Hour)
	lines, err := r.Query(t.Context(), Query{Object: Manager, Metrics: []string{"queries"}, From: begin, To: c.now, Step: time.Minute})
	if err != nil || len(lines) != 1 || fmt.Sprint(lines[0].Points) != fmt.Sprintf("[{%d 12.5 12.5}]", begin.Unix()) {
		t.Errorf("%v, %v", lines, err)
	}
	trends, err := r.Trends(t.Context(), "utilization", begin)
	if err != nil || trends[Manager] != (Trend{Last: 0.25, PerDay: 0.25 * 86400}) {
		t.Errorf("%v, %v", trends, err)
	}
}
