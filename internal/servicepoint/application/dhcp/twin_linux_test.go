package dhcp

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"portolan/internal/testkit/peers"
	"portolan/internal/wire/dhcpdata"

	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"
)

// twins are two servers with the same content in namespaces of their own: this one, and Kea. Each one has a link to a namespace with all
// relays and clients. The addresses are the same on both sides.
type twins struct {
	t    testing.TB
	dir  string
	ours *side
	kea  *side
	// running is the process of this server, and socket the control socket of Kea.
	running *exec.Cmd
	socket  string
	family  int
	// transaction is the last transaction id.
	transaction uint32
}

// side is one of the servers, with the sockets of its relays and clients.
type side struct {
	name           string
	server, relay  string // the namespaces
	relays         *net.UDPConn
	clients        *net.UDPConn
	packets        chan []byte
	clientsControl *ipv4.PacketConn
}

// The addresses of the servers and of the relays' ends of the links.
const (
	twinServer4, twinRelay4 = "192.0.2.2", "192.0.2.1"
	twinServer6, twinRelay6 = "2001:db8:ffff::2", "2001:db8:ffff::1"
)

// newTwins creates the namespaces and starts Kea without networks.
func newTwins(t testing.TB, family int) *twins {
	t.Helper()
	peers.Program(t, "ip")
	kea := peers.Program(t, fmt.Sprintf("kea-dhcp%d", family))
	if os.Geteuid() != 0 {
		if os.Getenv("CI") == "true" {
			t.Fatal("network namespaces require root")
		}
		t.Skip("network namespaces require root")
	}
	dir, err := os.MkdirTemp("", "twins") // the path of a control socket is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	w := &twins{t: t, dir: dir, socket: filepath.Join(dir, "socket"), family: family}
	w.ours, w.kea = w.newSide("ours"), w.newSide("kea")
	w.startKea(kea)
	return w
}

func (w *twins) run(command ...string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	if out, err := exec.CommandContext(ctx, command[0], command[1:]...).CombinedOutput(); err != nil {
		w.t.Fatalf("%s: %v\n%s", strings.Join(command, " "), err, out)
	}
}

// newSide creates the namespaces of a server and of its relays. The relays have all addresses of the networks.
func (w *twins) newSide(name string) *side {
	w.t.Helper()
	s := &side{name: name, server: namespaceName("dhcptw-" + name + "-s"), relay: namespaceName("dhcptw-" + name + "-r"),
		packets: make(chan []byte, 1000)}
	for _, ns := range []string{s.server, s.relay} {
		if out, err := exec.Command("ip", "netns", "add", ns).CombinedOutput(); err != nil {
			w.t.Skipf("network namespaces are not available: %s", out)
		}
		w.t.Cleanup(func() { _ = exec.Command("ip", "netns", "delete", ns).Run() })
	}
	w.run("ip", "link", "add", "s0", "netns", s.server, "type", "veth", "peer", "name", "r0", "netns", s.relay)
	for _, line := range []string{
		"-n " + s.server + " address add " + twinServer4 + "/24 dev s0", "-n " + s.relay + " address add " + twinRelay4 + "/24 dev r0",
		"-n " + s.server + " address add " + twinServer6 + "/64 dev s0 nodad",
		"-n " + s.relay + " address add " + twinRelay6 + "/64 dev r0 nodad",
		"-n " + s.server + " link set lo up", "-n " + s.relay + " link set lo up", "-n " + s.server + " link set s0 up",
		"-n " + s.relay + " link set r0 up", "-n " + s.server + " route add default via " + twinRelay4,
		"-n " + s.relay + " route add local 10.0.0.0/8 dev lo",
	} {
		w.run(append([]string{"ip"}, strings.Fields(line)...)...)
	}
	if w.family == 6 { // duplicate address detection of the addresses of the link takes a second or two
		waitFor(w.t, func() bool {
			out, err := exec.Command("ip", "-n", s.server, "-6", "address").CombinedOutput()
			return err == nil && !strings.Contains(string(out), "tentative") && strings.Contains(string(out), "fe80:")
		})
	}
	inNamespace(w.t, s.relay, func() {
		if w.family == 6 {
			s.relays = w.listen("udp6", "["+twinRelay6+"]:547")
			return
		}
		s.relays, s.clients = w.listen("udp4", "0.0.0.0:67"), w.listen("udp4", "0.0.0.0:68")
		s.clientsControl = ipv4.NewPacketConn(s.clients)
	})
	for _, conn := range []*net.UDPConn{s.relays, s.clients} {
		if conn == nil {
			continue
		}
		w.t.Cleanup(func() { _ = conn.Close() })
		go func() {
			for {
				buffer := make([]byte, 4000)
				n, err := conn.Read(buffer)
				if err != nil {
					return
				}
				s.packets <- buffer[:n]
			}
		}()
	}
	return s
}

func (w *twins) listen(network, address string) *net.UDPConn {
	conn, err := new(net.ListenConfig).ListenPacket(w.t.Context(), network, address)
	if err != nil {
		w.t.Fatal(err)
	}
	return conn.(*net.UDPConn)
}

// lateAnswer is the time for an answer after that to the message that follows. veryLate is that for an answer whose absence would be a
// fault, on a busy machine.
const (
	lateAnswer = 150 * time.Millisecond
	veryLate   = 20 * time.Second
)

