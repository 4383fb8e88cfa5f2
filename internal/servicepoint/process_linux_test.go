package servicepoint

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"portolan/internal/servicepoint/anycast"
	"portolan/internal/servicepoint/application"
	"portolan/internal/testkit/freeport"
	"portolan/internal/wire/checkin"
	"portolan/internal/wire/stream"
)

// applicationArgument, as the first argument, makes the test program an application; the second argument is its name.
const applicationArgument = "an application of a test"

// applicationOf runs an application until it is stopped.
func applicationOf(name string) (code int) {
	if name == "dying" {
		fmt.Println("it ran out of rope")
		return 3
	}
	socket, err := net.FileListener(os.NewFile(launcherDescriptor, "socket"))
	if err != nil {
		fmt.Println(err)
		return 1
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	kind := application.Kind{Name: name, Program: checkin.Program{Version: "1", Check: func(json.RawMessage) error { return nil }},
		New: func(*slog.Logger) application.Application { return &ferry{} }}
	if err := application.Serve(ctx, kind, socket, slog.Default()); err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

// ferry is an application that sends its process id to each client.
type ferry struct {
	mu sync.Mutex
	// The following fields are guarded by mu. It is unhealthy while a file exists; the file contains the error condition.
	wrong string
}

func (f *ferry) Configure(text json.RawMessage) error {
	var c struct{ Listen, Wrong, Keep string }
	if err := json.Unmarshal(text, &c); err != nil {
		return err
	}
	if c.Keep != "" { // in the folder for data
		if err := os.NewFile(application.DataDescriptor, "data").Chdir(); err != nil {
			return err
		}
		if err := os.WriteFile("kept", []byte(c.Keep), 0o600); err != nil {
			return err
		}
	}
	l, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return err
	}
	f.mu.Lock()
	f.wrong = c.Wrong
	f.mu.Unlock()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = fmt.Fprint(c, os.Getpid())
			_ = c.Close()
		}
	}()
	return nil
}

func (f *ferry) Health() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	text, err := os.ReadFile(f.wrong)
	if err != nil {
		return nil
	}
	return []string{string(text)}
}

func (f *ferry) Diagnostics() any { return struct{}{} }
func (f *ferry) Close() error     { return nil }

// supervising returns a supervisor of test applications and the function that ends it. With ErrSwitch the applications keep running.
func supervising(t *testing.T, state string) (s *supervisor, end context.CancelCauseFunc) {
	t.Helper()
	ctx, end := context.WithCancelCause(t.Context())
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(own, filepath.Join(state, programFile)); err != nil && !errors.Is(err, fs.ErrExist) {
		t.Fatal(err)
	}
	s = &supervisor{dir: state, log: slog.New(slog.DiscardHandler), changed: func() {}, ctx: ctx, applied: make(chan struct{}),
		closesConnections: true, processes: map[string]*process{}, removing: map[string]*process{},
		program:  []string{filepath.Join(state, programFile), applicationArgument},
		versions: map[string]string{"ferry": "1", "dying": "1"}}
	s.streams = newStreams(state, s.log, func(context.Context, stream.Batch) (stream.Answer, error) {
		return stream.Answer{}, errors.New("no manager")
	})
	return s, end
}

// running returns a desired state with one application.
func running(name, configuration string) checkin.Desired {
	one := checkin.DesiredApplication{ID: "a", Name: name, Version: "1", Configuration: json.RawMessage(configuration)}
	return checkin.Desired{Generation: 7, NTPServers: []string{}, Applications: []checkin.DesiredApplication{one}}
}

// is returns the status and error conditions of the only application.
func (s *supervisor) is() (status, wrong string) {
	_, all := s.report()
	if len(all) != 1 {
		return fmt.Sprint(len(all), " applications"), ""
	}
	return all[0].Status, strings.Join(all[0].ErrorConditions, "; ")
}

// launched starts an application, waits for a condition, and leaves the application running for another supervisor.
func launched(t *testing.T, state, configuration string, until func(*supervisor) bool) {
	t.Helper()
	s, end := supervising(t, state)
	t.Cleanup(func() {
		p := s.process(checkin.DesiredApplication{ID: "a", Name: "ferry"}, 0)
		p.terminate()
	})
	s.start(running("ferry", configuration), true)
	soon(t, "as it should be", func() bool { return until(s) })
	end(ErrSwitch)
	s.group.Wait()
}

