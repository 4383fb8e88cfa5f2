package test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	dns "portolan/internal/base/dnsmsg"
	"portolan/internal/base/freeport"
	"portolan/internal/testkit/pgtest"
	"portolan/internal/testkit/snmpagent"

	"github.com/rogpeppe/go-internal/testscript"
)

// binary is the program under test, built once.
var binary string

func TestMain(m *testing.M) {
	snmpagent.Answer()
	beRouter()
	flag.Parse()
	if err := sideBySide(); err != nil {
		panic(err)
	}
	dir, err := os.MkdirTemp("", "portolan-test-")
	if err != nil {
		panic(err)
	}
	binary = filepath.Join(dir, "portolan")
	build := exec.Command("go", "build", "-ldflags", "-X main.version="+testedVersion, "-o", binary, "portolan/cmd/portolan")
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "building portolan:", err)
		os.Exit(1)
	}
	code := pgtest.Run(m)
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// sideBySide runs three times as many tests in parallel as there are processors, unless -parallel is given. The tests mostly wait.
func sideBySide() error {
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if given {
		return nil
	}
	return flag.Set("test.parallel", strconv.Itoa(3*runtime.GOMAXPROCS(0)))
}

// process is a running program. Its output is written to a file.
type process struct {
	cmd    *exec.Cmd
	output string
	done   chan struct{}
	err    error
}

// launch starts a program with both outputs in the file.
func launch(output string, env []string, dir string, args ...string) (*process, error) {
	f, err := os.Create(output)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	p := &process{cmd: exec.Command(args[0], args[1:]...), output: output, done: make(chan struct{})}
	p.cmd.Env, p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = env, dir, f, f
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { p.err = p.cmd.Wait(); close(p.done) }()
	return p, nil
}

// signal sends a signal to the program and its child processes, and waits for its end.
func (p *process) signal(s syscall.Signal) error {
	_ = syscall.Kill(-p.cmd.Process.Pid, s) // it may already have ended
	select {
	case <-p.done:
		return p.err
	case <-time.After(20 * time.Second):
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
		return fmt.Errorf("%s did not end on %v", p.cmd.Path, s)
	}
}

func (p *process) text() string {
	data, err := os.ReadFile(p.output)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// patience is the timeout of conditions.
const patience = time.Minute

// until waits for a condition and reports whether it became true.
func until(condition func() bool) bool {
	deadline := time.Now().Add(patience)
	for !condition() {
		if time.Now().After(deadline) {
			return false
		}
		time.Sleep(10 * time.Millisecond) // poll interval
	}
	return true
}

// onBoth runs a test on both databases, in parallel.
func onBoth(t *testing.T, story func(t *testing.T, database string)) {
	t.Helper()
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		story(t, "")
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		story(t, pgtest.URL(t))
	})
}

// TestScripts runs the scripts. Those that store data run on both databases: $AT, $AT2 and $AT3 are flags for the location, $FROM2 and $TO3
// the locations themselves.
func TestScripts(t *testing.T) {
	t.Parallel()
	t.Run("SQLite", func(t *testing.T) {
		scripts(t, nil, func(e *testscript.Env, n string) string { return "--data=" + e.Getenv("WORK") + "/data" + n })
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		files, err := filepath.Glob("testdata/script/*.txtar")
		if err != nil {
			t.Fatal(err)
		}
		files = slices.DeleteFunc(files, func(file string) bool {
			text, err := os.ReadFile(file)
			return err != nil || !bytes.Contains(text, []byte("$AT"))
		})
		pgtest.URL(t) // skips or fails without a server
		scripts(t, files, func(*testscript.Env, string) string { return "--database=" + pgtest.URL(t) })
	})
}

