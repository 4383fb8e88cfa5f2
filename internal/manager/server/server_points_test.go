package server

import (
	"testing"

	"portolan/internal/testkit/apitest"
)

// TestServersNameServicePoints checks that a server can only name a service point of the fleet. The two packages do not import each other:
// the manager connects them.
func TestServersNameServicePoints(t *testing.T) {
	m := startAlone(t)
	configuration, _, _, _, _ := m.Basics()
	server := m.ID("/api/v2/configurations/"+configuration+"/servers", apitest.ServerBody("ns1", "10.0.0.53"))
	m.Refused(404, "InlinedResourceNotFound", "servicePoint", "PATCH", "/api/v2/servers/"+server, `{"servicePoint":"nonsense"}`, apitest.MergePatch)
}
