package server

import (
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
	"log/slog"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"portolan/internal/manager/fleet"
	"portolan/internal/servicepoint"
	"portolan/internal/servicepoint/application/all"
	"portolan/internal/testkit/apitest"
	"portolan/internal/wire/checkin"
)

// members gives the names of an object's members, sorted.
func members(v any) (names []string) {
	object, _ := v.(map[string]any)
	for name := range object {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (m *manager) create(name string) (id, key string) {
	m.T.Helper()
	r := m.Want(202, "POST", "/api/v1/fleetInstanceMinimumConfig", `{"name":"`+name+`"}`)
	return r.Text("fleetInstanceID"), r.Text("registrationKey")
}

func TestFleetFieldForField(t *testing.T) {
	m := startAlone(t)
	if got := string(m.Want(200, "GET", "/user/api/v1/fleetInstances", "").Body); got != "{\"data\":[]}\n" {
		t.Errorf("an empty fleet is %s", got)
	}
	r := m.Want(202, "POST", "/api/v1/fleetInstanceMinimumConfig", `{"name":"Test FSP 1","description":"d","more":[1]}`)
	if got := members(r.Get("")); len(got) == 0 {
		var v map[string]any
		if err := json.Unmarshal(r.Body, &v); err != nil || !slices.Equal(members(v),
			[]string{"fleetInstanceID", "registrationEndpoint", "registrationKey"}) {
			t.Errorf("creation answers %s", r.Body)
		}
	}
	if !strings.HasPrefix(r.Text("fleetInstanceID"), "test_fsp_1-") {
		t.Errorf("the id is %s", r.Text("fleetInstanceID"))
	}
	m.create("bare")
	all := m.Want(200, "GET", "/user/api/v1/fleetInstances", "")
	bare := all.Get("data.1")
	want := []string{"applications", "connectionStatus", "errorConditions", "id", "lastSeen", "name", "nodes", "status", "updateStatus",
		"version"}
	slices.Sort(want)
	if got := members(bare); !slices.Equal(got, want) {
		t.Errorf("a service point without a description has %v, want %v", got, want)
	}
	for path, want := range map[string]string{"status": "WAITING_FOR_PROVISIONING", "connectionStatus": "NOT_CONNECTED", "lastSeen": "0",
		"updateStatus": "OK", "nodes": "[]", "applications": "[]", "errorConditions": "[]", "version": ""} {
		if got := all.Text("data.1." + path); got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
	if got := all.Text("data.0.description"); got != "d" {
		t.Errorf("the description is %q", got)
	}
	one := m.Want(200, "GET", "/user/api/v1/fleetInstances?name=bare", "")
	if one.Text("data.0.name") != "bare" || one.Get("data.1") != nil {
		t.Errorf("by name: %s", one.Body)
	}
	if got := string(m.Want(200, "GET", "/user/api/v1/fleetInstances?name=Bare", "").Body); got != "{\"data\":[]}\n" {
		t.Errorf("another name finds %s", got)
	}
	if got := string(m.Want(200, "GET", "/user/api/v1/fleetInstances?name=", "").Body); got != "{\"data\":[]}\n" {
		t.Errorf("the empty name finds %s", got)
	}
	single := m.Want(200, "GET", "/user/api/v1/fleetInstances/"+r.Text("fleetInstanceID"), "")
	if !strings.Contains(string(single.Body), `"httpProxySettings":null`) || !strings.Contains(string(single.Body), `"nodes":[]`) {
		t.Errorf("a single one is %s", single.Body)
	}
	m.Want(204, "DELETE", "/user/api/v1/fleetInstances/"+r.Text("fleetInstanceID"), "")
	m.Refused(404, "ResourceNotFound", "does not exist", "GET", "/user/api/v1/fleetInstances/"+r.Text("fleetInstanceID"), "")
	m.Refused(404, "ResourceNotFound", "does not exist", "DELETE", "/user/api/v1/fleetInstances/nobody", "")
}

func TestFleetRefusals(t *testing.T) {
	m := startAlone(t)
	m.create("taken")
	const path = "/api/v1/fleetInstanceMinimumConfig"
	for _, c := range []struct {
		status             int
		code, naming, body string
		headers            []string
	}{
		{400, "MissingRequiredField", "name", `{}`, nil},
		{400, "MissingRequiredField", "name", `{"name":null}`, nil},
		{400, "InvalidResourceFieldValue", "blank", `{"name":" "}`, nil},
		{400, "InvalidResourceFieldValue", "must be a string", `{"name":1}`, nil},
		{400, "InvalidResourceFieldValue", "description", `{"name":"a","description":{}}`, nil},
		{400, "InvalidResourceFieldValue", "129 characters", `{"name":"` + strings.Repeat("é", 129) + `"}`, nil},
		{400, "InvalidResourceFieldValue", "control", `{"name":"a\nb"}`, nil},
		{400, "InvalidResourceFieldValue", "4000", `{"name":"a","description":"` + strings.Repeat("x", 4001) + `"}`, nil},
		{409, "ResourceAlreadyExists", "taken", `{"name":"taken"}`, nil},
		{400, "JsonParseError", "", `{`, nil},
		{413, "RequestTooLarge", "", `{"name":"` + strings.Repeat("a", 11<<20) + `"}`, nil},
		{415, "UnsupportedMediaType", "", `{"name":"a"}`, []string{"Content-Type: text/xml"}},
		{401, "InvalidAuthorizationToken", "", `{"name":"a"}`, []string{"Authorization:"}},
	} {
		m.Refused(c.status, c.code, c.naming, "POST", path, c.body, c.headers...)
	}
	m.Refused(405, "MethodNotAllowed", "POST", "GET", path, "")
	m.Refused(405, "MethodNotAllowed", "GET", "POST", "/user/api/v1/fleetInstances", "{}")
	m.Refused(400, "InvalidQueryParameterValue", "name", "GET", "/user/api/v1/fleetInstances?name=a&name=b", "")
	if got := m.Want(200, "GET", "/user/api/v1/fleetInstances", ""); got.Get("data.1") != nil {
		t.Errorf("a refused creation left something: %s", got.Body)
	}
	m.Want(202, "POST", path, `{"name":"`+strings.Repeat("é", 128)+`"}`)
}

// enrolment is a service point's side of enrolment, done by hand.
type enrolment struct {
	key     *ecdsa.PrivateKey
	request string
}

func newEnrolment(t *testing.T) enrolment {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		t.Fatal(err)
	}
	return enrolment{key, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))}
}

