package zonedata

// Diff returns the entries to remove from before, and those to add to it, so that it equals after. Both lists must be sorted and without
// duplicates.
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
