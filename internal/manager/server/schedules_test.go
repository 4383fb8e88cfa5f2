package server

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"portolan/internal/engine/event"
	"portolan/internal/engine/store"
	"portolan/internal/manager/dnspublish"
	"portolan/internal/manager/notify"
	"portolan/internal/manager/serverconfig"
	"portolan/internal/wire/zonedata"

	"github.com/gosnmp/gosnmp"
)

func init() {
	alsoMade = append(alsoMade, func(m *manager) {
		at := "/api/v2/configurations/" + m.want(200, "GET", "/api/v2/configurations?"+filter("name:'main'"), "").text("data.0.id")
		server := m.want(200, "GET", at+"/servers?"+filter("name:'wire'"), "").text("data.0.id")
		m.id(at+"/schedules", `{"type":"DeploymentSchedule","name":"nightly","startDateTime":"2999-01-01T02:00:00Z","interval":"P1D",`+
			`"deploymentServices":["DNS"],"servers":[{"id":`+server+`}]}`)
		m.id("/api/v2/notificationGroups", `{"name":"on call","notificationType":"SMTP_SERVICE","eventSubscriptions":[{"category":"MIGRATION","eventTypes":["FAILED"]}]}`)
		schedules := "/api/v2/databases/" + m.want(200, "GET", "/api/v2/databases", "").text("data.0.id") + "/schedules"
		m.id(schedules, `{"type":"DatabaseBackupSchedule","name":"nightly","startDateTime":"2999-01-01T03:00:00Z","interval":"P1D"}`)
	})
}

// scheduled is a schedule of one server, with what else a test says of it.
func (d *deploying) scheduled(name, more string) string {
	return `{"type":"DeploymentSchedule","name":"` + name + `","deploymentServices":["DNS"],"servers":[{"id":` + filepath.Base(d.server) + `}],` +
		more + `}`
}

// A schedule deploys when it is due, and again at its interval; what it cannot deploy to is an event.
func TestDeploymentSchedules(t *testing.T) {
	var mu sync.Mutex
	ahead := time.Duration(0)
	m := startManager(t, func(o *Options) {
		o.Now = func() time.Time {
			mu.Lock()
			defer mu.Unlock()
			return time.Now().Add(ahead)
		}
	})
	configuration, _, _, _, _ := m.basics()
	at := "/api/v2/configurations/" + configuration
	d := m.deployment(at)
	start := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	daily := m.id(at+"/schedules", d.scheduled("daily", `"startDateTime":"`+start+`","interval":"P1D","deploymentType":"ValidationDeployment"`))
	path := "/api/v2/schedules/" + daily
	eventually(t, "it is known when it is due", func() bool { return m.want(200, "GET", path, "").text("nextDateTime") == start })
	once := m.id(at+"/schedules", d.scheduled("once", `"startDateTime":"`+start+`"`))
	deployments := func(kind string) int {
		return m.want(200, "GET", d.server+"/deployments?"+filter("type:'"+kind+"' and method:'SCHEDULED'"), "").count()
	}
	if n := deployments("ValidationDeployment"); n != 0 {
		t.Errorf("%d before it is due", n)
	}
	mu.Lock()
	ahead = 61 * time.Minute
	mu.Unlock()
	eventually(t, "both are deployed", func() bool { return deployments("ValidationDeployment") == 1 && deployments("FullDeployment") == 1 })
	r := m.want(200, "GET", path, "")
	if next, err := time.Parse(time.RFC3339, r.text("nextDateTime")); err != nil ||
		time.Until(next) < 24*time.Hour || r.text("lastDateTime") == "" {
		t.Errorf("behind that it is due at %s, and was at %s", r.text("nextDateTime"), r.text("lastDateTime"))
	}
	if r := m.want(200, "GET", "/api/v2/schedules/"+once, ""); r.get("nextDateTime") != nil {
		t.Errorf("what is due once is due again: %s", r.body)
	}
	// A day later it is due again; a server that is no service point any more is told of.
	m.want(200, "PATCH", d.server, `{"servicePoint":null}`)
	eventually(t, "what was deployed to it has ended", func() bool {
		return m.want(200, "GET", d.server+"/deployments?"+filter("state:in('QUEUED','RUNNING')"), "").count() == 0
	})
	m.id(at+"/schedules", d.scheduled("late", `"deploymentType":"FullDeployment","startDateTime":"`+
		time.Now().Add(3*time.Hour).UTC().Format(time.RFC3339)+`"`))
	mu.Lock()
	ahead += 24 * time.Hour
	mu.Unlock()
	eventually(t, "it is deployed again", func() bool {
		return deployments("ValidationDeployment") == 2
	})
	eventually(t, "it is said that nothing was deployed", func() bool {
		r := m.want(200, "GET", "/api/v2/events?"+filter("eventType:'NOT_DEPLOYED'"), "")
		return strings.Contains(r.text("data.0.message"), "late did not deploy")
	})
	// Below the server and the schedule.
	if r := m.want(200, "GET", d.server+"/schedules", ""); r.count() != 3 {
		t.Errorf("the server has %s", r.body)
	}
	if r := m.want(200, "GET", path+"/servers", ""); r.text("data.0.name") != "wire" {
		t.Errorf("the schedule is for %s", r.body)
	}
	m.want(204, "DELETE", path, "")
	m.verify()
}