// doorClient comes to a manager's check-in door, with a certificate where there is one.
func (m *manager) doorClient(certificate *tls.Certificate) *http.Client {
	config := &tls.Config{RootCAs: m.authority.Pool(), ServerName: checkin.ServerName, MinVersion: tls.VersionTLS13}
	if certificate != nil {
		config.Certificates = []tls.Certificate{*certificate}
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}
}

// doorGet reads from the check-in door.
func (m *manager) doorGet(path string, certificate *tls.Certificate) (int, string) {
	m.T.Helper()
	rs, err := m.doorClient(certificate).Get("https://" + m.checkins.Addr().String() + path)
	if err != nil {
		m.T.Fatal(err)
	}
	defer func() { _ = rs.Body.Close() }()
	text, err := io.ReadAll(rs.Body)
	if err != nil {
		m.T.Fatal(err)
	}
	return rs.StatusCode, string(text)
}

// doorPost posts to the check-in door.
func (m *manager) doorPost(path string, body any, certificate *tls.Certificate) (int, map[string]any) {
	m.T.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		m.T.Fatal(err)
	}
	rs, err := m.doorClient(certificate).Post("https://"+m.Manager.checkins.Addr().String()+path, "application/json",
		strings.NewReader(string(text)))
	if err != nil {
		m.T.Fatal(err)
	}
	defer func() { _ = rs.Body.Close() }()
	var answer map[string]any
	if err := json.NewDecoder(rs.Body).Decode(&answer); err != nil {
		m.T.Fatal(err)
	}
	return rs.StatusCode, answer
}

func (m *manager) enrol(e enrolment, key string) (int, map[string]any) {
	m.T.Helper()
	return m.doorPost(checkin.EnrolPath, checkin.EnrolRequest{RegistrationKey: key, Request: e.request, Variant: checkin.Fleet,
		Version: "1"}, nil)
}

