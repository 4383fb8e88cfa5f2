package servicepoint

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"portolan/internal/wire/checkin"
)

// managerOf is a test manager. It answers check-ins, holds waiting ones, and can be unreachable.
type managerOf struct {
	mu sync.Mutex
	// The following fields are guarded by mu: whether it is unreachable, the times of requests meanwhile, the number of reports, and the
	// times of answers.
	gone    bool
	asked   []time.Time
	reports int
	answers []time.Time
	// desired is the desired state.
	desired checkin.Desired
	// spread is the spread in its answers.
	spread time.Duration
	// refuses is the refusal code of all answers, if not empty; garbage is the text of all answers.
	refuses, garbage string
}

var errGone = errors.New("connection refused")

// RoundTrip answers a check-in.
func (m *managerOf) RoundTrip(rq *http.Request) (*http.Response, error) {
	var asked checkin.Request
	if err := json.NewDecoder(rq.Body).Decode(&asked); err != nil {
		return nil, err
	}
	m.mu.Lock()
	if m.gone {
		m.asked = append(m.asked, time.Now())
		m.mu.Unlock()
		return nil, errGone
	}
	if m.refuses != "" {
		body := io.NopCloser(strings.NewReader(`{"status":410,"code":"` + m.refuses + `","message":"no"}`))
		m.mu.Unlock()
		return &http.Response{StatusCode: http.StatusGone, Body: body, Header: http.Header{}, Request: rq}, nil
	}
	if m.garbage != "" {
		m.asked = append(m.asked, time.Now())
		m.desired.Generation++
		text := strings.ReplaceAll(m.garbage, "NEXT", strconv.FormatInt(m.desired.Generation, 10))
		m.mu.Unlock()
		return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(text)), Header: http.Header{}, Request: rq}, nil
	}
	answer := checkin.Answer{Desired: m.desired.Generation, IntervalSeconds: 30, SpreadMillis: m.spread.Milliseconds(),
		Sequence: asked.Sequence}
	if asked.Desired != m.desired.Generation {
		answer.State = &m.desired
	}
	if asked.Report != nil {
		m.reports++
	}
	m.mu.Unlock()
	if answer.State == nil && asked.WaitSeconds > 0 {
		wait := time.NewTimer(time.Duration(asked.WaitSeconds) * time.Second)
		defer wait.Stop()
		select {
		case <-wait.C:
		case <-rq.Context().Done():
			return nil, rq.Context().Err()
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.gone {
		return nil, errGone
	}
	m.answers = append(m.answers, time.Now())
	body, err := json.Marshal(answer)
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(bytes.NewReader(body)), Header: http.Header{}, Request: rq}, err
}

func (m *managerOf) set(gone bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.gone = gone
}

// checkingIn is an enrolled agent that only checks in, with a test manager.
func checkingIn(t *testing.T, ctx context.Context, m *managerOf) *Agent {
	t.Helper()
	a, err := New(Options{State: t.TempDir(), Endpoint: "https://manager.example", Key: keyOf(t), Version: "1",
		Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.lock.Close() })
	a.identity = &identity{ID: "edge", Endpoint: "https://manager.example"}
	a.manager = &manager{base: "https://manager.example", http: &http.Client{Transport: m}}
	a.probes = &probes{log: a.log, reasons: map[string]string{}}
	a.supervisor = &supervisor{dir: a.options.State, log: a.log, changed: a.notifyChange, ctx: ctx, applied: make(chan struct{}),
		closesConnections: true, processes: map[string]*process{}, removing: map[string]*process{}}
	a.supervisor.streams = newStreams(a.options.State, a.log, a.postBatch)
	a.anycast = a.newAnnouncer()
	a.end = func(error) {}
	return a
}

// keyOf returns a registration key.
func keyOf(t *testing.T) string {
	t.Helper()
	var key checkin.RegistrationKey
	return key.String()
}

// TestManagerUnavailableForAnHour simulates an hour without the manager in virtual time. The desired state is unchanged, also on the disk.
// The agent retries at limited intervals, reconnects within a minute, and sends no unchanged report.
func TestManagerUnavailableForAnHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		m := &managerOf{desired: checkin.Desired{Generation: 7, Applications: []checkin.DesiredApplication{}, NTPServers: []string{}},
			spread: 3 * time.Second}
		a := checkingIn(t, ctx, m)
		var group sync.WaitGroup
		group.Go(func() { a.checkIn(ctx) })
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if a.supervisor.desiredState().Generation != 7 || m.reports == 0 {
			t.Fatalf("it is to run %+v, and has reported %d times", a.supervisor.desiredState(), m.reports)
		}
		reports := m.reports
		m.set(true)
		time.Sleep(time.Hour)
		synctest.Wait()
		a.mu.Lock()
		connected := a.isConnected()
		a.mu.Unlock()
		if connected {
			t.Error("without a manager for an hour it says that it is connected")
		}
		if kept, err := a.state.loadDesired(); err != nil || kept.Generation != 7 || a.supervisor.desiredState().Generation != 7 {
			t.Errorf("what is to run is %+v, %v", kept, err)
		}
		// With pauses of 15 to 45 seconds there are 80 to 240 attempts.
		if n := len(m.asked); n < 60 || n > 260 {
			t.Errorf("in an hour it asked %d times", n)
		}
		for i := range m.asked {
			if i > 0 && m.asked[i].Sub(m.asked[i-1]) > time.Minute {
				t.Errorf("it did not ask for %v", m.asked[i].Sub(m.asked[i-1]))
			}
		}
		m.set(false)
		back := time.Now()
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		m.mu.Lock()
		first := time.Time{}
		for _, at := range m.answers {
			if first.IsZero() && at.After(back) {
				first = at
			}
		}
		if first.IsZero() || first.Sub(back) > time.Minute+30*time.Second { // the answer itself is held for an interval
			t.Errorf("the manager was found again at %v, %v after it was back", first, first.Sub(back))
		}
		if m.reports != reports {
			t.Errorf("%d reports were sent that the manager has", m.reports-reports)
		}
		m.mu.Unlock()
		cancel()
		group.Wait()
	})
}

