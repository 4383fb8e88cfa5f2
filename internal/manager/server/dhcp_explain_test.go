package server

import (
	"cmp"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"portolan/internal/testkit/agenttest"
	"portolan/internal/testkit/apitest"
	"portolan/internal/testkit/freeport"
)

// explainPlan is a configuration that a service point serves, with random ranges, reservations, classes, MAC pools and options.
type explainPlan struct {
	*manager
	r        *rand.Rand
	server   *net.UDPConn
	networks []explainedNetwork
	known    []string
	next     uint32
	// offered are the last addresses of clients by network and identity. The manager does not know offers, which a server repeats.
	offered map[string]netip.Addr
	holders map[netip.Addr]string
}

// explainedNetwork is a network with the first addresses of its ranges.
type explainedNetwork struct {
	id       string
	prefix   netip.Prefix
	ranges   []string
	reserved []netip.Addr
	// fresh is the next address at the end of a range that a client requests.
	fresh int
}

// explainedClient is a message of a client.
type explainedClient struct {
	network                          int
	mac, id, circuit, remote, vendor string
	requested                        netip.Addr
}

// identity returns the network and the identity of the client.
func (c explainedClient) identity() string {
	return fmt.Sprintf("%d %s", c.network, cmp.Or(c.id, c.mac))
}

// option sets an option at an object.
func (p *explainPlan) option(path, kind, name, value string) {
	p.T.Helper()
	p.ID("/api/v2/"+path+"/deploymentOptions", `{"type":"DHCPv4`+kind+`Option","name":"`+name+`","value":`+value+`}`)
}

// options sets a random choice of client options at an object.
func (p *explainPlan) options(path string) {
	p.T.Helper()
	text := strconv.Quote(fmt.Sprintf("v%d", p.r.IntN(1000)))
	address := fmt.Sprintf(`["192.0.2.%d","192.0.2.%d"]`, p.r.IntN(200), 200+p.r.IntN(50))
	for _, one := range [][2]string{{"domain-name", text}, {"dns-server", address}, {"router", address}, {"boot-file-name", text},
		{"time-offset", strconv.Itoa(p.r.IntN(7200))}, {"ntp-server", address}, {"root-path", text}} {
		if p.r.IntN(3) == 0 {
			p.option(path, "Client", one[0], one[1])
		}
	}
	if p.r.IntN(3) == 0 {
		p.option(path, "Service", "default-lease-time", strconv.Itoa(3600+p.r.IntN(3600)))
	}
}

