package server

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"portolan/internal/engine/store"
	"portolan/internal/manager/history"
	"portolan/internal/testkit/apitest"
)

// TestHistoryRecordsAuthors checks that the history records the user, the credential, the address and the program of each change, and that
// filters find changes by each of them.
func TestHistoryRecordsAuthors(t *testing.T) {
	m := startAlone(t)
	created := m.Want(201, "POST", "/api/v2/configurations", `{"name":"by token"}`, "User-Agent: terraform/1.9 (x\x80y)",
		"x-bcn-change-control-comment: ticket 7")
	user := m.Want(200, "GET", "/api/v2/users?"+filter("name:eq('admin')"), "").Text("data.0.id")
	for _, about := range []string{"client:startsWith('terraform/1.9')", "remoteAddress:eq('127.0.0.1')", "credential:startsWith('token ')",
		"comment:contains('ticket 7')", "operation:eq('ADD_CONFIGURATION')", "creationDateTime:ge('2020-01-01T00:00:00Z')",
		"user.id:eq(" + user + ")",
		"principal:contains('admin')"} {
		r := m.Want(200, "GET", "/api/v2/transactions?limit=1&orderBy=desc(id)&"+filter(about), "")
		if r.Text("data.0.client") != "terraform/1.9 (xy)" || r.Text("data.0.remoteAddress") != "127.0.0.1" ||
			!strings.HasPrefix(r.Text("data.0.credential"), "token ") {
			t.Errorf("%s: %s", about, r.Body)
		}
	}
	if r := m.Want(200, "GET", "/api/v2/configurations/"+created.Text("id")+"/transactions", ""); r.Count() != 1 ||
		r.Text("data.0.comment") != "ticket 7" {
		t.Errorf("the history of the configuration: %s", r.Body)
	}
	if r := m.Want(200, "GET", "/api/v2/transactions?"+filter("creationDateTime:gt('2100-01-01T00:00:00Z')"), ""); r.Count() != 0 {
		t.Errorf("there are transactions of the future: %s", r.Body)
	}
	// A session, and a password.
	session := m.Want(201, "POST", "/api/v2/sessions", `{"username":"admin","password":"`+adminPassword+`"}`, "Authorization:")
	basic := "Authorization: Basic " + session.Text("basicAuthenticationCredentials")
	m.Want(201, "POST", "/api/v2/configurations", `{"name":"by session"}`, basic)
	m.Want(201, "POST", "/api/v2/configurations", `{"name":"by password"}`, apitest.BasicAuth("admin", adminPassword))
	r := m.Want(200, "GET", "/api/v2/transactions?limit=2&orderBy=desc(id)", "")
	if r.Text("data.0.credential") != "password" || r.Text("data.1.credential") != "session "+session.Text("id") {
		t.Errorf("the credentials are %s", r.Body)
	}
}

// TestHistoryIsForwarded checks that signed heads and transactions are sent to another system, each transaction once while there are no
// errors.
func TestHistoryIsForwarded(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	messages := make(chan string, 1000)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				in := bufio.NewReader(conn)
				for {
					var n int
					if _, err := fmt.Fscanf(in, "%d ", &n); err != nil {
						return
					}
					text := make([]byte, n)
					for got := 0; got < n; {
						k, err := in.Read(text[got:])
						if err != nil {
							return
						}
						got += k
					}
					messages <- string(text)
				}
			}()
		}
	}()
	heads := filepath.Join(t.TempDir(), "heads")
	collector, err := history.ParseSyslog("tcp://" + listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	m := startOnce(t, func(o *Options) { o.HistoryHeads, o.HistorySyslog = heads, collector })
	m.Want(201, "POST", "/api/v2/configurations", `{"name":"elsewhere"}`)
	seen, head := 0, false
	for deadline := time.After(apitest.Patience); seen == 0 || !head; { // PostgreSQL's feed waits for transactions of other databases
		select {
		case text := <-messages:
			if !strings.HasPrefix(text, "<109>1 20") {
				t.Errorf("the message is worded %q", text)
			}
			if strings.Contains(text, " ADD_CONFIGURATION - {") && strings.Contains(text, `"remoteAddress":"127.0.0.1"`) {
				seen++
			}
			head = head || strings.Contains(text, " HISTORY_HEAD - {")
		case <-deadline:
			t.Fatalf("%d transactions and a head (%v) have come", seen, head)
		}
	}
	if seen != 1 {
		t.Errorf("the transaction has come %d times", seen)
	}
	kept, err := os.ReadFile(heads)
	if err != nil {
		t.Fatal(err)
	}
	compare := func() (faults []string) {
		t.Helper()
		if err := m.Store.View(t.Context(), func(tx *store.Tx) error {
			n, _, err := history.Compare(tx, bytes.NewReader(kept), "", func(format string, args ...any) {
				faults = append(faults,
					fmt.Sprintf(format, args...))
			})
			if n == 0 {
				t.Error("there is no head")
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
		return faults
	}
	if faults := compare(); len(faults) > 0 {
		t.Errorf("nothing was done, and %q", faults)
	}
	figure := func(line string) bool {
		return strings.Contains(string(m.Want(200, "GET", "/metrics", "", "Authorization:").Body), "\n"+line)
	}
	for deadline := time.Now().Add(3 * time.Minute); !figure("portolan_history_unsent 0\n"); { // as above
		if time.Now().After(deadline) {
			t.Fatal("the figures never say that all was sent")
		}
		time.Sleep(5 * time.Millisecond) // between two looks
	}
	if !figure("portolan_history_failures_total 0\n") || !figure("portolan_history_unsigned ") {
		t.Errorf("the figures are %s", m.Want(200, "GET", "/metrics", "", "Authorization:").Body)
	}
	// Somebody changes the first transaction, and makes the whole chain anew, signed heads included.
	if err := m.Store.Update(t.Context(), store.Author{}, func(tx *store.Tx) error {
		for _, statement := range []string{"UPDATE txn SET user_id = 77 WHERE id = (SELECT min(id) FROM txn)", "DELETE FROM history_head",
			"DELETE FROM history_link", "DELETE FROM history_due", "INSERT INTO history_due SELECT id FROM txn"} {
			if err := tx.Write(statement); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if faults := compare(); len(faults) == 0 {
		t.Error("a changed history with a recomputed chain is not detected")
	}
	apitest.Eventually(t, "the figures say that this is not signed", func() bool {
		return figure("portolan_history_failures_total ") && !figure("portolan_history_failures_total 0\n")
	})
}

// TestSyslogAddresses checks that invalid syslog addresses are refused.
func TestSyslogAddresses(t *testing.T) {
	for _, text := range []string{"", "loghost", "http://loghost", "udp://", "tcp://loghost/x", "tls://a@loghost", "udp://loghost?x=1"} {
		if _, err := history.ParseSyslog(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}
