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

// What a list shows is what is there, whatever was shown before: of every table that it is made of each change is seen.
func TestShownIsWhatIsThere(t *testing.T) {
	onBoth(t, func(t *testing.T, database string) {
		h := newHarbour(t, database, 5)
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
			case 14: // by what users and service points ask for, too
				created, err := h.f.Create(h.ctx, Wanted{Name: fmt.Sprint("new-", word)})
				if _, refused := problem.As(err); err != nil && !refused {
					t.Fatal(err)
				} else if err == nil && len(h.ids) < 8 {
					h.ids = append(h.ids, created.FleetInstanceID)
				}
			case 15:
				_ = h.f.Delete(h.ctx, id) // it may be gone already
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
			case 12: // what is undone was never there
				gone := errors.New("undone")
				if err := h.f.change(h.ctx, func(tx *store.Tx) error {
					return errors.Join(tx.Write("UPDATE service_point SET description = 'undone' WHERE id = ?", id), gone)
				}); !errors.Is(err, gone) {
					t.Fatal(err)
				}
			}
			// All of them come last: what is kept of them would hide what the others keep too long.
			for _, f := range []Filter{{Status: Healthy}, {Labels: map[string]string{"site1": ""}, Status: Unhealthy}, {Hostname: "oslo"},
				{Address: "192.0.2.1"}, {ConnectionStatus: NotConnected}, {ErrorCondition: "oslo"}, {Application: "x", ApplicationVersion: "x"},
				{LastSeenBefore: fmt.Sprint(h.f.now().UnixMilli() - 90_000)}, {}} {
				h.shows(t, f)
			}
		})
	})
}

// Of whom a manager has not heard for long it forgets that it has: lists show what it has written of that.
func TestShownOfTheForgotten(t *testing.T) {
	h := newHarbour(t, "", 1)
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
	h.f.contacts[h.ids[0]] = contact{at: longAgo, written: longAgo}
	write()
	if len(h.f.contacts) != 0 {
		t.Fatal("nothing was forgotten")
	}
	connected(1)
}

// Whatever column of the table of service points becomes another one: lists show it, or do not depend on it.
func TestRevisionOfEveryColumn(t *testing.T) {
	onBoth(t, func(t *testing.T, database string) {
		h := newHarbour(t, database, 1)
		write := func(query string) {
			t.Helper()
			if err := h.f.change(h.ctx, func(tx *store.Tx) error { return tx.Write(query) }); err != nil {
				t.Fatalf("%s: %v", query, err)
			}
			h.shows(t, Filter{})
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
		others := map[string]string{"anycast": `'{"asn":1}'`, "ntp_servers": `'["x"]'`, "revision": "revision"} // the one that tells
		for _, column := range slices.Sorted(maps.Keys(types)) {
			other := cmp.Or(others[column], "coalesce("+column+", '') || 'x'")
			if types[column] != "TEXT" && column != "revision" {
				other = column + " + 1"
			}
			write("UPDATE service_point SET " + column + " = " + other)
		}
	})
}

// shows compares what is shown with what is there.
func (h *harbour) shows(t fatal, f Filter) {
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
	if a, b := strings.Join(there, "\n"), strings.Join(shown, "\n"); a != b && !h.justHeard(a, b) {
		t.Fatalf("%+v: there is\n%s\nand shown is\n%s", f, a, b)
	}
}

// justHeard reports whether two lists differ in moments alone, by a few milliseconds: those of whom this manager has heard by itself.
func (h *harbour) justHeard(a, b string) bool {
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

// What one manager hears of a service point lists of another one show, also where it keeps what it found.
func TestShownOfAnotherManager(t *testing.T) {
	database := pgtest.URL(t)
	h := newHarbour(t, database, 2)
	other := newHarbour(t, database, 0)
	shows := func(want string) {
		t.Helper()
		got := ""
		for end := time.Now().Add(10 * time.Second); got != want && time.Now().Before(end); {
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
		if i == 0 { // heard is told without a report
			shows("CONNECTED 1; NOT_CONNECTED 1; ")
		}
		version := fmt.Sprint(i + 2)
		if errs := h.says(t, h.said(h.ids[1], int64(i+1), version)); errs[0] != nil {
			t.Fatal(errs[0])
		}
		shows("CONNECTED 1; NOT_CONNECTED " + version + "; ") // of the other one nothing was heard
	}
}

// What was changed at one manager, and acknowledged, is in the next list of another one.
func TestChangesAtAnotherManager(t *testing.T) {
	database := pgtest.URL(t)
	h := newHarbour(t, database, 3)
	other := newHarbour(t, database, 0)
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
			count(labelled) // it is kept
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
