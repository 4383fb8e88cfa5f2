package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"time"

	"portolan/internal/wire/checkin"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

const clients = 32

func perSecond(x float64) string { return fmt.Sprintf("%.0f/s", x) }

// getOne measures (a): GET of one resource, compared with net/http sending the same bytes.
func (b *bench) getOne() error {
	dir, network, err := b.data(1000)
	if err != nil {
		return err
	}
	m, err := spawn("manager", dir, "")
	if err != nil {
		return err
	}
	defer m.stop()
	rq := request("GET", "/api/v2/networks/"+network, m.token, "")
	c, err := dial(m.addr, nil)
	if err != nil {
		return err
	}
	_, body, err := c.do(rq, true)
	if err != nil {
		return err
	}
	_ = c.conn.Close()
	file := filepath.Join(b.dir, "one.json")
	if err := os.WriteFile(file, body, 0o600); err != nil {
		return err
	}
	bare, err := spawn("bare-get", "", file)
	if err != nil {
		return err
	}
	defer bare.stop()
	next := func(int, int) []byte { return rq }
	theirs, err := rate(bare.addr, nil, clients, b.time, code200, next)
	if err != nil {
		return err
	}
	ours, err := rate(m.addr, nil, clients, b.time, code200, next)
	if err != nil {
		return err
	}
	b.add("(a) GET one resource", perSecond(ours), perSecond(theirs), ours/theirs, "at least 0.6", ours/theirs >= 0.6)
	return nil
}

// nextAvailable measures (d): the next available address, with a growing number of addresses in use.
func (b *bench) nextAvailable() error {
	sizes := []int{10, 10_000}
	if b.big {
		sizes = append(sizes, 10_000_000)
	}
	var first, last time.Duration
	for _, n := range sizes {
		dir, network, err := b.data(n)
		if err != nil {
			return err
		}
		m, err := spawn("manager", dir, "")
		if err != nil {
			return err
		}
		rq := request("POST", "/api/v2/networks/"+network+"/addresses", m.token, `{"type":"IPv4Address","state":"STATIC"}`)
		took, err := latency(m.addr, 1500, 201, func(int) []byte { return rq })
		m.stop()
		if err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "(d) with %d in use: %v\n", n, took)
		if first == 0 {
			first = took
		}
		last = took
	}
	ratio := float64(last) / float64(first)
	b.add(fmt.Sprintf("(d) next available address, %d in use", sizes[len(sizes)-1]), last.Round(time.Microsecond).String(),
		first.Round(time.Microsecond).String()+" with 10", ratio, "at most 1.5", ratio <= 1.5)
	return nil
}

// point is an enrolled service point.
type point struct{ config *tls.Config }

// enrol creates a service point and enrols it with plain requests.
func enrol(m *child, name string) (p point, files tlsFiles, err error) {
	c, err := dial(m.addr, nil)
	if err != nil {
		return p, files, err
	}
	defer func() { _ = c.conn.Close() }()
	_, text, err := c.do(request("POST", "/api/v1/fleetInstanceMinimumConfig", m.token, `{"name":"`+name+`"}`), true)
	if err != nil {
		return p, files, err
	}
	var created struct{ RegistrationKey string }
	if err := json.Unmarshal(text, &created); err != nil {
		return p, files, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return p, files, err
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		return p, files, err
	}
	body, err := json.Marshal(checkin.EnrolRequest{RegistrationKey: created.RegistrationKey, Request: pemOf("CERTIFICATE REQUEST", der),
		Variant: checkin.Fleet, Version: "1"})
	if err != nil {
		return p, files, err
	}
	checkinAddr, err := checkinAddrOf(m)
	if err != nil {
		return p, files, err
	}
	// The server certificate need not be verified, because both ends are this program.
	d, err := dial(checkinAddr, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13,
		ServerName: checkin.ServerName}) //nolint:gosec // see above
	if err != nil {
		return p, files, err
	}
	defer func() { _ = d.conn.Close() }()
	_, text, err = d.do(request("POST", checkin.EnrolPath, "", string(body)), true)
	if err != nil {
		return p, files, err
	}
	var answer checkin.EnrolAnswer
	if err := json.Unmarshal(text, &answer); err != nil {
		return p, files, err
	}
	block, _ := pem.Decode([]byte(answer.Certificate))
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(answer.Authority))
	if block == nil {
		return p, files, fmt.Errorf("enrolment answers %s", text)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	p.config = &tls.Config{MinVersion: tls.VersionTLS13, ServerName: checkin.ServerName, RootCAs: pool, InsecureSkipVerify: true,
		//nolint:gosec // as above
		Certificates: []tls.Certificate{{Certificate: [][]byte{block.Bytes}, PrivateKey: key}}}
	return p, tlsFiles{answer.Certificate, pemOf("EC PRIVATE KEY", keyDER), answer.Authority}, err
}

