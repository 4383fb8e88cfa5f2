package dhcp

import (
	"sync/atomic"
	"time"
)

// clock is the time of lifetimes: the wall clock at the start of the process, continued by the monotonic clock. A step of the wall clock
// therefore ends no lease early.
type clock struct {
	start time.Time
	// base is the time at start in Unix seconds. It is set before the engine serves.
	base int64
	// step is the largest reported difference to the wall clock, in seconds.
	step atomic.Int64
}

// maxStep is the difference between the clocks that is reported, in seconds.
const maxStep = 60

func newClock(start time.Time) *clock { return &clock{start: start, base: start.Unix()} }

// now returns the time in Unix seconds.
func (c *clock) now() int64 { return c.base + int64(time.Since(c.start)/time.Second) }

// check returns the difference between the wall clock and this clock in seconds, if it has changed by more than maxStep since the last
// report.
func (c *clock) check(wall time.Time) (seconds int64, stepped bool) {
	seconds = wall.Unix() - c.now()
	last := c.step.Load()
	if seconds-last > maxStep || last-seconds > maxStep {
		c.step.Store(seconds)
		return seconds, true
	}
	return seconds, false
}