// What would have been due before a schedule was set, or enabled, does not count; what ran once does not run again when its deletion is
// undone.
func TestSchedulesCountFromNowOn(t *testing.T) {
	m := startManager(t)
	configuration, _, _, _, _ := m.basics()
	at := "/api/v2/configurations/" + configuration
	d := m.deployment(at)
	now := time.Now().UTC()
	old := m.id(at+"/schedules", d.scheduled("old", `"startDateTime":"2020-01-01T00:00:00Z","interval":"P1D","deploymentType":"ValidationDeployment"`))
	off := m.id(at+"/schedules", d.scheduled("off", `"startDateTime":"1700-01-01T00:00:00Z","interval":"P1D","enabled":false,`+
		`"deploymentType":"ValidationDeployment"`))
	m.want(200, "PATCH", "/api/v2/schedules/"+off, `{"enabled":true}`, mergePatch)
	once := m.id(at+"/schedules", d.scheduled("once", `"deploymentType":"ValidationDeployment","startDateTime":"`+now.Format(time.RFC3339)+`"`))
	for _, id := range []string{old, off} {
		eventually(t, "it is due tomorrow", func() bool {
			r := m.want(200, "GET", "/api/v2/schedules/"+id, "")
			next, err := time.Parse(time.RFC3339, r.text("nextDateTime"))
			return err == nil && next.After(now) && next.Before(now.Add(25*time.Hour)) && r.get("lastDateTime") == nil
		})
	}
	ran := func() int {
		return m.want(200, "GET", d.server+"/deployments?"+filter("method:'SCHEDULED'"), "").count()
	}
	eventually(t, "it runs once", func() bool { return ran() == 1 })
	m.want(204, "DELETE", "/api/v2/schedules/"+once, "")
	deleted := m.last()
	m.want(204, "DELETE", "/api/v2/schedules/"+old, "")
	m.want(201, "POST", "/api/v2/transactions", `{"transactionType":"UNDO","transactionId":`+deleted+`}`)
	eventually(t, "it has run", func() bool { return m.want(200, "GET", "/api/v2/schedules/"+once, "").text("lastDateTime") != "" })
	other := m.id(at+"/schedules", d.scheduled("other", `"startDateTime":"`+now.Add(time.Hour).Format(time.RFC3339)+`"`))
	eventually(t, "another one is seen", func() bool { return m.want(200, "GET", "/api/v2/schedules/"+other, "").text("nextDateTime") != "" })
	if n := ran(); n != 1 {
		t.Errorf("it ran %d times", n)
	}
	m.refused(400, "DurationValueOutsideRange", "interval", "PATCH", "/api/v2/schedules/"+other, `{"interval":"P1M"}`, mergePatch)
	group := m.id(at+"/serverGroups", `{"name":"in a schedule"}`)
	m.id(at+"/schedules", `{"type":"DeploymentSchedule","name":"of a group","deploymentServices":["DNS"],"servers":[{"id":`+group+
		`}],"startDateTime":"2999-01-01T00:00:00Z"}`)
	m.refused(403, "ResourceInUse", "of a group", "DELETE", "/api/v2/serverGroups/"+group, "")
}

