package store

import "strings"

// Statement is one that was read with.
type Statement struct {
	Query string
	Args  []any
}

// Observe lets fn see the statements that are read with from now on, before they run; nil ends that. Tests ask what they cost. fn may be
// called by many at a time.
func (s *Store) Observe(fn func(Statement)) {
	if fn == nil {
		s.observer.Store(nil)
		return
	}
	s.observer.Store(&fn)
}

// observed is a connection whose reads are observed.
type observed struct {
	conn
	see func(Statement)
}

func (o observed) each(query string, args []any, fn func(row) error) error {
	o.see(Statement{query, args})
	return o.conn.each(query, args, fn)
}

func (o observed) list(query string, args []any, short bool, fn func(row) error) error {
	o.see(Statement{query, args})
	return o.conn.list(query, args, short, fn)
}

// Explain gives the plan of a statement, a line for each step. PostgreSQL is forbidden to read a table from its beginning to its end as
// long as there is an index that serves: where the plan does so, there is none.
func (tx *Tx) Explain(s Statement) (plan []string, err error) {
	if tx.RoundTrips() {
		var off string
		if err := tx.QueryRow("SELECT set_config('enable_seqscan', 'off', TRUE)").Scan(&off); err != nil {
			return nil, err
		}
		err = tx.Each(func(scan func(...any) error) error {
			var line string
			err := scan(&line)
			plan = append(plan, strings.TrimSpace(line))
			return err
		}, "EXPLAIN "+s.Query, s.Args...)
		return plan, err
	}
	err = tx.Each(func(scan func(...any) error) error {
		var id, parent, other int64
		var line string
		err := scan(&id, &parent, &other, &line)
		plan = append(plan, line)
		return err
	}, "EXPLAIN QUERY PLAN "+s.Query, s.Args...)
	return plan, err
}