// scripts runs the scripts in files, or all scripts. where returns a new location for data.
func scripts(t *testing.T, files []string, where func(e *testscript.Env, n string) string) {
	t.Helper()
	dir := "testdata/script"
	if files != nil {
		dir = ""
	}
	testscript.Run(t, testscript.Params{
		Dir: dir, Files: files,
		Condition: func(name string) (bool, error) {
			if name != "sqlite" {
				return false, fmt.Errorf("the condition %q does not exist", name)
			}
			return files == nil, nil
		},
		Setup: func(e *testscript.Env) error {
			for _, n := range []string{"", "2", "3"} {
				at := where(e, n)
				e.Setenv("AT"+n, at)
				_, place, _ := strings.Cut(at, "=")
				e.Setenv("FROM"+n, place)
				e.Setenv("TO"+n, place)
			}
			e.Setenv("PATH", filepath.Dir(binary)+string(os.PathListSeparator)+e.Getenv("PATH"))
			running := &processes{all: map[string]*process{}}
			e.Values["processes"] = running
			e.Defer(running.killAll)
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"address": cmdAddress, "start": cmdStart, "end": cmdEnd, "see": cmdSee, "take": cmdTake, "http": cmdHTTP, "pasted": cmdPasted,
			"exits": cmdExits, "hosts": cmdHosts, "ask": cmdAsk, "listener": cmdListener,
		},
	})
}

// processes are the programs that a script has started.
type processes struct {
	mu  sync.Mutex
	all map[string]*process
}

func (p *processes) killAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, one := range p.all {
		_ = one.signal(syscall.SIGTERM) // ends its child processes as well
	}
}

func processesOf(ts *testscript.TestScript) *processes {
	p, ok := ts.Value("processes").(*processes)
	if !ok {
		ts.Fatalf("no processes")
	}
	return p
}

// cmdAddress implements address VAR...: it sets each variable to a free loopback address.
func cmdAddress(ts *testscript.TestScript, _ bool, args []string) {
	for _, name := range args {
		at, err := freeport.Loopback()
		ts.Check(err)
		ts.Setenv(name, at.String())
	}
}

// cmdStart implements start NAME ARGS...: it starts portolan in the background with its output in NAME.out.
func cmdStart(ts *testscript.TestScript, _ bool, args []string) {
	env := append(os.Environ(), "PORTOLAN_ADMIN_PASSWORD="+ts.Getenv("PORTOLAN_ADMIN_PASSWORD"))
	p, err := launch(ts.MkAbs(args[0]+".out"), env, ts.Getenv("WORK"), append([]string{binary}, args[1:]...)...)
	ts.Check(err)
	all := processesOf(ts)
	all.mu.Lock()
	defer all.mu.Unlock()
	all.all[args[0]] = p
}

// cmdEnd implements end NAME [kill]: it ends a program by SIGTERM, or by SIGKILL with kill. After SIGTERM the program must end without an
// error.
func cmdEnd(ts *testscript.TestScript, neg bool, args []string) {
	all := processesOf(ts)
	all.mu.Lock()
	p := all.all[args[0]]
	delete(all.all, args[0])
	all.mu.Unlock()
	if p == nil {
		ts.Fatalf("%s is not running", args[0])
	}
	if len(args) > 1 && args[1] == "kill" {
		_ = p.signal(syscall.SIGKILL)
		return
	}
	if err := p.signal(syscall.SIGTERM); (err != nil) != neg {
		ts.Fatalf("%s ended with %v:\n%s", args[0], err, p.text())
	}
}

// cmdSee implements see NAME REGEXP: it waits until the program's output matches.
func cmdSee(ts *testscript.TestScript, _ bool, args []string) {
	p := processesOf(ts).all[args[0]]
	want := regexp.MustCompile(args[1])
	if !until(func() bool { return want.MatchString(p.text()) }) {
		ts.Fatalf("%s never said %s:\n%s", args[0], args[1], p.text())
	}
}

// cmdTake implements take VAR FILE REGEXP: it sets the variable to the first group of the match in the file.
func cmdTake(ts *testscript.TestScript, _ bool, args []string) {
	m := regexp.MustCompile(args[2]).FindStringSubmatch(ts.ReadFile(args[1]))
	if m == nil {
		ts.Fatalf("%s does not match %s:\n%s", args[1], args[2], ts.ReadFile(args[1]))
	}
	ts.Setenv(args[0], m[1])
}

