package dhcp

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"portolan/internal/wire/dhcpdata"
	"portolan/internal/wire/dhcppair"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"golang.org/x/sys/unix"
)

// pairLab is a pair of servers in namespaces, with a link between them and a relay with clients in a third one.
type pairLab struct {
	*lab
	t       *testing.T
	other   string // the namespace of the secondary
	dirs    [2]string
	members [2]dhcpdata.Pair
	running [2]*exec.Cmd
	// clocks are the seconds that the clocks of the servers differ from that of the machine, from their next start.
	clocks [2]int
	relay  *relay
}

// Settings of the pair in the laboratory, in seconds. labPatience is the number of messages, one a second, after which a client gives up.
const (
	labMCLT     = 4
	labOverride = 1
	labLease    = 12
	labPatience = 60
)

func newPairLab(t *testing.T) *pairLab {
	t.Helper()
	l := newLab(t)
	p := &pairLab{lab: l, t: t, other: namespaceName("dhcpt"), dirs: [2]string{t.TempDir(), t.TempDir()}}
	l.run("ip", "netns", "add", p.other)
	t.Cleanup(func() { _ = exec.Command("ip", "netns", "delete", p.other).Run() })
	l.run("ip", "link", "add", "s0", "netns", p.other, "type", "veth", "peer", "name", "c1", "netns", l.client)
	l.run("ip", "link", "add", "p0", "netns", l.server, "type", "veth", "peer", "name", "p1", "netns", p.other)
	l.in(p.other, "ip", "address", "add", "10.0.0.3/16", "dev", "s0")
	l.in(l.server, "ip", "address", "add", "172.31.0.1/30", "dev", "p0")
	l.in(p.other, "ip", "address", "add", "172.31.0.2/30", "dev", "p1")
	l.in(l.client, "ip", "link", "add", "br0", "type", "bridge")
	for _, one := range []string{"c0", "c1"} {
		l.in(l.client, "ip", "link", "set", one, "master", "br0")
	}
	l.in(l.client, "ip", "address", "add", "10.0.0.1/16", "dev", "br0")
	for _, one := range [][2]string{{p.other, "lo"}, {p.other, "s0"}, {p.other, "p1"}, {l.server, "p0"}, {l.client, "c1"},
		{l.client, "br0"}} {
		l.in(one[0], "ip", "link", "set", one[1], "up")
	}
	for i := range p.members {
		p.members[i] = dhcpdata.Pair{ID: int64(2 - i), Partner: int64(2 - i), Primary: i == 0, PartnerName: fmt.Sprint("server", 2-i),
			Endpoint: netip.MustParseAddrPort("172.31.0.2:647"), MCLT: labMCLT, Split: 128, Override: labOverride, MaxResponseDelay: 2}
		key, err := readPairKey(folderOf(t, p.dirs[i]))
		if err != nil {
			t.Fatal(err)
		}
		p.members[i].PartnerKey = key.sum[:]
	}
	p.members[0].PartnerKey, p.members[1].PartnerKey = p.members[1].PartnerKey, p.members[0].PartnerKey
	p.relay = newRelay(t, l.client)
	return p
}

// folderOf creates the folder of the leases.
func folderOf(t *testing.T, dir string) string {
	t.Helper()
	folder := filepath.Join(dir, "leases")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	return folder
}

// start starts a server.
func (p *pairLab) start(i int) {
	p.t.Helper()
	namespace := []string{p.server, p.other}[i]
	u := pairUnits(p.t, p.members[i], 200)
	x := dhcpdata.Network{ID: 7, Prefix: netip.MustParsePrefix("10.0.0.0/16"), Gateway: netip.MustParseAddr("10.0.0.1"),
		Pair: p.members[i].ID, Identifier: netip.AddrFrom4([4]byte{10, 0, 0, byte(2 + i)})}
	u[dhcpdata.NetworkUnit(7)] = unit(p.t, dhcpdata.NetworkUnit(7), noPing, option("dhcp-cache-threshold", 0),
		option("default-lease-time", labLease), option("min-lease-time", 1), x,
		dhcpdata.Pool{ID: 8, Ranges: []dhcpdata.Interval{{First: netip.MustParseAddr("10.0.1.0"), Last: netip.MustParseAddr("10.0.1.199")}}})
	p.running[i] = child(p.t, p.dirs[i], u, `{"listen":["0.0.0.0:67"],"metrics":"0.0.0.0:9547"}`, "ip", "netns", "exec", namespace,
		"env", fmt.Sprint(clockVariable, "=", p.clocks[i]))
}

// kill kills a server with SIGKILL.
func (p *pairLab) kill(i int) {
	p.t.Helper()
	if err := p.running[i].Process.Kill(); err != nil {
		p.t.Fatal(err)
	}
	_ = p.running[i].Wait() // it was killed
}

