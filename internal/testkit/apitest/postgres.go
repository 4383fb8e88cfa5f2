package apitest

import (
	"flag"
	"os"
	"os/exec"
	"testing"

	"portolan/internal/testkit/pgtest"
)

// SkipOnPostgreSQL skips a test with one client, or one that depends little on the database, in the run on PostgreSQL, unless that run
// contains all tests (AllTests).
func SkipOnPostgreSQL(t testing.TB) {
	t.Helper()
	if os.Getenv(OnPostgres) != "" && os.Getenv(AllTests) != "postgres" {
		t.Skip("tested with SQLite; make test-postgres also tests PostgreSQL")
	}
}

// RunOnPostgreSQL runs the tests of the package again, in another process, with their data in PostgreSQL.
func RunOnPostgreSQL(t *testing.T) {
	t.Helper()
	switch {
	case os.Getenv(OnPostgres) != "":
		t.Skip("this is that run")
	case UnderRace:
		t.Skip("the store differs, whose own tests run on both under the race detector, too")
	}
	t.Parallel()
	pgtest.URL(t)                                                      // skips or fails if no server can be started
	c := exec.CommandContext(t.Context(), os.Args[0], "-test.count=1") //nolint:gosec // this program
	if os.Getenv(LongTests) != "" {                                    // only the selected tests: make test runs the others
		c.Args = append(c.Args, "-test.run="+flag.Lookup("test.run").Value.String())
	}
	c.Env = append(os.Environ(), OnPostgres+"=yes")
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
