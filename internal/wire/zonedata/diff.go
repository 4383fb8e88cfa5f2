package zonedata

import "slices"

// Diff compares two sorted lists of records. Both results are sorted.
func Diff(before, after []Entry) (removed, added []Entry) {
	d := Differ{After: after}
	for _, e := range before {
		d.AddEarlier(e)
	}
	return d.End()
}

// Differ compares the records of an earlier list, one at a time, with After, which is sorted.
type Differ struct {
	After          []Entry
	removed, added []Entry
}

// AddEarlier compares the next record of the earlier list, which is sorted.
func (d *Differ) AddEarlier(e Entry) {
	for len(d.After) > 0 {
		c := d.After[0].Compare(e)
		if c > 0 {
			break
		}
		if c < 0 {
			d.added = append(d.added, d.After[0])
		}
		d.After = d.After[1:]
		if c == 0 {
			return
		}
	}
	d.removed = append(d.removed, e)
}

// End ends the comparison. Both results are sorted.
func (d *Differ) End() (removed, added []Entry) {
	if d.added == nil { // not a copy: a new list may be long
		return d.removed, slices.Clip(d.After)
	}
	return d.removed, append(d.added, d.After...)
}

// Net accumulates changes of records. Its value is 1 for an added record and -1 for a removed one. A record that was added and removed
// again is not in it.
type Net map[string]int

// Removed counts a removed record.
func (n Net) Removed(r Record) { n.step(r, -1) }

// Added counts an added record.
func (n Net) Added(r Record) { n.step(r, 1) }

func (n Net) step(r Record, by int) {
	if n[string(r)] += by; n[string(r)] == 0 {
		delete(n, string(r))
	}
}