// A server that goes takes its deployments along: those of its group end, and others go on.
func TestServersGo(t *testing.T) {
	m := startAlone(t)
	configuration, _, _, _, _ := m.basics()
	at := "/api/v2/configurations/" + configuration
	d := m.deployment(at)
	point, _ := m.create("second")
	m.want(202, "POST", "/user/api/v1/fleetInstances/"+point+"/applications",
		`{"name":"dns-authoritative-service","configuration":{"listen":[{"address":"127.0.0.1"}]}}`)
	other := m.id(at+"/servers", `{"type":"Server","name":"second","profile":"DNS_DHCP_SERVER_20","servicePoint":"`+point+
		`","interfaces":[{"managementAddress":"10.0.0.98"}]}`)
	group := "/api/v2/serverGroups/" + m.id(at+"/serverGroups", `{"name":"pair","servers":[{"id":`+filepath.Base(d.server)+`},{"id":`+other+`}]}`)
	id := m.id(group+"/deployments", `{"type":"FullDeployment","service":"DNS"}`)
	eventually(t, "the server is deployed to", func() bool {
		states := filter("state:in('RUNNING','COMPLETED','COMPLETED_WITH_WARNINGS')")
		return m.want(200, "GET", "/api/v2/servers/"+other+"/deployments?"+states, "").count() == 1
	})
	m.want(204, "DELETE", "/api/v2/servers/"+other, "")
	m.want(204, "DELETE", "/api/v2/deploymentRoles/"+m.want(200, "GET", d.server+"/deploymentRoles", "").text("data.0.id"), "")
	m.want(204, "DELETE", d.server, "")
	m.deploymentIs(id, "COMPLETED")
	left := 1
	if err := m.Store.View(context.Background(), func(tx *store.Tx) error {
		return tx.QueryRow("SELECT (SELECT count(*) FROM deployment_wait) + (SELECT count(*) FROM dns_served) + " +
			"(SELECT count(*) FROM dns_server)").Scan(&left)
	}); err != nil || left != 0 {
		t.Errorf("%d rows of servers are left (%v)", left, err)
	}
	m.verify()
}

// A schedule that never comes, or for what is not deployed, is refused by its field.
func TestSchedulesRefused(t *testing.T) {
	m := startAlone(t)
	configuration, _, _, _, _ := m.basics()
	at := "/api/v2/configurations/" + configuration
	d := m.deployment(at)
	elsewhere := m.id("/api/v2/configurations/"+m.id("/api/v2/configurations", `{"name":"other"}`)+"/serverGroups", `{"name":"far"}`)
	future := `"startDateTime":"2999-01-01T00:00:00Z"`
	for more, want := range map[string][3]string{
		`"startDateTime":"2001-01-01T00:00:00Z"`: {"InvalidResourceFieldValue", "startDateTime", "lies in the past"},
		future + `,"interval":"PT5S"`:            {"DurationValueOutsideRange", "interval", "a minute"},
		future + `,"interval":"daily"`:           {"InvalidDurationValue", "interval", ""},
		future + `,"deploymentType":"Quick"`:     {"InvalidEnumValue", "deploymentType", ""},
		future + `,"deploymentServices":["DHCPv4"]`: {"UnsupportedResourceFieldValue", "deploymentServices",
			"DHCPv4 is not deployed"},
		future + `,"deploymentServices":[]`:              {"EmptyFieldValue", "deploymentServices", ""},
		future + `,"servers":[{"id":` + elsewhere + `}]`: {"ResourceNotInConfiguration", "servers", "another configuration"},
	} {
		r := m.do("POST", at+"/schedules", d.scheduled("bad", more))
		if r.StatusCode != 400 || r.text("code") != want[0] || !named(r, want[1]) || !strings.Contains(r.text("message"), want[2]) {
			t.Errorf("%s: %d %s", more, r.StatusCode, r.body)
		}
	}
	m.refused(404, "InlinedResourceNotFound", "servers", "POST", at+"/schedules",
		`{"type":"DeploymentSchedule","name":"x",`+future+`,"deploymentServices":["DNS"],"servers":[{"id":99999999}]}`)
}