// awaitLate waits for the answers of servers that have not answered; it is not called for messages without an answer, as a RELEASE. The
// message that follows comes from a client with a lease, so a busy server may answer it first. id returns the transaction of a packet, and
// explained reports whether the answers so far are not a fault.
func (w *twins) awaitLate(got *[2][]byte, id func(packet []byte) uint32, explained func() bool) {
	until := time.Now().Add(lateAnswer)
	for i, one := range []*side{w.ours, w.kea} {
		if got[i] != nil {
			continue
		}
		if got[i] = w.await(one, time.Until(until), id); got[i] == nil && got[1-i] != nil && !explained() {
			got[i] = w.await(one, veryLate, id)
		}
	}
}

// await waits for the answer of a server; it returns nil if there is none.
func (w *twins) await(one *side, limit time.Duration, id func(packet []byte) uint32) []byte {
	for until := time.After(limit); ; {
		select {
		case packet := <-one.packets:
			if id(packet) == w.transaction {
				return packet
			}
		case <-until:
			return nil
		}
	}
}

// inNamespace calls a function on a thread in a network namespace. The sockets that it opens stay there.
func inNamespace(t testing.TB, name string, fn func()) {
	t.Helper()
	done := make(chan error)
	go func() { // the goroutine ends with its thread locked, so that the thread ends as well
		runtime.LockOSThread()
		f, err := os.Open(filepath.Join("/run/netns", name))
		if err == nil {
			err = unix.Setns(int(f.Fd()), unix.CLONE_NEWNET)
			_ = f.Close()
		}
		if err == nil {
			fn()
		}
		done <- err
	}()
	if err := <-done; err != nil {
		t.Fatalf("entering the namespace %s: %v", name, err)
	}
}

// toRelays sends a message to the server as a relay does, and toServer as a client with an address does.
func (s *side) toRelays(packet []byte, server string, port uint16) error {
	_, err := s.relays.WriteToUDPAddrPort(packet, netip.AddrPortFrom(netip.MustParseAddr(server), port))
	return err
}

func (s *side) toServer(packet []byte, from netip.Addr) error {
	_, err := s.clientsControl.WriteTo(packet, &ipv4.ControlMessage{Src: from.AsSlice()},
		&net.UDPAddr{IP: net.ParseIP(twinServer4), Port: serverPort})
	return err
}

// startKea starts Kea without networks.
func (w *twins) startKea(program string) {
	w.t.Helper()
	file := filepath.Join(w.dir, "kea.json")
	if err := os.WriteFile(file, w.keaText(nil), 0o600); err != nil {
		w.t.Fatal(err)
	}
	c := exec.Command("ip", "netns", "exec", w.kea.server, program, "-c", file)
	c.Env = append(os.Environ(), "KEA_PIDFILE_DIR="+w.dir, "KEA_LOCKFILE_DIR=none")
	log, err := os.Create(filepath.Join(w.dir, "kea.log"))
	if err != nil {
		w.t.Fatal(err)
	}
	c.Stdout, c.Stderr = log, log
	if err := c.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		_ = c.Process.Signal(syscall.SIGTERM) // it runs until then
		_ = c.Wait()
		if text, err := os.ReadFile(log.Name()); err == nil && w.t.Failed() {
			w.t.Logf("%s", text[max(0, len(text)-4000):])
		}
	})
	waitFor(w.t, func() bool {
		conn, err := net.Dial("unix", w.socket)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
}

// keaText returns the configuration of Kea with more members.
func (w *twins) keaText(more map[string]any) []byte {
	w.t.Helper()
	name := fmt.Sprintf("Dhcp%d", w.family)
	sockets := map[string]any{"interfaces": []string{"s0"}, "dhcp-socket-type": "raw"}
	if w.family == 6 {
		sockets = map[string]any{"interfaces": []string{"s0/" + twinServer6}}
	}
	all := map[string]any{
		"interfaces-config": sockets,
		"lease-database":    map[string]any{"type": "memfile", "persist": false},
		"control-socket":    map[string]any{"socket-type": "unix", "socket-name": w.socket},
		"multi-threading":   map[string]any{"enable-multi-threading": false},
		"loggers": []any{map[string]any{"name": "kea-dhcp" + name[4:], "severity": "WARN",
			"output_options": []any{map[string]any{"output": "stderr"}}}},
	}
	if w.family == 6 {
		all["server-id"] = map[string]any{"type": "EN", "enterprise-id": 2495, "identifier": "0102030405", "persist": false}
	}
	for key, value := range more {
		all[key] = value
	}
	text, err := json.Marshal(map[string]any{name: all})
	if err != nil {
		w.t.Fatal(err)
	}
	return text
}

// configure gives both servers the same content. They have no leases after it.
func (w *twins) configure(u dhcpdata.Units, kea map[string]any) {
	w.t.Helper()
	conn, err := net.Dial("unix", w.socket)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	command := append([]byte(`{"command":"config-set","arguments":`), w.keaText(kea)...)
	if _, err := conn.Write(append(command, '}')); err != nil {
		w.t.Fatal(err)
	}
	var answer struct {
		Result int    `json:"result"`
		Text   string `json:"text"`
	}
	if err := json.NewDecoder(conn).Decode(&answer); err != nil || answer.Result != 0 {
		w.t.Fatalf("%v %+v\n%s", err, answer, command)
	}
	if w.running != nil {
		_ = w.running.Process.Kill() // it runs until then
		_ = w.running.Wait()
	}
	dir, err := os.MkdirTemp(w.dir, "ours")
	if err != nil {
		w.t.Fatal(err)
	}
	configuration := `{"rate":{"perClient":1000000}}`
	if w.family == 6 {
		configuration = `{"listen":["127.0.0.1:1067"],"listen6":["[::]:547"],"rate":{"perClient":1000000}}`
	}
	w.running = child(w.t, dir, u, configuration, "ip", "netns", "exec", w.ours.server)
}