func (m *manager) events() (n int) {
	m.T.Helper()
	r := m.Want(200, "GET", "/user/api/v1/fleetInstances", "")
	return len(r.Body)
}

// TestRegistrationKeys checks that a used, expired, damaged or foreign registration key is refused with its own reason, and leaves nothing
// behind.
func TestRegistrationKeys(t *testing.T) {
	var c clock
	m := startManager(t, func(o *Options) { o.Now = c.now })
	other := startManager(t)
	_, foreign := other.create("elsewhere")
	_, key := m.create("one")
	e := newEnrolment(t)

	parsed, err := checkin.ParseKey(key)
	if err != nil {
		t.Fatal(err)
	}
	unknown := parsed
	unknown.Secret[7] ^= 1
	bit := []byte(key)
	bit[20] ^= 1
	before := m.events()
	for _, bad := range []struct {
		status    int
		code, key string
	}{
		{403, "RegistrationKeyForeign", foreign}, {403, "RegistrationKeyUnknown", unknown.String()}, {400, "RegistrationKeyDamaged", string(bit)},
		{400, "RegistrationKeyDamaged", ""},
	} {
		if status, answer := m.enrol(e, bad.key); status != bad.status || answer["code"] != bad.code {
			t.Errorf("a key that should be %s gets %d %v", bad.code, status, answer)
		}
	}
	for _, request := range []string{"", "x", strings.Replace(e.request, "M", "N", 1)} {
		if status, answer := m.enrol(enrolment{request: request}, key); status != 400 {
			t.Errorf("the request %q gets %d %v", request, status, answer)
		}
	}
	if m.events() != before {
		t.Error("a refused enrolment left something behind")
	}

	status, first := m.enrol(e, key)
	if status != 200 {
		t.Fatalf("enrolment: %d %v", status, first)
	}
	// The answer was lost: the same key pair may ask again. Another one may not.
	if status, again := m.enrol(e, key); status != 200 || again["id"] != first["id"] {
		t.Errorf("the repeated enrolment: %d %v", status, again)
	}
	if status, answer := m.enrol(newEnrolment(t), key); status != 403 || answer["code"] != "RegistrationKeyUsed" {
		t.Errorf("a used key: %d %v", status, answer)
	}

	id, late := m.create("late")
	c.advance(8 * 24 * time.Hour)
	if status, answer := m.enrol(e, late); status != 403 || answer["code"] != "RegistrationKeyExpired" {
		t.Errorf("an expired key: %d %v", status, answer)
	}
	if got := m.Want(200, "GET", "/user/api/v1/fleetInstances/"+id, "").Text("status"); got != "EXPIRED" {
		t.Errorf("with an expired key the service point is %s", got)
	}
	if err := m.Fleet.WritePresence(context.Background(), true); err != nil {
		t.Fatal(err)
	}
	if err := m.Fleet.Sweep(context.Background(), m.Store.Update); err != nil {
		t.Fatal(err)
	}
	again, fresh := m.create("late")
	if again != id || m.Want(200, "GET", "/user/api/v1/fleetInstances/"+id, "").Text("status") != "WAITING_FOR_PROVISIONING" {
		t.Errorf("a new key for an expired service point made %s, was %s", again, id)
	}
	if status, answer := m.enrol(e, late); status != 403 || answer["code"] != "RegistrationKeyUnknown" {
		t.Errorf("the old key after the new one: %d %v", status, answer)
	}
	if status, answer := m.enrol(newEnrolment(t), fresh); status != 200 {
		t.Errorf("the new key: %d %v", status, answer)
	}
}

// certificateOf makes the TLS certificate out of an enrolment's answer.
func (e enrolment) certificateOf(t *testing.T, answer map[string]any) *tls.Certificate {
	t.Helper()
	block, _ := pem.Decode([]byte(fmt.Sprint(answer["certificate"])))
	if block == nil {
		t.Fatalf("no certificate in %v", answer)
	}
	return &tls.Certificate{Certificate: [][]byte{block.Bytes}, PrivateKey: e.key}
}

