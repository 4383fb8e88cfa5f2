package fleet

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"portolan/internal/wire/checkin"
)

// parseProcess parses a check-in of a process: its id and, after a slash, the id of the process before it.
func parseProcess(text string) checkin.Process {
	id, before, _ := strings.Cut(text, "/")
	return checkin.Process{ID: id, Before: before, Address: "192.0.2." + strings.TrimLeft(id, "abcdefghijklmnopqrstuvwxyz")}
}

// TestLineage checks that two machines that check in alternately are detected. From then on only the first one is answered, even after
// restarts.
func TestLineage(t *testing.T) {
	for turns, want := range map[string]string{
		"a1":                         "a1=",
		"a1 a1 a1":                   "a1=",
		"a1 a2/a1 a3/a2":             "a3=",                 // restarted
		"a1 a2/a1 a1 a2":             "a2=",                 // a late check-in
		"a1 a2/a1 a1 a2 a3/a2 a2":    "a2=",                 // another one
		"a1 b9/a1 a1 b9 a1":          "a1=9",                // the original continued
		"a1 a2/a1 b9/a1 a2 b9 a2":    "a2=9",                // the original was restarted
		"a1 b9/a1 c8/a1 a1 b9 c8":    "a1=8 9",              // three machines
		"a1 b9/a1 a1 b9 a1 a2/a1":    "a2=9",                // the accepted process was restarted
		"a1 b9/a1 a1 b9 a1 b8/b9":    "a1=9, b8 refused",    // the other process was restarted
		"a1 b9/a1 a1 b9 a1 b9 z7":    "a1=9, b9 z7 refused", // and an unknown third process
		"a1 b9/a1 a1 b9 a1 a2/a1 a1": "a2=9, a1 refused",
	} {
		var l lineage
		found, refused := 0, map[string]bool{}
		var order []string
		for _, one := range strings.Fields(turns) {
			p := parseProcess(one)
			before := l.Accepted
			_, r := l.record(p, time.Time{}, time.Unix(0, 0))
			if before == "" && l.Accepted != "" {
				found++
			}
			if r && !refused[p.ID] {
				refused[p.ID], order = true, append(order, p.ID)
			}
		}
		got := l.latest() + "="
		if l.Accepted != "" {
			var others []string
			for _, one := range l.Others {
				others = append(others, strings.TrimPrefix(one, "192.0.2."))
			}
			got += strings.Join(others, " ")
			if found != 1 || !strings.HasPrefix(l.condition(), fmt.Sprintf("%d machines connect as this service point, at 192.0.2.",
				1+len(others))) {
				t.Errorf("%s: found %d times, with the condition %q", turns, found, l.condition())
			}
		}
		if strings.Contains(want, "refused") {
			got += ", " + strings.Join(order, " ") + " refused"
		}
		if got != want {
			t.Errorf("%s: %s, want %s", turns, got, want)
		}
	}
}

// TestCopiesAreForgotten checks that a copy that has not checked in for a while is forgotten. It is detected again when it returns.
func TestCopiesAreForgotten(t *testing.T) {
	var l lineage
	now := time.Unix(1_000_000, 0)
	began := now.Add(-time.Hour)
	turns := func(turns string) (last bool) {
		for _, one := range strings.Fields(turns) {
			_, last = l.record(parseProcess(one), began, now)
		}
		return last
	}
	turns("a1 b9/a1 a1 b9 a1")
	now = now.Add(othersSilentAfter)
	if turns("a1"); l.Accepted != "a1" {
		t.Errorf("at the end of the time it is %+v", l)
	}
	if now = now.Add(time.Second); !turns("b9") || l.Accepted != "a1" {
		t.Errorf("the copy asks again: %+v", l)
	}
	now = now.Add(othersSilentAfter)
	if turns("a1"); l.Accepted != "a1" {
		t.Errorf("the copy has asked: %+v", l)
	}
	now = now.Add(time.Second)
	began = now.Add(-othersSilentAfter) // the manager was not running before
	if turns("a1"); l.Accepted != "a1" {
		t.Errorf("behind a start of the manager it is %+v", l)
	}
	began = began.Add(-time.Second)
	if turns("a2/a1"); l.Accepted != "" || l.latest() != "a2" || l.condition() != "" || len(l.Processes) != 1 {
		t.Errorf("forgotten, it is %+v", l)
	}
	if !turns("b9/a1 a2 b9 a2 b9") || l.Accepted != "a2" || !strings.HasPrefix(l.condition(), "2 machines connect") {
		t.Errorf("found again, it is %+v", l)
	}
}

// TestRestartsAreOneMachine checks that a machine that restarts at random, with one late check-in of the previous process each time, counts
// as one machine.
func TestRestartsAreOneMachine(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		var l lineage
		process, late := 1, 0
		for range 100 {
			id := fmt.Sprint("a", process)
			switch {
			case r.IntN(5) == 0:
				late = process
				process++
				continue
			case late > 0 && r.IntN(3) == 0:
				id, late = fmt.Sprint("a", late), 0
			}
			p := checkin.Process{ID: id, Before: fmt.Sprint("a", process-1)}
			if _, refused := l.record(p, time.Time{}, time.Unix(0, 0)); refused || l.Accepted != "" {
				t.Fatalf("seed %d: process %s: refused %v in %+v", seed, id, refused, l)
			}
		}
	}
}
