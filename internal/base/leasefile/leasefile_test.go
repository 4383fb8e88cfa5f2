package leasefile

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"
)

const iscFile = `# The format of this file is documented in the dhcpd.leases(5) manual page.
# This lease file was written by isc-dhcp-4.4.3-P1

# authoring-byte-order entry is generated, DO NOT DELETE
authoring-byte-order little-endian;

failover peer "pair" state {
  my state normal at 4 2026/11/26 09:00:00;
  partner state normal at 4 2026/11/26 09:00:00;
}
server-duid "\000\001\000\001/\001\002\003\002\000^\000S\001";

lease 10.0.0.20 {
  starts 0 2026/11/29 08:00:00;
  ends 0 2026/11/29 09:00:00;
  binding state active;
  hardware ethernet 00:00:5e:00:53:99;
}
lease 10.0.0.20 {
  starts 0 2026/11/29 10:00:00;
  ends 0 2026/11/29 22:00:00;
  tstp 0 2026/11/29 22:00:00;
  cltt 0 2026/11/29 10:30:00;
  binding state active;
  next binding state free;
  rewind binding state free;
  hardware ethernet 00:00:5e:00:53:20;
  uid "\001\000\000^\000S ";
  set vendor-class-identifier = "MSFT 5.0";
  option agent.circuit-id 0:4:0:1:0:7;
  option agent.remote-id "sw\"1\\";
  client-hostname "crane \303\270";
}
lease 10.0.0.21 {
  starts epoch 1795950000; # Fri Nov 28 23:00:00 2026
  ends never;
  binding state active;
  hardware ethernet 0:0:5e:0:53:21;
}
lease 10.0.0.22 { starts 0 2026/11/29 10:00:00; ends 0 2026/11/29 22:00:00; binding state backup; }
lease 10.0.0.23 { starts 0 2026/11/29 10:00:00; ends 0 2026/11/30 10:00:00; binding state abandoned; }
lease 10.0.0.24 { starts 0 2026/11/29 10:00:00; ends 0 2026/11/29 22:00:00; binding state active; }
lease 10.0.0.25 {
  starts 0 2026/11/29 10:00:00;
  ends 0 2026/11/29 22:
lease 10.0.0.26 {
  starts 0 2026/11/29 10:00:00;
  ends 0 2026/11/29 22:00:00;
  hardware unknown-27 01:02;
}
host joe { dynamic; hardware ethernet 00:00:5e:00:53:01; fixed-address 10.0.0.3; }
lease 10.0.0.20x { }
lease 10.0.0.27 {
  starts 0 2026/11/29 10:00:00;
  hardware ethernet 00:00:`

// describe returns a lease as a line.
func describe(l Lease) string {
	if l.Wrong != nil {
		return fmt.Sprintf("%d %s wrong: %v", l.Line, l.Address, l.Wrong)
	}
	text := fmt.Sprintf("%d %s", l.Line, l.Address)
	if l.PrefixLength > 0 {
		text += fmt.Sprintf("/%d", l.PrefixLength)
	}
	end := "never"
	if !l.Expires.IsZero() {
		end = l.Expires.UTC().Format("02T15:04")
	}
	text += fmt.Sprintf(" %d %s %s-%s", l.State, l.Status, l.Start.UTC().Format("02T15:04"), end)
	for name, octets := range map[string][]byte{"": l.Hardware} {
		text += fmt.Sprintf(" %d:%s%s", l.HardwareType, name, hex.EncodeToString(octets))
	}
	if len(l.DUID) > 0 {
		text += fmt.Sprintf(" iaid=%d duid=%x", l.IAID, l.DUID)
	}
	if len(l.ClientID) > 0 {
		text += fmt.Sprintf(" id=%x", l.ClientID)
	}
	if l.HostName != "" {
		text += fmt.Sprintf(" %q", l.HostName)
	}
	if l.CircuitID != nil || l.RemoteID != nil || l.VendorClass != nil {
		text += fmt.Sprintf(" %x %q %q", l.CircuitID, l.RemoteID, l.VendorClass)
	}
	return text
}

func wants(t *testing.T, file, want string) {
	t.Helper()
	all, err := Read([]byte(file))
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, l := range all {
		lines = append(lines, describe(l))
	}
	got := strings.Split(strings.Join(lines, "\n"), "\n")
	for i, line := range strings.Split(strings.TrimSpace(want), "\n") {
		if i >= len(got) || got[i] != line {
			t.Fatalf("line %d is not\n%s\nin:\n%s", i+1, line, strings.Join(got, "\n"))
		}
	}
	if n := strings.Count(strings.TrimSpace(want), "\n") + 1; len(got) != n {
		t.Errorf("%d leases, want %d:\n%s", len(got), n, strings.Join(got, "\n"))
	}
}

