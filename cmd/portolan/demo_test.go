package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"portolan/client"
	"portolan/internal/engine/store"
	"portolan/internal/manager/authz"
	"portolan/internal/manager/identity"
	"portolan/internal/manager/server"
	"portolan/internal/servicepoint/application/all"
)

// demoManager starts a manager with the data of a demo, without its service points. It also returns a client.
func demoManager(t *testing.T) (*server.Manager, *client.Client) {
	t.Helper()
	m, err := server.Start(t.Context(), server.Options{Programs: all.Programs(), Data: t.TempDir(), Listen: "127.0.0.1:0",
		CheckinListen: "127.0.0.1:0", Version: "test", Log: slog.New(slog.NewTextHandler(io.Discard, nil)), AdminPassword: "harbour master"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	token, err := m.Identity.CreateToken(t.Context(), identity.Grant{Name: "demo", Role: authz.Administrator, User: "admin"})
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Sample(t.Context(), m.Address); err != nil {
		t.Fatal(err)
	}
	api := &client.Client{Base: m.URL(), Token: token}
	fillDemo(t, m, api)
	return m, api
}

// fillDemo adds the data of the demo, as each of its starts does.
func fillDemo(t *testing.T, m *server.Manager, api *client.Client) {
	t.Helper()
	if err := demoStory(t.Context(), api, "harbour master"); err != nil {
		t.Fatal(err)
	}
	if err := demoDiscovery(t.Context(), m, api); err != nil {
		t.Fatal(err)
	}
}

// changing matches the parts of resources that differ between two starts: times, keys, random identifiers and hashes of
// secrets.
var changing = regexp.MustCompile(`"keyTag":\d+|\d{4}-\d\d-\d\dT[0-9:.]+Z|[0-9a-f]{32,}|[A-Za-z0-9+/_$=-]{40,}`)

// dump returns the resources and the observations of a manager, one a line.
func dump(t *testing.T, m *server.Manager) (lines []string) {
	t.Helper()
	if err := m.Store.View(context.Background(), func(tx *store.Tx) error {
		lines = nil
		for _, from := range []store.Source{store.Resources, "observation"} {
			if err := tx.List(store.Query{From: from}, func(r *store.Resource) error {
				lines = append(lines, changing.ReplaceAllString(fmt.Sprintf("%s %s %s %q below %d in %d %x-%x %s", from, r.Collection, r.Type, r.Name,
					r.Parent, r.Configuration, r.Low, r.High, r.Body), "…"))
				return nil
			}); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	slices.Sort(lines)
	return lines
}

// TestDemoDataIsTheSame checks that two demos have the same data, and that a second start adds nothing.
func TestDemoDataIsTheSame(t *testing.T) {
	t.Parallel()
	m, api := demoManager(t)
	other, _ := demoManager(t)
	one, two := dump(t, m), dump(t, other)
	if len(one) < 10000 {
		t.Fatalf("a demo has %d resources", len(one))
	}
	if len(one) != len(two) {
		t.Errorf("one demo has %d resources, the other one %d", len(one), len(two))
	}
	shown := 0
	for i := range min(len(one), len(two)) {
		if one[i] != two[i] && shown < 5 {
			t.Errorf("the demos differ:\n%s\n%s", one[i], two[i])
			shown++
		}
	}
	fillDemo(t, m, api)
	if again := dump(t, m); !slices.Equal(again, one) {
		t.Errorf("after a second start the demo has %d resources, before %d", len(again), len(one))
	}
}

// TestDemoDiscovery checks that the demo has findings of each kind, that one can be accepted and one rejected, and that addresses show when
// and where they were seen.
func TestDemoDiscovery(t *testing.T) {
	t.Parallel()
	_, api := demoManager(t)
	for kind, want := range map[string]int{"UNKNOWN_ADDRESS": 4, "NOT_SEEN": 8, "MAC_ADDRESS_DIFFERS": 1, "HOST_NAME_DIFFERS": 1,
		"UNKNOWN_NETWORK": 1} {
		ids, err := api.IDs(t.Context(), "reconciliationFindings", "kind:'"+kind+"' and state:'OPEN'", 100)
		if err != nil || len(ids) != want {
			t.Errorf("the demo has %d findings %s, want %d (%v)", len(ids), kind, want, err)
			continue
		}
		state := "ACCEPTED"
		if kind == "UNKNOWN_NETWORK" {
			state = "REJECTED"
		}
		if err := api.Do(t.Context(), "PATCH", fmt.Sprintf("/api/v2/reconciliationFindings/%d", ids[0]), map[string]any{"state": state},
			nil); err != nil {
			t.Errorf("the finding %s does not become %s: %v", kind, state, err)
		}
	}
	ids, err := api.IDs(t.Context(), "addresses", "address:'10.0.3.37'", 1)
	if err != nil || len(ids) != 1 {
		t.Fatal(ids, err)
	}
	var x struct{ SwitchPortInfo, LastSeenDateTime string }
	if err := api.Do(t.Context(), "GET", fmt.Sprintf("/api/v2/addresses/%d", ids[0]), nil, &x); err != nil {
		t.Fatal(err)
	}
	seen, err := time.Parse(time.RFC3339, x.LastSeenDateTime)
	if err != nil || time.Since(seen) < 7*24*time.Hour || !strings.HasPrefix(x.SwitchPortInfo, "quay-switch-2 ") {
		t.Errorf("the silent address shows %+v (%v)", x, err)
	}
}

// TestDemoShowsItsStory checks that the demo has networks near their limits, VLANs, a signed zone, requests that wait for an approval,
// and four weeks of figures, from which a forecast follows.
func TestDemoShowsItsStory(t *testing.T) {
	t.Parallel()
	m, api := demoManager(t)
	if err := demoFigures(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	for collection, want := range map[string]struct {
		filter string
		count  int
	}{
		"workflowRequests": {"state:'PENDING'", 3},
		"zones":            {"signed:true", 1},
		"vlans":            {"", 3},
	} {
		ids, err := api.IDs(t.Context(), collection, want.filter, 100)
		if err != nil || len(ids) < want.count {
			t.Errorf("the demo has %d %s with %s, want %d (%v)", len(ids), collection, want.filter, want.count, err)
		}
	}
	var forecast struct {
		Fullest, Filling []struct {
			Name        string
			Utilization float64
		}
	}
	if err := api.Do(t.Context(), "GET", "/api/v2/spaceForecast", nil, &forecast); err != nil {
		t.Fatal(err)
	}
	full := map[string]float64{}
	for _, n := range forecast.Fullest {
		full[n.Name] = n.Utilization
	}
	if full["Guest Wi-Fi"] < 0.9 || full["Pilot boats"] < 0.8 || full["Weather buoys"] < 0.8 || len(forecast.Filling) == 0 {
		t.Errorf("the forecast is %+v", forecast)
	}
	var drawn struct {
		Metrics []struct{ Lines []struct{ At []int64 } }
	}
	if err := api.Do(t.Context(), "GET", "/api/v2/figures?object=manager&metric=queries&from="+
		m.Store.Now().Add(-demoPeriod).UTC().Format(time.RFC3339), nil, &drawn); err != nil || len(drawn.Metrics) != 1 ||
		len(drawn.Metrics[0].Lines) == 0 || m.Store.Now().Sub(time.Unix(drawn.Metrics[0].Lines[0].At[0], 0)) < demoPeriod-24*time.Hour {
		t.Errorf("the figures of queries begin %+v (%v)", drawn, err)
	}
}
