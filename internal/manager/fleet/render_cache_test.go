package fleet

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"portolan/internal/base/problem"
	"portolan/internal/engine/store"
	"portolan/internal/testkit/pgtest"
	"portolan/internal/wire/checkin"

	"pgregory.net/rapid"
)

// TestCachedLists checks that cached lists equal freshly read ones, also after a change of any of their tables.
func TestCachedLists(t *testing.T) {
	onBoth(t, func(t *testing.T, database string) {
		h := newTestFleet(t, database, 5)
		rapid.Check(t, func(t *rapid.T) {
			id := rapid.SampledFrom(h.ids).Draw(t, "service point")
			word := rapid.SampledFrom([]string{"oslo", "bergen", `"lastSeen":5`, "x"}).Draw(t, "word")
			n := rapid.IntRange(1, 3).Draw(t, "number")
			write := func(query string, args ...any) {
				if err := h.f.change(h.ctx, func(tx *store.Tx) error { return tx.Write(query, args...) }); err != nil {
					t.Fatalf("%s: %v", query, err)
				}
			}
			switch rapid.IntRange(0, 16).Draw(t, "happens") {
			case 0:
				write("UPDATE service_point SET description = ? WHERE id = ?", word, id)
			case 1:
				write("UPDATE service_point SET status = ?, key_expires = ? WHERE id = ?", rapid.SampledFrom(statuses).Draw(t, "status"),
					h.f.now().Add(time.Duration(n)*time.Minute).Unix(), id)
			case 2:
				write("INSERT INTO label (service_point, name, value) VALUES (?,?,?) ON CONFLICT (service_point, name) DO UPDATE SET "+
					"value = excluded.value", id, rapid.SampledFrom([]string{"site1", "site2", "lastSeen"}).Draw(t, "label"), word)
			case 3:
				write("DELETE FROM label WHERE service_point = ?", id)
			case 4:
				report, err := json.Marshal(checkin.Report{ErrorConditions: []string{word}, Nodes: []checkin.Node{{Hostname: word, Name: "n",
					Addresses: []checkin.NodeAddress{{Type: "PRIMARY", IPAddress: fmt.Sprint("192.0.2.", n)}}}}})
				if err != nil {
					t.Fatal(err)
				}
				write("INSERT INTO report (service_point, sequence, digest, body) VALUES (?,1,'',?) ON CONFLICT (service_point) DO UPDATE SET "+
					"body = excluded.body", id, string(report))
			case 5:
				write("DELETE FROM report WHERE service_point = ?", id)
			case 6:
				write("INSERT INTO application (id, service_point, name, version, status, configuration, generation, created) "+
					"VALUES (?,?,'x',?,?,'{}',1,?) ON CONFLICT (id) DO NOTHING", fmt.Sprint(id, n), id, word, checkin.Healthy, n)
			case 7:
				write("UPDATE application SET conditions = ?, version = ? WHERE service_point = ?", `["`+fmt.Sprint(n)+`"]`, word, id)
			case 8:
				write("DELETE FROM application WHERE service_point = ?", id)
			case 9:
				write("UPDATE presence SET last_seen = ?, connected = ? WHERE service_point = ?", h.f.now().UnixMilli()-int64(n), n-1, id)
			case 10:
				h.f.recordContact(row{at: nodeID{id, 1}})
			case 11:
				h.now.pass(time.Duration(n) * time.Minute)
			case 14: // changes by requests
				created, err := h.f.Create(h.ctx, Wanted{Name: fmt.Sprint("new-", word)})
				if _, refused := problem.As(err); err != nil && !refused {
					t.Fatal(err)
				} else if err == nil && len(h.ids) < 8 {
					h.ids = append(h.ids, created.FleetInstanceID)
				}
			case 15:
				_ = h.f.Delete(h.ctx, id) // it may be deleted already
			case 16:
				if _, refused := problem.As(h.f.Modify(h.ctx, id, InstanceChange{Description: &word,
					Labels: map[string]*string{"site1": &word}})); !refused {
					if err := h.f.Sweep(h.ctx, h.f.store.Update); err != nil {
						t.Fatal(err)
					}
				}
			case 13:
				if err := h.f.WritePresence(h.ctx, true); err != nil {
					t.Fatalf("%v", err)
				}
			case 12: // a rolled-back change is not visible
				gone := errors.New("undone")
				if err := h.f.change(h.ctx, func(tx *store.Tx) error {
					return errors.Join(tx.Write("UPDATE service_point SET description = 'undone' WHERE id = ?", id), gone)
				}); !errors.Is(err, gone) {
					t.Fatal(err)
				}
			}
			// Compare all lists last: their cached entries would hide entries of others that are kept too long.
			for _, f := range []Filter{{Status: Healthy}, {Labels: map[string]string{"site1": ""}, Status: Unhealthy}, {Hostname: "oslo"},
				{Address: "192.0.2.1"}, {ConnectionStatus: NotConnected}, {ErrorCondition: "oslo"}, {Application: "x", ApplicationVersion: "x"},
				{LastSeenBefore: fmt.Sprint(h.f.now().UnixMilli() - 90_000)}, {}} {
				h.compareLists(t, f)
			}
		})
	})
}