// within runs fn on a thread in a namespace. Sockets that it opens stay there.
func within(namespace string, fn func() error) error {
	result := make(chan error)
	go func() {
		runtime.LockOSThread() // the thread ends with the goroutine
		f, err := os.Open(filepath.Join("/var/run/netns", namespace))
		if err == nil {
			err = unix.Setns(int(f.Fd()), unix.CLONE_NEWNET)
			_ = f.Close() // it was only read
		}
		if err == nil {
			err = fn()
		}
		result <- err
	}()
	return <-result
}

var pairMetric = regexp.MustCompile(`(?m)^portolan_dhcp_pair_(state|pending)\{partner="[^"]*"(?:,state="([^"]*)")?\} (\S+)$`)

// state returns the state of a server, and the number of its records that the partner lacks.
func (p *pairLab) state(i int) (state, pending string) {
	dial := func(ctx context.Context, network, address string) (c net.Conn, err error) {
		err = within(p.client, func() (err error) {
			c, err = new(net.Dialer).DialContext(ctx, network, address)
			return err
		})
		return c, err
	}
	transport := &http.Transport{DisableKeepAlives: true, DialContext: dial}
	ctx, cancel := context.WithTimeout(p.t.Context(), time.Second)
	defer cancel()
	rq, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://10.0.0.%d:9547/metrics", 2+i), nil)
	if err != nil {
		return "", ""
	}
	r, err := transport.RoundTrip(rq)
	if err != nil {
		return "", ""
	}
	defer func() { _ = r.Body.Close() }()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return "", ""
	}
	for _, m := range pairMetric.FindAllStringSubmatch(string(text), -1) {
		if m[1] == "state" {
			state = m[2]
		} else {
			pending = m[3]
		}
	}
	return state, pending
}

// awaits waits until both servers are in a state, and returns the time.
func (p *pairLab) awaits(state string, servers ...int) time.Duration {
	p.t.Helper()
	started := time.Now()
	waitFor(p.t, func() bool {
		return !slices.ContainsFunc(servers, func(i int) bool { s, _ := p.state(i); return s != state })
	})
	return time.Since(started)
}

// relay is a relay that sends the messages of its clients to both servers, and a record of the address of each client.
type relay struct {
	t    *testing.T
	conn net.PacketConn
	// stop ends the clients of the load. secs is the largest time that a client waited for its address.
	stop chan struct{}
	load sync.WaitGroup

	mu sync.Mutex
	// The following fields are guarded by mu: the clients that wait for replies, the holders, and the violations.
	waiting map[dhcpv4.TransactionID]chan *dhcpv4.DHCPv4
	holders map[string]holding
	broken  []string
	leases  atomic.Int64
}

// holding is an address in use.
type holding struct {
	client string
	until  time.Time
}

func newRelay(t *testing.T, namespace string) *relay {
	t.Helper()
	r := &relay{t: t, stop: make(chan struct{}), waiting: map[dhcpv4.TransactionID]chan *dhcpv4.DHCPv4{}, holders: map[string]holding{}}
	if err := within(namespace, func() (err error) {
		r.conn, err = new(net.ListenConfig).ListenPacket(t.Context(), "udp4", "10.0.0.1:67")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.conn.Close() })
	go r.receive()
	return r
}

func (r *relay) receive() {
	buffer := make([]byte, 2000)
	for {
		n, _, err := r.conn.ReadFrom(buffer)
		if err != nil {
			return
		}
		m, err := dhcpv4.FromBytes(append([]byte(nil), buffer[:n]...))
		if err != nil {
			continue
		}
		r.mu.Lock()
		if to := r.waiting[m.TransactionID]; to != nil {
			select {
			case to <- m:
			default:
			}
		}
		r.mu.Unlock()
	}
}

// ask sends a message of a client to both servers, again after a second, and returns the first reply and the number of messages. It gives
// up after a limit of messages.
func (r *relay) ask(n, limit int, kind dhcpv4.MessageType, change ...dhcpv4.Modifier) (*dhcpv4.DHCPv4, int) {
	mac := net.HardwareAddr{2, 0, 0, 2, byte(n >> 8), byte(n)}
	for sent := 1; sent <= limit; sent++ {
		m, err := dhcpv4.New(append([]dhcpv4.Modifier{dhcpv4.WithMessageType(kind), dhcpv4.WithHwAddr(mac),
			dhcpv4.WithGatewayIP(net.IPv4(10, 0, 0, 1)), func(d *dhcpv4.DHCPv4) { d.NumSeconds = uint16(sent - 1) }}, change...)...)
		if err != nil {
			return nil, sent
		}
		replies := make(chan *dhcpv4.DHCPv4, 4)
		r.mu.Lock()
		r.waiting[m.TransactionID] = replies
		r.mu.Unlock()
		for _, server := range []byte{2, 3} {
			_, _ = r.conn.WriteTo(m.ToBytes(), &net.UDPAddr{IP: net.IPv4(10, 0, 0, server), Port: 67}) // it is sent again
		}
		var got *dhcpv4.DHCPv4
		select {
		case got = <-replies:
		case <-time.After(time.Second):
		}
		r.mu.Lock()
		delete(r.waiting, m.TransactionID)
		r.mu.Unlock()
		if got != nil {
			return got, sent
		}
	}
	return nil, limit
}

