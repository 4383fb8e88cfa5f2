package store

// What is read on PostgreSQL beside the rows of a short list: the heads of their parents and configurations come with the rows, as another
// round trip costs more, or are remembered by who shows them, and then cost more than they spare.

// CameWith gives the head of a resource that came with rows that were read; ok is false where it did not.
func (tx *Tx) CameWith(id int64) (h Head, ok bool) {
	h, ok = tx.prefetched[id]
	return h, ok
}

// NoteHeads tells which of the heads that an answer needs were not remembered. Where, of the last lists whose rows might have brought them,
// all were, the next ones do not.
func (tx *Tx) NoteHeads(missing []int64) {
	if len(tx.around) == 0 {
		return
	}
	known := &tx.store.headsKnown
	for _, id := range missing {
		if tx.around[id] {
			known.Store(0)
			return
		}
	}
	if known.Load() < knownInARow {
		known.Add(1)
	}
}

// knownInARow is how many lists in a row must have needed no heads but those that are remembered, until rows come without them: to read
// them in vain costs less than a round trip.
const knownInARow = 8

// headsRemembered reports whether the next list will need no heads either, as far as the last ones say.
func (tx *Tx) headsRemembered() bool { return tx.store.headsKnown.Load() >= knownInARow }

// noteAround notes what the rows of a list lie in, whose heads they bring or might have brought.
func (tx *Tx) noteAround(r *Resource) {
	if tx.around == nil {
		tx.around = map[int64]bool{}
	}
	tx.around[r.Parent], tx.around[r.Configuration] = true, true
}

// readBehind reads what is shown beside rows. On PostgreSQL, behind a list that was asked alone, it is asked alone, too: what it finds is
// as of a moment later, and where nothing more follows no snapshot is needed.
func (tx *Tx) readBehind(query string, args []any, fn func(row) error) error {
	if c, ok := tx.conn.(*pgConn); ok && c.unbegun() {
		return c.alone(query, args, fn)
	}
	return tx.conn.each(query, args, fn)
}
