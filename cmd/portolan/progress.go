package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"portolan/internal/base/plural"
)

// rowCounter returns a function that prints the number of rows, at most once a second.
func (s *session) rowCounter(word string) func(rows int64) {
	last := time.Now()
	return func(rows int64) {
		if time.Since(last) >= time.Second {
			last = time.Now()
			fmt.Fprintf(s.stderr, "%s %s\n", plural.Count(rows, "row"), word)
		}
	}
}

// bar shows progress: a bar on a terminal, otherwise a line every 5 seconds.
type bar struct {
	w        io.Writer
	terminal bool
	unit     string // what is counted
	phase    string
	start    time.Time
	first    int64 // the count when the phase began
	last     time.Time
	shown    bool
	// lastLine is the last line printed without a terminal.
	lastLine string
}

func (s *session) bar(unit string) *bar {
	b := &bar{w: s.stderr, unit: unit}
	if f, ok := s.stderr.(*os.File); ok {
		info, err := f.Stat()
		b.terminal = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	return b
}

// show updates the bar with the number of completed items.
func (b *bar) show(phase string, done, total int64) {
	now := time.Now()
	if phase != b.phase {
		b.finish()
		b.phase, b.start, b.first, b.last = phase, now, done, time.Time{}
	}
	every := 5 * time.Second
	if b.terminal {
		every = 100 * time.Millisecond
	}
	if now.Sub(b.last) < every && done < total || total == 0 {
		return
	}
	b.last, b.shown = now, true
	text := fmt.Sprintf("%3d%%  %d of %d %s %s", done*100/total, done, total, b.unit, phase)
	if spent := now.Sub(b.start); spent > time.Second && done > b.first {
		rate := float64(done-b.first) / spent.Seconds()
		text += fmt.Sprintf(", %.3g/s, %v left", rate, time.Duration(float64(total-done)/rate*float64(time.Second)).Round(time.Second))
	}
	if !b.terminal {
		if text != b.lastLine { // no repeated lines in a log
			fmt.Fprintln(b.w, text)
		}
		b.lastLine = text
		return
	}
	const width = 30
	full := int(done * width / total)
	fmt.Fprintf(b.w, "\r[%s%s] %s\x1b[K", strings.Repeat("=", full), strings.Repeat(" ", width-full), text)
}

// finish ends the line of the bar.
func (b *bar) finish() {
	if b.terminal && b.shown {
		fmt.Fprintln(b.w)
	}
	b.shown = false
}
