package test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"portolan/internal/testkit/pgtest"
	"portolan/internal/wire/checkin"
)

// attackTime is the duration of the attacks. maxDelay is the maximum delay of other requests, and maxMemory the maximum memory of the
// manager. A request may be delayed until the attack ends, and a lower limit would depend on the machine.
const (
	attackTime = 20 * time.Second
	maxDelay   = attackTime / 2
	maxMemory  = 768 << 20
)

// TestAttacks runs all known attacks at the same time against a new manager with 60,000 addresses. It checks that reads, sign-ins and
// check-ins continue, and that memory stays within its limit. It takes a while, so only make test-long runs it.
func TestAttacks(t *testing.T) {
	if os.Getenv("PORTOLAN_TEST_LONG") == "" {
		t.Skip("this takes a while; make test-long runs it")
	}
	t.Run("SQLite", func(t *testing.T) { attacked(t, "") })
	t.Run("PostgreSQL", func(t *testing.T) { attacked(t, pgtest.URL(t)) })
}

// client returns a client with its own address of the loopback network.
func client(address string) *http.Client {
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}, Timeout: patience}
	return &http.Client{Timeout: patience, Transport: &http.Transport{DialContext: dialer.DialContext, MaxIdleConnsPerHost: 64}}
}

func attacked(t *testing.T, database string) {
	m := serve(t, database)
	configuration := m.id("/configurations", `{"name":"main"}`)
	block := m.id("/configurations/"+configuration+"/blocks", `{"type":"IPv4Block","range":"10.0.0.0/8"}`)
	network := m.id("/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"10.0.0.0/16"}`)
	var file strings.Builder
	file.WriteString("address,name\n")
	for i := 2; i < 60_000; i++ {
		fmt.Fprintf(&file, "10.0.%d.%d,host %d\n", i>>8, i&255, i)
	}
	path := filepath.Join(t.TempDir(), "addresses.csv")
	if err := os.WriteFile(path, []byte(file.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	m.portolan(append(append([]string{"import", "addresses"}, m.where...), "--configuration", "main", path)...)
	group := m.id("/tagGroups", `{"name":"g"}`)
	tag := m.id("/tagGroups/"+group+"/tags", `{"name":"t"}`)
	_, list, _ := m.call("GET", "/networks/"+network+"/addresses?limit=500&fields=id", "")
	var page struct {
		Data []struct{ ID json.Number }
	}
	if err := json.Unmarshal([]byte(list), &page); err != nil {
		t.Fatal(err)
	}
	for _, a := range page.Data {
		m.call("POST", "/addresses/"+a.ID.String()+"/tags", `{"id":`+tag+`}`) //nolint:errcheck // an untagged address only reduces the load
	}
	analyst := m.portolan(append([]string{"token", "create", "--name", "watcher", "--role", "analyst"}, m.where...)...)
	gatherer := "Bearer " + m.portolan(append([]string{"token", "create", "--name", "gatherer", "--role", "analyst"}, m.where...)...)
	point := enrolled(t, m)

	friend := client("127.0.0.7")
	base := "http://" + m.api
	if status, err := send(friend, "POST", base+"/api/v2/sessions", "", `{"username":"admin","password":"a-long-password"}`); status != 201 {
		t.Fatalf("a sign-in before: %d %v", status, err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	again := func(times int, attack func()) {
		for range times {
			all.Go(func() {
				for ctx.Err() == nil {
					attack()
				}
			})
		}
	}
	ask := func(c *http.Client, method, url, token string, body io.Reader) {
		rq, err := http.NewRequestWithContext(ctx, method, url, body)
		if err != nil {
			t.Error(err)
			return
		}
		if token != "" {
			rq.Header.Set("Authorization", token)
		}
		rq.Header.Set("Content-Type", "application/json")
		if rs, err := c.Do(rq); err == nil { // the result does not matter
			_, _ = io.Copy(io.Discard, rs.Body)
			_ = rs.Body.Close()
		}
	}
	reader := "Bearer " + analyst
	for range 40 { // slow readers
		conn, err := net.Dial("tcp", m.api)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		fmt.Fprintf(conn, "GET /api/v2/addresses?limit=100000 HTTP/1.1\r\nHost: x\r\nAuthorization: %s\r\n\r\n", reader)
	}
	for range 30 { // half-sent bodies
		conn, err := net.Dial("tcp", m.api)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		fmt.Fprintf(conn, "POST /v1/api/authentication/token HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: "+
			"10000000\r\n\r\n{\"a\":\"")
		_, _ = conn.Write(bytes.Repeat([]byte("x"), 64<<10)) // the manager may have closed the connection
	}
	heavy := make([]string, 75)
	for i := range heavy {
		heavy[i] = fmt.Sprintf("configuration.name:contains('%d')", i)
	}
	filter := "/api/v2/addresses?filter=" + url.QueryEscape(strings.Join(heavy, " or "))
	attacker := client("127.0.0.9")
	again(8, func() { ask(attacker, "GET", base+filter, reader, nil) })
	again(4, func() {
		ask(attacker, "GET", base+"/api/v2/tags/"+tag+"?fields=embed(taggedResources.tags.taggedResources)", gatherer, nil)
	})
	members := []byte(`{"a":0` + strings.Repeat(`,"b":0`, 1<<20) + "}")
	again(4, func() { ask(attacker, "POST", base+"/v1/api/authentication/token", "", bytes.NewReader(members)) })
	again(4, func() { ask(attacker, "POST", base+"/api/v2/sessions", "", bytes.NewReader(members)) })
	guess := 0
	var guessing sync.Mutex
	again(16, func() {
		guessing.Lock()
		guess++
		n := guess
		guessing.Unlock()
		ask(attacker, "POST", base+"/api/v2/sessions", "", strings.NewReader(fmt.Sprintf(`{"username":"user%d","password":"guess"}`, n%50)))
	})

	// Meanwhile other clients work.
	address := page.Data[7].ID.String()
	longest := map[string]time.Duration{}
	memory := int64(0)
	do := func(what string, want int, send func() (int, error)) {
		start := time.Now()
		status, err := send()
		if took := time.Since(start); took > longest[what] {
			longest[what] = took
		}
		if err != nil || status != want {
			t.Errorf("%s: %d %v", what, status, err)
		}
	}
	get := func(path, authorization string) func() (int, error) {
		return func() (int, error) { return send(friend, "GET", base+path, authorization, "") }
	}
	for ends := time.Now().Add(attackTime); time.Now().Before(ends); {
		do("readiness", 200, get("/readyz", ""))
		do("a read", 200, get("/api/v2/addresses/"+address, "Bearer "+m.token))
		do("a list", 200, get("/api/v2/networks?limit=10", "Bearer "+m.token))
		do("the fleet", 200, get("/user/api/v1/fleetInstances", "Bearer "+m.token))
		do("a sign-in", 201, func() (int, error) {
			return send(friend, "POST", base+"/api/v2/sessions", "", `{"username":"admin","password":"a-long-password"}`)
		})
		do("a check-in", 200, point)
		do("a change", 200, func() (int, error) {
			return send(friend, "PATCH", base+"/api/v2/addresses/"+address, "Bearer "+m.token, `{"name":"x"}`)
		})
		memory = max(memory, resident(t, m.process.cmd.Process.Pid))
		time.Sleep(50 * time.Millisecond) // twenty requests per second
	}
	stop()
	all.Wait()
	for what, took := range longest {
		if took > maxDelay {
			t.Errorf("%s was held up for %v", what, took)
		}
	}
	if memory > maxMemory {
		t.Errorf("the manager took %d MiB", memory>>20)
	}
	t.Logf("the longest: %v; %d MiB", longest, memory>>20)
}

// send sends one request and returns the status of the response.
func send(c *http.Client, method, url, authorization, body string) (int, error) {
	rq, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	if authorization != "" {
		rq.Header.Set("Authorization", authorization)
	}
	if body != "" {
		rq.Header.Set("Content-Type", "application/json")
	}
	rs, err := c.Do(rq)
	if err != nil {
		return 0, err
	}
	defer func() { _ = rs.Body.Close() }()
	_, err = io.Copy(io.Discard, rs.Body)
	return rs.StatusCode, err
}

// resident returns the resident memory of a process, in bytes.
func resident(t *testing.T, pid int) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Skip("there is no /proc: memory is not measured")
	}
	for line := range strings.SplitSeq(string(text), "\n") {
		var kib int64
		if n, _ := fmt.Sscanf(line, "VmRSS: %d kB", &kib); n == 1 {
			return kib << 10
		}
	}
	return 0
}

// enrolled creates and enrols a service point with plain requests. It returns a function that checks in for it.
func enrolled(t *testing.T, m *manager) (checkIn func() (int, error)) {
	t.Helper()
	status, text, err := call(t.Context(), "POST", "http://"+m.api+"/api/v1/fleetInstanceMinimumConfig", m.token, `{"name":"quay"}`)
	var created struct{ RegistrationKey string }
	if err != nil || status != 202 || json.Unmarshal([]byte(text), &created) != nil {
		t.Fatalf("making a service point: %d %s %v", status, text, err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		t.Fatal(err)
	}
	post := func(c *http.Client, path string, body any, answer any) (int, error) {
		text, err := json.Marshal(body)
		if err != nil {
			return 0, err
		}
		rs, err := c.Post("https://"+m.door+path, "application/json", bytes.NewReader(text))
		if err != nil {
			return 0, err
		}
		defer func() { _ = rs.Body.Close() }()
		return rs.StatusCode, json.NewDecoder(rs.Body).Decode(answer)
	}
	unknown := &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13} //nolint:gosec // the test's own manager, on loopback
	var answer checkin.EnrolAnswer
	status, err = post(&http.Client{Transport: &http.Transport{TLSClientConfig: unknown}}, checkin.EnrolPath,
		checkin.EnrolRequest{RegistrationKey: created.RegistrationKey,
			Request: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})), Variant: checkin.Fleet, Version: "1"}, &answer)
	if err != nil || status != 200 {
		t.Fatalf("enrolling: %d %v", status, err)
	}
	block, _ := pem.Decode([]byte(answer.Certificate))
	known := unknown.Clone()
	known.Certificates = []tls.Certificate{{Certificate: [][]byte{block.Bytes}, PrivateKey: key}}
	c := &http.Client{Timeout: patience, Transport: &http.Transport{TLSClientConfig: known}}
	return func() (int, error) {
		var a checkin.Answer
		return post(c, checkin.CheckInPath, checkin.Request{Report: &checkin.Report{Version: "1", Variant: checkin.Fleet,
			ErrorConditions: []string{}}}, &a)
	}
}
