package dns_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rr "portolan/internal/base/dnsmsg"
	"portolan/internal/base/naming"
	"portolan/internal/manager/dns/transfer"
	"portolan/internal/manager/ipam"
	"portolan/internal/testkit/apitest"
	"portolan/internal/testkit/peers"
	"portolan/internal/testkit/zonetest"
)

// servedRecords gives the records of a zone in wire form, without its SOA, each once, names of owners in lower case.
func servedRecords(t *testing.T, zone string, records []rr.RR) (all []string) {
	t.Helper()
	for _, one := range records {
		name := rr.CanonicalName(one.Header().Name)
		if one.Header().Rrtype == rr.TypeSOA || !rr.IsSubDomain(rr.CanonicalName(zone), name) {
			continue
		}
		one = rr.Copy(one)
		one.Header().Name = name
		b := make([]byte, rr.MaxMsgSize)
		n, err := rr.PackRR(one, b, 0, nil, false)
		if err != nil {
			t.Fatalf("%s: %v", one, err)
		}
		all = append(all, strings.ToLower(fmt.Sprintf("%q", b[:n])))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// putBack puts every resource of a collection back as it is shown: it is taken, and changes nothing.
func putBack(m *apitest.API, path string) {
	m.T.Helper()
	for from := 0; ; from += 1000 {
		r := m.Want(200, "GET", fmt.Sprintf("%s?limit=1000&offset=%d", path, from), "")
		var page struct {
			Data []json.RawMessage `json:"data"`
		}
		if err := json.Unmarshal(r.Body, &page); err != nil {
			m.T.Fatal(err)
		}
		for _, one := range page.Data {
			var head struct {
				ID   int64  `json:"id"`
				Type string `json:"type"`
			}
			if err := json.Unmarshal(one, &head); err != nil {
				m.T.Fatal(err)
			}
			if put := m.Do("PUT", fmt.Sprintf("%s/%d", path, head.ID), string(one)); put.StatusCode != 200 {
				m.T.Errorf("%s is put back, and refused: %s", one, put.Body)
			}
		}
		if len(page.Data) < 1000 {
			return
		}
	}
}

// TestZoneFilesMatchBIND imports zone files, twice, and exports the zones: they have the RRsets that named-compilezone gives.
func TestZoneFilesMatchBIND(t *testing.T) {
	apitest.Slow(t)
	program := peers.Program(t, "named-compilezone")
	m := start(t)
	m.Basics()
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("hosts.inc", zonetest.Include)
	files := slices.Clone(zonetest.Files)
	for _, line := range zonetest.Lines {
		files = append(files, zonetest.Head+line+"\n")
	}
	random := rand.New(rand.NewPCG(18, 19)) //nolint:gosec // a test
	generated := 40
	if os.Getenv("PORTOLAN_TEST_LONG") != "" {
		generated = 1000
	}
	for range generated {
		files = append(files, zonetest.Random(random))
	}
	loaded := 0
	for i, text := range files {
		origin := fmt.Sprintf("zone%d.example", i)
		text += "\n" + origin + " TXT \"the name of the zone, below it\"\n"
		if i%3 == 1 {
			origin = fmt.Sprintf("xn--mller%d-kva.example", i)
		}
		write("zone", text)
		c := exec.Command(program, "-i", "none", "-k", "ignore", "-n", "ignore", "-r", "ignore", "-D", "-o", filepath.Join(dir, "out"), origin,
			"zone")
		c.Dir = dir
		if c.Run() != nil {
			continue
		}
		loaded++
		compiled, err := os.ReadFile(filepath.Join(dir, "out"))
		if err != nil {
			t.Fatal(err)
		}
		want, err := naming.ReadZone(bytes.NewReader(compiled), origin, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, again := range []bool{false, true} {
			read, err := naming.ReadZone(strings.NewReader(text), origin, func(name string) (io.ReadCloser,
				error) {
				return os.Open(filepath.Join(dir, name))
			})
			if err != nil || len(read.Faults) > 0 {
				t.Fatalf("%v %v\n%s", err, read, text)
			}
			done, err := transfer.ImportZone(t.Context(), m.Address, "main", "internal", read.Zone, read.Records, ipam.Import{})
			if err != nil || len(slices.DeleteFunc(done.Skipped, func(text string) bool {
				return strings.Contains(text, ": it is outside the zone: ")
			})) > 0 ||
				len(done.Differences) > 0 || again && done.Created+done.Changed+done.Deleted > 0 {
				t.Fatalf("%+v %v\n%s", done, err, text)
			}
			served, err := naming.ReadZone(strings.NewReader(apitest.ZoneFile(t, m.Address, origin)), origin, nil)
			if err != nil || len(served.Faults) > 0 {
				t.Fatalf("what is exported is not read: %v %q", err, served.Faults)
			}
			if got, wanted := servedRecords(t, origin, served.Records), servedRecords(t, origin, want.Records); !slices.Equal(got, wanted) {
				for _, one := range got {
					if !slices.Contains(wanted, one) {
						t.Errorf("served is %s", one)
					}
				}
				for _, one := range wanted {
					if !slices.Contains(got, one) {
						t.Errorf("by BIND is %s", one)
					}
				}
				t.Fatalf("the zone %s of\n%s\nis\n%s", origin, text, apitest.ZoneFile(t, m.Address, origin))
			}
		}
	}
	t.Logf("%d of %d files are loaded by BIND", loaded, len(files))
	putBack(m, "/api/v2/resourceRecords")
	m.Verify()
}

// TestNamesBelowUnicodeZones creates records with underscores, wildcards and escapes below a zone with an internationalised name, by its
// U-label and by its A-label.
func TestNamesBelowUnicodeZones(t *testing.T) {
	m := start(t)
	_, view, _, _, _ := m.Basics()
	zone := m.ID("/api/v2/views/"+view+"/zones", `{"type":"Zone","absoluteName":"müller.example"}`)
	for body, name := range map[string]string{
		`{"type":"TXTRecord","name":"_dmarc","text":"x"}`:                                       "_dmarc.xn--mller-kva.example",
		`{"type":"TXTRecord","absoluteName":"_a.müller.example","text":"x"}`:                    "_a.xn--mller-kva.example",
		`{"type":"TXTRecord","absoluteName":"_b.xn--mller-kva.example","text":"x"}`:             "_b.xn--mller-kva.example",
		`{"type":"TXTRecord","name":"_c.XN--mller-kva.example.","text":"x"}`:                    "_c.xn--mller-kva.example",
		`{"type":"GenericRecord","name":"*","recordType":"A","rdata":"192.0.2.1"}`:              "*.xn--mller-kva.example",
		`{"type":"TXTRecord","name":"Lab\\032Printer._ipp._tcp","text":"x"}`:                    "lab\\032printer._ipp._tcp.xn--mller-kva.example",
		`{"type":"TXTRecord","name":"first\\.last","text":"x"}`:                                 "first\\.last.xn--mller-kva.example",
		`{"type":"TXTRecord","name":"bücher._x","text":"x"}`:                                    "xn--bcher-kva._x.xn--mller-kva.example",
		`{"type":"GenericRecord","name":"t","recordType":"TYPE65280","rdata":"\\# 4 0A000001"}`: "t.xn--mller-kva.example",
		`{"type":"GenericRecord","name":"m","recordType":"EUI48","rdata":"00-00-5e-00-53-2a"}`:  "m.xn--mller-kva.example",
	} {
		id := m.ID("/api/v2/zones/"+zone+"/resourceRecords", body)
		r := m.Want(200, "GET", "/api/v2/resourceRecords?"+apitest.Filter("absoluteName:'"+strings.ReplaceAll(name, `\`, `\\`)+"'"), "")
		if r.Text("data.0.id") != id {
			t.Errorf("%s is not found as %s: %s", body, name, r.Body)
		}
	}
	for body, field := range map[string]string{
		`{"type":"TXTRecord","name":"a b","text":"x"}`:                                      "name",
		`{"type":"TXTRecord","name":"a\\","text":"x"}`:                                      "name",
		`{"type":"TXTRecord","name":"a\\25x","text":"x"}`:                                   "name",
		`{"type":"TXTRecord","name":"a\\256","text":"x"}`:                                   "name",
		`{"type":"GenericRecord","name":"t","recordType":"TYPE1","rdata":"192.0.2.1"}`:      "recordType",
		`{"type":"GenericRecord","name":"t","recordType":"TYPE5","rdata":"a."}`:             "recordType",
		`{"type":"GenericRecord","name":"t","recordType":"TYPE255","rdata":"\\# 0"}`:        "recordType",
		`{"type":"GenericRecord","name":"t","recordType":"TYPE70000","rdata":"\\# 0"}`:      "recordType",
		`{"type":"GenericRecord","name":"t","recordType":"TYPE46","rdata":"\\# 0"}`:         "recordType",
		`{"type":"GenericRecord","name":"t","recordType":"TYPE65280","rdata":"\\# 3 0A00"}`: "rdata",
	} {
		if r := m.Do("POST", "/api/v2/zones/"+zone+"/resourceRecords", body); r.StatusCode != 400 || !strings.Contains(string(r.Body), field) {
			t.Errorf("%s: %d %s", body, r.StatusCode, r.Body)
		}
	}
	m.Verify()
}