// Deployments that ended long ago are taken away, and what is kept of them.
func TestDeploymentsArePruned(t *testing.T) {
	m := startAlone(t)
	configuration, _, _, _, _ := m.basics()
	d := m.deployment("/api/v2/configurations/" + configuration)
	d.ends(`{"type":"ValidationDeployment","service":"DNS"}`, "COMPLETED")
	for want, before := range []time.Time{time.Now().Add(-time.Hour), time.Now().Add(time.Hour)} {
		if n, err := dnspublish.Prune(t.Context(), m.Address, m.Store.Update, before); err != nil || n != want {
			t.Errorf("before %s: %d (%v)", before, n, err)
		}
	}
	if r := m.want(200, "GET", "/api/v2/deployments", ""); r.count() != 0 {
		t.Errorf("there are %s", r.body)
	}
	m.verify()
}

// A deployment of a server group is one of each of its servers, and ends when they have ended.
func TestGroupDeployments(t *testing.T) {
	m := startAlone(t)
	configuration, _, _, _, _ := m.basics()
	at := "/api/v2/configurations/" + configuration
	d := m.deployment(at)
	other := m.id(at+"/servers", `{"type":"Server","name":"second","profile":"DNS_DHCP_SERVER_20","overrideConfigurationLevelDnsValidation":true,`+
		`"dnsZoneValidationEnabled":true,"interfaces":[{"managementAddress":"10.0.0.98"}]}`)
	group := "/api/v2/serverGroups/" + m.id(at+"/serverGroups", `{"name":"pair","servers":[{"id":`+filepath.Base(d.server)+`},{"id":`+other+`}]}`)
	if r := m.want(200, "GET", group+"/servers", ""); r.count() != 2 {
		t.Fatalf("the group has %s", r.body)
	}
	if r := m.want(200, "GET", group+"/deploymentRoles", ""); r.count() != 1 {
		t.Errorf("its roles are %s", r.body)
	}
	m.refused(400, "ServerNotConnected", "second", "POST", group+"/deployments", `{"type":"FullDeployment","service":"DNS"}`)
	id := m.id(group+"/deployments", `{"type":"ValidationDeployment","service":"DNS"}`)
	if message := m.deploymentIs(id, "COMPLETED_WITH_WARNINGS"); !strings.Contains(message, "server "+other+": COMPLETED_WITH_WARNINGS") {
		t.Errorf("it says %q", message)
	}
	if r := m.want(200, "GET", "/api/v2/deployments/"+id+"/deployments", ""); r.count() != 2 {
		t.Errorf("its parts are %s", r.body)
	}
	m.want(200, "PATCH", group, `{"servers":[{"id":`+other+`}]}`)
	if r := m.want(200, "GET", group+"/servers", ""); r.count() != 1 {
		t.Errorf("the group has %s", r.body)
	}
	empty := m.id(at+"/serverGroups", `{"name":"empty"}`)
	m.refused(400, "ServerNotActive", "no servers", "POST", "/api/v2/serverGroups/"+empty+"/deployments", `{"type":"FullDeployment","service":"DNS"}`)
	// What has ended stays as it is, also where a server of it goes.
	ended := m.want(200, "GET", "/api/v2/deployments/"+id, "")
	m.want(204, "DELETE", "/api/v2/servers/"+other, "")
	if r := m.want(200, "GET", "/api/v2/deployments/"+id, ""); r.text("message") != ended.text("message") ||
		r.text("completionDateTime") != ended.text("completionDateTime") {
		t.Errorf("it is %s now", r.body)
	}
	m.verify()
}

