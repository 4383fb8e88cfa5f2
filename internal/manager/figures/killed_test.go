package figures

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"
)

// killedVariable is the environment variable with the folder of the process that TestKilled kills.
const killedVariable = "PORTOLAN_TEST_FIGURES"

// TestKilled kills a process with SIGKILL while it stores, rolls up and compacts samples, several times. All samples that it has reported
// as stored must be there, and the coarse levels must have no step twice and none missing.
func TestKilled(t *testing.T) {
	if dir := os.Getenv(killedVariable); dir != "" {
		writeUntilKilled(t, dir)
		return
	}
	t.Parallel()
	dir := t.TempDir()
	last := int64(0)
	for round := range 3 {
		c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKilled$") //nolint:gosec // this program
		c.Env = append(os.Environ(), killedVariable+"="+dir)
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for n := 0; n < 1500+700*round && lines.Scan(); n++ {
			if last, err = strconv.ParseInt(lines.Text(), 10, 64); err != nil {
				t.Fatalf("%s: %v", lines.Text(), err)
			}
		}
		if err := c.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for lines.Scan() { // what it had reported before it was killed
			if n, err := strconv.ParseInt(lines.Text(), 10, 64); err == nil {
				last = n
			}
		}
		_ = c.Wait() // killed
		checkWhole(t, dir, last)
	}
}

// writeUntilKilled stores a sample per minute of figures, from the one after the last, and prints its minute.
func writeUntilKilled(t *testing.T, dir string) {
	c := &clock{begin}
	l := open(t, dir, c)
	minute := int64(0)
	if last := l.rolled[0].Load(); last > begin.UnixMilli() {
		minute = (last-begin.UnixMilli())/60_000 + 1
	}
	for ; ; minute++ {
		c.now = begin.Add(time.Duration(minute) * time.Minute)
		if err := l.Append(t.Context(), c.now, []Sample{{"changes", Manager, "", float64(minute)}}); err != nil {
			t.Fatal(err)
		}
		fmt.Println(minute)
		if minute%180 == 0 {
			if err := l.Maintain(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// checkWhole checks that every minute up to the last reported one is there, and each complete step of the coarse levels once.
func checkWhole(t *testing.T, dir string, last int64) {
	t.Helper()
	c := &clock{begin.Add(time.Duration(last+1) * time.Minute)}
	l := open(t, dir, c)
	defer func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}()
	for _, step := range []time.Duration{time.Minute, 15 * time.Minute, 3 * time.Hour} {
		from := begin
		if step == time.Minute {
			from = c.now.Add(-day)
			if from.Before(begin) {
				from = begin
			}
		}
		end := c.now.Truncate(step)
		lines, err := l.Query(t.Context(), Query{Object: Manager, From: from, To: end.Add(-time.Millisecond), Step: step})
		if err != nil || len(lines) != 1 {
			t.Fatalf("%v: %d lines, %v", step, len(lines), err)
		}
		if want := int(end.Sub(from) / step); len(lines[0].Points) != want {
			t.Fatalf("%v: %d steps, not %d", step, len(lines[0].Points), want)
		}
		size := step.Minutes()
		for i, p := range lines[0].Points {
			first := from.Sub(begin).Minutes() + float64(i)*size
			if p.Mean != first+(size-1)/2 || p.Max != first+size-1 {
				t.Fatalf("%v: step %d has %v and %v", step, i, p.Mean, p.Max)
			}
		}
	}
}
