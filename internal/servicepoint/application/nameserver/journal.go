package nameserver

import (
	dns "portolan/internal/base/dnsmsg"
	"portolan/internal/wire/zonedata"
)

// journal contains the recent changes of a zone for incremental transfers (RFC 1995), the oldest first. Each change contains the old and
// the new SOA.
type journal struct {
	steps []step
	// size is the number of records in all steps.
	size int
}

// step is the change from one serial to the next.
type step struct {
	from, to       uint32
	removed, added []zonedata.Record
}

// Size limits of a journal. It contains at most minJournalSize records, or a quarter of the zone's records if that is more. The
// differences are therefore always smaller than the zone.
const (
	minJournalSize  = 1000
	journalFraction = 4
	maxSteps        = 10_000
)

// add adds a change of a zone with this number of records. A gap in the serials, or a serial that does not increase, clears the journal.
func (j *journal) add(s step, records int) {
	if len(j.steps) > 0 && j.steps[len(j.steps)-1].to != s.from || int32(s.to-s.from) <= 0 { //nolint:gosec // comparison of RFC 1982
		*j = journal{}
	}
	if int32(s.to-s.from) <= 0 { //nolint:gosec // see above
		return
	}
	j.steps = append(j.steps, s)
	j.size += len(s.removed) + len(s.added)
	drop := 0
	for j.size > max(minJournalSize, records/journalFraction) || len(j.steps)-drop > maxSteps {
		j.size -= len(j.steps[drop].removed) + len(j.steps[drop].added)
		drop++
	}
	if drop > 0 { // copied, because readers may still use the old slice
		j.steps = append([]step(nil), j.steps[drop:]...)
	}
}

// changesAfter returns the changes after a serial; nil if the journal does not contain them.
func (j *journal) changesAfter(serial uint32) []step {
	for i := range j.steps {
		if j.steps[i].from == serial {
			return j.steps[i:len(j.steps):len(j.steps)]
		}
	}
	return nil
}

// soaOf returns the SOA among records.
func soaOf(records []zonedata.Record) (zonedata.Record, bool) {
	for _, r := range records {
		if r.Type() == dns.TypeSOA {
			return r, true
		}
	}
	return nil, false
}