// TestListsAfterEviction checks lists after a manager has removed long-silent service points from memory: they show the presence from the
// database.
func TestListsAfterEviction(t *testing.T) {
	h := newTestFleet(t, "", 1)
	connected := func(want int) {
		t.Helper()
		n := 0
		if err := h.f.Show(h.ctx, Filter{Status: Healthy, ConnectionStatus: Connected}, func([]byte) error { n++; return nil }); err != nil ||
			n != want {
			t.Fatalf("%d are connected, want %d (%v)", n, want, err)
		}
	}
	write := func() {
		if err := h.f.WritePresence(h.ctx, true); err != nil {
			t.Fatal(err)
		}
	}
	connected(0)
	h.f.recordContact(row{at: nodeID{h.ids[0], 1}})
	connected(1)
	write()
	longAgo := time.Now().Add(-time.Hour)
	h.f.contacts[h.ids[0]] = contact{time: longAgo, written: longAgo}
	write()
	if len(h.f.contacts) != 0 {
		t.Fatal("nothing was forgotten")
	}
	connected(1)
}

// TestRevisionOfEveryColumn checks for each column of service_point that a change is either visible in lists or does not matter to lists.
func TestRevisionOfEveryColumn(t *testing.T) {
	onBoth(t, func(t *testing.T, database string) {
		h := newTestFleet(t, database, 1)
		write := func(query string) {
			t.Helper()
			if err := h.f.change(h.ctx, func(tx *store.Tx) error { return tx.Write(query) }); err != nil {
				t.Fatalf("%s: %v", query, err)
			}
			h.compareLists(t, Filter{})
		}
		write("UPDATE service_point SET status = 'UNHEALTHY', update_status = 'UPDATE_FAILED', target_version = '3', update_reason = 'full'")
		types := map[string]string{}
		if err := h.f.store.View(h.ctx, func(tx *store.Tx) error {
			return tx.Each(func(scan func(...any) error) error {
				var name, is string
				err := scan(&name, &is)
				types[name] = strings.ToUpper(is)
				return err
			}, tx.SQL(store.SQL{SQLite: "SELECT name, type FROM pragma_table_info('service_point')",
				PostgreSQL: "SELECT column_name::text, data_type::text FROM information_schema.columns WHERE table_name = 'service_point'"}))
		}); err != nil || types["status"] != "TEXT" || len(types) < 20 {
			t.Fatalf("%v %v", types, err)
		}
		// revision itself shows the change
		others := map[string]string{"anycast": `'{"asn":1}'`, "ntp_servers": `'["x"]'`, "revision": "revision"}
		for _, column := range slices.Sorted(maps.Keys(types)) {
			other := cmp.Or(others[column], "coalesce("+column+", '') || 'x'")
			if types[column] != "TEXT" && column != "revision" {
				other = column + " + 1"
			}
			write("UPDATE service_point SET " + column + " = " + other)
		}
	})
}

// compareLists compares the cached list with a freshly read one.
func (h *testFleet) compareLists(t fatal, f Filter) {
	var there, shown []string
	if err := errors.Join(h.f.List(h.ctx, f, func(i Instance) error {
		text, err := json.Marshal(i)
		there = append(there, string(text))
		return err
	}), h.f.Show(h.ctx, f, func(text []byte) error {
		shown = append(shown, string(text))
		return nil
	})); err != nil {
		t.Fatalf("%v", err)
	}
	if a, b := strings.Join(there, "\n"), strings.Join(shown, "\n"); a != b && !h.differOnlyInContact(a, b) {
		t.Fatalf("%+v: there is\n%s\nand shown is\n%s", f, a, b)
	}
}

