package dhcp

import (
	"bytes"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"portolan/internal/testkit/freeport"
	"portolan/internal/wire/dhcpdata"

	"github.com/insomniacslk/dhcp/dhcpv4"
)

// childVariable makes the test program run a service: it contains the folder with the content, the configuration and the leases.
const childVariable = "PORTOLAN_TEST_DHCP"

// dnsVariable contains the port that a child sends its updates of DNS to.
const dnsVariable = "PORTOLAN_TEST_DHCP_DNS"

// clockVariable contains the seconds that the wall clock of a child differs from that of the machine.
const clockVariable = "PORTOLAN_TEST_DHCP_CLOCK"

// Files of a child. It creates readyFile, with its conditions, when it serves.
const (
	contentFile       = "content"
	configurationFile = "configuration"
	readyFile         = "ready"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childVariable); dir != "" {
		runChild(dir)
		return
	}
	if err := runInParallel(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// runInParallel runs three times as many tests in parallel as there are processors, unless -parallel is given. These tests mostly wait.
func runInParallel() error {
	given := false
	flag.Parse()
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if given {
		return nil
	}
	return flag.Set("test.parallel", strconv.Itoa(3*runtime.GOMAXPROCS(0)))
}

// allTests reports whether the tests have their complete size, as in CI.
func allTests() bool { return os.Getenv("PORTOLAN_TEST_ALL") != "" }

// namespaces is the number of network namespaces that tests of this process have named.
var namespaces atomic.Int64

// namespaceName returns a new name of a network namespace.
func namespaceName(prefix string) string {
	return fmt.Sprintf("%s%d-%d", prefix, os.Getpid(), namespaces.Add(1))
}

// runChild runs a service until the process is killed.
func runChild(dir string) {
	fail := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	var clock *times
	if text := os.Getenv(clockVariable); text != "" {
		offset, err := strconv.Atoi(text)
		fail(err)
		clock = &times{func() time.Time { return time.Now().Add(time.Duration(offset) * time.Second) }, func() (string, int64) {
			id, up := bootTime() // another boot, after which the clock of leases follows the wall clock
			return id + text, up
		}}
	}
	s := newServiceAt(dir, slog.New(slog.NewTextHandler(os.Stderr, nil)), clock)
	fail(s.failed)
	if port, err := strconv.ParseUint(os.Getenv(dnsVariable), 10, 16); err == nil {
		sendTo(netip.AddrPortFrom(netip.IPv4Unspecified(), uint16(port)))(s)
	}
	content, err := os.ReadFile(filepath.Join(dir, contentFile))
	fail(err)
	fail(s.ApplyContent(bytes.NewReader(content)))
	configuration, err := os.ReadFile(filepath.Join(dir, configurationFile))
	fail(err)
	fail(s.Configure(configuration))
	whole := filepath.Join(dir, readyFile+".new") // the test reads the conditions when the file exists
	fail(os.WriteFile(whole, []byte(strings.Join(s.Health(), "\n")), 0o600))
	fail(os.Rename(whole, filepath.Join(dir, readyFile)))
	select {}
}

// child starts a service in a process of its own, by a command that runs the program, and waits until it serves.
func child(t testing.TB, dir string, u dhcpdata.Units, configuration string, command ...string) *exec.Cmd {
	t.Helper()
	var text bytes.Buffer
	if err := dhcpdata.WriteAll(&text, dhcpdata.Revision{Number: revisions.Add(1), Hash: u.Hash()}.String(), u); err != nil {
		t.Fatal(err)
	}
	_ = os.Remove(filepath.Join(dir, readyFile)) // it may not exist
	for name, content := range map[string][]byte{contentFile: text.Bytes(), configurationFile: []byte(configuration)} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command = append(command, self)
	c := exec.Command(command[0], command[1:]...)
	var log bytes.Buffer
	c.Env, c.Stdout, c.Stderr = append(os.Environ(), childVariable+"="+dir), &log, &log
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill() // the test may have killed it
		_ = c.Wait()
		if t.Failed() {
			t.Logf("%s", log.Bytes())
		}
	})
	waitFor(t, func() bool {
		_, err := os.Stat(filepath.Join(dir, readyFile))
		return err == nil
	})
	return c
}