func checkinAddrOf(m *child) (string, error) {
	u, err := url.Parse(m.checkinURL)
	if err != nil {
		return "", err
	}
	return u.Host, nil
}

// checkIns measures (f): check-ins per second, compared with a bare handler that decodes the same body.
func (b *bench) checkIns() error {
	dir, _, err := b.data(1000)
	if err != nil {
		return err
	}
	return b.checkInsOn("(f) check-ins", dir, 0.3)
}

func (b *bench) checkInsOn(what, data string, goal float64) error {
	m, err := spawn("manager", data, "")
	if err != nil {
		return err
	}
	defer m.stop()
	points := make([]point, clients)
	var files tlsFiles
	for i := range points {
		if points[i], files, err = enrol(m, fmt.Sprintf("p%d-%d", i, time.Now().UnixNano())); err != nil {
			return err
		}
	}
	text, err := json.Marshal(files)
	if err != nil {
		return err
	}
	file := filepath.Join(b.dir, "authority.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return err
	}
	bare, err := spawn("bare-checkin", "", file)
	if err != nil {
		return err
	}
	defer bare.stop()
	report := checkin.Report{Version: "1", Variant: checkin.Fleet, ErrorConditions: []string{},
		Nodes: []checkin.Node{{ID: "n", Name: "n", Hostname: "n",
			IPv4CIDRAddress: "192.0.2.2/24", IPv4GatewayAddress: "192.0.2.1",
			Addresses: []checkin.NodeAddress{{Type: checkin.Primary, IPAddress: "192.0.2.2"}}}}}
	// Like a service point, send the report once and then refer to it.
	first, err := json.Marshal(checkin.Request{Report: &report, Sequence: 1, Digest: "one", Desired: 1})
	if err != nil {
		return err
	}
	then, err := json.Marshal(checkin.Request{Sequence: 1, Digest: "one", Desired: 1})
	if err != nil {
		return err
	}
	rq := request("POST", checkin.CheckInPath, "", string(then))
	config := func(i int) *tls.Config { return points[i].config }
	next := func(int, int) []byte { return rq }
	theirs, err := rate(bare.addr, config, clients, b.time, code200, next)
	if err != nil {
		return err
	}
	checkinAddr, err := checkinAddrOf(m)
	if err != nil {
		return err
	}
	for i := range points {
		c, err := dial(checkinAddr, config(i))
		if err != nil {
			return err
		}
		_, _, err = c.do(request("POST", checkin.CheckInPath, "", string(first)), true)
		_ = c.conn.Close()
		if err != nil {
			return err
		}
	}
	ours, err := rate(checkinAddr, config, clients, b.time, code200, next)
	if err != nil {
		return err
	}
	wanted := "no goal"
	if goal > 0 {
		wanted = fmt.Sprintf("at least %.1f", goal)
	}
	b.add(what, perSecond(ours), perSecond(theirs), ours/theirs, wanted, ours/theirs >= goal)
	return nil
}

