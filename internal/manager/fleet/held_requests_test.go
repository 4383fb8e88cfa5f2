package fleet

import (
	"testing"
	"time"
)

// TestWaitsWith checks that the revision of a waiting application is known only while all of its nodes wait with the same one.
func TestWaitsWith(t *testing.T) {
	s := &Service{waitersOf: map[string]*waiters{}, closing: make(chan struct{})}
	hold := func(node int64, application, serves string) *HeldRequest {
		h := &HeldRequest{service: s, node: nodeID{id: "point", node: node}, purpose: application, waiters: s.openWaiters("point"),
			Serves: serves}
		h.Arm()
		h.Wait(time.Now().Add(time.Hour), func(bool) {})
		return h
	}
	want := func(application, revision string) {
		t.Helper()
		if got := s.waitsWith("point", application); got != revision {
			t.Errorf("application %s waits with %q, want %q", application, got, revision)
		}
	}
	want("dns", "")
	hold(1, "dns", "7")
	hold(1, "dhcp", "")
	want("dns", "7")
	want("dhcp", "")
	hold(2, "dns", "7")
	want("dns", "7")
	hold(2, "dns", "8") // replaces the earlier request of the node
	want("dns", "")
	hold(1, "dns", "8")
	want("dns", "8")
}
