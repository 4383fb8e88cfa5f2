package webhook_test

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"portolan/client"
	"portolan/internal/testkit/apitest"
)

// receiver takes what webhooks send.
type receiver struct {
	*httptest.Server
	t      *testing.T
	secret string

	mu sync.Mutex
	// refuses is the number of next messages to refuse. changes are the accepted changes as texts, and transactions their numbers in order.
	refuses      int
	changes      []string
	transactions []int64
	more         bool
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{t: t, secret: client.NewWebhookSecret()}
	r.Server = httptest.NewServer(http.HandlerFunc(r.take))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) take(w http.ResponseWriter, rq *http.Request) {
	body, err := io.ReadAll(rq.Body)
	var m client.WebhookMessage
	if err == nil {
		err = client.VerifyWebhook(r.secret, rq.Header, body, time.Now())
	}
	if err == nil {
		err = json.Unmarshal(body, &m)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.t.Errorf("a message: %v: %s", err, body)
	}
	if r.refuses > 0 {
		r.refuses--
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			r.t.Error(err)
			return
		}
		_, _ = conn.Write([]byte("HTTP/1.1 418 not \x00\xff " + strings.Repeat("now ", 1000) + "\r\nContent-Length: 0\r\n\r\n"))
		_ = conn.Close()
		return
	}
	for _, one := range m.Transactions {
		if slices.Contains(r.transactions, one.ID) {
			r.t.Logf("transaction %d came twice: it was not taken in time", one.ID) // as it may
			continue
		}
		r.transactions, r.more = append(r.transactions, one.ID), r.more || one.More
		for _, c := range one.Changes {
			r.changes = append(r.changes, c.OperationType+" "+c.ResourceType+" "+strconv.FormatInt(c.ResourceID, 10))
		}
	}
}

// until waits until what was taken is so.
func (r *receiver) until(what string, is func() bool) {
	r.t.Helper()
	done := func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return is()
	}
	for deadline := time.Now().Add(apitest.Patience); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.t.Fatalf("%s: taken were %v", what, r.changes)
		}
	}
}

// taken gives the changes that were taken.
func (r *receiver) taken() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.changes)
}

func (r *receiver) has(change string) func() bool {
	return func() bool { return slices.Contains(r.changes, change) }
}

// hook makes a webhook that sends to the receiver.
func hook(m *apitest.API, r *receiver, more string) string {
	m.T.Helper()
	return m.ID("/api/v2/webhooks", fmt.Sprintf(`{"type":"Webhook","name":"%s","url":"%s","secret":"%s"%s}`, r.URL, r.URL, r.secret, more))
}

