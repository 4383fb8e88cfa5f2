package apitest

import (
	"context"
	"flag"
	"os"
	"os/exec"
	"testing"

	"portolan/internal/testkit/pgtest"
)

// again is the run of a package's tests on PostgreSQL. end is closed when it has ended, with its output and error. All are nil before it
// has started.
var again struct {
	end    chan struct{}
	output []byte
	err    error
}

// RunOnBoth is Run for a package whose tests run on SQLite and, in another process, on PostgreSQL (TestOnPostgreSQL). If all tests are
// selected, both run at the same time. It does not start the other process without the binaries of PostgreSQL.
func RunOnBoth(m *testing.M) int {
	flag.Parse()
	stop := func() {}
	selected := func(name string) string { return flag.Lookup(name).Value.String() }
	if selected("test.run") == "" && selected("test.list") == "" && selected("test.skip") == "" && selected("test.count") == "1" &&
		selected("test.bench") == "" && selected("test.fuzz") == "" && os.Getenv(LongTests) == "" && whyOnce() == "" && pgtest.IsInstalled() {
		ctx, cancel := context.WithCancel(context.Background())
		startAgain(ctx)
		stop = func() {
			cancel()
			<-again.end
		}
	}
	code := Run(m)
	stop()
	return code
}

// whyOnce returns the reason why the tests of this process do not run on PostgreSQL, too; empty if they do.
func whyOnce() string {
	switch {
	case os.Getenv(OnPostgres) != "":
		return "this is that run"
	case UnderRace:
		return "the store differs, whose own tests run on both under the race detector, too"
	case testing.Short():
		return "-short: not on PostgreSQL"
	}
	return ""
}

// startAgain starts the tests of the package in another process, with their data in PostgreSQL. It ends with ctx.
func startAgain(ctx context.Context) {
	c := exec.CommandContext(ctx, os.Args[0], "-test.count=1") //nolint:gosec // this program
	if os.Getenv(LongTests) != "" {                            // only the selected tests: make test runs the others
		c.Args = append(c.Args, "-test.run="+flag.Lookup("test.run").Value.String())
	}
	c.Env = append(os.Environ(), OnPostgres+"=yes")
	again.end = make(chan struct{})
	go func() {
		defer close(again.end)
		again.output, again.err = c.CombinedOutput()
	}()
}

// RunOnPostgreSQL runs the tests of the package again, in another process, with their data in PostgreSQL. It waits for the process that
// RunOnBoth has started, if it has.
func RunOnPostgreSQL(t *testing.T) {
	t.Helper()
	if why := whyOnce(); why != "" {
		t.Skip(why)
	}
	t.Parallel()
	if again.end == nil {
		pgtest.URL(t) // skips or fails if no server can be started
		startAgain(t.Context())
	}
	<-again.end
	if again.err != nil {
		t.Errorf("%v\n%s", again.err, again.output)
	}
}
