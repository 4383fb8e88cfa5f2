package zonedata

// Diff gives what has to be removed from a list of entries, and what added, to come to another one. Both are in order, and have nothing
// twice.
func Diff(before, after []Entry) (removed, added []Entry) {
	for len(before) > 0 || len(after) > 0 {
		var c int
		switch {
		case len(before) == 0:
			c = 1
		case len(after) == 0:
			c = -1
		default:
			c = before[0].Compare(after[0])
		}
		switch {
		case c < 0:
			removed = append(removed, before[0])
			before = before[1:]
		case c > 0:
			added = append(added, after[0])
			after = after[1:]
		default:
			before, after = before[1:], after[1:]
		}
	}
	return removed, added
}

// Net gives what is left of changes one behind the other: what was added and not removed again, and the other way round.
type Net map[string]int

// Removed counts a record out, Added in.
func (n Net) Removed(r Record) { n.step(r, -1) }

// Added counts a record in.
func (n Net) Added(r Record) { n.step(r, 1) }

func (n Net) step(r Record, by int) {
	if n[string(r)] += by; n[string(r)] == 0 {
		delete(n, string(r))
	}
}
