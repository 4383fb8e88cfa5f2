package snmpwalk

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// rowsVariable is the environment variable that makes the test program answer snmpd with the rows of a file (pass_persist).
const rowsVariable = "SNMPWALK_TEST_ROWS"

// TestMain answers snmpd if it started the program, and runs the tests otherwise.
func TestMain(m *testing.M) {
	if file := os.Getenv(rowsVariable); file != "" {
		answerRows(file)
		return
	}
	os.Exit(m.Run())
}

// answerRows answers the requests of snmpd on standard input with rows of a file: an object, a type and a value in each line.
func answerRows(file string) {
	text, err := os.ReadFile(file)
	if err != nil {
		panic(err)
	}
	type row struct {
		oid               []uint32
		name, kind, value string
	}
	var rows []row
	for line := range strings.Lines(string(text)) {
		part := strings.SplitN(strings.TrimSpace(line), "|", 3)
		oid, _ := parseOID(part[0])
		rows = append(rows, row{oid, part[0], part[1], part[2]})
	}
	slices.SortFunc(rows, func(a, b row) int { return slices.Compare(a.oid, b.oid) })
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		command := in.Text()
		if command == "PING" {
			fmt.Println("PONG")
			continue
		}
		if !in.Scan() {
			return
		}
		oid, _ := parseOID(in.Text())
		at, exact := slices.BinarySearchFunc(rows, oid, func(r row, oid []uint32) int { return slices.Compare(r.oid, oid) })
		if command == "getnext" && exact {
			at++
		}
		if at >= len(rows) || command == "get" && !exact {
			fmt.Println("NONE")
			continue
		}
		fmt.Printf("%s\n%s\n%s\n", rows[at].name, rows[at].kind, rows[at].value)
	}
}

// startAgent starts snmpd of net-snmp with tables of a switch, and returns its address.
func startAgent(t *testing.T, rows string) netip.AddrPort {
	t.Helper()
	program, err := exec.LookPath("snmpd")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	dir := t.TempDir()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := netip.MustParseAddrPort(conn.LocalAddr().String())
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	settings := "agentAddress udp:" + at.String() + "\nrocommunity harbour 127.0.0.1\nsysName quay-switch\nsysLocation Quay 1\n" +
		"createUser watch SHA authphrase AES privphrase\nrouser watch priv\n" +
		"createUser looks MD5 authphrase\nrouser looks auth\n"
	for _, tree := range []string{".1.3.6.1.2.1.2.2", ".1.3.6.1.2.1.31.1.1", ".1.3.6.1.2.1.4.22.1.2", ".1.3.6.1.2.1.4.22.1.4", ".1.3.6.1.2.1.4.35", ".1.3.6.1.2.1.17"} {
		settings += "pass_persist -p 10 " + tree + " " + os.Args[0] + "\n"
	}
	cmd := exec.Command(program, "-f", "-Lo", "-C", "-c", write("snmpd.conf", settings), "-p", filepath.Join(dir, "pid"))
	cmd.Env = append(os.Environ(), rowsVariable+"="+write("rows", rows), "SNMP_PERSISTENT_DIR="+filepath.Join(dir, "state"), "MIBS=")
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cmd.Process.Kill(); err != nil {
			t.Error(err)
		}
		if err := cmd.Wait(); err == nil {
			t.Error("snmpd ended before it was stopped")
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		_, err := Read(ctx, Target{Address: at, Version: V2c, Communities: []string{"harbour"}, Timeout: time.Second, Retries: 1, MaxRows: 1})
		if err == nil {
			return at
		}
		if ctx.Err() != nil {
			t.Fatalf("snmpd does not answer: %v\n%s", err, log.Bytes())
		}
	}
}

// tables are the rows of a switch with two interfaces, neighbours of both address families and a forwarding table with a VLAN.
const tables = `.1.3.6.1.2.1.2.2.1.2.1|string|port one
.1.3.6.1.2.1.2.2.1.2.2|string|port two
.1.3.6.1.2.1.2.2.1.5.1|gauge|4294967295
.1.3.6.1.2.1.2.2.1.6.1|octet|02 00 5E 00 00 01
.1.3.6.1.2.1.2.2.1.8.1|integer|1
.1.3.6.1.2.1.2.2.1.8.2|integer|2
.1.3.6.1.2.1.31.1.1.1.1.1|string|ge-0/0/1
.1.3.6.1.2.1.31.1.1.1.15.1|gauge|10000
.1.3.6.1.2.1.31.1.1.1.18.1|string|crane 4
.1.3.6.1.2.1.4.22.1.2.1.10.0.0.7|octet|02 00 5E 00 53 07
.1.3.6.1.2.1.4.22.1.2.1.10.0.0.8|octet|02 00 5E 00 53 08
.1.3.6.1.2.1.4.22.1.4.1.10.0.0.7|integer|3
.1.3.6.1.2.1.4.22.1.4.1.10.0.0.8|integer|2
.1.3.6.1.2.1.4.35.1.4.1.1.4.10.0.0.9|octet|02 00 5E 00 53 09
.1.3.6.1.2.1.4.35.1.4.1.2.16.32.1.13.184.0.0.0.0.0.0.0.0.0.0.0.7|octet|02 00 5E 00 53 07
.1.3.6.1.2.1.4.35.1.4.1.2.16.254.128.0.0.0.0.0.0.0.0.0.0.0.0.0.7|octet|02 00 5E 00 53 07
.1.3.6.1.2.1.4.35.1.6.1.1.4.10.0.0.9|integer|3
.1.3.6.1.2.1.17.1.4.1.2.11|integer|1
.1.3.6.1.2.1.17.1.4.1.2.12|integer|2
.1.3.6.1.2.1.17.7.1.2.2.1.2.5.2.0.94.0.83.7|integer|11
.1.3.6.1.2.1.17.7.1.2.2.1.2.5.2.0.94.0.0.1|integer|12
.1.3.6.1.2.1.17.7.1.2.2.1.3.5.2.0.94.0.83.7|integer|3
.1.3.6.1.2.1.17.7.1.2.2.1.3.5.2.0.94.0.0.1|integer|4
.1.3.6.1.2.1.17.7.1.4.2.1.3.0.20|gauge|5
`