func TestCheckInListener(t *testing.T) {
	apitest.Slow(t)
	m := startOnce(t, silentSoon)
	id, key := m.create("one")
	e := newEnrolment(t)
	_, answer := m.enrol(e, key)
	certificate := e.certificateOf(t, answer)
	report := &checkin.Report{Version: "7", Variant: checkin.Fleet, ErrorConditions: []string{},
		HTTPProxySettings: &checkin.ProxySettings{Host: "proxy"}, Nodes: []checkin.Node{{ID: "n", Hostname: "h",
			DNSServers: []string{"192.0.2.53"},
			Addresses: []checkin.NodeAddress{{Type: checkin.Anycast, IPAddress: "192.0.2.1", IsUseByAppID: ptr("app"), IsUp: ptr(true)},
				{Type: checkin.Primary, IPAddress: "192.0.2.2"}}}}}

	if status, a := m.doorPost(checkin.CheckInPath, checkin.Request{}, nil); status != 401 || a["code"] != "CertificateRequired" {
		t.Errorf("without a certificate: %d %v", status, a)
	}
	if status, a := m.doorPost(checkin.CheckInPath, map[string]any{"desired": "x"}, certificate); status != 400 {
		t.Errorf("a malformed check-in: %d %v", status, a)
	}
	if status, a := m.doorPost(checkin.CheckInPath, checkin.Request{}, certificate); status != 200 || a["sendReport"] != true {
		t.Errorf("a first check-in without a report: %d %v", status, a)
	}
	if status, a := m.doorPost(checkin.CheckInPath, checkin.Request{Report: report}, certificate); status != 200 {
		t.Fatalf("a check-in: %d %v", status, a)
	}
	i := m.Want(200, "GET", "/user/api/v1/fleetInstances/"+id, "")
	for path, want := range map[string]string{"status": "HEALTHY", "connectionStatus": "CONNECTED", "version": "7", "nodes.0.hostname": "h",
		"nodes.0.ipv6CIDRAddress": "", "nodes.0.addresses.0.isUseByAppId": "app", "nodes.0.addresses.0.isUp": "true"} {
		if got := i.Text(path); got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
	if got := members(i.Get("nodes.0.addresses.1")); !slices.Equal(got, []string{"ipAddress", "type"}) {
		t.Errorf("an address that is not ANYCAST has %v", got)
	}
	if !strings.Contains(string(i.Body), `"dnsServers":["192.0.2.53"]`) || i.Text("httpProxySettings.host") != "proxy" {
		t.Errorf("a single one lacks its resolvers or its proxy: %s", i.Body)
	}
	if list := m.Want(200, "GET", "/user/api/v1/fleetInstances", ""); strings.Contains(string(list.Body), "dnsServers") ||
		strings.Contains(string(list.Body), "roxy") {
		t.Errorf("the list has more than is specified: %s", list.Body)
	}
	// An interval of a test is a second; three of them without a word, and the connection is gone,
	// while the status stays.
	apitest.Eventually(t, "NOT_CONNECTED", func() bool {
		return m.Want(200, "GET", "/user/api/v1/fleetInstances/"+id, "").Text("connectionStatus") == "NOT_CONNECTED"
	})
	report.ErrorConditions = []string{"the quay is on fire"}
	m.doorPost(checkin.CheckInPath, checkin.Request{Report: report}, certificate)
	i = m.Want(200, "GET", "/user/api/v1/fleetInstances/"+id, "")
	if i.Text("status") != "UNHEALTHY" || i.Text("errorConditions.0") != "the quay is on fire" || i.Text("connectionStatus") != "CONNECTED" {
		t.Errorf("an unhealthy service point is %s", i.Body)
	}

	// Renewal: both certificates are good until the new one is used.
	fresh := newEnrolment(t)
	status, renewed := m.doorPost(checkin.RenewPath, checkin.RenewRequest{Request: fresh.request}, certificate)
	if status != 200 {
		t.Fatalf("renewal: %d %v", status, renewed)
	}
	second := fresh.certificateOf(t, renewed)
	for _, c := range []*tls.Certificate{certificate, second, second} {
		if status, a := m.doorPost(checkin.CheckInPath, checkin.Request{Report: report}, c); status != 200 {
			t.Errorf("while renewing: %d %v", status, a)
		}
	}
	if status, a := m.doorPost(checkin.CheckInPath, checkin.Request{Report: report}, certificate); status != 410 {
		t.Errorf("the old certificate after renewal: %d %v", status, a)
	}
	m.Want(204, "DELETE", "/user/api/v1/fleetInstances/"+id, "")
	if status, a := m.doorPost(checkin.CheckInPath, checkin.Request{Report: report}, second); status != 410 ||
		a["code"] != checkin.ServicePointDeleted {
		t.Errorf("after deletion: %d %v", status, a)
	}
	if status, a := m.doorPost(checkin.RenewPath, checkin.RenewRequest{Request: fresh.request}, second); status != 410 ||
		a["code"] != checkin.ServicePointDeleted {
		t.Errorf("renewal after deletion: %d %v", status, a)
	}
}

// pemFiles gives a certificate and its key in PEM.
func pemFiles(t *testing.T, pair *tls.Certificate) (certificate, key string) {
	t.Helper()
	private, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
	if !ok {
		t.Fatal("no ECDSA key")
	}
	der, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]})),
		string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}))
}

