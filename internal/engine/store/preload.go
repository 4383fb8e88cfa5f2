package store

// On PostgreSQL, a short list is read together with the heads of the parents and configurations of its rows, because another round trip
// costs more. If the caller caches these heads, reading them costs more than it saves, so the list is read without them.

// PrefetchedHead returns the head of a resource if it was read together with other rows.
func (tx *Tx) PrefetchedHead(id int64) (h Head, ok bool) {
	h, ok = tx.prefetched[id]
	return h, ok
}

// NoteHeads reports which of the heads that an answer required were not cached. After minHeadCacheHits consecutive lists without a
// missing head, lists are read without heads.
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

// minHeadCacheHits is the number of consecutive lists without a missing head after which lists are read without heads. Reading heads in
// vain costs less than a round trip.
const minHeadCacheHits = 8

// headsAreCached reports whether, judging by the latest lists, the caller has cached the heads that the next list requires.
func (tx *Tx) headsAreCached() bool { return tx.store.headCacheHits.Load() >= minHeadCacheHits }

// noteListParents records the parent and configuration of a row of a list, whose heads the list contains or could have contained.
func (tx *Tx) noteListParents(r *Resource) {
	if tx.listParents == nil {
		tx.listParents = map[int64]bool{}
	}
	tx.listParents[r.Parent], tx.listParents[r.Configuration] = true, true
}

// readAfterList reads data that is shown beside the rows of a list. On PostgreSQL, after a list that was queried without a transaction,
// this query runs without one as well: its data may be slightly newer, and if nothing follows, no snapshot is needed.
func (tx *Tx) readAfterList(query string, args []any, fn func(row) error) error {
	if c, ok := tx.conn.(*pgConn); ok && c.isBeforeSnapshot() {
		return c.queryAlone(query, args, fn)
	}
	return tx.conn.each(query, args, fn)
}
