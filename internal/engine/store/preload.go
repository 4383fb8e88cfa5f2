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
	if len(tx.listParents) == 0 {
		return
	}
	known := &tx.store.headCacheHits
	for _, id := range missing {
		if tx.listParents[id] {
			known.Store(0)
			return
		}
	}
	if known.Load() < minHeadCacheHits {
		known.Add(1)
	}
}

// knownInARow is how many lists in a row must have needed no heads but those that are remembered, until rows come without them: to read
// them in vain costs less than a round trip.
const minHeadCacheHits = 8

// headsRemembered reports whether the next list will need no heads either, as far as the last ones say.
func (tx *Tx) headsAreCached() bool { return tx.store.headCacheHits.Load() >= minHeadCacheHits }

// noteAround notes what the rows of a list lie in, whose heads they bring or might have brought.
func (tx *Tx) noteListParents(r *Resource) {
	if tx.listParents == nil {
		tx.listParents = map[int64]bool{}
	}
	tx.listParents[r.Parent], tx.listParents[r.Configuration] = true, true
}

// readBehind reads what is shown beside rows. On PostgreSQL, behind a list that was asked alone, it is asked alone, too: what it finds is
// as of a moment later, and where nothing more follows no snapshot is needed.
func (tx *Tx) readAfterList(query string, args []any, fn func(row) error) error {
	if c, ok := tx.conn.(*pgConn); ok && c.isBeforeSnapshot() {
		return c.queryAlone(query, args, fn)
	}
	return tx.conn.each(query, args, fn)
}
