package dhcp

import (
	"net/netip"
	"testing"
	"time"

	"portolan/internal/wire/dhcpdata"
	"portolan/internal/wire/dhcplease"
)

// observed returns the clones and the steps of the clock since the last observation.
func (e *engine) observed() (clones []dhcplease.Clone, steps []dhcplease.ClockStep) {
	e.observer.taken = time.Time{}
	for _, o := range e.observer.takeObservations(time.Now()) {
		clones, steps = append(clones, o.Clones...), append(steps, o.ClockSteps...)
	}
	return clones, steps
}

// TestClonesAreReported checks that two machines with one client identifier are reported once when they renew in turn. A machine that gets
// another hardware address is not reported, and neither are machines with identifiers of their own.
func TestClonesAreReported(t *testing.T) {
	e := engineOn(t, &disk{}, units(t, noPing, option("dhcp-cache-threshold", 0)), nil)
	a := newAsker(t, e)
	lease := func(n byte, id string) {
		t.Helper()
		a.ask(dhcpdata.Request, n, selects("10.0.1.0"), identifies(id))
		a.want(dhcpdata.Ack, "10.0.1.0")
	}
	lease(1, "clone")
	lease(1, "clone")
	lease(2, "clone")
	if clones, _ := e.observed(); len(clones) > 0 {
		t.Errorf("a machine with another interface: %+v", clones)
	}
	lease(1, "clone")
	lease(2, "clone")
	clones, _ := e.observed()
	if len(clones) != 1 || clones[0].Address != netip.MustParseAddr("10.0.1.0") || clones[0].ClientID != "636c6f6e65" ||
		clones[0].Network != 7 || clones[0].MACs != [2]string{"020000000002", "020000000001"} {
		t.Errorf("clones: %+v", clones)
	}
	for _, one := range clones {
		if err := (dhcplease.Observation{Clones: []dhcplease.Clone{one}}).Check(); err != nil {
			t.Error(err)
		}
	}
	if err := e.close(); err != nil {
		t.Error(err)
	}
}

// TestMovesAreBounded checks that a flood of clients with changing hardware addresses fills no memory, and that old moves make room.
func TestMovesAreBounded(t *testing.T) {
	e := engineOn(t, &disk{}, units(t, noPing), nil)
	move := func(client string, at int64) {
		before := &lease{address: netip.MustParseAddr("10.0.1.0"), holder: &holder{client: client, hardware: "a"}}
		after := &lease{address: before.address, renewed: at, holder: &holder{client: client, hardware: "b"}}
		e.observer.move(before, after)
	}
	for i := range int64(maxMoves + 10) {
		move("c"+time.Unix(i, 0).String(), 0)
	}
	if n := len(e.observer.moves); n != maxMoves {
		t.Errorf("%d moves are remembered, want %d", n, maxMoves)
	}
	move("later", moveSeconds)
	if n := len(e.observer.moves); n != 1 {
		t.Errorf("%d moves are remembered after a day, want 1", n)
	}
	if err := e.close(); err != nil {
		t.Error(err)
	}
}

// TestClockStepsAreReported checks that a step of the wall clock is reported to the manager.
func TestClockStepsAreReported(t *testing.T) {
	e := engineOn(t, &disk{}, units(t, noPing), nil)
	e.observed()
	e.reportStep(-7200)
	if _, steps := e.observed(); len(steps) != 1 || steps[0].Seconds != -7200 || steps[0].At == 0 {
		t.Errorf("steps: %+v", steps)
	}
	if err := e.close(); err != nil {
		t.Error(err)
	}
}