// acknowledged records the address of a client, and checks that no other client has it. at is the time of the request.
func (r *relay) acknowledged(n int, m *dhcpv4.DHCPv4, at time.Time) string {
	client, a := fmt.Sprint("client ", n), m.YourIPAddr.String()
	r.mu.Lock()
	defer r.mu.Unlock()
	if had, ok := r.holders[a]; ok && had.client != client && had.until.After(time.Now()) {
		r.broken = append(r.broken, fmt.Sprintf("%s has %s until %s, and %s gets it", had.client, a, had.until, client))
	}
	for address, had := range r.holders {
		if had.client == client && address != a {
			delete(r.holders, address)
		}
	}
	r.holders[a] = holding{client, at.Add(m.IPAddressLeaseTime(0))}
	r.leases.Add(1)
	return a
}

// lease gets an address for a client. It returns the time that it took.
func (r *relay) lease(n, limit int) (string, time.Duration) {
	started := time.Now()
	for range limit {
		offer, _ := r.ask(n, limit, dhcpv4.MessageTypeDiscover)
		if offer == nil {
			return "", 0
		}
		at := time.Now()
		ack, _ := r.ask(n, 1, dhcpv4.MessageTypeRequest, dhcpv4.WithOption(dhcpv4.OptRequestedIPAddress(offer.YourIPAddr)),
			dhcpv4.WithOption(dhcpv4.OptServerIdentifier(offer.ServerIdentifier())))
		if ack != nil && ack.MessageType() == dhcpv4.MessageTypeAck {
			return r.acknowledged(n, ack, at), time.Since(started)
		}
	}
	return "", 0
}

// renew renews an address by a broadcast (REBINDING). It returns the number of messages, and false for a NAK or no reply.
func (r *relay) renew(n int, a string, limit int) (sent int, ok bool) {
	at := time.Now()
	m, sent := r.ask(n, limit, dhcpv4.MessageTypeRequest, dhcpv4.WithClientIP(net.ParseIP(a)))
	if m == nil || m.MessageType() != dhcpv4.MessageTypeAck {
		return sent, false
	}
	r.acknowledged(n, m, at)
	return sent, true
}

// begin starts clients that lease, renew and release addresses until end.
func (r *relay) begin(clients int) {
	for n := range clients {
		r.load.Go(func() {
			random := rand.New(rand.NewPCG(uint64(n), 7)) //nolint:gosec // repeatable
			for {
				a, _ := r.lease(n, 3)
				for a != "" {
					select {
					case <-r.stop:
						return
					case <-time.After(time.Duration(200+random.IntN(1500)) * time.Millisecond): // the pause of a client, not a condition
					}
					if random.IntN(8) == 0 {
						r.release(n, a)
						break
					}
					if _, ok := r.renew(n, a, 2); !ok {
						break
					}
				}
				select {
				case <-r.stop:
					return
				case <-time.After(time.Duration(random.IntN(300)) * time.Millisecond):
				}
			}
		})
	}
}

// release gives an address up.
func (r *relay) release(n int, a string) {
	r.mu.Lock()
	delete(r.holders, a)
	r.mu.Unlock()
	mac := net.HardwareAddr{2, 0, 0, 2, byte(n >> 8), byte(n)}
	m, err := dhcpv4.New(dhcpv4.WithMessageType(dhcpv4.MessageTypeRelease), dhcpv4.WithHwAddr(mac),
		dhcpv4.WithClientIP(net.ParseIP(a)), dhcpv4.WithGatewayIP(net.IPv4(10, 0, 0, 1)))
	if err != nil {
		return
	}
	_, _ = r.conn.WriteTo(m.ToBytes(), &net.UDPAddr{IP: net.IPv4(10, 0, 0, byte(2+n%2)), Port: 67}) // a lost release costs an address
}

// end ends the clients, and fails the test if an address had two holders.
func (r *relay) end() {
	r.t.Helper()
	close(r.stop)
	r.load.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.broken) > 0 {
		r.t.Errorf("%d addresses had two holders: %s", len(r.broken), strings.Join(r.broken[:min(5, len(r.broken))], "; "))
	}
}

// storedLab is a lease on the disk of a server: the client, and the time in seconds that it lasts after the last renewal of any lease.
type storedLab struct {
	client string
	rest   int64
}

