package discovery_test

import (
	"os"
	"testing"

	"portolan/internal/testkit/apitest"
	"portolan/internal/testkit/snmpagent"
)

func TestMain(m *testing.M) {
	snmpagent.Answer()
	os.Exit(apitest.Run(m))
}

// TestOnPostgreSQL runs the tests of this package again on PostgreSQL.
func TestOnPostgreSQL(t *testing.T) { apitest.RunOnPostgreSQL(t) }
