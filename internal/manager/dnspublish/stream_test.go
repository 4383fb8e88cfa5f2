package dnspublish_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"testing"

	"portolan/internal/engine/store"
	"portolan/internal/manager/dnspublish"
	"portolan/internal/testkit/apitest"
	"portolan/internal/wire/zonedata"
)

// heldContent is what a service point holds after a stream: its revision and the hash of each zone. It refuses a change that does not start
// there.
type heldContent struct {
	revision string
	zones    map[string]string
	// changes is the number of zones whose changes the last stream contained.
	changes int
}

func (h *heldContent) Start(of zonedata.Header) error {
	if of.From == "" {
		h.zones = map[string]string{}
	} else if of.From != h.revision {
		return errors.New("the stream starts at another revision")
	}
	h.revision, h.changes = of.To, 0
	return nil
}

func (h *heldContent) Zone(c zonedata.Change) error {
	if c.From != "" {
		if h.changes++; c.From != h.zones[c.ID] {
			return fmt.Errorf("the change of zone %s starts at %s instead of %s", c.ID, c.From, h.zones[c.ID])
		}
	}
	h.zones[c.ID] = c.To
	return nil
}

func (h *heldContent) Settings([]byte) error         { return nil }
func (h *heldContent) Removed(zonedata.Record) error { return nil }
func (h *heldContent) Added(zonedata.Record) error   { return nil }
func (h *heldContent) Deleted(id string) error       { delete(h.zones, id); return nil }
func (h *heldContent) End() error                    { return nil }

// fetch updates what a service point holds.
func (m *manager) fetch(point string, h *heldContent) {
	m.T.Helper()
	var stream bytes.Buffer
	if err := m.Store.View(m.T.Context(), func(tx *store.Tx) error {
		stream.Reset()
		return dnspublish.Planner{Sealer: m.Address.Sealer}.Write(tx, point, h.revision, &stream)
	}); err != nil {
		m.T.Fatal(err)
	}
	if err := zonedata.Read(bytes.NewReader(stream.Bytes()), h); err != nil {
		m.T.Error(err)
	}
}

// deployFully deploys a server, whose service point confirms it, and returns the state of the deployment. It waits for an earlier one.
func (m *manager) deployFully(server, point string) (state string) {
	m.T.Helper()
	confirm := func() {
		if err := m.Store.View(m.T.Context(), func(tx *store.Tx) error {
			revision, err := dnspublish.RevisionOf(tx, point)
			m.points.Confirm(point, revision)
			return err
		}); err != nil {
			m.T.Fatal(err)
		}
	}
	var id string
	apitest.Eventually(m.T, "no deployment of the server is running", func() bool {
		confirm()
		r := m.Do("POST", server+"/deployments", `{"type":"FullDeployment","service":"DNS"}`)
		id = r.Text("id")
		return r.StatusCode == 201
	})
	apitest.Eventually(m.T, "the deployment has ended", func() bool {
		confirm()
		state = m.Want(200, "GET", "/api/v2/deployments/"+id, "").Text("state")
		return state != "QUEUED" && state != "RUNNING"
	})
	return state
}

// TestStreamsStartAtTheContentOfTheReceiver checks that a service point with any earlier revision gets changes that start at its content,
// or the whole zone, after small and large changes and after a restore, which has no differences.
func TestStreamsStartAtTheContentOfTheReceiver(t *testing.T) {
	v := startAlone(t).liveView("a.test")
	v.zone("b.test")
	v.deployed()
	points := []*heldContent{{}}
	v.fetch("point", points[0])
	names := 0
	change := func(records int) {
		t.Helper()
		steps := make([]string, records)
		for i := range steps {
			names++
			steps[i] = fmt.Sprintf(`{"method":"POST","path":"zones/%s/resourceRecords",`+
				`"body":{"type":"GenericRecord","name":"h%d","recordType":"A","rdata":"192.0.2.1"}}`, v.first, names)
		}
		v.Want(200, "POST", "/api/v2/batch", `{"changes":[`+strings.Join(steps, ",")+"]}")
		v.deployed()
	}
	const restore = 0
	for step, records := range []int{1, 1, 600, 1, 1, restore, 1, 1} {
		if records == restore {
			if err := v.Store.Update(t.Context(), store.Author{}, func(tx *store.Tx) error {
				return tx.Write("DELETE FROM dns_difference")
			}); err != nil {
				t.Fatal(err)
			}
			continue
		}
		change(records)
		now := &heldContent{}
		v.fetch("point", now)
		for i, point := range points {
			held := &heldContent{revision: point.revision, zones: maps.Clone(point.zones)}
			v.fetch("point", held)
			if held.revision != now.revision || !maps.Equal(held.zones, now.zones) || now.revision == point.revision {
				t.Errorf("step %d: the service point of step %d holds %v instead of %v", step, i, held, now)
			}
			if i == len(points)-1 && records == 1 && held.changes == 0 {
				t.Errorf("step %d: a change is sent as a whole zone", step)
			}
		}
		points = append(points, now)
	}
}

// TestDifferencesOfAZoneAreLimited checks that at most 1,000 differences of a zone are kept, and that the oldest is a base.
func TestDifferencesOfAZoneAreLimited(t *testing.T) {
	m := startAlone(t)
	for _, count := range []int{1, 999, 1000, 2500} {
		if err := m.Store.Update(t.Context(), store.Author{}, func(tx *store.Tx) error {
			stored, hasBase, err := dnspublish.WriteDifferences(tx, "zone"+strconv.Itoa(count), count)
			if !hasBase || stored != count+1 && (stored < 900 || stored > 1000) {
				t.Errorf("of %d differences %d are stored, with a base: %t", count, stored, hasBase)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
}