// newExplainPlan creates the configuration and a service point that serves it.
func (m *manager) newExplainPlan(seed uint64, size int) *explainPlan {
	m.T.Helper()
	p := &explainPlan{manager: m, r: rand.New(rand.NewPCG(seed, 1)), offered: map[string]netip.Addr{},
		holders: map[netip.Addr]string{}}
	configuration := m.ID("/api/v2/configurations", `{"name":"main"}`)
	at := "/api/v2/configurations/" + configuration
	point, key := m.create("buoy")
	agenttest.Start(m.T, m.RegistrationEndpoint(), key)
	path := "/user/api/v1/fleetInstances/" + point
	listen := "127.0.0.1:" + strconv.Itoa(int(freeport.Reserve(m.T).Port()))
	apitest.Eventually(m.T, "the service point has enrolled", func() bool { return m.Want(200, "GET", path, "").Text("nodes.0.id") != "" })
	m.Want(202, "POST", path+"/applications", `{"name":"dhcp-service","configuration":{"listen":["`+listen+`"],"rate":{"perClient":100000}}}`)
	server := m.ID(at+"/servers", `{"type":"Server","name":"dhcp1","profile":"PORTOLAN_SERVICE_POINT","servicePoint":"`+point+
		`","interfaces":[{"type":"NetworkInterface","name":"dhcp1.example","managementAddress":"127.0.0.1"}]}`)
	own := m.Want(200, "GET", "/api/v2/servers/"+server+"/interfaces", "").Text("data.0.id")
	block := m.ID(at+"/blocks", `{"type":"IPv4Block","range":"100.64.0.0/10"}`)
	m.ID("/api/v2/blocks/"+block+"/deploymentRoles", `{"type":"DHCPDeploymentRole","roleType":"PRIMARY","interfaces":[{"id":`+own+`}]}`)
	p.option("configurations/"+configuration, "Service", "ping-check", "false")
	for _, path := range []string{"configurations/" + configuration, "blocks/" + block, "servers/" + server} {
		p.options(path)
	}
	for name, body := range map[string]string{"phones": `"matchExpression":"if option vendor-class-identifier = \"phone\""`,
		"port": `"matchExpression":"if option agent.circuit-id = \"eth0/1\""`, "vendors": `"option":"hardware","matchOffset":1,"matchLength":4`} {
		class := m.ID(at+"/clientClasses", `{"type":"DHCPv4ClientClass","name":"`+name+`",`+body+`}`)
		p.options("clientClasses/" + class)
		for i := 0; name == "vendors" && i < 4; i++ {
			p.options("subclasses/" + m.ID("/api/v2/clientClasses/"+class+"/subclasses", fmt.Sprintf(`{"value":"0x020000%02x"}`, i)))
		}
	}
	pools := []string{"0"}
	for _, name := range []string{"staff", "guests"} {
		pool := m.ID(at+"/macPools", `{"type":"MACPool","name":"`+name+`"}`)
		p.options("macPools/" + pool)
		pools = append(pools, pool)
	}
	pools = append(pools, m.Want(200, "GET", "/api/v2/macPools?"+filter("type:'DenyMACPool'"), "").Text("data.0.id"))
	for i := range 96 {
		mac := fmt.Sprintf("02-00-00-%02X-00-%02X", p.r.IntN(6), i)
		p.known = append(p.known, mac)
		body := `{"address":"` + mac + `"`
		if pool := pools[p.r.IntN(40)%len(pools)]; pool != "0" && (pool != pools[3] || p.r.IntN(3) == 0) {
			body += `,"macPool":{"id":` + pool + `}`
		}
		id := m.ID(at+"/macAddresses", body+"}")
		if p.r.IntN(2) == 0 {
			p.options("macAddresses/" + id)
		}
	}
	for i := range size {
		p.network(block, i)
	}
	apitest.Eventually(m.T, "the DHCP server is healthy", func() bool {
		return m.Want(200, "GET", path, "").Text("applications.0.status") == "HEALTHY"
	})
	id := m.ID("/api/v2/servers/"+server+"/deployments", `{"type":"FullDeployment","service":"DHCPv4"}`)
	apitest.Eventually(m.T, "the deployment has ended", func() bool {
		r := m.Want(200, "GET", "/api/v2/deployments/"+id, "")
		if r.Text("state") == "FAILED" {
			m.T.Fatalf("the deployment failed: %s", r.Text("message"))
		}
		return strings.HasPrefix(r.Text("state"), "COMPLETED")
	})
	to, err := net.ResolveUDPAddr("udp4", listen)
	if err != nil {
		m.T.Fatal(err)
	}
	if p.server, err = net.DialUDP("udp4", nil, to); err != nil {
		m.T.Fatal(err)
	}
	m.T.Cleanup(func() { _ = p.server.Close() }) // nothing is buffered
	return p
}

