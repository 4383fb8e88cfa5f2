package imports

import (
	"testing"
	"time"
)

// TestNextStepDependsOnDatabase checks that a step becomes shorter if its work took too long, which is later where other changes do not
// wait.
func TestNextStepDependsOnDatabase(t *testing.T) {
	for _, one := range []struct {
		took        time.Duration
		othersWait  bool
		size, wants int
	}{
		{10 * time.Millisecond, true, 100, 200}, {20 * time.Millisecond, true, 100, 100}, {50 * time.Millisecond, true, 100, 50},
		{40 * time.Millisecond, false, 100, 200}, {80 * time.Millisecond, false, 100, 100}, {200 * time.Millisecond, false, 100, 50},
		{time.Millisecond, false, maxStepRows, maxStepRows}, {time.Hour, true, 1, 1},
	} {
		if got := nextStep(one.size, one.size, one.took, one.othersWait); got != one.wants {
			t.Errorf("after %d rows in %s, the next step has %d, want %d", one.size, one.took, got, one.wants)
		}
	}
}