// askedAt returns the text that an application sends at its address.
func askedAt(t *testing.T, at string) string {
	t.Helper()
	c, err := net.Dial("tcp", at)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = c.Close() }()
	text, err := io.ReadAll(c)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// TestApplicationServesForAnHourWithoutTheManager checks in virtual time that the same process serves for an hour and stays healthy.
func TestApplicationServesForAnHourWithoutTheManager(t *testing.T) {
	state, at := t.TempDir(), freeport.Reserve(t).String()
	configuration := fmt.Sprintf(`{"listen":%q}`, at)
	launched(t, state, configuration, func(s *supervisor) bool { status, _ := s.is(); return status == checkin.Healthy })
	pid := askedAt(t, at)
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		m := &managerOf{desired: running("ferry", configuration)}
		a := checkingIn(t, ctx, m)
		s, end := supervising(t, state)
		s.changed, a.supervisor = a.notifyChange, s
		s.start(m.desired, true)
		var group sync.WaitGroup
		group.Go(func() { a.checkIn(ctx) })
		time.Sleep(time.Minute)
		m.set(true)
		for i := range 6 {
			time.Sleep(10 * time.Minute)
			if status, wrong := s.is(); status != checkin.Healthy || wrong != "" {
				t.Errorf("after %d minutes without the manager it is %s: %s", 10*(i+1), status, wrong)
			}
			if got := askedAt(t, at); got != pid {
				t.Errorf("after %d minutes without the manager process %s answers, and not %s", 10*(i+1), got, pid)
			}
		}
		m.mu.Lock()
		asked := len(m.asked)
		m.mu.Unlock()
		if asked < 60 {
			t.Errorf("the manager was away, and asked for %d times", asked)
		}
		m.set(false)
		time.Sleep(2 * time.Minute)
		if got := askedAt(t, at); got != pid {
			t.Errorf("when the manager is back process %s answers, and not %s", got, pid)
		}
		cancel()
		end(ErrSwitch)
		group.Wait()
		s.group.Wait()
	})
}

// TestCrashingApplicationIsRestarted checks in virtual time that a crashing application is restarted with growing pauses and reports
// the reason. One that was healthy before is UNHEALTHY, another one DEPLOY_FAILED.
func TestCrashingApplicationIsRestarted(t *testing.T) {
	for well, want := range map[bool]string{false: checkin.DeployFailed, true: checkin.Unhealthy} {
		state := t.TempDir()
		folder := filepath.Join(state, applicationFolder, "a")
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		if well {
			if err := os.WriteFile(filepath.Join(folder, healthyFile), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Test(t, func(t *testing.T) {
			s, end := supervising(t, state)
			s.start(running("dying", "{}"), true)
			starts := func() int {
				text, err := os.ReadFile(filepath.Join(folder, logFile))
				if err != nil {
					t.Error(err)
				}
				return strings.Count(string(text), "out of rope")
			}
			time.Sleep(time.Minute)
			first := starts()
			status, wrong := s.is()
			if status != want || !strings.Contains(wrong, "exit status 3") || !strings.Contains(wrong, "it ran out of rope") {
				t.Errorf("it is %s: %s", status, wrong)
			}
			if applied, _ := s.report(); applied != 7 {
				t.Errorf("it has handled generation %d", applied) // a failed generation counts as handled
			}
			time.Sleep(10 * time.Minute)
			more := starts() - first
			// With pauses of 15 to 45 seconds there are 13 to 40 starts.
			if first < 3 || first > 15 || more < 10 || more > 45 {
				t.Errorf("it was started %d times in a minute, and %d times in the ten minutes behind it", first, more)
			}
			end(nil)
			s.group.Wait()
		})
	}
}

// TestUnhealthyApplicationFails checks in virtual time that an unhealthy new application is DEPLOYING for half a minute, then
// DEPLOY_FAILED with its condition, and HEALTHY once it is healthy.
func TestUnhealthyApplicationFails(t *testing.T) {
	state, at := t.TempDir(), freeport.Reserve(t).String()
	wrong := filepath.Join(t.TempDir(), "wrong")
	if err := os.WriteFile(wrong, []byte("the tide is out"), 0o644); err != nil { //nolint:gosec // another user reads it
		t.Fatal(err)
	}
	configuration := fmt.Sprintf(`{"listen":%q,"wrong":%q}`, at, wrong)
	launched(t, state, configuration, func(s *supervisor) bool { _, wrong := s.is(); return wrong == "the tide is out" })
	synctest.Test(t, func(t *testing.T) {
		s, end := supervising(t, state)
		s.start(running("ferry", configuration), true)
		for _, c := range []struct {
			after time.Duration
			want  string
		}{{10 * time.Second, checkin.Deploying}, {18 * time.Second, checkin.Deploying}, {5 * time.Second, checkin.DeployFailed},
			{time.Minute, checkin.DeployFailed}} {
			time.Sleep(c.after)
			if status, wrong := s.is(); status != c.want || wrong != "the tide is out" {
				t.Errorf("after %v more it is %s: %s, want %s", c.after, status, wrong, c.want)
			}
		}
		if err := os.Remove(wrong); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Second + time.Second/2) // between two health checks
		if status, wrong := s.is(); status != checkin.Healthy || wrong != "" {
			t.Errorf("when it is well it is %s: %s", status, wrong)
		}
		end(ErrSwitch)
		s.group.Wait()
	})
}

// teller is a test speaker. It records the last announcement or withdrawal of the address with its time.
type teller struct {
	mu        sync.Mutex
	told      bool
	at        time.Time
	neighbors map[netip.Addr]anycast.Neighbor
}

func (s *teller) Set(context.Context, checkin.AnycastService) (bool, error) { return false, nil }
func (s *teller) Neighbors() map[netip.Addr]anycast.Neighbor                { return s.neighbors }
func (s *teller) Announce(netip.Addr) error                                 { return s.tell(true) }
func (s *teller) Withdraw(netip.Addr) error                                 { return s.tell(false) }
func (s *teller) Stop()                                                     { _ = s.tell(false) }

func (s *teller) tell(up bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.told != up {
		s.told, s.at = up, time.Now()
	}
	return nil
}

func (s *teller) Announced(netip.Addr) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.told
}