// mailServer takes messages, and gives each with its receivers; the first attempt is refused.
func mailServer(t *testing.T) (address string, messages chan string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	messages = make(chan string, 10)
	go func() {
		for n := 0; ; n++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			takeMail(c, n == 0, messages)
		}
	}()
	return l.Addr().String(), messages
}

// takeMail speaks SMTP with one client.
func takeMail(c net.Conn, busy bool, messages chan<- string) {
	defer func() { _ = c.Close() }()
	in := bufio.NewReader(c)
	say := func(text string) { _, _ = io.WriteString(c, text+"\r\n") }
	say("220 mail.test")
	var to []string
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		switch word := strings.ToUpper(strings.Fields(line + " x")[0]); {
		case word == "EHLO" || word == "HELO":
			say("250 mail.test")
		case busy:
			say("451 later")
		case word == "RCPT" && strings.Contains(line, "nobody"):
			say("550 unknown")
		case word == "RCPT":
			to = append(to, strings.TrimSpace(line))
			say("250 ok")
		case word == "DATA":
			say("354 go on")
			var text strings.Builder
			for {
				line, err := in.ReadString('\n')
				if err != nil {
					return
				}
				if line == ".\r\n" {
					break
				}
				text.WriteString(line)
			}
			messages <- strings.Join(to, " ") + "\n" + text.String()
			say("250 taken")
		case word == "QUIT":
			say("221 bye")
			return
		default:
			say("250 ok")
		}
	}
}