// startUp measures (g): start-up with a million resources, compared with an empty manager.
func (b *bench) startUp() error {
	var took [2]time.Duration
	sizes := [2]int{3, 1_000_000}
	if b.big {
		sizes[1] = 10_000_000
	}
	if err := b.databaseSize(sizes[1]); err != nil {
		return err
	}
	for i, n := range sizes {
		dir, _, err := b.data(n)
		if err != nil {
			return err
		}
		var all []time.Duration
		for range 5 {
			start := time.Now()
			m, err := spawn("manager", dir, "")
			if err != nil {
				return err
			}
			_, err = latency(m.addr, 1, code200, func(int) []byte { return request("GET", "/api/v2/networks?limit=1", m.token, "") })
			all = append(all, time.Since(start))
			m.stop()
			if err != nil {
				return err
			}
		}
		slices.Sort(all)
		took[i] = all[len(all)/2]
	}
	if err := b.idleMemory(); err != nil {
		return err
	}
	beyond := took[1] - took[0]
	b.add(fmt.Sprintf("(g) start-up, %d addresses", sizes[1]), took[1].Round(time.Millisecond).String(),
		took[0].Round(time.Millisecond).String()+" empty", float64(took[1])/float64(took[0]), "at most 200 ms beyond",
		beyond <= 200*time.Millisecond)
	return nil
}

// idleMemory measures the memory of an idle manager without data. Its own memory does not include the resident pages of the program's
// file, which processes share and the system can drop.
func (b *bench) idleMemory() error {
	m, err := spawn("manager", filepath.Join(b.dir, "idle"), "")
	if err != nil {
		return err
	}
	defer m.stop()
	time.Sleep(idleBefore)
	own, err := status(m.cmd.Process.Pid, "RssAnon:")
	if err != nil {
		return err
	}
	all, err := m.residentNow()
	if err != nil {
		return err
	}
	b.add("(g) memory of an idle manager of its own", fmt.Sprintf("%.0f MiB", own), "28 MiB", own/28, "at most 1", own <= 28)
	b.addResult("(g) the same with resident pages of the program", fmt.Sprintf("%.0f MiB", all))
	return nil
}

// idleBefore is the time before the memory of an idle manager is read.
const idleBefore = 5 * time.Second

// databaseSize measures the size of addresses in the database, without history, which the bench does not write. It prints the size per
// table.
func (b *bench) databaseSize(addresses int) error {
	dir, _, err := b.data(addresses)
	if err != nil {
		return err
	}
	conn, err := sqlite.OpenConn(filepath.Join(dir, "portolan.db"))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	pending := "INSERT INTO trigram_due SELECT id FROM resource WHERE TRUE ON CONFLICT DO NOTHING"
	if err := sqlitex.ExecuteTransient(conn, pending, nil); err != nil {
		return err
	}
	m, err := spawn("manager", dir, "") // moves texts into the trigram index
	if err != nil {
		return err
	}
	err = waitForIndex(dir)
	m.stop()
	if err != nil {
		return err
	}
	total := int64(0)
	if err := sqlitex.ExecuteTransient(conn, "SELECT name, sum(pgsize) FROM dbstat GROUP BY name ORDER BY 2 DESC",
		&sqlitex.ExecOptions{ResultFunc: func(stmt *sqlite.Stmt) error {
			if total += stmt.ColumnInt64(1); stmt.ColumnInt64(1) >= int64(addresses) {
				fmt.Fprintf(os.Stderr, "%s: %d bytes an address\n", stmt.ColumnText(0), stmt.ColumnInt64(1)/int64(addresses))
			}
			return nil
		}}); err != nil {
		return err
	}
	each := float64(total) / float64(addresses)
	b.add(fmt.Sprintf("(g) room of %d addresses", addresses), fmt.Sprintf("%.0f bytes each", each), "600", each/600,
		"at most 600 bytes", each <= 600)
	return nil
}