// differOnlyInContact reports whether two lists differ only in last contacts of this manager, by up to a second.
func (h *testFleet) differOnlyInContact(a, b string) bool {
	var one, other []Instance
	if json.Unmarshal([]byte("["+strings.ReplaceAll(a, "\n", ",")+"]"), &one) != nil ||
		json.Unmarshal([]byte("["+strings.ReplaceAll(b, "\n", ",")+"]"), &other) != nil || len(one) != len(other) {
		return false
	}
	for i := range one {
		if d := one[i].LastSeen - other[i].LastSeen; d < -1000 || d > 1000 {
			return false
		}
		one[i].LastSeen = other[i].LastSeen
	}
	x, _ := json.Marshal(one)
	y, _ := json.Marshal(other)
	return string(x) == string(y)
}

// TestListsOfAnotherManager checks that contacts at one manager appear in the lists of another one, even if that has cached its query.
func TestListsOfAnotherManager(t *testing.T) {
	database := pgtest.URL(t)
	h := newTestFleet(t, database, 2)
	other := newTestFleet(t, database, 0)
	shows := func(want string) {
		t.Helper()
		got := ""
		for end := time.Now().Add(time.Minute); got != want && time.Now().Before(end); {
			got = ""
			if err := other.f.Show(other.ctx, Filter{Status: Healthy}, func(text []byte) error {
				var i Instance
				err := json.Unmarshal(text, &i)
				got += fmt.Sprint(i.ConnectionStatus, " ", i.Version, "; ")
				return err
			}); err != nil {
				t.Fatal(err)
			}
		}
		if got != want {
			t.Fatalf("it shows %s, want %s", got, want)
		}
	}
	shows("NOT_CONNECTED 1; NOT_CONNECTED 1; ")
	for i := range 3 {
		h.f.recordContact(row{at: nodeID{h.ids[0], 1}})
		if err := h.f.WritePresence(h.ctx, true); err != nil {
			t.Fatal(err)
		}
		if i == 0 { // contacts are shared without a report
			shows("CONNECTED 1; NOT_CONNECTED 1; ")
		}
		version := fmt.Sprint(i + 2)
		if errs := h.submit(t, h.newReport(h.ids[1], int64(i+1), version)); errs[0] != nil {
			t.Fatal(errs[0])
		}
		shows("CONNECTED 1; NOT_CONNECTED " + version + "; ") // the other one had no contact
	}
}

// TestChangesAtAnotherManager checks that a change acknowledged by one manager is in the next list of another one.
func TestChangesAtAnotherManager(t *testing.T) {
	database := pgtest.URL(t)
	h := newTestFleet(t, database, 3)
	other := newTestFleet(t, database, 0)
	count := func(f Filter) (n int) {
		t.Helper()
		if err := other.f.Show(other.ctx, f, func([]byte) error { n++; return nil }); err != nil {
			t.Fatal(err)
		}
		return n
	}
	labelled := Filter{Labels: map[string]string{"k": "1"}}
	for round := range 30 {
		id, value := h.ids[round%3], "1"
		for _, c := range []struct {
			to   *string
			want int
		}{{&value, 1}, {nil, 0}} {
			count(labelled) // the result is cached
			if err := h.f.Modify(h.ctx, id, InstanceChange{Labels: map[string]*string{"k": c.to}}); err != nil {
				t.Fatal(err)
			}
			if n := count(labelled); n != c.want {
				t.Errorf("round %d: %d are labelled, want %d", round, n, c.want)
			}
		}
		before := count(Filter{Status: Waiting})
		created, err := h.f.Create(h.ctx, Wanted{Name: fmt.Sprint("new ", round)})
		if err != nil {
			t.Fatal(err)
		}
		if n := count(Filter{Status: Waiting}); n != before+1 {
			t.Errorf("round %d: %d wait, want %d", round, n, before+1)
		}
		if err := h.f.Delete(h.ctx, created.FleetInstanceID); err != nil {
			t.Fatal(err)
		}
		if n := count(Filter{Status: Waiting}); n != before {
			t.Errorf("round %d: %d wait, want %d", round, n, before)
		}
	}
}
