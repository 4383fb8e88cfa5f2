package test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"syscall"
	"testing"

	dns "portolan/internal/base/dnsmsg"
	"portolan/internal/testkit/pgtest"
)

// asking queries a constant name until stop is called. stop returns the wrong answers and the number of right ones. A missing answer is not
// wrong, because clients then ask another server.
func (a *authority) asking(name, want string) (stop func() (wrong []string, right int)) {
	done, ended := make(chan struct{}), make(chan struct{})
	var mu sync.Mutex
	var wrong []string
	right := 0
	go func() {
		defer close(ended)
		for {
			select {
			case <-done:
				return
			default:
			}
			got := a.asks(name, dns.TypeA)
			mu.Lock()
			switch {
			case got == want:
				right++
			case strings.HasPrefix(got, "NOERROR"), strings.HasPrefix(got, "NXDOMAIN"), strings.HasPrefix(got, "REFUSED"):
				wrong = append(wrong, got)
			}
			mu.Unlock()
		}
	}()
	return func() ([]string, int) {
		close(done)
		<-ended
		return wrong, right
	}
}

// TestKillsOnTheWire kills processes while names change. It checks that no answer is wrong and that all acknowledged changes are answered
// in the end.
func TestKillsOnTheWire(t *testing.T) {
	t.Parallel()
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		killsOnTheWire(t, "", nil)
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		database := pgtest.New(t)
		killsOnTheWire(t, database.URL("postgres"), func() {
			if err := errors.Join(database.Kill(), database.Revive()); err != nil {
				t.Error(err)
			}
		})
	})
	t.Run("BIND", func(t *testing.T) {
		t.Parallel()
		args, _, kill := bindBeside(t)
		killsOnTheWire(t, "", kill, args...)
	})
}

// killsOnTheWire randomly kills the manager, the agent and the application, and calls other if it is not nil.
func killsOnTheWire(t *testing.T, database string, other func(), args ...string) {
	t.Helper()
	a, zone, _, _ := liveServer(t, database, args...)
	m := a.m
	host := func(n int) string {
		return fmt.Sprintf(`{"type":"HostRecord","name":"n%d","addresses":[{"type":"IPv4Address","address":"10.0.0.%d"}]}`, n, 10+n)
	}
	path := "/zones/" + zone + "/resourceRecords"
	m.id(path, host(0))
	a.answersWith("n0.harbour.example.", dns.TypeA, "NOERROR 10.0.0.10")
	stop := a.asking("n0.harbour.example.", "NOERROR 10.0.0.10")
	random := rand.New(rand.NewPCG(9, 10)) //nolint:gosec // a test
	acknowledged := []int{0}
	for n := 1; n <= 40; n++ {
		if n%4 == 0 {
			kinds := 3
			if other != nil {
				kinds = 5
			}
			switch random.IntN(kinds) {
			case 0:
				_ = m.process.signal(syscall.SIGKILL)
				m.start()
			case 1:
				_ = a.process.signal(syscall.SIGKILL)
				a.start("")
			case 2:
				_ = syscall.Kill(a.pid(), syscall.SIGKILL) // it may be restarting
			default:
				other()
			}
		}
		if status, _, err := m.call("POST", path, host(n)); err == nil && status == 201 {
			acknowledged = append(acknowledged, n)
		}
		if n%4 == 3 && database == "" { // with PostgreSQL, work of a killed manager waits until its lease expires
			last := acknowledged[len(acknowledged)-1]
			a.answersWith(fmt.Sprintf("n%d.harbour.example.", last), dns.TypeA, fmt.Sprintf("NOERROR 10.0.0.%d", 10+last))
		}
	}
	for _, n := range acknowledged {
		a.answersWith(fmt.Sprintf("n%d.harbour.example.", n), dns.TypeA, fmt.Sprintf("NOERROR 10.0.0.%d", 10+n))
	}
	wrong, right := stop()
	if len(wrong) > 0 || right == 0 {
		t.Errorf("%d answers were right, and these wrong: %q", right, wrong)
	}
	t.Logf("%d answers, %d changes", right, len(acknowledged))
	a.nothingElse()
	if text := m.check(); !strings.Contains(text, "no faults found") {
		t.Error(text)
	}
}