// TestISC checks that the last entry of an address counts. Damaged entries are reported, and do not hide the ones after them.
func TestISC(t *testing.T) {
	wants(t, iscFile, `
19 10.0.0.20 0 active 29T10:30-29T22:00 1:00005e005320 id=0100005e005320 "crane ø" 000400010007 "sw\"1\\" "MSFT 5.0"
34 10.0.0.21 0 active 29T11:00-never 1:00005e005321
40 10.0.0.22 2 backup 29T10:00-29T22:00 0:
41 10.0.0.23 1 abandoned 29T10:00-30T10:00 0:
42 10.0.0.24 wrong: the lease has neither a hardware address nor a client identifier
43 10.0.0.25 wrong: the entry does not end: the file is truncated or damaged here
46 10.0.0.26 0 active 29T10:00-29T22:00 27:0102
52 invalid IP wrong: "10.0.0.20x" is not an IPv4 address
53 10.0.0.27 wrong: the entry does not end: the file is truncated or damaged here`)
}

// TestISC6 checks that an identity association that is written again has lost the addresses that it does not have any more.
func TestISC6(t *testing.T) {
	wants(t, `server-duid "\000\001";
ia-na "\001\000\000\000\000\003\000\001\000\000^\000S\001" {
  cltt 0 2026/11/29 10:00:00;
  iaaddr 2001:db8::20 { binding state active; preferred-life 300; max-life 600; ends 0 2026/11/29 22:00:00; }
  iaaddr 2001:db8::21 { binding state active; preferred-life 300; max-life 600; ends 0 2026/11/29 22:00:00; }
}
ia-ta "\001\000\000\000\000\003\000\001\000\000^\000S\001" {
  iaaddr 2001:db8::30 { binding state active; ends 0 2026/11/29 22:00:00; }
}
ia-pd "\002\000\000\000\000\003\000\001\000\000^\000S\001" {
  cltt 0 2026/11/29 10:00:00;
  iaprefix 2001:db8:1::/56 { binding state active; max-life 4294967295; ends never; }
  iaprefix 2001:db8:1::1/56 { binding state active; ends never; }
}
ia-na "\001\000\000\000\000\003\000\001\000\000^\000S\001" {
  cltt 0 2026/11/29 11:00:00;
  iaaddr 2001:db8::21 { binding state expired; preferred-life 300; max-life 600; ends 0 2026/11/29 23:00:00; }
}`, `
8 2001:db8::30 3 active 01T00:00-29T22:00 0: iaid=1 duid=0003000100005e005301
12 2001:db8:1::/56 0 active 29T10:00-never 0: iaid=2 duid=0003000100005e005301
13 invalid IP wrong: "2001:db8:1::1/56" is not an IPv6 prefix
17 2001:db8::21 2 expired 29T11:00-29T23:00 0: iaid=1 duid=0003000100005e005301`)
}

func TestKea(t *testing.T) {
	wants(t, `address,hwaddr,client_id,valid_lifetime,expire,subnet_id,fqdn_fwd,fqdn_rev,hostname,state,user_context,pool_id
10.0.0.20,00:00:5e:00:53:20,01:00:00:5e:00:53:20,3600,1795950000,1,0,0,crane&#x2c20,0,,0
address,hwaddr,client_id,valid_lifetime,expire,subnet_id,fqdn_fwd,fqdn_rev,hostname,state,user_context,pool_id
10.0.0.20,00:00:5e:00:53:20,01:00:00:5e:00:53:20,3600,1795953600,1,0,0,crane&#x2c20,0,{"ISC":{"relay-agent-info":"0x0103616263"}},0
10.0.0.21,00:00:5e:00:53:21,,4294967295,6090917295,1,0,0,,0,,0
10.0.0.22,00:00:5e:00:53:22,,0,1795950000,1,0,0,,0,,0

10.0.0.23,,,86400,1795950000,1,0,0,,1,,0
10.0.0.24,00:00:5e:00:53:24,,3600,1795950000,1,0,0,,2,,0
10.0.0.25,00:00:5e:00:53:25,,3600,x,1,0,0,,0,,0
10.0.0.26,,,3600,1795950000,1,0,0,,0,,0
10.0.0.27,00:00:5e:00:53:27,,3600,17959`, `
4 10.0.0.20 0 default 29T11:00-29T12:00 1:00005e005320 id=0100005e005320 "crane,20" 616263 "" ""
5 10.0.0.21 0 default 29T11:00-never 1:00005e005321
6 10.0.0.22 2 deleted 01T00:00-never 1:00005e005322
8 10.0.0.23 1 declined 28T11:00-29T11:00 0:
9 10.0.0.24 2 expired-reclaimed 29T10:00-29T11:00 1:00005e005324
10 10.0.0.25 wrong: expire: "x" is not a number
11 10.0.0.26 wrong: the lease has neither a hardware address nor a client identifier
12 10.0.0.27 wrong: the line has 5 cells, but the head has 12: the file is truncated here`)
}

