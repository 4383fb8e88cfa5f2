package store

// The page cache of a connection, and that of a connection that reads many pages once, in KiB (PRAGMA cache_size).
const (
	cachePragma    = "PRAGMA cache_size = -16384"
	readOncePragma = "PRAGMA cache_size = -1024"
)

// ReadOnce says that the rest of the snapshot reads many rows once, such as all records of a large zone. On SQLite its connection then
// keeps few pages in memory: a larger cache would only be filled with pages that are not read again. It has no effect in an update.
func (tx *Tx) ReadOnce() {
	s, ok := tx.conn.(*session)
	if !ok || tx.writing || s.readsOnce {
		return
	}
	if err := s.each(readOncePragma, nil, func(row) error { return nil }); err == nil { // otherwise the cache stays as it is
		s.readsOnce = true
	}
}

// restoreCache restores the page cache after ReadOnce.
func (s *session) restoreCache() {
	if s.readsOnce {
		_ = s.each(cachePragma, nil, func(row) error { return nil }) // a smaller cache is only slower
		s.readsOnce = false
	}
}