func ptr[T any](v T) *T { return &v }

// agent runs a real service point until the test ends or stop is called.
func (m *manager) agent(state, variant, endpoint, key string) (diagnostics func() map[string]any, stop func()) {
	m.T.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		m.T.Fatal(err)
	}
	a, err := servicepoint.New(servicepoint.Options{State: state, Endpoint: endpoint, Key: key, Variant: variant, Diagnostics: l,
		Version: "1.2.3",
		Targets: servicepoint.Targets{Gateway: "127.0.0.1", Ping: "off", HTTP: m.URL() + "/healthz"}, ProbeInterval: 50 * time.Millisecond,
		Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		m.T.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			m.T.Error(err)
		}
	}
	m.T.Cleanup(stop)
	return func() map[string]any {
		rs, err := http.Get("http://" + l.Addr().String() + "/api/v1/diagnostics")
		if err != nil {
			m.T.Fatal(err)
		}
		defer func() { _ = rs.Body.Close() }()
		var d map[string]any
		if err := json.NewDecoder(rs.Body).Decode(&d); err != nil {
			m.T.Fatal(err)
		}
		return d
	}, stop
}

func (m *manager) instance(id string) reply {
	return m.Want(200, "GET", "/user/api/v1/fleetInstances/"+id, "")
}

// ownDoor returns a listen address that stays free while no test listens there: a loopback address of its own.
func ownDoor(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", fmt.Sprintf("127.%d.%d.%d:0", 1+mathrand.N(250), mathrand.N(250), 1+mathrand.N(250)))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }() // it is only asked for its port
	return l.Addr().String()
}

// TestRestartOfBothEnds restarts the manager and the service point, each with its data on disk. They connect again.
func TestRestartOfBothEnds(t *testing.T) {
	data, state := t.TempDir(), t.TempDir()
	door := ownDoor(t)
	change := func(o *Options) { o.Data, o.CheckinListen = data, door }

	var id string
	var lastSeen string
	t.Run("first", func(t *testing.T) {
		m := startManager(t, change)
		var key string
		id, key = m.create("one")
		diagnostics, stop := m.agent(state, checkin.V4, m.RegistrationEndpoint(), key)
		apitest.Eventually(t, "HEALTHY and CONNECTED", func() bool {
			i := m.instance(id)
			return i.Text("status") == "HEALTHY" && i.Text("connectionStatus") == "CONNECTED"
		})
		apitest.Eventually(t, "diagnostics of a registered v4", func() bool {
			d := diagnostics()
			return d["connectionStatus"] == "CONNECTED" && fmt.Sprint(d["registrationStatus"]) == "map[details: state:REGISTERED]" && d["id"] == id
		})
		want := []string{"addresses", "anycastStatus", "connectionStatus", "corporateHttpProxy", "dnsServers", "id", "networkConnectivity",
			"ntpStatus",
			"originalVersion", "platform", "registrationStatus", "services", "status", "updateStatus", "version"}
		if got := members(diagnostics()); !slices.Equal(got, want) {
			t.Errorf("diagnostics of a v4 have %v", got)
		}
		lastSeen = m.instance(id).Text("lastSeen")
		stop()
	})
	t.Run("second", func(t *testing.T) {
		m := startManager(t, change)
		if got := m.instance(id).Text("lastSeen"); got < lastSeen {
			t.Errorf("lastSeen went back from %s to %s", lastSeen, got)
		}
		m.agent(state, checkin.V4, "", "") // neither key nor endpoint
		apitest.Eventually(t, "CONNECTED again", func() bool { return m.instance(id).Text("lastSeen") > lastSeen })
		m.Verify()
	})
}