// stored returns the leases on the disk of a server by address. The clock of the server does not matter: its last renewal is its time.
func (p *pairLab) stored(i int) map[string]storedLab {
	p.t.Helper()
	s := newService(p.dirs[i], slog.New(slog.DiscardHandler))
	if s.failed != nil || s.damaged != nil {
		p.t.Fatal(s.failed, s.damaged)
	}
	all, last := map[string]storedLab{}, int64(0)
	for l := range s.engine.table.all {
		if l.state == dhcpdata.Leased {
			all[l.address.String()] = storedLab{fmt.Sprintf("%x", l.holder.hardware), l.expires}
			last = max(last, l.renewed)
		}
	}
	for a, l := range all {
		all[a] = storedLab{l.client, l.rest - last}
	}
	if err := s.Close(); err != nil {
		p.t.Fatal(err)
	}
	return all
}

// TestPairOfProcesses runs a pair of processes under load, cuts their link, sets their clocks, and kills each of them. No address has two
// holders, clients are served all the time, and in the end both have the same leases.
func TestPairOfProcesses(t *testing.T) {
	t.Parallel()
	p := newPairLab(t)
	p.start(0)
	p.start(1)
	t.Logf("a new pair is normal after %s", p.awaits(dhcppair.StateNormal, 0, 1))
	p.relay.begin(100)
	waitFor(t, func() bool { return p.relay.leases.Load() > 200 })

	p.in(p.server, "ip", "link", "set", "p0", "down")
	p.awaits(dhcppair.StateInterrupted, 0, 1)
	reached := p.relay.leases.Load()
	waitFor(t, func() bool { return p.relay.leases.Load() > reached+300 })
	p.kill(1) // and again with the link cut
	p.start(1)
	p.awaits(dhcppair.StateInterrupted, 0, 1)
	reached = p.relay.leases.Load()
	waitFor(t, func() bool { return p.relay.leases.Load() > reached+200 })
	p.in(p.server, "ip", "link", "set", "p0", "up")
	p.awaits(dhcppair.StateNormal, 0, 1)

	for i, seconds := range []int{45, -15} { // clocks are set while a server does not run; they differ by at most a minute
		p.kill(i)
		p.clocks[i] = seconds
		p.start(i)
		p.awaits(dhcppair.StateNormal, 0, 1)
		reached = p.relay.leases.Load()
		waitFor(t, func() bool { return p.relay.leases.Load() > reached+100 })
	}

	held, _ := p.relay.lease(1000, 5) // the client of a server that is about to be killed
	for victim := range 2 {
		waitFor(t, func() bool { _, pending := p.state(1 - victim); return pending == "0" })
		p.kill(victim)
		sent, ok := p.relay.renew(1000, held, labPatience)
		if !ok {
			t.Errorf("a renewal after the kill of server %d failed", victim)
		}
		a, took := p.relay.lease(1001+victim, labPatience)
		if a == "" {
			t.Errorf("a new client got no address after the kill of server %d", victim)
		}
		t.Logf("after the kill of server %d a renewal needed %d messages (goal 2), and a new client got an address after %s (goal %s)",
			victim, sent, took, (labOverride+4)*time.Second)
		p.awaits(dhcppair.StateInterrupted, 1-victim)
		p.start(victim)
		t.Logf("the pair was normal again after %s", p.awaits(dhcppair.StateNormal, 0, 1))
		p.relay.renew(1000, held, 5)
	}
	p.kill(0)
	p.kill(1)
	started := time.Now()
	p.start(0)
	p.start(1)
	if a, _ := p.relay.lease(1010, labPatience); a == "" {
		t.Error("from cold a client got no address")
	}
	t.Logf("from cold a client got an address after %s (goal 5s)", time.Since(started))
	p.awaits(dhcppair.StateNormal, 0, 1)
	ended := time.Now()
	p.relay.end()
	for range 2 { // the renewal passes the messages that wait in the sockets
		p.relay.renew(1000, held, 5)
		waitFor(t, func() bool {
			_, one := p.state(0)
			_, two := p.state(1)
			return one == "0" && two == "0"
		})
	}
	p.kill(0)
	p.kill(1)
	passed := int64(time.Since(ended)/time.Second) + 3 // leases end between the last renewal and the kill
	both := [2]map[string]storedLab{p.stored(0), p.stored(1)}
	for i := range both {
		for a, l := range both[i] {
			if other, ok := both[1-i][a]; ok && other.client != l.client || !ok && l.rest > passed {
				t.Errorf("server %d leases %s to %s for %d s, and the other one has %+v", i, a, l.client, l.rest, other)
			}
		}
	}
	if len(both[0]) == 0 || len(both[1]) == 0 {
		t.Errorf("the servers have %d and %d leases", len(both[0]), len(both[1]))
	}
	t.Logf("%d leases and renewals", p.relay.leases.Load())
}