// cmdHTTP implements http METHOD URL STATUS REGEXP [BODY]: it repeats a request until status and body are as expected. It sends $TOKEN if
// that is set. It writes the body into the file "answer".
func cmdHTTP(ts *testscript.TestScript, _ bool, args []string) {
	want := regexp.MustCompile(args[3])
	body := ""
	if len(args) > 4 {
		body = args[4]
	}
	last := ""
	ok := until(func() bool {
		status, text, err := call(context.Background(), args[0], args[1], ts.Getenv("TOKEN"), body)
		last = fmt.Sprintf("%d %v\n%s", status, err, text)
		if err != nil || fmt.Sprint(status) != args[2] || !want.MatchString(text) {
			return args[0] != http.MethodGet && err == nil // requests with effects are sent once
		}
		last = ""
		return true
	})
	if !ok || last != "" {
		ts.Fatalf("%s %s, want %s %s, got %s", args[0], args[1], args[2], args[3], last)
	}
	_, text, _ := call(context.Background(), http.MethodGet, args[1], ts.Getenv("TOKEN"), "")
	ts.Check(os.WriteFile(ts.MkAbs("answer"), []byte(text), 0o600))
}

// cmdPasted implements pasted FILE: it runs every line of the file that begins with curl in a shell. Each response must be JSON without an
// error.
func cmdPasted(ts *testscript.TestScript, _ bool, args []string) {
	n := 0
	for line := range strings.Lines(ts.ReadFile(args[0])) {
		if !strings.HasPrefix(strings.TrimSpace(line), "curl ") {
			continue
		}
		n++
		out, err := exec.Command("sh", "-c", line).Output()
		var answer map[string]any
		if err != nil || json.Unmarshal(out, &answer) != nil || answer["code"] != nil {
			ts.Fatalf("%s gives %v\n%s", line, err, out)
		}
	}
	if n != 3 {
		ts.Fatalf("%d lines with curl, want 3", n)
	}
}

// cmdExits implements exits CODE PROGRAM ARGS...: it runs a program that must end with this exit code.
func cmdExits(ts *testscript.TestScript, _ bool, args []string) {
	err := ts.Exec(args[1], args[2:]...)
	code := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		code = exit.ExitCode()
	}
	if fmt.Sprint(code) != args[0] {
		ts.Fatalf("%v ends with %d, want %s", args[1:], code, args[0])
	}
}

// cmdAsk implements ask SERVER NAME TYPE REGEXP: it queries a name server until the response code and the data, sorted, match.
func cmdAsk(ts *testscript.TestScript, _ bool, args []string) {
	want, got := regexp.MustCompile(args[3]), ""
	if !until(func() bool { got = asked(args[0], args[1], dns.StringToType[args[2]]); return want.MatchString(got) }) {
		ts.Fatalf("%s %s is %s, not %s", args[1], args[2], got, args[3])
	}
}

// cmdListener implements listener ADDRESS FILE: it writes the configuration of an application that listens on the address.
func cmdListener(ts *testscript.TestScript, _ bool, args []string) {
	host, port, err := net.SplitHostPort(args[0])
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), fmt.Appendf(nil, `{"listen":[{"address":%q,"port":%s}]}`, host, port), 0o600))
}

// cmdHosts implements hosts N URL NAME: it assigns N addresses, each with a host record. %d in NAME is replaced by a number.
func cmdHosts(ts *testscript.TestScript, _ bool, args []string) {
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	for i := range n {
		body := fmt.Sprintf(`{"type":"IPv4Address","state":"STATIC","resourceRecords":[{"absoluteName":"`+args[2]+`"}]}`, i+1)
		status, text, err := call(context.Background(), http.MethodPost, args[1], ts.Getenv("TOKEN"), body)
		ts.Check(err)
		if status != http.StatusCreated {
			ts.Fatalf("host %d: %d %s", i+1, status, text)
		}
	}
}

// call sends a request and returns the status and the body.
func call(ctx context.Context, method, url, token, body string) (int, string, error) {
	return callWith(ctx, method, url, token, body, nil)
}

func callWith(ctx context.Context, method, url, token, body string, headers map[string]string) (int, string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	rq, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader([]byte(body)))
	if err != nil {
		return 0, "", err
	}
	if token != "" {
		rq.Header.Set("Authorization", "Bearer "+token)
	}
	if body != "" {
		rq.Header.Set("Content-Type", "application/json")
	}
	for name, value := range headers {
		rq.Header.Set(name, value)
	}
	rs, err := http.DefaultClient.Do(rq)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = rs.Body.Close() }()
	data, err := io.ReadAll(rs.Body)
	return rs.StatusCode, string(data), err
}
