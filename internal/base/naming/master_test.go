package naming

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	dns "portolan/internal/base/dnsmsg"
	"portolan/internal/testkit/peers"
	"portolan/internal/testkit/zonetest"
)

// compiledByBIND returns the records of a zone file as BIND's program reads them; ok is false if BIND rejects the file.
func compiledByBIND(t *testing.T, dir, file, origin string) (z *ZoneFile, said string, ok bool) {
	t.Helper()
	program := peers.Program(t, "named-compilezone")
	out := filepath.Join(t.TempDir(), "out")
	c := exec.Command(program, "-i", "none", "-k", "ignore", "-n", "ignore", "-r", "ignore", "-D", "-f", "text", "-F", "text", "-o", out,
		origin, file)
	c.Dir = dir
	text, err := c.CombinedOutput()
	if err != nil {
		return nil, string(text), false
	}
	read, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	z, err = ReadZone(bytes.NewReader(read), origin, nil)
	if err != nil || len(z.Faults) > 0 {
		t.Fatalf("what BIND writes is not read: %v %v", err, z.Faults)
	}
	return z, string(text), true
}

// onTheWire returns the records of a zone in wire form without duplicates, with owners in lower case.
func onTheWire(t *testing.T, z *ZoneFile) (all []string) {
	t.Helper()
	for _, rr := range z.Records {
		one := dns.Copy(rr)
		one.Header().Name = dns.CanonicalName(one.Header().Name)
		b := make([]byte, dns.MaxMsgSize)
		n, err := dns.PackRR(one, b, 0, nil, false)
		if err != nil {
			t.Fatalf("%s: %v", rr, err)
		}
		text := fmt.Sprintf("%q", b[:n])
		if slices.Contains([]uint16{dns.TypeMX, dns.TypeSRV, dns.TypeNS, dns.TypePTR, dns.TypeCNAME, dns.TypeRP}, one.Header().Rrtype) {
			text = strings.ToLower(text) // either of two that differ in case may be kept
		}
		all = append(all, text)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// sameAsBIND reads a zone file with BIND's program and with ReadZone, and compares all records.
func sameAsBIND(t *testing.T, dir, name, origin string) {
	t.Helper()
	theirs, said, ok := compiledByBIND(t, dir, name, origin)
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	ours, err := ReadZone(bytes.NewReader(text), origin, func(name string) (io.ReadCloser, error) { return os.Open(filepath.Join(dir, name)) })
	if !ok {
		if testing.Verbose() {
			t.Logf("BIND refuses the file: %s\n%s", said, text)
		}
		return
	}
	if err != nil || len(ours.Faults) > 0 {
		t.Errorf("BIND reads what we refuse: %v %q\n%s\n%.300s", err, ours.Faults, said, text)
		return
	}
	ours.Records = slices.DeleteFunc(ours.Records, func(rr dns.RR) bool {
		return !dns.IsSubDomain(theirs.Zone,
			dns.CanonicalName(rr.Header().Name))
	})
	got, want := onTheWire(t, ours), onTheWire(t, theirs)
	for _, one := range got {
		if _, found := slices.BinarySearch(want, one); !found {
			t.Errorf("we read %s, BIND does not\n%.500s\n%s", one, text, said)
			return
		}
	}
	for _, one := range want {
		if _, found := slices.BinarySearch(got, one); !found {
			t.Errorf("BIND reads %s, we do not\n%.500s\n%s", one, text, said)
			return
		}
	}
}

// TestZoneFilesAreReadAsByBIND reads fixed and generated zone files with named-compilezone and with ReadZone.
func TestZoneFilesAreReadAsByBIND(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("hosts.inc", zonetest.Include)
	for i, text := range zonetest.Files {
		name := fmt.Sprint("zone", i)
		write(name, text)
		sameAsBIND(t, dir, name, "example.com")
	}
	for _, line := range zonetest.Lines {
		write("odd", zonetest.Head+line+"\n")
		sameAsBIND(t, dir, "odd", "example.com")
	}
	files := 40
	if os.Getenv("PORTOLAN_TEST_LONG") != "" {
		files = 1000
	}
	random := rand.New(rand.NewPCG(8, 9)) //nolint:gosec // a test
	for i := range files {
		write("random", zonetest.Random(random))
		if sameAsBIND(t, dir, "random", []string{"example.com", "xn--mller-kva.example", "com", "0/25.2.0.192.in-addr.arpa"}[i%4]); t.Failed() {
			return
		}
	}
}

// TestFaultyLines reads files with wrong quotation marks and parentheses. Each is reported as a fault of its line, and the next lines are
// read.
func TestFaultyLines(t *testing.T) {
	for line, want := range map[string]string{
		"a A 192.0.2.1 )":    "line 3: a closing parenthesis has no opening parenthesis",
		"a A 192.0.2.1 ) (":  "line 3: a closing parenthesis has no opening parenthesis",
		") a A ) 192.0.2.1":  "line 3: a closing parenthesis has no opening parenthesis",
		"a TXT \"open":       "line 3: no closing quotation mark in the line",
		"a TXT ( \"b\" ) ) ": "line 3: a closing parenthesis has no opening parenthesis",
	} {
		z, err := ReadZone(strings.NewReader("$TTL 60\n@ SOA ns admin 1 2 3 4 5\n"+line+"\nb A 192.0.2.2\n"), "example.", nil)
		if err != nil || !slices.Equal(z.Faults, []string{want}) || len(z.Records) != 2 {
			t.Errorf("%q: %v %+v", line, err, z)
		}
	}
	z, err := ReadZone(strings.NewReader("$TTL 60\n@ SOA ns admin 1 2 3 4 5\na A ( 192.0.2.1\nb A 192.0.2.2\n"), "example.", nil)
	if err != nil || len(z.Faults) != 1 || !strings.Contains(z.Faults[0], "no closing parenthesis") {
		t.Errorf("an open parenthesis: %v %+v", err, z)
	}
}