// TestReadAgent reads snmpd of net-snmp with each version, and compares the tables.
func TestReadAgent(t *testing.T) {
	at := startAgent(t, tables)
	for name, target := range map[string]Target{
		"v1":         {Version: V1, Communities: []string{"harbour"}},
		"v2c":        {Version: V2c, Communities: []string{"wrong", "harbour"}, Timeout: time.Second, Retries: 1},
		"authPriv":   {Version: V3, Usernames: []string{"watch"}, IsAuthenticated: true, IsEncrypted: true, AuthenticationProtocol: "SHA", AuthenticationPassphrase: "authphrase", PrivacyProtocol: "AES128", PrivacyPassphrase: "privphrase"},
		"authNoPriv": {Version: V3, Usernames: []string{"nobody", "looks"}, IsAuthenticated: true, AuthenticationProtocol: "MD5", AuthenticationPassphrase: "authphrase"},
	} {
		t.Run(name, func(t *testing.T) {
			target.Address = at
			target.Timeout = cmp.Or(target.Timeout, 10*time.Second)
			packets := 0
			target.Pace = func(context.Context) error { packets++; return nil }
			d, err := Read(t.Context(), target)
			if err != nil {
				t.Fatal(err)
			}
			if len(d.Problems) > 0 || d.Name != "quay-switch" || d.Location != "Quay 1" || d.Description == "" {
				t.Errorf("the device is %+v", d)
			}
			port := Interface{Name: "ge-0/0/1", Description: "port one", Alias: "crane 4", MAC: "02-00-5E-00-00-01", Speed: 10_000_000_000, IsUp: true}
			if len(d.Interfaces) != 2 || d.Interfaces[1] != port || d.PortName(1) != "ge-0/0/1" || d.PortName(2) != "port two" {
				t.Errorf("the interfaces are %+v", d.Interfaces)
			}
			neighbours := []Neighbour{{netip.MustParseAddr("10.0.0.7"), "02-00-5E-00-53-07", 1}, {netip.MustParseAddr("10.0.0.9"), "02-00-5E-00-53-09", 1},
				{netip.MustParseAddr("2001:db8::7"), "02-00-5E-00-53-07", 1}}
			if !slices.Equal(d.Neighbours, neighbours) {
				t.Errorf("the neighbours are %v", d.Neighbours)
			}
			if !slices.Equal(d.Stations, []Station{{MAC: "02-00-5E-00-53-07", Interface: 1, VLAN: 20}}) {
				t.Errorf("the stations are %v", d.Stations)
			}
			if packets < 20 {
				t.Errorf("%d packets were paced", packets)
			}
		})
	}
	for name, target := range map[string]Target{
		"community":  {Version: V2c, Communities: []string{"wrong"}},
		"user":       {Version: V3, Usernames: []string{"nobody"}},
		"passphrase": {Version: V3, Usernames: []string{"watch"}, IsAuthenticated: true, AuthenticationProtocol: "SHA", AuthenticationPassphrase: "not this one"},
	} {
		target.Address, target.Timeout, target.Retries = at, 200*time.Millisecond, 1
		if d, err := Read(t.Context(), target); err == nil {
			t.Errorf("a wrong %s reads %+v", name, d)
		}
	}
	stop := errors.New("stopped")
	if _, err := Read(t.Context(), Target{Address: at, Version: V2c, Communities: []string{"harbour"}, Pace: func(context.Context) error { return stop }}); !errors.Is(err, stop) {
		t.Errorf("a failing pace gives %v", err)
	}
	if d, err := Read(t.Context(), Target{Address: at, Version: V2c, Communities: []string{"harbour"}, MaxRows: 1, Timeout: 10 * time.Second}); err != nil ||
		!strings.Contains(strings.Join(d.Problems, "; "), errTruncated.Error()) {
		t.Errorf("long tables: %v, %v", d, err)
	}
}
