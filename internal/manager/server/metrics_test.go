package server

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.yaml.in/yaml/v3"
)

// known gives the names of all metrics that a manager has.
func (m *manager) known() map[string]bool {
	all := make(chan *prometheus.Desc, 1000)
	m.registry.Describe(all)
	close(all)
	names, name := map[string]bool{}, regexp.MustCompile(`fqName: "([a-z_]+)"`)
	for d := range all {
		names[name.FindStringSubmatch(d.String())[1]] = true
	}
	return names
}

var metricName = regexp.MustCompile(`portolan_[a-z_]+`)

// asksFor reports names in an expression that no metric has.
func (m *manager) asksFor(known map[string]bool, where, expression string) {
	m.T.Helper()
	for _, name := range metricName.FindAllString(expression, -1) {
		base := name
		for _, end := range []string{"_bucket", "_sum", "_count"} {
			base = strings.TrimSuffix(base, end)
		}
		if !known[name] && !known[base] {
			m.T.Errorf("%s asks for %s, which there is not", where, name)
		}
	}
}

// TestAlertRules checks that alerts and the dashboard ask for metrics that exist. Each alert states the remedy.
func TestAlertRules(t *testing.T) {
	m := startAlone(t)
	known := m.known()
	if len(known) < 40 {
		t.Fatalf("there are %d metrics", len(known))
	}
	var rules struct {
		Groups []struct {
			Name  string `yaml:"name"`
			Rules []struct {
				Alert       string            `yaml:"alert"`
				Expr        string            `yaml:"expr"`
				For         string            `yaml:"for"`
				Labels      map[string]string `yaml:"labels"`
				Annotations map[string]string `yaml:"annotations"`
			} `yaml:"rules"`
		} `yaml:"groups"`
	}
	text, err := os.ReadFile("../../../packaging/prometheus/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	d := yaml.NewDecoder(strings.NewReader(string(text)))
	d.KnownFields(true)
	if err := d.Decode(&rules); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			if seen[r.Alert] || r.Annotations["summary"] == "" || r.Annotations["description"] == "" ||
				r.Labels["severity"] != "warning" && r.Labels["severity"] != "critical" {
				t.Errorf("the alert %q is there twice, or lacks a severity, a summary or what to do", r.Alert)
			}
			seen[r.Alert] = true
			m.asksFor(known, r.Alert, r.Expr)
		}
	}
	for _, mark := range []int64{littleRoom, longLog, behindStandby, int64(lateBackup / time.Second),
		int64(certificateSoon / (24 * time.Hour))} {
		if !strings.Contains(string(text), fmt.Sprintf(" %d\n", mark)) { // what is an alarm is an alert
			t.Errorf("no alert has the mark %d", mark)
		}
	}
	if len(seen) < 15 {
		t.Errorf("there are %d alerts", len(seen))
	}
	for _, one := range panels(t) {
		m.asksFor(known, one.title, one.expression)
	}
}

// panel is an expression of the dashboard.
type panel struct{ title, expression string }

// panels returns the expressions of the dashboard.
func panels(t *testing.T) (all []panel) {
	t.Helper()
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal([]byte(read(t, "../../../packaging/grafana/portolan.json")), &board); err != nil {
		t.Fatal(err)
	}
	for _, p := range board.Panels {
		for _, target := range p.Targets {
			all = append(all, panel{p.Title, target.Expr})
		}
	}
	return all
}
