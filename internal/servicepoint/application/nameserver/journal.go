package nameserver

import (
	dns "portolan/internal/base/dnsmsg"
	"portolan/internal/wire/zonedata"
)

// journal is what has changed of a zone, for those who copy it (RFC 1995): changes one behind the other, the oldest first. Each holds
// records of the zone's two SOAs as well.
type journal struct {
	steps []step
	// size is how many records all of it holds.
	size int
}

// step leads from one serial to the next one.
type step struct {
	from, to       uint32
	removed, added []zonedata.Record
}

// Bounds of a journal: it holds at most leastJournal records, or a quarter as many as the zone where that is more, so that the differences
// are always less than all of it.
const (
	leastJournal  = 1000
	partOfJournal = 4
	mostSteps     = 10_000
)

// note takes in a change of a zone that has so many records after it. What does not rise by its serial begins the journal anew.
func (j *journal) note(s step, records int) {
	if len(j.steps) > 0 && j.steps[len(j.steps)-1].to != s.from || int32(s.to-s.from) <= 0 { //nolint:gosec // as RFC 1982 compares
		*j = journal{}
	}
	if int32(s.to-s.from) <= 0 { //nolint:gosec // as above
		return
	}
	j.steps = append(j.steps, s)
	j.size += len(s.removed) + len(s.added)
	drop := 0
	for j.size > max(leastJournal, records/partOfJournal) || len(j.steps)-drop > mostSteps {
		j.size -= len(j.steps[drop].removed) + len(j.steps[drop].added)
		drop++
	}
	if drop > 0 { // copied: whoever reads the steps has what was there
		j.steps = append([]step(nil), j.steps[drop:]...)
	}
}

// since gives the changes behind a serial; nil where they are not known.
func (j *journal) since(serial uint32) []step {
	for i := range j.steps {
		if j.steps[i].from == serial {
			return j.steps[i:len(j.steps):len(j.steps)]
		}
	}
	return nil
}

// soaOf gives the SOA among records.
func soaOf(records []zonedata.Record) (zonedata.Record, bool) {
	for _, r := range records {
		if r.Type() == dns.TypeSOA {
			return r, true
		}
	}
	return nil, false
}
