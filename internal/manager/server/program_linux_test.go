package server

import (
	"slices"
	"strings"
	"testing"
)

// TestUnwrittenMappings checks that only mappings of the program that cannot be written and have no pages of their own are dropped.
func TestUnwrittenMappings(t *testing.T) {
	const smaps = `00400000-02181000 r-xp 00000000 00:19 42                                 /usr/bin/portolan
Rss:               22780 kB
Anonymous:             0 kB
02181000-04285000 r--p 01d80000 00:19 42                                 /usr/bin/portolan
Rss:               24016 kB
Anonymous:             4 kB
04286000-0440f000 rw-p 03e84000 00:19 42                                 /usr/bin/portolan
Anonymous:             0 kB
05000000-05001000 r--p 03e84000 00:19 42                                 /usr/lib/libc.so.6
Anonymous:             0 kB
7f98bbdf0000-7f98bbff0000 r--p 00000000 00:00 0
Anonymous:             0 kB
`
	if got := unwrittenMappings(strings.NewReader(smaps), "/usr/bin/portolan"); !slices.Equal(got, []mapping{{0x400000, 0x2181000}}) {
		t.Errorf("the mappings are %x", got)
	}
	dropProgramPages() // the program must continue
}