// TestWhyAnycastIsDown checks that the loss of all sessions is reported immediately with the reason, and that one of several neighbors
// may be away for a while.
func TestWhyAnycastIsDown(t *testing.T) {
	one, other := netip.MustParseAddr("192.0.2.11"), netip.MustParseAddr("192.0.2.12")
	now := time.Now()
	lost := anycast.Neighbor{Before: true, Since: now, Why: "ACTIVE, connection refused"}
	for _, c := range []struct {
		neighbors map[netip.Addr]anycast.Neighbor
		wrong     string
	}{
		{map[netip.Addr]anycast.Neighbor{one: {Established: true}}, ""},
		{map[netip.Addr]anycast.Neighbor{one: lost}, "no neighbor has a session, and the addresses are down: " +
			"neighbor 192.0.2.11 has none since " + now.UTC().Format(time.RFC3339) + ": ACTIVE, connection refused"},
		{map[netip.Addr]anycast.Neighbor{one: lost, other: {Established: true}}, ""},
		{map[netip.Addr]anycast.Neighbor{one: {Since: now, Why: "no answer yet"}}, ""},
		{map[netip.Addr]anycast.Neighbor{one: {Since: now.Add(-time.Minute), Why: "no answer yet"}}, "is not established: no answer yet"},
	} {
		a := checkingIn(t, t.Context(), &managerOf{})
		a.supervisor = &supervisor{processes: map[string]*process{}}
		n := a.newAnnouncer()
		n.speaker = &teller{neighbors: c.neighbors}
		d := running("ferry", "{}")
		d.Anycast = &checkin.AnycastService{RouterID: "192.0.2.1"}
		d.Applications[0].Anycast = []string{"127.0.0.1"} // it is on loopback already
		n.reconcile(t.Context(), d)
		if _, wrong := n.report(); c.wrong == "" && len(wrong) > 0 || c.wrong != "" && (len(wrong) != 1 || !strings.Contains(wrong[0], c.wrong)) {
			t.Errorf("%+v: %q, want %q", c.neighbors, wrong, c.wrong)
		}
	}
}

