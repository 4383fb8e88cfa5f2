package server

import (
	"testing"

	"portolan/internal/testkit/apitest"
)

// A server names a service point that the fleet has: neither package knows the other, and the manager introduces them.
func TestServersNameServicePoints(t *testing.T) {
	m := startAlone(t)
	configuration, _, _, _, _ := m.Basics()
	server := m.ID("/api/v2/configurations/"+configuration+"/servers", apitest.ServerBody("ns1", "10.0.0.53"))
	m.Refused(404, "InlinedResourceNotFound", "servicePoint", "PATCH", "/api/v2/servers/"+server, `{"servicePoint":"nonsense"}`, apitest.MergePatch)
}