// Groups are told of the events that they want to hear of, by mail and by traps, also where the first attempt fails.
func TestNotificationGroups(t *testing.T) {
	slow(t)
	address, messages := mailServer(t)
	mail, err := notify.ParseMail("smtp://" + address + "?from=portolan@example.net")
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	traps, err := notify.ParseTraps("snmp://harbour@" + listener.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	m := startManager(t, func(o *Options) { o.Mail, o.Traps = mail, []*notify.Traps{traps} })
	user := func(name string) string {
		return m.id("/api/v2/users", `{"name":"`+name+`","email":"`+name+`@example.net","securityPrivilege":"NO_ACCESS","accessType":"API","password":"long enough 1"}`)
	}
	ada, grace, nobody := user("ada"), user("grace"), user("nobody")
	group := m.id("/api/v2/groups", `{"name":"operators"}`)
	m.want(201, "POST", "/api/v2/groups/"+group+"/users", `{"id":`+grace+`}`)
	only := `"eventSubscriptions":[{"category":"DEPLOYMENT","eventTypes":["FAILED"]}]`
	id := m.id("/api/v2/notificationGroups", `{"type":"NotificationGroup","name":"on call","notificationType":"SMTP_SERVICE",`+only+`,"subjects":[{"id":`+ada+`},{"id":`+group+`}]}`)
	m.want(201, "POST", "/api/v2/notificationGroups/"+id+"/subjects", `{"id":`+nobody+`}`)
	m.id("/api/v2/notificationGroups", `{"type":"NotificationGroup","notificationType":"SNMP_TRAP_SERVICE",`+only+`}`)
	happens := func(kind, text string) {
		if err := m.Store.Update(context.Background(), store.Author{}, func(tx *store.Tx) error {
			return event.Add(tx, event.Event{EventType: kind, Category: "DEPLOYMENT", SourceName: "ns1", Message: text}, 0)
		}); err != nil {
			t.Fatal(err)
		}
	}
	happens("SUCCESS", "nobody wants to hear this")
	happens("FAILED", "the zone would not go — out")
	buffer := make([]byte, 4096)
	if err := listener.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	n, _, err := listener.ReadFrom(buffer)
	if err != nil {
		t.Fatal(err)
	}
	packet, err := gosnmp.Default.SnmpDecodePacket(buffer[:n])
	if err != nil || packet.Community != "harbour" ||
		!strings.Contains(fmt.Sprintf("%s", packet.Variables[len(packet.Variables)-2].Value), "would not go") {
		t.Errorf("the trap is %+v (%v)", packet, err)
	}
	select {
	case text := <-messages:
		if !strings.Contains(text, "ada@example.net") || !strings.Contains(text, "grace@example.net") || strings.Contains(text, "nobody wants") ||
			!strings.Contains(text, "the zone would not go =E2=80=94 out") || !strings.Contains(text, "Subject: Portolan: DEPLOYMENT FAILED") {
			t.Errorf("the message is\n%s", text)
		}
	case <-time.After(60 * time.Second):
		t.Fatal("nobody is told by mail")
	}
	eventually(t, "nobody is told again", func() bool {
		left := 1
		if err := m.Store.View(context.Background(), func(tx *store.Tx) error {
			return tx.QueryRow("SELECT count(*) FROM notice").Scan(&left)
		}); err != nil {
			t.Fatal(err)
		}
		return left == 0
	})
	m.refused(400, "InvalidEnumValue", "category", "PATCH", "/api/v2/notificationGroups/"+id, `{"eventSubscriptions":[{"category":"WEATHER","eventTypes":[]}]}`, mergePatch)
	plain := startManager(t, func(o *Options) { o.Mail = nil })
	for body, flag := range map[string]string{`{"name":"x","notificationType":"SMTP_SERVICE"}`: "--smtp", `{"notificationType":"SNMP_TRAP_SERVICE"}`: "--snmp-trap"} {
		early := plain.id("/api/v2/notificationGroups", body)
		plain.want(200, "PATCH", "/api/v2/notificationGroups/"+early, `{"eventSubscriptions":[]}`, mergePatch)
		warned := plain.want(200, "GET", "/api/v2/events?"+filter("source.id:"+early+" and eventType:'WARNING'"), "")
		if warned.count() != 1 || !strings.Contains(warned.text("data.0.message"), flag) {
			t.Errorf("nothing warns of a group that cannot be told: %s", warned.body)
		}
	}
}

// A full deployment reaches a service point that serves what came later than this database knows, as where it was restored; and a server
// whose service point falls silent is an event.
func TestDeployedAnewBehindARestore(t *testing.T) {
	m := startAlone(t)
	configuration, _, _, _, _ := m.basics()
	d := m.deployment("/api/v2/configurations/" + configuration)
	d.carries(d.server+"/deployments", `{"type":"FullDeployment","service":"DNS"}`)
	application := m.want(200, "GET", "/user/api/v1/fleetInstances?name=wire", "").text("data.0.applications.0.id")
	number := func() (n int64) {
		if err := m.Store.View(context.Background(), func(tx *store.Tx) error {
			return tx.QueryRow("SELECT number FROM dns_server").Scan(&n)
		}); err != nil {
			t.Fatal(err)
		}
		return n
	}
	later := number() + 1
	serves := zonedata.Revision{Number: later}.String()
	if err := m.Store.Update(context.Background(), store.Author{}, func(tx *store.Tx) error {
		return tx.Write("INSERT INTO report (service_point, sequence, digest, body) VALUES (?, 1, 'd', ?)", d.point,
			`{"applications":[{"id":"`+application+`","content":"`+serves+`"}]}`)
	}); err != nil {
		t.Fatal(err)
	}
	m.deploymentIs(d.last, "COMPLETED")
	d.carries(d.server+"/deployments", `{"type":"FullDeployment","service":"DNS"}`)
	if n := number(); n <= later {
		t.Errorf("the service point serves %d and is to serve %d: it would not ask for it", later, n)
	}
	if err := m.Store.Update(context.Background(), store.Author{}, func(tx *store.Tx) error {
		return serverconfig.PointsMoved(tx, []string{"another", d.point}, "connectionStatus", "NOT_CONNECTED", []string{"it is silent"})
	}); err != nil {
		t.Fatal(err)
	}
	r := m.want(200, "GET", "/api/v2/events?"+filter("category:'SERVER_MONITORING'"), "")
	if r.count() != 1 || r.text("data.0.message") != "Server wire, as a service point, is NOT_CONNECTED: it is silent" ||
		r.text("data.0.eventType") != "WARNING" {
		t.Errorf("the events are %s", r.body)
	}
}