// TestManagerRestartsUnderAnAgent checks that service points connect to a restarted manager without a restart of their own.
func TestManagerRestartsUnderAnAgent(t *testing.T) {
	apitest.RunParallel(t)
	data := t.TempDir()
	door := ownDoor(t)
	options := Options{Programs: all.Programs(),
		Data: data, Database: databaseFor(t, data), Listen: "127.0.0.1:0", CheckinListen: door, AdminPassword: adminPassword,
		Version: "test",
		Log:     slog.New(slog.NewTextHandler(io.Discard, nil)), Interval: time.Second}
	first, err := Start(context.Background(), options)
	if err != nil {
		t.Fatal(err)
	}
	created, err := first.Fleet.Create(context.Background(), fleet.Wanted{Name: "one", Endpoint: first.RegistrationEndpoint()})
	if err != nil {
		t.Fatal(err)
	}
	outer := clientOf(t, first, http.DefaultClient, "")
	diagnostics, _ := outer.agent(t.TempDir(), checkin.Fleet, first.RegistrationEndpoint(), created.RegistrationKey)
	status := func() int {
		return int(diagnostics()["networkConnectivity"].(map[string]any)["fleetMgmtEndpointStatus"].(float64))
	}
	apitest.Eventually(t, "the manager's door answers 200", func() bool { return status() == 200 })
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	apitest.Eventually(t, "the manager's door answers nothing", func() bool { return status() == 0 })
	m := startManager(t, func(o *Options) { *o = options })
	was := m.instance(created.FleetInstanceID).Text("lastSeen")
	apitest.Eventually(t, "CONNECTED again", func() bool { return m.instance(created.FleetInstanceID).Text("lastSeen") > was })
	if got := members(diagnostics()); !slices.Equal(got, []string{"corporateHttpProxy", "networkConnectivity", "registrationStatus"}) {
		t.Errorf("diagnostics of a fleet service point have %v", got)
	}
}

// TestDeletedAndForeign checks that a deleted service point is informed and stops. The agent refuses a key of another manager before it
// sends the key.
func TestDeletedAndForeign(t *testing.T) {
	m, other := startManager(t), startManager(t)
	id, key := m.create("one")
	diagnostics, _ := m.agent(t.TempDir(), checkin.Fleet, m.RegistrationEndpoint(), key)
	state := func(d func() map[string]any) string {
		return fmt.Sprint(d()["registrationStatus"].(map[string]any)["state"])
	}
	apitest.Eventually(t, "CONNECTED", func() bool { return m.instance(id).Text("connectionStatus") == "CONNECTED" })
	m.Want(204, "DELETE", "/user/api/v1/fleetInstances/"+id, "")
	apitest.Eventually(t, "DEREGISTERED", func() bool { return state(diagnostics) == "DEREGISTERED" })

	_, foreign := other.create("two")
	dir := t.TempDir()
	diagnostics, _ = m.agent(dir, checkin.Fleet, m.RegistrationEndpoint(), foreign)
	apitest.Eventually(t, "REFUSED", func() bool { return state(diagnostics) == "REFUSED" })
	if details := fmt.Sprint(diagnostics()["registrationStatus"]); !strings.Contains(details, "another manager created the registration key") {
		t.Errorf("the reason is %s", details)
	}
	if matches, err := filepath.Glob(filepath.Join(dir, "identity.json")); err != nil || len(matches) > 0 {
		t.Errorf("a refused enrolment left %v, %v", matches, err)
	}
}
