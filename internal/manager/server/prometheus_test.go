package server

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"portolan/internal/testkit/apitest"

	"go.yaml.in/yaml/v3"
)

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// prometheusProgram gives the path of a program of Prometheus; without it the test is skipped, which CI takes for a failure.
func prometheusProgram(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	switch {
	case err == nil:
		return path
	case os.Getenv("CI") == "true":
		t.Fatalf("%s is missing: it comes with Debian's package prometheus", name)
	}
	t.Skipf("there is no %s here", name)
	return ""
}

// TestAlertsFire checks that each alert fires if everything is wrong, and none if nothing is. The tests of the rules include every alert.
func TestAlertsFire(t *testing.T) {
	apitest.RunParallel(t)
	rules, tests := "../../../packaging/prometheus/alerts.yaml", "../../../packaging/prometheus/alerts_test.yaml"
	var alerts, fired []string
	for _, m := range regexp.MustCompile(`- alert: (\w+)`).FindAllStringSubmatch(read(t, rules), -1) {
		alerts = append(alerts, m[1])
	}
	for _, m := range regexp.MustCompile(`\{labels: '\{alertname="(\w+)"\}', value: 1\}`).FindAllStringSubmatch(read(t, tests), -1) {
		fired = append(fired, m[1])
	}
	slices.Sort(alerts)
	slices.Sort(fired)
	if len(alerts) == 0 || !slices.Equal(alerts, fired) {
		t.Errorf("there are the alerts %v, and tested are %v", alerts, fired)
	}
	program := prometheusProgram(t, "promtool")
	for _, args := range [][]string{{"check", "rules", "--lint-fatal", rules}, {"test", "rules", tests}} {
		if out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

// TestDashboardExpressions has promtool check the expressions of the dashboard, as rules that record them.
func TestDashboardExpressions(t *testing.T) {
	apitest.RunParallel(t)
	program := prometheusProgram(t, "promtool")
	type rule struct {
		Record string `yaml:"record"`
		Expr   string `yaml:"expr"`
	}
	var rules []rule
	for i, one := range panels(t) {
		rules = append(rules, rule{fmt.Sprintf("panel:%d", i),
			strings.NewReplacer("$__rate_interval", "5m", "$job", ".*").Replace(one.expression)})
	}
	text, err := yaml.Marshal(map[string]any{"groups": []any{map[string]any{"name": "dashboard", "rules": rules}}})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), program, "check", "rules", path).CombinedOutput(); err != nil || len(rules) < 10 {
		t.Errorf("promtool: %v\n%s", err, out)
	}
}

// TestPrometheusScrapes checks that a Prometheus that scrapes a manager evaluates every rule without an error, and fires the alerts of its
// problems: no backups are configured, and its service point is not connected.
func TestPrometheusScrapes(t *testing.T) {
	apitest.Slow(t)
	program := prometheusProgram(t, "prometheus")
	m := startAlone(t, silentSoon)
	m.provisioned("gone")
	apitest.Eventually(t, "its silence is counted", func() bool { // which is looked for more seldom than a test waits
		if err := errors.Join(m.Fleet.WritePresence(t.Context(), true), m.Fleet.Sweep(t.Context(), m.Store.Update)); err != nil {
			t.Fatal(err)
		}
		return strings.Contains(string(m.Want(200, "GET", "/metrics", "").Body), "\nportolan_service_points_away 1\n")
	})
	dir := t.TempDir()
	var rules map[string]any
	if err := yaml.Unmarshal([]byte(read(t, "../../../packaging/prometheus/alerts.yaml")), &rules); err != nil {
		t.Fatal(err)
	}
	for _, g := range rules["groups"].([]any) {
		for _, r := range g.(map[string]any)["rules"].([]any) {
			delete(r.(map[string]any), "for") // the test does not wait for an hour
		}
	}
	text, err := yaml.Marshal(rules)
	if err != nil {
		t.Fatal(err)
	}
	settings := `{"global":{"scrape_interval":"1s","evaluation_interval":"1s"},"rule_files":["rules.yaml"],"scrape_configs":[{"job_name":"portolan",` +
		`"static_configs":[{"targets":["` + strings.TrimPrefix(m.URL(), "http://") + `"]}]}]}`
	for name, content := range map[string]string{"rules.yaml": string(text), "prometheus.yaml": settings} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := exec.CommandContext(t.Context(), program, "--config.file", filepath.Join(dir, "prometheus.yaml"), "--storage.tsdb.path",
		filepath.Join(dir, "data"), "--web.listen-address", "127.0.0.1:0", "--scrape.discovery-reload-interval", "100ms")
	said, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	starting := time.AfterFunc(time.Minute, func() { _ = c.Process.Kill() })
	at := ""
	for lines, found := bufio.NewScanner(said), regexp.MustCompile(`"Listening on" address=(\S+)`); at == "" && lines.Scan(); {
		if m := found.FindStringSubmatch(lines.Text()); m != nil {
			at = m[1]
		}
	}
	if at == "" {
		t.Fatal("prometheus does not say where it listens")
	}
	starting.Stop()
	go func() { _, _ = io.Copy(io.Discard, said) }()
	firing := func() (names []string) {
		var answer struct {
			Data struct {
				Groups []struct {
					Rules []struct{ Name, Health, State, LastError string }
				}
			}
		}
		r, err := http.Get("http://" + at + "/api/v1/rules")
		if err != nil {
			return nil
		}
		defer func() { _ = r.Body.Close() }()
		if err := json.NewDecoder(r.Body).Decode(&answer); err != nil {
			return nil
		}
		for _, g := range answer.Data.Groups {
			for _, r := range g.Rules {
				if r.Health == "err" {
					t.Fatalf("the rule %s fails: %s", r.Name, r.LastError)
				}
				if r.State == "firing" {
					names = append(names, r.Name)
				}
			}
		}
		slices.Sort(names)
		return names
	}
	// there may be further alerts about resources of the machine
	for _, want := range []string{"PortolanNoBackupSchedule", "PortolanServicePointsAway"} {
		var last []string
		apitest.Eventually(t, "it says "+want, func() bool {
			last = firing()
			return slices.Contains(last, want)
		})
		t.Logf("firing are %v", last)
	}
}