// network creates a network with random ranges, reservations and limits.
func (p *explainPlan) network(block string, i int) {
	p.T.Helper()
	base := fmt.Sprintf("100.64.%d", 8*i)
	n := explainedNetwork{prefix: netip.MustParsePrefix(base + ".0/21")}
	n.id = p.ID("/api/v2/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"`+n.prefix.String()+`"}`)
	at := "networks/" + n.id
	p.options(at)
	pick := func(path, name string, values ...string) {
		if p.r.IntN(4) == 0 {
			p.option(path, "Service", name, values[p.r.IntN(len(values))])
		}
	}
	if i > 0 { // the first network serves every client
		pick(at, "deny-unknown-mac-addresses", "true")
		pick(at, "deny-mac-pool", `["guests"]`)
		pick(at, "allow-dhcp-class-members", `["phones","port"]`)
	}
	for j := range []int{2, 1, 0, 2}[i%4] {
		id := p.ID("/api/v2/"+at+"/ranges", fmt.Sprintf(`{"type":"IPv4DHCPRange","range":"100.64.%d.10-100.64.%d.250"}`, 8*i+2*j+1, 8*i+2*j+2))
		n.ranges = append(n.ranges, id)
		p.options("ranges/" + id)
		if i > 0 {
			pick("ranges/"+id, "deny-dhcp-class-members", `["vendors"]`)
			pick("ranges/"+id, "allow-mac-pool", `["staff"]`)
		}
	}
	for j := range 12 {
		a := n.prefix.Addr().As4()
		a[3] = byte(20 + j)
		if j%3 == 0 { // in a range
			a[2]++
		}
		id := p.ID("/api/v2/networks/"+n.id+"/addresses", fmt.Sprintf(`{"type":"IPv4Address","address":"%s","state":"DHCP_RESERVED",`+
			`"name":"host-%d-%d","macAddress":{"address":"%s"}}`, netip.AddrFrom4(a), i, j, p.known[(i*7+j*5)%len(p.known)]))
		n.reserved = append(n.reserved, netip.AddrFrom4(a))
		if p.r.IntN(2) == 0 {
			p.options("addresses/" + id)
		}
	}
	p.networks = append(p.networks, n)
}

// client returns a random client.
func (p *explainPlan) client() (c explainedClient) {
	c.network = p.r.IntN(len(p.networks))
	n := &p.networks[c.network]
	if c.mac = p.known[p.r.IntN(len(p.known))]; p.r.IntN(3) == 0 {
		c.mac = fmt.Sprintf("02-00-00-%02X-01-%02X", p.r.IntN(6), p.r.IntN(256))
	}
	choose := func(values ...string) string { return values[p.r.IntN(len(values))] }
	c.id = choose("", "", "0x01"+strings.ReplaceAll(c.mac, "-", ""), "0x00aabb"+strings.ReplaceAll(c.mac, "-", ""))
	c.circuit, c.remote, c.vendor = choose("", "eth0/1", "eth0/2"), choose("", "0x00ff"), choose("", "phone", "printer")
	switch p.r.IntN(5) {
	case 0:
		if len(n.ranges) > 0 {
			a := n.prefix.Addr().As4()
			a[2], a[3] = a[2]+2, byte(250-n.fresh%200)
			n.fresh++
			c.requested = netip.AddrFrom4(a)
		}
	case 1:
		c.requested = n.reserved[p.r.IntN(len(n.reserved))]
	case 2:
		c.requested = netip.MustParseAddr("192.0.2.9")
	}
	return c
}

// explained is the part of an explanation that a client can compare with its answer.
type explained struct {
	Reply       *string
	Reason      *string
	Address     *string
	Range       *int64
	Reservation *int64
	LeaseTime   *int64
	Options     []struct {
		Code        int
		Name, Value string
	}
	Classes []string
	Steps   []json.RawMessage
}

// explain asks the manager.
func (p *explainPlan) explain(c explainedClient) (e explained) {
	p.T.Helper()
	query := url.Values{"network": {p.networks[c.network].id}, "macAddress": {c.mac}}
	for name, value := range map[string]string{"clientIdentifier": c.id, "circuitId": c.circuit, "remoteId": c.remote,
		"vendorClassIdentifier": c.vendor} {
		if value != "" {
			query.Set(name, value)
		}
	}
	if c.requested.IsValid() {
		query.Set("requested", c.requested.String())
	}
	if err := json.Unmarshal(p.Want(200, "GET", "/api/v2/dhcpExplanation?"+query.Encode(), "").Body, &e); err != nil {
		p.T.Fatal(err)
	}
	return e
}

// message returns a DISCOVER of a client through a relay, which asks for all options.
func (p *explainPlan) message(c explainedClient, change ...dhcpv4.Modifier) *dhcpv4.DHCPv4 {
	p.T.Helper()
	mac, err := net.ParseMAC(strings.ReplaceAll(c.mac, "-", ":"))
	if err != nil {
		p.T.Fatal(err)
	}
	octets := func(text string) []byte {
		if digits, is := strings.CutPrefix(text, "0x"); is {
			data, err := hex.DecodeString(digits)
			if err != nil {
				p.T.Fatal(err)
			}
			return data
		}
		return []byte(text)
	}
	var codes []byte
	for code := byte(1); code < 255; code++ {
		if !slices.Contains([]byte{50, 51, 53, 54, 57, 58, 59, 61, 82, 108}, code) {
			codes = append(codes, code)
		}
	}
	link := p.networks[c.network].prefix.Addr().Next()
	relay := []dhcpv4.Option{dhcpv4.OptGeneric(dhcpv4.GenericOptionCode(5), link.AsSlice()),
		dhcpv4.OptGeneric(dhcpv4.GenericOptionCode(19), nil)}
	if c.circuit != "" {
		relay = append(relay, dhcpv4.OptGeneric(dhcpv4.GenericOptionCode(1), octets(c.circuit)))
	}
	if c.remote != "" {
		relay = append(relay, dhcpv4.OptGeneric(dhcpv4.GenericOptionCode(2), octets(c.remote)))
	}
	all := []dhcpv4.Modifier{dhcpv4.WithHwAddr(mac), dhcpv4.WithMessageType(dhcpv4.MessageTypeDiscover),
		dhcpv4.WithGatewayIP(net.IPv4(127, 0, 0, 1)),
		dhcpv4.WithOption(dhcpv4.OptRelayAgentInfo(relay...)), dhcpv4.WithGeneric(dhcpv4.OptionParameterRequestList, codes),
		dhcpv4.WithGeneric(dhcpv4.OptionMaximumDHCPMessageSize, []byte{0xff, 0xff})}
	if c.id != "" {
		all = append(all, dhcpv4.WithGeneric(dhcpv4.OptionClientIdentifier, octets(c.id)))
	}
	if c.vendor != "" {
		all = append(all, dhcpv4.WithGeneric(dhcpv4.OptionClassIdentifier, octets(c.vendor)))
	}
	if c.requested.IsValid() {
		all = append(all, dhcpv4.WithGeneric(dhcpv4.OptionRequestedIPAddress, c.requested.AsSlice()))
	}
	m, err := dhcpv4.New(append(all, change...)...)
	if err != nil {
		p.T.Fatal(err)
	}
	p.next++
	m.TransactionID = dhcpv4.TransactionID{0, byte(p.next >> 16), byte(p.next >> 8), byte(p.next)}
	return m
}

// receive returns the next reply; nil if none arrives within a time.
func (p *explainPlan) receive(within time.Duration) *dhcpv4.DHCPv4 {
	p.T.Helper()
	if err := p.server.SetReadDeadline(time.Now().Add(within)); err != nil {
		p.T.Fatal(err)
	}
	packet := make([]byte, 65536)
	n, err := p.server.Read(packet)
	if err != nil {
		return nil
	}
	m, err := dhcpv4.FromBytes(packet[:n])
	if err != nil {
		p.T.Fatal(err)
	}
	return m
}

// maxAsked is how often a message without an expected reply is sent, with a message of a client that is served for certain after it.
const maxAsked = 5

// exchange sends messages, and each time a last one of a client that the server answers for certain. It returns the replies by transaction.
// Messages that lack an expected reply are repeated.
func (p *explainPlan) exchange(all []*dhcpv4.DHCPv4, expected func(i int) bool) map[dhcpv4.TransactionID]*dhcpv4.DHCPv4 {
	p.T.Helper()
	got := map[dhcpv4.TransactionID]*dhcpv4.DHCPv4{}
	send := func(m *dhcpv4.DHCPv4) {
		if _, err := p.server.Write(m.ToBytes()); err != nil {
			p.T.Fatal(err)
		}
	}
	for range maxAsked {
		missing := 0
		for i, m := range all {
			if got[m.TransactionID] == nil && (len(got) == 0 || expected(i)) {
				missing++
				send(m)
			}
		}
		if missing == 0 {
			break
		}
		p.next++
		last := p.message(explainedClient{mac: fmt.Sprintf("06-00-00-%02X-%02X-%02X", p.next>>16&255, p.next>>8&255, p.next&255)})
		send(last)
		apitest.Eventually(p.T, "the last client gets a reply", func() bool {
			for {
				m := p.receive(time.Second)
				if m == nil {
					send(last)
					return false
				}
				if got[m.TransactionID] = m; m.TransactionID == last.TransactionID {
					return true
				}
			}
		})
	}
	return got
}

// compare returns the differences between an explanation and the reply of the server. exact is true if the address has to be equal: else
// the server chooses among the free addresses.
func (p *explainPlan) compare(c explainedClient, e explained, got *dhcpv4.DHCPv4) (all []string) {
	client := c.identity()
	if e.Address != nil { // the manager does not know an offer to another client
		if by := p.holders[netip.MustParseAddr(*e.Address)]; by != "" && by != client {
			return nil
		}
	}
	differ := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	if e.Reply == nil || got == nil {
		if (e.Reply == nil) != (got == nil) {
			differ("the explanation has the reply %v (%v), and the server answers %v", text(e.Reply), text(e.Reason), got != nil)
		}
		return all
	}
	if want := "DHCP" + *e.Reply; want != "DHCP"+strings.TrimPrefix(got.MessageType().String(), "DHCP") {
		differ("the reply is %s, and the server answers %s", want, got.MessageType())
	}
	address, _ := netip.AddrFromSlice(got.YourIPAddr.To4())
	before := p.offered[client]
	switch n := p.networks[c.network]; {
	case e.Reservation == nil && address == before:
	case e.Address == nil:
		differ("no address is explained, and the client gets %s", address)
	case e.Reservation != nil || c.requested.IsValid() && *e.Address == c.requested.String():
		if *e.Address != address.String() {
			differ("the address is %s, and the client gets %s; its former offer is %s", *e.Address, address, before)
		}
	default:
		of := func(a netip.Addr) int { return int(a.As4()[2]-n.prefix.Addr().As4()[2]-1) / 2 }
		if want := netip.MustParseAddr(*e.Address); of(want) != of(address) {
			differ("the address is %s, and the client gets %s of another range", want, address)
		}
	}
	if seconds := int64(got.IPAddressLeaseTime(0) / time.Second); e.LeaseTime == nil || *e.LeaseTime != seconds {
		differ("the lease time is %v, and the client gets %d", e.LeaseTime, seconds)
	}
	want, wire := map[int]string{}, map[int]string{}
	for _, o := range e.Options {
		want[o.Code] = o.Value
	}
	for code, value := range got.Options {
		if !slices.Contains([]uint8{51, 53, 54, 58, 59, 61, 82}, code) {
			wire[int(code)] = hex.EncodeToString(value)
		}
	}
	for _, code := range []int{51, 53, 54, 58, 59, 61, 82} {
		delete(want, code)
	}
	if !maps.Equal(want, wire) {
		differ("the options are %v, and the client gets %v", want, wire)
	}
	return all
}

// text returns a text, or "none" for nil.
func text(s *string) string {
	if s == nil {
		return "none"
	}
	return *s
}

// TestExplanationIsTheAnswer checks that the explanation of the manager is the answer of the server, for random clients of a random
// configuration. Some of them have leases, and some of these were ended by an operator. With PORTOLAN_TEST_LONG it compares 10,000 clients
// of 20 configurations.
func TestExplanationIsTheAnswer(t *testing.T) {
	seed, contents, clients := uint64(1), 1, 100
	if os.Getenv("PORTOLAN_TEST_LONG") != "" {
		seed, contents, clients = uint64(time.Now().UnixNano()), 20, 500
	}
	if fixed, err := strconv.ParseUint(os.Getenv("PORTOLAN_TEST_SEED"), 10, 64); err == nil {
		seed = fixed
	}
	for i := range contents {
		t.Run(fmt.Sprintf("seed %d", seed+uint64(i)), func(t *testing.T) { //nolint:gosec // a small number
			m := startAlone(t)
			p := m.newExplainPlan(seed+uint64(i), 12) //nolint:gosec // a small number
			served, refused := 0, 0
			for round := 0; round*50 < clients; round++ {
				a, b := p.round(50)
				served, refused = served+a, refused+b
			}
			if served < clients/5 || refused < clients/10 {
				t.Errorf("%d clients were served and %d refused: the configuration does not test much", served, refused)
			}
			m.Verify()
		})
	}
}

// round compares the explanations and the answers of clients. Every fourth client then requests its address, and has a lease, of which an
// operator ends a third.
func (p *explainPlan) round(n int) (served, refused int) {
	p.T.Helper()
	clients, asked, explanations := make([]explainedClient, n), make([]*dhcpv4.DHCPv4, n), make([]explained, n)
	seen := map[string]bool{}
	for i := range clients {
		for clients[i] = p.client(); seen[clients[i].identity()]; { // packets may arrive in another order
			clients[i] = p.client()
		}
		seen[clients[i].identity()] = true
		asked[i], explanations[i] = p.message(clients[i]), p.explain(clients[i])
	}
	got := p.exchange(asked, func(i int) bool { return explanations[i].Reply != nil })
	var requests []*dhcpv4.DHCPv4
	now := map[string]netip.Addr{}
	for i, c := range clients {
		if answer := got[asked[i].TransactionID]; answer != nil {
			address, _ := netip.AddrFromSlice(answer.YourIPAddr.To4())
			now[c.identity()], p.holders[address] = address, c.identity()
		}
	}
	defer maps.Copy(p.offered, now)
	for i, c := range clients {
		answer := got[asked[i].TransactionID]
		if answer == nil {
			refused++
		} else {
			served++
		}
		for _, d := range p.compare(c, explanations[i], answer) {
			p.T.Errorf("%+v in %s: %s\nsteps: %s", c, p.networks[c.network].prefix, d, explanations[i].Steps)
		}
		if answer != nil && i%4 == 0 {
			c.requested = netip.Addr{}
			requests = append(requests, p.message(c, dhcpv4.WithMessageType(dhcpv4.MessageTypeRequest),
				dhcpv4.WithGeneric(dhcpv4.OptionRequestedIPAddress, answer.YourIPAddr.To4()),
				dhcpv4.WithGeneric(dhcpv4.OptionServerIdentifier, answer.ServerIdentifier().To4())))
		}
	}
	for _, m := range p.exchange(requests, func(int) bool { return true }) {
		if m.MessageType() == dhcpv4.MessageTypeAck {
			at := "/api/v2/leases?" + filter("address:'"+m.YourIPAddr.String()+"' and macAddress:'"+m.ClientHWAddr.String()+
				"' and state:ne('DHCP_FREE')")
			apitest.Eventually(p.T, "the manager has the lease", func() bool { return p.Want(200, "GET", at, "").Count() == 1 })
			if p.r.IntN(3) == 0 {
				address, _ := netip.AddrFromSlice(m.YourIPAddr.To4())
				i := slices.IndexFunc(p.networks, func(n explainedNetwork) bool { return n.prefix.Contains(address) })
				p.Want(201, "POST", "/api/v2/networks/"+p.networks[i].id+"/leaseActions", `{"address":"`+address.String()+`","action":"END_LEASE"}`)
				apitest.Eventually(p.T, "the server has ended the lease", func() bool { return p.Want(200, "GET", at, "").Count() == 0 })
			}
		}
	}
	return served, refused
}