// TestWebhook checks that a webhook receives signed changes in order, and that a message is repeated until it is accepted.
func TestWebhook(t *testing.T) {
	apitest.Slow(t)
	m := startConcurrent(t)
	_, _, zone, block, network := m.Basics()
	all, hosts, below := newReceiver(t), newReceiver(t), newReceiver(t)
	id := hook(m, all, "")
	hook(m, hosts, `,"collections":["resourceRecords"]`)
	hook(m, below, `,"parent":`+network)
	host := m.ID("/api/v2/zones/"+zone+"/resourceRecords", `{"type":"HostRecord","name":"h","addresses":[{"address":"10.0.0.200"}]}`)
	all.until("a host", all.has("ADD HostRecord "+host))
	hosts.until("a host", hosts.has("ADD HostRecord "+host))
	address := m.Want(200, "GET", "/api/v2/networks/"+network+"/addresses?"+apitest.Filter("address:'10.0.0.200'"), "").Text("data.0.id")
	below.until("an address", below.has("ADD IPv4Address "+address))
	for _, change := range below.taken() { // that of the gateway may come before it on PostgreSQL
		if !strings.HasPrefix(change, "ADD IPv4Address") {
			t.Errorf("below the network came %s", change)
		}
	}
	if got := hosts.taken(); len(got) != 1 {
		t.Errorf("of records came %v", got)
	}
	hook := m.Want(200, "GET", "/api/v2/webhooks/"+id, "")
	if strings.Contains(string(hook.Body), all.secret) || hook.Get("secret") != nil || hook.Text("state") != "RUNNING" {
		t.Errorf("the webhook is shown as %s", hook.Body)
	}
	if r := m.Want(200, "GET", "/api/v2/transactions?limit=1000&embed=operations", ""); strings.Contains(string(r.Body), all.secret) {
		t.Error("the history has the secret")
	}
	// A refused message is repeated in its order, and the errors are reported.
	all.mu.Lock()
	all.refuses = 2
	all.mu.Unlock()
	first := m.ID("/api/v2/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"10.1.0.0/24"}`)
	awaitMember(m, "/api/v2/webhooks/"+id, "state", "FAILING")
	if r := m.Want(200, "GET", "/api/v2/webhooks/"+id, ""); !strings.Contains(r.Text("message"), "418 not") ||
		len(r.Text("message")) > 400 || r.Text("failures") == "0" {
		t.Errorf("the webhook is %s", r.Body)
	}
	second := m.ID("/api/v2/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"10.2.0.0/24"}`)
	all.until("both networks", func() bool {
		return all.has("ADD IPv4Network "+first)() && all.has("ADD IPv4Network "+second)()
	})
	all.mu.Lock()
	sorted := slices.IsSorted(all.transactions)
	all.mu.Unlock()
	if !sorted && os.Getenv(apitest.OnPostgres) == "" {
		t.Errorf("the transactions came as %v", all.transactions)
	}
	awaitMember(m, "/api/v2/webhooks/"+id, "state", "RUNNING")
	events := m.Want(200, "GET", "/api/v2/events?"+apitest.Filter("source.id:"+id), "")
	if !strings.Contains(string(events.Body), "rejects messages") || !strings.Contains(string(events.Body), "again") {
		t.Errorf("the events are %s", events.Body)
	}
	// Disabled it is sent nothing, and gets it when it is enabled again.
	m.Want(200, "PATCH", "/api/v2/webhooks/"+id, `{"enabled":false}`)
	awaitMember(m, "/api/v2/webhooks/"+id, "state", "DISABLED")
	third := m.ID("/api/v2/blocks/"+block+"/networks", `{"type":"IPv4Network","range":"10.3.0.0/24"}`)
	hosts.until("a second host", func() bool {
		m.ID("/api/v2/zones/"+zone+"/resourceRecords", `{"type":"TXTRecord","name":"h","text":"`+rand.Text()+`"}`)
		return len(hosts.changes) > 2
	})
	m.Want(200, "PATCH", "/api/v2/webhooks/"+id, `{"enabled":true}`)
	all.until("the third network", all.has("ADD IPv4Network "+third))
	// Of a transaction with very many changes some are sent.
	var list []string
	for i := range 1100 {
		list = append(list, `{"type":"IPv4Network","range":"10.`+strconv.Itoa(20+i/250)+`.`+strconv.Itoa(i%250)+`.0/28"}`)
	}
	m.Want(201, "POST", "/api/v2/blocks/"+block+"/networks", "["+strings.Join(list, ",")+"]")
	all.until("many networks", func() bool { return all.more })
	// A deleted one is sent nothing more, and does not come back without its secret.
	m.Want(204, "DELETE", "/api/v2/webhooks/"+id, "")
	m.Refused(409, "UndoConflict", "Webhook", "POST", "/api/v2/transactions", `{"transactionType":"UNDO","transactionId":`+m.LastTransaction()+`}`)
	all.until("nothing more", func() bool { // what is on its way may still come
		last := "ADD TXTRecord " + m.ID("/api/v2/zones/"+zone+"/resourceRecords", `{"type":"TXTRecord","name":"last","text":"`+rand.Text()+`"}`)
		hosts.until("the last record", hosts.has(last))
		return !slices.Contains(all.changes, last)
	})
}

// TestWebhookStops checks that a webhook that would miss changes is stopped with a reason, and continues when an administrator resumes it.
func TestWebhookStops(t *testing.T) {
	m := startConcurrent(t)
	configuration, _, _, _, _ := m.Basics()
	r := newReceiver(t)
	id := hook(m, r, `,"enabled":false`)
	m.ID("/api/v2/configurations/"+configuration+"/blocks", `{"type":"IPv4Block","range":"172.16.0.0/12"}`)
	m.Forget()
	m.Want(200, "PATCH", "/api/v2/webhooks/"+id, `{"enabled":true}`)
	awaitMember(m, "/api/v2/webhooks/"+id, "state", "STOPPED")
	if r := m.Want(200, "GET", "/api/v2/webhooks/"+id, ""); !strings.Contains(r.Text("message"), "set enabled") {
		t.Errorf("it is %s", r.Body)
	}
	if r := m.Want(200, "GET", "/api/v2/events?"+apitest.Filter("source.id:"+id), ""); r.Text("data.0.eventType") != "ERROR" {
		t.Errorf("the events are %s", r.Body)
	}
	m.Want(200, "PATCH", "/api/v2/webhooks/"+id, `{"enabled":true}`)
	awaitMember(m, "/api/v2/webhooks/"+id, "state", "RUNNING")
	block := m.ID("/api/v2/configurations/"+configuration+"/blocks", `{"type":"IPv4Block","range":"192.168.0.0/16"}`)
	r.until("what changed then", r.has("ADD IPv4Block "+block))
	m.Verify()
}

// awaitMember waits until a member of an answer has a value.
func awaitMember(m *apitest.API, path, member, value string) {
	m.T.Helper()
	for deadline := time.Now().Add(apitest.Patience); ; time.Sleep(5 * time.Millisecond) {
		r := m.Want(200, "GET", path, "")
		if r.Text(member) == value {
			return
		}
		if time.Now().After(deadline) {
			m.T.Fatalf("%s is %s, want %s", member, r.Body, value)
		}
	}
}

// TestWebhookRefusals checks that a webhook that cannot work is refused, and that only administrators see and create webhooks.
func TestWebhookRefusals(t *testing.T) {
	m := startConcurrent(t)
	_, _, _, _, network := m.Basics()
	secret := client.NewWebhookSecret()
	whole := func(member, value string) string {
		members := map[string]string{"type": `"Webhook"`, "name": `"n"`, "url": `"https://hooks.example/x"`, "secret": `"` + secret + `"`}
		members[member] = value
		var list []string
		for name, value := range members {
			list = append(list, `"`+name+`":`+value)
		}
		return "{" + strings.Join(list, ",") + "}"
	}
	for _, c := range []struct{ member, value, code, word string }{
		{"url", `"ftp://x/"`, "InvalidResourceFieldValue", "url"}, {"url", `"https:///x"`, "InvalidResourceFieldValue", "url"}, {"url", `"https://:80/x"`, "InvalidResourceFieldValue", "url"}, {"url", `""`, "", "url"},
		{"url", `"https://user:password@x/"`, "InvalidResourceFieldValue", "user"}, {"url", `"https://x/#y"`, "InvalidResourceFieldValue", "fragment"},
		{"url", `"https://x:port/"`, "InvalidResourceFieldValue", "url"},
		{"secret", `"short"`, "InvalidResourceFieldValue", "whsec_"}, {"secret", `"whsec_QQ=="`, "InvalidResourceFieldValue", "24"}, {"secret", `null`, "", "secret"},
		{"collections", `["nothing"]`, "InvalidResourceFieldValue", "nothing"}, {"collections", `["events"]`, "InvalidResourceFieldValue", "events"},
		{"collections", `["sessions"]`, "InvalidResourceFieldValue", "sessions"},
		{"parent", `0`, "", "parent"}, {"parent", `"x"`, "", "parent"}, {"name", `""`, "", "name"}, {"enabled", `1`, "", "enabled"},
	} {
		if r := m.Want(400, "POST", "/api/v2/webhooks", whole(c.member, c.value)); !strings.Contains(r.Text("message"), c.word) ||
			c.code != "" && r.Text("code") != c.code {
			t.Errorf("%s %s: %s", c.member, c.value, r.Body)
		}
	}
	m.Refused(404, "InlinedResourceNotFound", "parent", "POST", "/api/v2/webhooks", whole("parent", "999999999"))
	id := m.ID("/api/v2/webhooks", whole("parent", network))
	m.Refused(409, "ResourceAlreadyExists", "n", "POST", "/api/v2/webhooks", whole("enabled", "false"))
	m.Want(200, "PATCH", "/api/v2/webhooks/"+id, `{"parent":null,"enabled":false}`)
	m.ID("/api/v2/users", `{"type":"User","name":"reader","password":"a-long-password","email":"r@example.net","securityPrivilege":"NO_ACCESS",`+
		`"historyPrivilege":"HIDE","accessType":"API"}`)
	reader := "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte("reader:a-long-password"))
	for path, status := range map[string]int{"/api/v2/webhooks/" + id: 404, "/api/v2/" + id: 404, "/api/v2/changes": 403} {
		m.Want(status, "GET", path, "", reader)
	}
	if r := m.Want(200, "GET", "/api/v2/webhooks", "", reader); r.Text("count") != "0" {
		t.Errorf("a reader sees %s", r.Body)
	}
	m.Want(403, "POST", "/api/v2/webhooks", whole("name", `"mine"`), reader)
	m.ID("/api/v2/users", `{"type":"User","name":"lister","password":"a-long-password","email":"l@example.net","securityPrivilege":"NO_ACCESS",`+
		`"historyPrivilege":"VIEW_HISTORY_LIST","accessType":"API"}`)
	m.Want(403, "GET", "/api/v2/changes", "", "Authorization: Basic "+base64.StdEncoding.EncodeToString([]byte("lister:a-long-password")))
	// No more than are sent to.
	var many []string
	for i := range 999 {
		many = append(many, fmt.Sprintf(`{"type":"Webhook","name":"m%d","url":"http://127.0.0.1:9/","secret":"%s","enabled":false}`, i, secret))
	}
	m.Want(201, "POST", "/api/v2/webhooks", "["+strings.Join(many, ",")+"]")
	m.Refused(409, "TooManyWebhooks", "1000", "POST", "/api/v2/webhooks", whole("name", `"too many"`))
}

// TestWebhookIsDisabledAtOnce checks that a change of a webhook applies from the next message on, as soon as the change is acknowledged.
func TestWebhookIsDisabledAtOnce(t *testing.T) {
	m := startConcurrent(t)
	one, other := newReceiver(t), newReceiver(t)
	id := hook(m, one, "")
	hook(m, other, "")
	first := m.ID("/api/v2/configurations", `{"name":"first"}`)
	one.until("what came first", one.has("ADD Configuration "+first))
	m.Want(200, "PATCH", "/api/v2/webhooks/"+id, `{"enabled":false}`, apitest.MergePatch)
	second := m.ID("/api/v2/configurations", `{"name":"second"}`)
	third := m.ID("/api/v2/configurations", `{"name":"third"}`)
	other.until("what came last", other.has("ADD Configuration "+third))
	for _, late := range []string{second, third} {
		if slices.Contains(one.taken(), "ADD Configuration "+late) {
			t.Errorf("a webhook that was disabled was sent %v", one.taken())
		}
	}
}

// TestForbiddenURLsAreRefused checks that stored URLs and redirects do not make the manager connect to forbidden addresses, such as
// cloud metadata services.
func TestForbiddenURLsAreRefused(t *testing.T) {
	m := start(t)
	var inside atomic.Int64
	secret := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { inside.Add(1) }))
	t.Cleanup(secret.Close)
	sends := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, secret.URL+"/metadata", http.StatusTemporaryRedirect)
	}))
	t.Cleanup(sends.Close)
	for name, url := range map[string]string{"clouds": "http://169.254.169.254/latest/meta-data", "on": sends.URL} {
		m.ID("/api/v2/webhooks", `{"name":"`+name+`","url":"`+url+`","secret":"`+client.NewWebhookSecret()+`"}`)
	}
	m.ID("/api/v2/configurations", `{"name":"news"}`)
	for name, says := range map[string]string{"clouds": "169.254.169.254", "on": "307"} {
		apitest.Eventually(t, "the webhook "+name+" fails", func() bool {
			r := m.Want(200, "GET", "/api/v2/webhooks?"+apitest.Filter("name:'"+name+"'"), "")
			return r.Text("data.0.state") == "FAILING" && strings.Contains(r.Text("data.0.message"), says)
		})
	}
	if n := inside.Load(); n != 0 {
		t.Errorf("%d requests were sent on", n)
	}
}
