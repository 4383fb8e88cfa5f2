package figures

import (
	"bufio"
	"math"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"portolan/internal/testkit/peers"
)

// startPrometheus starts a Prometheus server that receives samples by remote write, and returns its URL.
func startPrometheus(t *testing.T) *url.URL {
	t.Helper()
	program, dir := peers.Program(t, "prometheus"), t.TempDir()
	settings := filepath.Join(dir, "prometheus.yaml")
	if err := os.WriteFile(settings, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), program, "--config.file", settings, "--storage.tsdb.path", filepath.Join(dir, "data"),
		"--web.listen-address", "127.0.0.1:0", "--web.enable-remote-write-receiver")
	log, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	starting := time.AfterFunc(time.Minute, func() { _ = c.Process.Kill() })
	defer starting.Stop()
	found := regexp.MustCompile(`"Listening on" address=(\S+)`)
	lines := bufio.NewScanner(log)
	for address := ""; lines.Scan(); {
		if m := found.FindStringSubmatch(lines.Text()); m != nil {
			address = m[1]
		}
		if address != "" && strings.Contains(lines.Text(), "ready to receive web requests") {
			go func() {
				for lines.Scan() {
				}
			}()
			return &url.URL{Scheme: "http", Host: address}
		}
	}
	t.Fatal("prometheus does not become ready")
	return nil
}

// TestPrometheusServer stores figures at a real Prometheus server, and reads lines and trends from it.
func TestPrometheusServer(t *testing.T) {
	t.Parallel()
	at := startPrometheus(t)
	now := time.Now().Truncate(time.Minute)
	r := NewRemote(at, "one", http.DefaultClient, func() time.Time { return now })
	const minutes = 90
	from := now.Add(-minutes * time.Minute)
	for i := range minutes + 1 {
		if err := r.Append(t.Context(), from.Add(time.Duration(i)*time.Minute), []Sample{
			{"utilization", "networks/7", "", 0.1 + 0.001*float64(i)}, {"queries", Manager, "NOERROR", 12}, {"queries", Manager, "NXDOMAIN", 3},
			{"requests", Manager, "address", 1}}); err != nil {
			t.Fatalf("minute %d: %v", i, err)
		}
	}
	if _, sent, lost := r.Usage(); sent != 4*(minutes+1) || lost != 0 {
		t.Errorf("%d samples were sent and %d lost", sent, lost)
	}
	query := func(object, metric string, step time.Duration) []Line {
		t.Helper()
		lines, err := r.Query(t.Context(), Query{Object: object, Metrics: []string{metric}, From: from, To: now, Step: step})
		if err != nil {
			t.Fatal(err)
		}
		return lines
	}
	lines := query("networks/7", "utilization", time.Minute)
	if len(lines) != 1 || len(lines[0].Points) < minutes-1 {
		t.Fatalf("the utilization is %v", lines)
	}
	first, last := lines[0].Points[0], lines[0].Points[len(lines[0].Points)-1]
	if math.Abs(first.Mean-0.1) > 0.003 || math.Abs(last.Mean-(0.1+0.001*minutes)) > 0.003 {
		t.Errorf("the utilization goes from %v to %v", first, last)
	}
	if lines := query(Manager, "queries", 15*time.Minute); len(lines) != 2 || len(lines[0].Points) < 5 {
		t.Errorf("the queries are %v", lines)
	}
	if lines := query("networks/8", "utilization", time.Minute); len(lines) != 0 && len(lines[0].Points) != 0 {
		t.Errorf("an object without figures has %v", lines)
	}
	trends, err := r.Trends(t.Context(), "utilization", from)
	if err != nil {
		t.Fatal(err)
	}
	if got := trends["networks/7"]; math.Abs(got.Last-(0.1+0.001*minutes)) > 0.003 || math.Abs(got.PerDay-1.44) > 0.05 {
		t.Errorf("the trend is %+v", got)
	}
}