// TestKilled kills the process at random times under load. No acknowledged lease may be lost, and no address may have two holders.
func TestKilled(t *testing.T) {
	t.Parallel()
	rounds := 10
	if os.Getenv("PORTOLAN_TEST_LONG") != "" {
		rounds = 1000
	}
	dir := t.TempDir()
	acknowledged := map[string]string{} // the address of each client
	u := units(t)
	u[dhcpdata.NetworkUnit(7)] = unit(t, dhcpdata.NetworkUnit(7), noPing, option("dhcp-cache-threshold", 0),
		dhcpdata.Network{ID: 7, Prefix: netip.MustParsePrefix("10.0.0.0/8")}, // 1,000 rounds need many addresses
		dhcpdata.Pool{ID: 8, Ranges: []dhcpdata.Interval{{First: netip.MustParseAddr("10.1.0.0"), Last: netip.MustParseAddr("10.200.0.0")}}})
	for round := range rounds {
		address := freeport.Reserve(t).String()
		c := child(t, dir, u, fmt.Sprintf(`{"listen":[%q]}`, address))
		var mu sync.Mutex
		var clients sync.WaitGroup
		stop := make(chan struct{})
		for worker := range 8 {
			clients.Go(func() {
				one := dial(t, address, 0)
				for n := 0; ; n++ {
					select {
					case <-stop:
						return
					default:
					}
					one.mac = []byte{2, byte(round), byte(round >> 8), byte(worker), byte(n >> 8), byte(n)}
					if a := one.tryLease(); a != "" {
						mu.Lock()
						acknowledged[one.mac.String()] = a
						mu.Unlock()
					}
				}
			})
		}
		mu.Lock()
		before := len(acknowledged)
		mu.Unlock()
		waitFor(t, func() bool { mu.Lock(); defer mu.Unlock(); return len(acknowledged) > before+20 })
		time.Sleep(time.Duration(rand.IntN(50)) * time.Millisecond) // the moment is random, not a condition
		if err := c.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = c.Wait() // it was killed
		close(stop)
		clients.Wait()
		verify(t, dir, acknowledged)
	}
	t.Logf("%d leases after %d kills", len(acknowledged), rounds)
}

// verify checks that the leases on the disk contain the acknowledged ones, and that each address has one holder.
func verify(t *testing.T, dir string, acknowledged map[string]string) {
	t.Helper()
	s := newService(dir, slog.New(slog.DiscardHandler))
	if s.failed != nil || s.damaged != nil {
		t.Fatal(s.failed, s.damaged)
	}
	holders := map[string]string{}
	for l := range s.engine.table.all {
		if l.state == dhcpdata.Leased {
			holders[l.address.String()] = fmt.Sprintf("%x", l.holder.hardware)
		}
	}
	seen := map[string]string{}
	for client, a := range acknowledged {
		if other, ok := seen[a]; ok {
			t.Fatalf("%s was leased to %s and to %s", a, client, other)
		}
		seen[a] = client
		if got := holders[a]; got != hexOf(client) {
			t.Fatalf("the lease of %s to %s is lost: the holder is %q", a, client, got)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func hexOf(mac string) string {
	out := ""
	for _, c := range mac {
		if c != ':' {
			out += string(c)
		}
	}
	return out
}

// tryLease performs a four-way exchange; it returns nothing if the server does not answer.
func (c *client) tryLease() string {
	offer := c.quickly(dhcpv4.MessageTypeDiscover)
	if offer == nil {
		return ""
	}
	ack := c.quickly(dhcpv4.MessageTypeRequest, dhcpv4.WithOption(dhcpv4.OptRequestedIPAddress(offer.YourIPAddr)),
		dhcpv4.WithOption(dhcpv4.OptServerIdentifier(offer.ServerIdentifier())))
	if ack == nil || ack.MessageType() != dhcpv4.MessageTypeAck {
		return ""
	}
	return ack.YourIPAddr.String()
}

// quickly is ask with a short time limit, for a server that may be gone.
func (c *client) quickly(kind dhcpv4.MessageType, change ...dhcpv4.Modifier) *dhcpv4.DHCPv4 {
	change = append([]dhcpv4.Modifier{dhcpv4.WithMessageType(kind), dhcpv4.WithHwAddr(c.mac),
		dhcpv4.WithGatewayIP([]byte{10, 0, 0, 1})}, change...)
	m, err := dhcpv4.New(change...)
	if err != nil {
		return nil
	}
	if _, err := c.conn.Write(m.ToBytes()); err != nil {
		return nil
	}
	if c.conn.SetReadDeadline(time.Now().Add(300*time.Millisecond)) != nil {
		return nil
	}
	buffer := make([]byte, 2000)
	for {
		n, err := c.conn.Read(buffer)
		if err != nil {
			return nil
		}
		if got, err := dhcpv4.FromBytes(buffer[:n]); err == nil && got.TransactionID == m.TransactionID {
			return got
		}
	}
}
