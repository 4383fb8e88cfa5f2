package dhcpdata

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"portolan/internal/wire/zonedata"
)

func interval(t testing.TB, text string) (i Interval) {
	t.Helper()
	if err := i.UnmarshalText([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return i
}

// samples returns an item of each kind by unit.
func samples(t testing.TB) map[string][]Item {
	t.Helper()
	from := Source{Level: AtNetwork, ID: 7, Name: "Quay"}
	return map[string][]Item{
		ServerUnit: {Server{ID: 1, Name: "buoy", Configuration: 2, Addresses: []netip.Addr{netip.MustParseAddr("10.0.0.2")}},
			Pair{ID: 3, Primary: true, Partner: 9, Endpoint: netip.MustParseAddrPort("10.0.0.3:647"), MCLT: 3600, Split: 128},
			Zone{ID: 5, Name: "example.com.", Primary: netip.MustParseAddr("10.0.0.9")},
			Option{Code: 6, Name: "dns-server", Value: Hex{10, 0, 0, 9}, From: Source{Level: AtConfiguration, ID: 2}}},
		NetworkUnit(7): {Network{ID: 7, Name: "Quay", Prefix: netip.MustParsePrefix("10.0.0.0/24"), Gateway: netip.MustParseAddr("10.0.0.1")},
			Pool{ID: 8, Ranges: []Interval{interval(t, "10.0.0.10-10.0.0.99")}, HighWaterMark: 80},
			Reservation{ID: 9, Address: netip.MustParseAddr("10.0.0.20"), MAC: Hex{2, 0, 0, 0, 0, 1}, HostName: "crane"},
			Service{Name: "default-lease-time", Value: json.RawMessage("600"), From: from},
			Order{ID: 1, Address: netip.MustParseAddr("10.0.0.20"), Action: EndLease},
			Option{At: 8, Code: 3, Name: "router", Value: Hex{10, 0, 0, 1}, From: from}},
		ClassUnit(11): {Class{ID: 11, Name: "phones", Match: &Expression{Op: OpSubstring, Length: 4,
			Args: []*Expression{{Op: OpOption, Code: 60}}}}, Subclass{ID: 12, Value: Hex("Acme")}},
		MACPoolUnit(13): {MACPool{ID: 13, Name: "printers"}, MACAddress{ID: 14, MAC: Hex{2, 0, 0, 0, 0, 9}}},
	}
}

func sampleUnits(t testing.TB) Units {
	t.Helper()
	units := Units{}
	for id, items := range samples(t) {
		one, err := EncodeUnit(id, items...)
		if err != nil {
			t.Fatal(err)
		}
		units[id] = one
	}
	return units
}

// TestRecordsRoundTrip checks that each kind of item is the same after Encode and Decode.
func TestRecordsRoundTrip(t *testing.T) {
	for _, items := range samples(t) {
		for _, x := range items {
			r, err := Encode(x)
			if err != nil {
				t.Fatal(err)
			}
			got, err := Decode(r)
			if err != nil {
				t.Fatalf("%s: %v", r, err)
			}
			again, err := Encode(got)
			if err != nil || !bytes.Equal(r, again) {
				t.Errorf("%s becomes %s %v", r, again, err)
			}
		}
	}
}

// TestInvalidRecords checks that invalid items are rejected with their reason.
func TestInvalidRecords(t *testing.T) {
	for text, want := range map[string]string{
		`S{"id":1,"name":"a","configuration":2,"colour":"red"}`:                                "unknown field",
		`S{"id":0,"name":"a","configuration":2}`:                                               "positive",
		`N{"id":1,"prefix":"10.0.0.1/24"}`:                                                     "is not a prefix",
		`N{"id":1,"prefix":"10.0.0.0/24","gateway":"fe80::1"}`:                                 "gateway",
		`P{"id":1,"ranges":["10.0.0.9-10.0.0.1"]}`:                                             "not a range",
		`P{"id":1,"ranges":["10.0.0.1-10.0.0.9","10.0.0.5-10.0.0.20"]}`:                        "not in order",
		`P{"id":1,"ranges":["10.0.0.1-10.0.0.9"],"delegatedLength":56}`:                        "delegated",
		`R{"id":1,"address":"10.0.0.9"}`:                                                       "names no client",
		`C{"id":1,"name":"a"}`:                                                                 "condition",
		`C{"id":1,"name":"a","if":{"op":"~=","data":"28","args":[{"op":"hardware"}]}}`:         "missing closing",
		`V{"name":"site-option-space","value":"a","from":{"level":"network","id":1}}`:          "has no effect",
		`V{"name":"default-lease-time","value":"long","from":{"level":"network","id":1}}`:      "default-lease-time",
		`V{"name":"ping-timeout","value":0,"from":{"level":"network","id":1}}`:                 "between 1 and 10",
		`V{"name":"next-server","value":"boot.example.com","from":{"level":"network","id":1}}`: "next-server",
		`O{"code":255,"name":"end","value":"","from":{"level":"network","id":1}}`:              "code 255",
		`O{"code":6,"name":"dns-server","value":"","from":{"level":"moon","id":1}}`:            "not a level",
		`Q{"id":1,"address":"10.0.0.9","action":"dance"}`:                                      "not an order",
		`F{"id":1,"partner":2,"endpoint":"10.0.0.3:647","mclt":0,"split":128}`:                 "lead time",
		`X{}`: "unknown kind",
		`S{"id":1,"name":"a","configuration":2} {}`: "after the JSON object",
	} {
		if _, err := Decode(Record(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// TestStream checks complete streams, differences, and several streams in one.
func TestStream(t *testing.T) {
	before := sampleUnits(t)
	first := Revision{Number: 1, Hash: before.Hash()}.String()
	after := Units{}
	for id, one := range before {
		after[id] = one
	}
	delete(after, ClassUnit(11))
	items := append(samples(t)[NetworkUnit(7)], Reservation{ID: 99, Address: netip.MustParseAddr("10.0.0.200"), MAC: Hex{1}})
	changed, err := EncodeUnit(NetworkUnit(7), items[1:]...)
	if err != nil {
		t.Fatal(err)
	}
	after[changed.ID] = changed
	second := Revision{Number: 2, Hash: after.Hash()}.String()
	var whole, difference bytes.Buffer
	if err := WriteAll(&whole, first, before); err != nil {
		t.Fatal(err)
	}
	if err := writeDifference(&difference, first, second, before, after); err != nil {
		t.Fatal(err)
	}
	last, got, err := ReadAll(bytes.NewReader(append(whole.Bytes(), difference.Bytes()...)), "", nil)
	if err != nil || last.To != second || !last.Restores || got.Hash() != after.Hash() || len(got) != len(after) {
		t.Fatalf("%v with %d units, %v; want %s", last, len(got), err, second)
	}
	if difference.Len() > 1000 {
		t.Errorf("a change of two records costs %d octets", difference.Len())
	}
	// An invalid difference keeps the content before it, and one of a chain from nothing keeps that before the chain.
	wrong := bytes.Clone(difference.Bytes())
	wrong[len(wrong)-4] ^= 1
	if last, got, err = ReadAll(bytes.NewReader(wrong), first, before); err == nil || last.To != first || len(got) != len(before) {
		t.Errorf("an invalid stream results in %v %v", last, err)
	}
	if last, got, err = ReadAll(bytes.NewReader(append(whole.Bytes(), wrong...)), "", nil); err == nil || last.To != "" || got != nil {
		t.Errorf("an invalid chain results in %v with %d units, %v", last, len(got), err)
	}
	for n := range whole.Len() {
		if _, _, err := ReadAll(bytes.NewReader(whole.Bytes()[:n]), "", nil); err == nil {
			t.Fatalf("a stream cut after %d of %d octets is accepted", n, whole.Len())
		}
	}
}

// TestDiff checks that removing and adding the difference results in the second list.
func TestDiff(t *testing.T) {
	list := func(text string) (out []Record) {
		for _, one := range strings.Fields(text) {
			out = append(out, Record(one))
		}
		return Sort(out)
	}
	removed, added := Diff(list("a b d e"), list("b c e f g"))
	if string(bytes.Join(asBytes(removed), nil)) != "ad" || string(bytes.Join(asBytes(added), nil)) != "cfg" {
		t.Errorf("removed %s, added %s", removed, added)
	}
}

func asBytes(all []Record) (out [][]byte) {
	for _, r := range all {
		out = append(out, r)
	}
	return out
}

// TestServiceOptions checks that each service option has either an effect or a reason for its refusal, and appears once.
func TestServiceOptions(t *testing.T) {
	seen := map[string]bool{}
	for _, o := range slices.Concat(services4, services6) {
		key := o.Name
		if o.V6 {
			key += " 6"
		}
		if seen[key] {
			t.Errorf("%s appears twice", key)
		}
		seen[key] = true
		if (o.Effect == "") == (o.Refusal == "") {
			t.Errorf("%s has both an effect and a refusal, or neither", key)
		}
	}
}

// FuzzDecode checks that arbitrary records do not panic, and that an accepted one can be encoded and decoded again.
func FuzzDecode(f *testing.F) {
	for _, items := range samples(f) {
		for _, x := range items {
			r, err := Encode(x)
			if err != nil {
				f.Fatal(err)
			}
			f.Add([]byte(r))
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		x, err := Decode(text)
		if err != nil {
			return
		}
		r, err := Encode(x)
		if err != nil {
			if strings.Contains(err.Error(), "more than") { // JSON escapes can make it longer
				return
			}
			t.Fatalf("%s: %v", text, err)
		}
		again, err := Decode(r)
		if err != nil {
			t.Fatalf("%s: %v", r, err)
		}
		if last, err := Encode(again); err != nil || !bytes.Equal(last, r) {
			t.Errorf("%s becomes %s %v", r, last, err)
		}
	})
}

// FuzzReadAll checks that arbitrary streams do not panic, and that accepted content has the hash of its revision.
func FuzzReadAll(f *testing.F) {
	units := sampleUnits(f)
	var whole bytes.Buffer
	if err := WriteAll(&whole, Revision{Number: 1, Hash: units.Hash()}.String(), units); err != nil {
		f.Fatal(err)
	}
	f.Add(whole.Bytes())
	f.Fuzz(func(t *testing.T, text []byte) {
		last, got, err := ReadAll(bytes.NewReader(text), "", nil)
		if err != nil {
			return
		}
		revision, err := zonedata.ParseRevision(last.To)
		if err != nil || revision.Hash != got.Hash() {
			t.Errorf("%v is the envelope of content with the hash %s: %v", last, got.Hash(), err)
		}
	})
}

// writeDifference writes a stream from one content to another.
func writeDifference(out io.Writer, from, to string, before, after Units) error {
	w := NewWriter(out, from, to)
	for _, id := range slices.Sorted(maps.Keys(before)) {
		if after[id] == nil {
			w.Deleted(id)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(after)) {
		c, old := Change{Unit: id, To: after[id].Hash}, []Record(nil)
		if one := before[id]; one != nil {
			c.From, old = one.Hash, one.Records
		}
		if c.From == c.To {
			continue
		}
		removed, added := Diff(old, after[id].Records)
		w.Change(c)
		for _, r := range removed {
			w.Removed(r)
		}
		for _, r := range added {
			w.Added(r)
		}
	}
	return w.Close()
}
