// Package snmpagent runs snmpd of net-snmp for tests, with tables that the test program supplies (pass_persist).
package snmpagent

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"portolan/internal/testkit/freeport"
	"portolan/internal/testkit/peers"
)

// rowsVariable is the environment variable that makes the test program answer snmpd with the rows of a file.
const rowsVariable = "PORTOLAN_TEST_SNMP_ROWS"

// The access data of the agent: the community of versions 1 and 2c, a user with authentication (MD5), and one with encryption as well
// (SHA, AES).
const (
	Community                = "harbour"
	AuthenticatedUser        = "looks"
	EncryptedUser            = "watch"
	AuthenticationPassphrase = "authphrase"
	PrivacyPassphrase        = "privphrase"
)

// Switch are the rows of a switch with the name quay-switch. It has two interfaces, neighbours of both address families and a forwarding
// table with a VLAN. Its neighbours by LLDP and CDP are the switch itself at 127.0.0.2, 127.0.0.3 where nothing answers, and others.
const Switch = `.1.3.6.1.2.1.2.2.1.2.1|string|port one
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
.1.0.8802.1.1.2.1.4.2.1.3.0.1.1.1.4.127.0.0.2|integer|2
.1.0.8802.1.1.2.1.4.2.1.3.0.1.2.1.4.10.0.0.250|integer|2
.1.0.8802.1.1.2.1.4.2.1.3.0.1.4.1.4.127.0.0.3|integer|2
.1.0.8802.1.1.2.1.4.2.1.3.0.2.3.6.6.2.0.94.0.83.9|integer|2
.1.3.6.1.4.1.9.9.23.1.2.1.1.3.2.1|integer|1
.1.3.6.1.4.1.9.9.23.1.2.1.1.3.2.2|integer|5
.1.3.6.1.4.1.9.9.23.1.2.1.1.4.2.1|octet|0A 00 00 FB
.1.3.6.1.4.1.9.9.23.1.2.1.1.4.2.2|octet|0A 00 00 FC
`

// Answer answers snmpd and ends the program, if snmpd started it. TestMain calls it first.
func Answer() {
	if file := os.Getenv(rowsVariable); file != "" {
		if err := answerRows(file); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
}

// row is an object with its type and value in the words of snmpd.
type row struct {
	oid               []int
	name, kind, value string
}

// parseOID returns the numbers of an object identifier; wrong parts count as 0.
func parseOID(text string) (oid []int) {
	for part := range strings.SplitSeq(strings.TrimPrefix(text, "."), ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			n = 0
		}
		oid = append(oid, n)
	}
	return oid
}

// answerRows answers the requests of snmpd on standard input with rows of a file: an object, a type and a value in each line.
func answerRows(file string) error {
	text, err := os.ReadFile(file) //nolint:gosec // the file of the test
	if err != nil {
		return err
	}
	var rows []row
	for line := range strings.Lines(string(text)) {
		const parts = 3
		part := strings.SplitN(strings.TrimSpace(line), "|", parts)
		if len(part) != parts {
			return fmt.Errorf("%q is not a row", line)
		}
		rows = append(rows, row{parseOID(part[0]), part[0], part[1], part[2]})
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
			break
		}
		at, exact := slices.BinarySearchFunc(rows, parseOID(in.Text()), func(r row, oid []int) int { return slices.Compare(r.oid, oid) })
		if command == "getnext" && exact {
			at++
		}
		if at >= len(rows) || command == "get" && !exact {
			fmt.Println("NONE")
			continue
		}
		fmt.Printf("%s\n%s\n%s\n", rows[at].name, rows[at].kind, rows[at].value)
	}
	return in.Err()
}

// Start starts snmpd with rows on a free port of the loopback interface. It skips the test without snmpd, and fails it in CI. The agent may
// not answer yet when Start returns.
func Start(t testing.TB, rows string) netip.AddrPort {
	t.Helper()
	program := peers.Program(t, "snmpd")
	at := freeport.Reserve(t)
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	var settings strings.Builder
	fmt.Fprintf(&settings, "agentAddress udp:%s,udp:127.0.0.2:%d\nrocommunity %s 127.0.0.1\nsysName quay-switch\nsysLocation Quay 1\n", at,
		at.Port(), Community)
	fmt.Fprintf(&settings, "createUser %s SHA %s AES %s\nrouser %[1]s priv\n", EncryptedUser, AuthenticationPassphrase, PrivacyPassphrase)
	fmt.Fprintf(&settings, "createUser %s MD5 %s\nrouser %[1]s auth\n", AuthenticatedUser, AuthenticationPassphrase)
	for _, tree := range []string{".1.3.6.1.2.1.2.2", ".1.3.6.1.2.1.31.1.1", ".1.3.6.1.2.1.4.22.1.2", ".1.3.6.1.2.1.4.22.1.4",
		".1.3.6.1.2.1.4.35", ".1.3.6.1.2.1.17", ".1.0.8802.1.1.2.1.4.2.1", ".1.3.6.1.4.1.9.9.23"} {
		fmt.Fprintf(&settings, "pass_persist -p 10 %s %s\n", tree, os.Args[0])
	}
	cmd := exec.Command(program, "-f", "-Lo", "-C", "-c", write("snmpd.conf", settings.String()), "-p", filepath.Join(dir, "pid"))
	cmd.Env = append(os.Environ(), rowsVariable+"="+write("rows", rows), "SNMP_PERSISTENT_DIR="+filepath.Join(dir, "state"), "MIBS=")
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		err := cmd.Process.Kill()
		var end *exec.ExitError
		if wait := cmd.Wait(); err != nil || !errors.As(wait, &end) {
			t.Errorf("snmpd ended by itself: %v, %v\n%s", err, wait, log.Bytes())
		}
	})
	return at
}