// TestWithdrawnWithinASecond checks in virtual time that an address is withdrawn within a second after its application became unhealthy
// or ended, and announced within a second after it recovered.
func TestWithdrawnWithinASecond(t *testing.T) {
	state, at := t.TempDir(), freeport.Reserve(t).String()
	wrong := filepath.Join(t.TempDir(), "wrong")
	configuration := fmt.Sprintf(`{"listen":%q,"wrong":%q}`, at, wrong)
	launched(t, state, configuration, func(s *supervisor) bool { status, _ := s.is(); return status == checkin.Healthy })
	synctest.Test(t, func(t *testing.T) {
		a := checkingIn(t, t.Context(), &managerOf{})
		s, end := supervising(t, state)
		routers := &teller{}
		s.changed, a.supervisor = a.notifyChange, s
		a.anycast = a.newAnnouncer()
		a.anycast.speaker = routers
		d := running("ferry", configuration)
		d.Anycast = &checkin.AnycastService{RouterID: "192.0.2.1"}
		d.Applications[0].Anycast = []string{"127.0.0.1"} // it is on loopback already
		s.start(d, true)
		s.group.Go(func() { a.anycast.run(s.ctx) })
		becomes := func(up bool, when string, what func() error) {
			t.Helper()
			began := time.Now()
			if err := what(); err != nil {
				t.Error(err)
			}
			time.Sleep(4300 * time.Millisecond) // not at a polling time
			routers.mu.Lock()
			defer routers.mu.Unlock()
			if routers.told != up || routers.at.Sub(began) > time.Second {
				t.Errorf("%s, after %v, the route is announced: %v", when, routers.at.Sub(began), routers.told)
			}
		}
		nothing := func() error { return nil }
		becomes(true, "at the beginning", nothing)
		becomes(false, "when it falls ill", func() error { return os.WriteFile(wrong, []byte("it leaks"), 0o644) }) //nolint:gosec // see above
		becomes(true, "when it is well again", func() error { return os.Remove(wrong) })
		becomes(false, "when it ends", func() error {
			s.mu.Lock()
			pid := s.processes["a"].pid()
			s.mu.Unlock()
			// No new process starts here, because virtual time stops while a child process of the test runs.
			return errors.Join(os.Remove(filepath.Join(state, programFile)), kill(pid))
		})
		end(ErrSwitch)
		s.group.Wait()
	})
}

// TestApplicationThatHangs checks that a hanging application counts as not responding long before it is restarted, and as responding with
// its next answer.
func TestApplicationThatHangs(t *testing.T) {
	state, at := t.TempDir(), freeport.Reserve(t).String()
	s, end := supervising(t, state)
	s.start(running("ferry", fmt.Sprintf(`{"listen":%q}`, at)), true)
	soon(t, "well", func() bool { return s.isHealthy("a") })
	s.mu.Lock()
	pid := s.processes["a"].pid()
	s.mu.Unlock()
	if err := syscall.Kill(pid.ID, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	soon(t, "without an answer", func() bool { return !s.isHealthy("a") })
	if status, _ := s.is(); status != checkin.Healthy || !isAlive(pid) { // it has not been restarted
		t.Errorf("while it hangs it is %s", status)
	}
	if err := syscall.Kill(pid.ID, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	soon(t, "well again", func() bool { return s.isHealthy("a") })
	if !isAlive(pid) {
		t.Error("it was given up")
	}
	end(nil)
	s.group.Wait()
}

// TestApplicationKeepsData checks that an application that keeps data can write to a folder of its own as its confined user, also after a
// restart, and that the folder is deleted with the application.
func TestApplicationKeepsData(t *testing.T) {
	state, at := t.TempDir(), freeport.Reserve(t).String()
	kept := filepath.Join(state, dataFolder, "a", "kept")
	for _, text := range []string{"first", "second"} {
		s, end := supervising(t, state)
		s.stateful = []string{"ferry"}
		s.start(running("ferry", fmt.Sprintf(`{"listen":%q,"keep":%q}`, at, text)), true)
		soon(t, "kept", func() bool {
			got, err := os.ReadFile(kept)
			return err == nil && string(got) == text
		})
		if text == "second" {
			s.apply(checkin.Desired{Generation: 8, NTPServers: []string{}})
			soon(t, "deleted", func() bool {
				_, err := os.Stat(filepath.Dir(kept))
				return errors.Is(err, fs.ErrNotExist)
			})
		}
		end(nil)
		s.group.Wait()
	}
}
