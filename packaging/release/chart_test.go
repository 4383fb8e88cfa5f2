package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/template"

	"go.yaml.in/yaml/v3"
)

// chart renders the templates of the chart with its default values and the given ones, using the helm functions that they call. It returns
// the documents by kind and name.
func chart(t *testing.T, changed map[string]any) (documents map[string]string, err error) {
	t.Helper()
	read := func(path string, into any) {
		t.Helper()
		text, err := os.ReadFile(filepath.Join("../helm/portolan", path))
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal(text, into); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
	}
	values, about := map[string]any{}, map[string]any{}
	read("values.yaml", &values)
	read("Chart.yaml", &about)
	for path, value := range changed {
		within, steps := values, strings.Split(path, ".")
		for _, step := range steps[:len(steps)-1] {
			within = within[step].(map[string]any)
		}
		if _, there := within[steps[len(steps)-1]]; !there {
			t.Fatalf("the value %s does not exist", path)
		}
		within[steps[len(steps)-1]] = value
	}
	data := map[string]any{"Values": values, "Release": map[string]any{"Name": "harbour", "Namespace": "quay"},
		"Chart": map[string]any{"AppVersion": about["appVersion"]}, "Template": map[string]any{"BasePath": "templates"}}
	all := template.New("")
	indent := func(n int, text string) string {
		return "\n" + strings.Repeat(" ", n) + strings.ReplaceAll(text, "\n", "\n"+strings.Repeat(" ", n))
	}
	all.Funcs(template.FuncMap{
		"nindent": indent, "quote": func(v any) string { return fmt.Sprintf("%q", fmt.Sprint(v)) },
		"sha256sum": func(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) },
		"default": func(other, v any) any {
			if v == nil || v == "" {
				return other
			}
			return v
		},
		"required": func(why string, v any) (any, error) {
			if v == nil || v == "" {
				return nil, fmt.Errorf("%s", why)
			}
			return v, nil
		},
		"toYaml": func(v any) (string, error) {
			text, err := yaml.Marshal(v)
			return strings.TrimSuffix(string(text), "\n"), err
		},
		"include": func(name string, data any) (string, error) {
			var b bytes.Buffer
			err := all.ExecuteTemplate(&b, name, data)
			return b.String(), err
		},
	})
	files, err := filepath.Glob("../helm/portolan/templates/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := all.New("templates/" + filepath.Base(file)).Parse(string(text)); err != nil {
			t.Fatal(err)
		}
	}
	documents = map[string]string{}
	for _, file := range files {
		if strings.HasPrefix(filepath.Base(file), "_") {
			continue
		}
		var b bytes.Buffer
		if err := all.ExecuteTemplate(&b, "templates/"+filepath.Base(file), data); err != nil {
			return nil, err
		}
		for _, text := range strings.Split(b.String(), "\n---\n") {
			var document struct {
				Kind     string
				Metadata struct{ Name string }
			}
			if err := yaml.Unmarshal([]byte(text), &document); err != nil {
				t.Fatalf("%s is no YAML: %v\n%s", file, err, text)
			}
			if document.Kind != "" {
				documents[document.Kind+" "+document.Metadata.Name] = text
			}
		}
	}
	return documents, nil
}

// TestChart renders the chart. It checks that certificates are verified, that pods have no service account token, and that an error names a
// missing value.
func TestChart(t *testing.T) {
	plain, err := chart(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := chart(t, map[string]any{"postgresql.enabled": true, "serviceMonitor": true, "metrics.caSecret": "authority",
		"metrics.tokenSecret": "reader", "masterKey.existingSecret": "sealing", "tlsSecret": "api"})
	if err != nil {
		t.Fatal(err)
	}
	if got := slices.Sorted(maps.Keys(whole)); !slices.Equal(got, []string{"ConfigMap harbour", "Service harbour", "Service harbour-checkin",
		"Service harbour-postgresql", "ServiceMonitor harbour", "StatefulSet harbour", "StatefulSet harbour-postgresql"}) {
		t.Errorf("it has %q", got)
	}
	for _, documents := range []map[string]string{plain, whole} {
		for name, text := range documents {
			if strings.Contains(text, "sslmode=disable") || strings.Contains(text, "insecureSkipVerify") {
				t.Errorf("%s verifies no certificate:\n%s", name, text)
			}
			if strings.HasPrefix(name, "StatefulSet") && !strings.Contains(text, "automountServiceAccountToken: false") {
				t.Errorf("%s has the token of a service account:\n%s", name, text)
			}
		}
	}
	for name, says := range map[string]string{"ServiceMonitor harbour": "serverName: harbour.quay.svc",
		"StatefulSet harbour":            "name: PORTOLAN_MASTER_KEY",
		"StatefulSet harbour-postgresql": "ssl=on"} {
		if !strings.Contains(whole[name], says) {
			t.Errorf("%s lacks %s:\n%s", name, says, whole[name])
		}
	}
	for value, missing := range map[string]map[string]any{"metrics.caSecret": {"serviceMonitor": true},
		"postgresql.tlsSecret": {"postgresql.enabled": true, "postgresql.tlsSecret": ""}} {
		if _, err := chart(t, missing); err == nil || !strings.Contains(err.Error(), value) {
			t.Errorf("without %s: %v", value, err)
		}
	}
}