// afterAMinute calls fn in virtual time when an agent with generation 7 has checked in for a minute, then continues.
func afterAMinute(t *testing.T, fn func(m *managerOf, a *Agent)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		m := &managerOf{desired: checkin.Desired{Generation: 7, Applications: []checkin.DesiredApplication{}}}
		a := checkingIn(t, ctx, m)
		var group sync.WaitGroup
		group.Go(func() { a.checkIn(ctx) })
		time.Sleep(time.Minute)
		synctest.Wait()
		fn(m, a)
		cancel()
		group.Wait()
	})
}

// TestManagerAnswersGarbage checks that invalid answers do not change the desired state, and that the agent pauses between requests.
func TestManagerAnswersGarbage(t *testing.T) {
	const state = `"state":{"generation":NEXT,"applications":[]}`
	for text, takes := range map[string]bool{
		"<html>": false, " ": false, "null": false, "[]": false, "{}": false, `{"desired":-1,"intervalSeconds":-5,"spreadMillis":-9}`: false,
		`{"state":{}}`: false, `{"desired":NEXT,"state":{}}`: false, `{"desired":NEXT,"state":{"generation":NEXT}}`: false,
		`{"desired":1,` + state + `}`: false, `{"desired":-7,"state":{"generation":-7,"applications":[]}}`: false,
		`{"desired":NEXT,` + state + `}`: true, // different each time
	} {
		afterAMinute(t, func(m *managerOf, a *Agent) {
			m.mu.Lock()
			m.garbage = text
			m.mu.Unlock()
			time.Sleep(10 * time.Minute)
			synctest.Wait()
			m.mu.Lock()
			asked := len(m.asked)
			m.mu.Unlock()
			kept, err := a.state.loadDesired()
			if runs := a.supervisor.desiredState().Generation; err != nil || kept.Generation != runs || (runs != 7) != takes {
				t.Errorf("%s: it is to run generation %d, and keeps %+v, %v", text, runs, kept, err)
			}
			if asked < 5 || asked > 11*60 {
				t.Errorf("%s: it has asked %d times in ten minutes", text, asked)
			}
		})
	}
}

// TestNodeRemoved checks that a machine stops its applications and clears the stored state if its node or service point was deleted or
// moved to another machine. A machine that the manager does not know continues.
func TestNodeRemoved(t *testing.T) {
	for code, runs := range map[string]int64{checkin.NodeRemoved: 0, checkin.ServicePointDeleted: 0, checkin.OtherMachine: 0,
		"ServicePointUnknown": 7} {
		afterAMinute(t, func(m *managerOf, a *Agent) {
			m.mu.Lock()
			m.refuses = code
			m.mu.Unlock()
			time.Sleep(time.Minute)
			synctest.Wait()
			if kept, err := a.state.loadDesired(); err != nil || kept.Generation != runs || a.supervisor.desiredState().Generation != runs {
				t.Errorf("refused with %s it is to run %+v, %v", code, kept, err)
			}
			if a.registration.State != deregistered {
				t.Errorf("refused with %s it is %s", code, a.registration.State)
			}
		})
	}
}

// TestThousandReconnect checks in virtual time that a thousand service points that lose their manager together reconnect within its
// spread, and at most a quarter of them in each tenth of it.
func TestThousandReconnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		const spread = 30 * time.Second
		var mu sync.Mutex
		var came []time.Time
		lost := time.Now()
		var group sync.WaitGroup
		for range 1000 {
			a := &Agent{log: slog.New(slog.DiscardHandler), spread: spread}
			group.Go(func() {
				a.handleFailure(ctx, errGone, &backoff{})
				mu.Lock()
				defer mu.Unlock()
				came = append(came, time.Now())
			})
		}
		group.Wait()
		shares := map[int]int{}
		for _, at := range came {
			if at.Sub(lost) > spread+time.Second {
				t.Errorf("one came back after %v", at.Sub(lost))
			}
			shares[int(at.Sub(lost)/(spread/10))]++
		}
		for share, n := range shares {
			if n > 250 {
				t.Errorf("%d of %d came back in tenth %d", n, len(came), share)
			}
		}
	})
}