func TestKea6(t *testing.T) {
	wants(t, `address,duid,valid_lifetime,expire,subnet_id,pref_lifetime,lease_type,iaid,prefix_len,fqdn_fwd,fqdn_rev,hostname,hwaddr,state,user_context,hwtype,hwaddr_source,pool_id
2001:db8::20,00:03:00:01:00:00:5e:00:53:01,3600,1795950000,1,1800,0,7,128,0,0,host.example.,00:00:5e:00:53:01,0,,1,2,0
2001:db8:1::,00:03:00:01:00:00:5e:00:53:01,3600,1795950000,1,1800,2,8,56,0,0,,,0,,,,0
2001:db8::21,00:03:00:01:00:00:5e:00:53:01,3600,1795950000,1,1800,1,9,128,0,0,,,0,,,,0
2001:db8::22,00:00:00,3600,1795950000,1,1800,0,9,128,0,0,,,1,,,,0
2001:db8:2::,00:03:00:01:00:00:5e:00:53:01,3600,1795950000,1,1800,2,8,0,0,0,,,0,,,,0`, `
2 2001:db8::20 0 default 29T10:00-29T11:00 1:00005e005301 iaid=7 duid=0003000100005e005301 "host.example."
3 2001:db8:1::/56 0 default 29T10:00-29T11:00 0: iaid=8 duid=0003000100005e005301
4 2001:db8::21 3 default 29T10:00-29T11:00 0: iaid=9 duid=0003000100005e005301
5 2001:db8::22 1 declined 29T10:00-29T11:00 0: iaid=9 duid=000000
6 2001:db8:2:: wrong: the prefix length 0 is invalid`)
}

// TestBadFiles checks that other files are refused, and that damage costs no more than the damaged entries, whatever the file contains.
func TestBadFiles(t *testing.T) {
	for name, file := range map[string]string{"empty": "", "text": "hello", "configuration": "subnet 10.0.0.0 netmask 255.0.0.0 { }",
		"octets": "\x00\x01\x02", "braces": "}}}}", "comment": "# lease 10.0.0.1 {"} {
		if all, err := Read([]byte(file)); err == nil {
			t.Errorf("%s: %d leases", name, len(all))
		}
	}
	began := time.Now()
	if _, err := Read([]byte(strings.Repeat("lease 10.0.0.1 {\n a b {\n", 200_000))); err == nil {
		t.Error("a file with 200,000 damaged entries is read")
	}
	t.Logf("200,000 damaged entries took %s", time.Since(began))
	zeros := "lease 10.0.0.1 { ends never; hardware ethernet 00:00:5e:00:53:01; }\n" + strings.Repeat("\x00", 100) +
		"\nlease 10.0.0.2 { ends never; hardware ethernet 00:00:5e:00:53:02; }\n"
	all, err := Read([]byte(zeros))
	if err != nil || len(all) != 3 || all[1].Wrong == nil || all[2].Address != netip.MustParseAddr("10.0.0.2") {
		t.Errorf("a hole in the file: %v, %v", all, err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(iscFile))
	f.Add([]byte("address,hwaddr\n10.0.0.1,00"))
	f.Fuzz(func(t *testing.T, file []byte) {
		all, err := Read(file)
		if err != nil {
			return
		}
		line := 0
		for _, l := range all {
			if l.Line < line || l.Line < 1 {
				t.Fatalf("line %d follows line %d", l.Line, line)
			}
			if line = l.Line; l.Wrong == nil && !l.Address.IsValid() {
				t.Fatal("a lease has no address")
			}
		}
	})
}
