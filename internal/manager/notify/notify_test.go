package notify_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"portolan/internal/engine/event"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
	"portolan/internal/manager/notify"
	"portolan/internal/testkit/apitest"

	"github.com/gosnmp/gosnmp"
)

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

// TestNotificationGroups checks that groups are notified of their events by mail and by traps, also if the first attempt fails.
func TestNotificationGroups(t *testing.T) {
	apitest.Slow(t)
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
	m := apitest.NewConcurrent(t, notify.Register)
	resource.Provide(m.Address.Provisions, notify.Options{Mail: true, Traps: true})
	m.Work(notify.NewSender(m.Address, mail, []*notify.Traps{traps}, apitest.Log()).Run)
	user := func(name string) string {
		return m.ID("/api/v2/users", `{"name":"`+name+`","email":"`+name+`@example.net","securityPrivilege":"NO_ACCESS","accessType":"API","password":"long enough 1"}`)
	}
	ada, grace, nobody := user("ada"), user("grace"), user("nobody")
	group := m.ID("/api/v2/groups", `{"name":"operators"}`)
	m.Want(201, "POST", "/api/v2/groups/"+group+"/users", `{"id":`+grace+`}`)
	only := `"eventSubscriptions":[{"category":"DEPLOYMENT","eventTypes":["FAILED"]}]`
	id := m.ID("/api/v2/notificationGroups", `{"type":"NotificationGroup","name":"on call","notificationType":"SMTP_SERVICE",`+only+`,"subjects":[{"id":`+ada+`},{"id":`+group+`}]}`)
	m.Want(201, "POST", "/api/v2/notificationGroups/"+id+"/subjects", `{"id":`+nobody+`}`)
	m.ID("/api/v2/notificationGroups", `{"type":"NotificationGroup","notificationType":"SNMP_TRAP_SERVICE",`+only+`}`)
	happens := func(kind, text string) {
		if err := m.Store.Update(context.Background(), store.Author{}, func(tx *store.Tx) error {
			return event.Add(tx, event.Event{EventType: kind, Category: "DEPLOYMENT", SourceName: "ns1", Message: text}, 0)
		}); err != nil {
			t.Fatal(err)
		}
	}
	happens("SUCCESS", "a success without subscribers")
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
		if !strings.Contains(text, "ada@example.net") || !strings.Contains(text, "grace@example.net") ||
			strings.Contains(text, "without subscribers") ||
			!strings.Contains(text, "the zone would not go =E2=80=94 out") || !strings.Contains(text, "Subject: Portolan: DEPLOYMENT FAILED") {
			t.Errorf("the message is\n%s", text)
		}
	case <-time.After(60 * time.Second):
		t.Fatal("no mail is sent")
	}
	apitest.Eventually(t, "the queue is empty", func() bool {
		left := 1
		if err := m.Store.View(context.Background(), func(tx *store.Tx) error {
			return tx.QueryRow("SELECT count(*) FROM notice").Scan(&left)
		}); err != nil {
			t.Fatal(err)
		}
		return left == 0
	})
	select {
	case extra := <-messages:
		t.Errorf("a second message is sent:\n%s", extra)
	default:
	}
	m.Refused(400, "InvalidEnumValue", "category", "PATCH", "/api/v2/notificationGroups/"+id, `{"eventSubscriptions":[{"category":"WEATHER","eventTypes":[]}]}`, apitest.MergePatch)
	plain := apitest.NewConcurrent(t, notify.Register)
	for body, flag := range map[string]string{`{"name":"x","notificationType":"SMTP_SERVICE"}`: "--smtp", `{"notificationType":"SNMP_TRAP_SERVICE"}`: "--snmp-trap"} {
		early := plain.ID("/api/v2/notificationGroups", body)
		plain.Want(200, "PATCH", "/api/v2/notificationGroups/"+early, `{"eventSubscriptions":[]}`, apitest.MergePatch)
		warned := plain.Want(200, "GET", "/api/v2/events?"+apitest.Filter("source.id:"+early+" and eventType:'WARNING'"), "")
		if warned.Count() != 1 || !strings.Contains(warned.Text("data.0.message"), flag) {
			t.Errorf("nothing warns of a group that cannot be told: %s", warned.Body)
		}
	}
}
