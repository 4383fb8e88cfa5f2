package store

import "strings"

// Statement is a statement that reads.
type Statement struct {
	Query string
	Args  []any
}

// Observe calls fn for each statement that reads, before it runs, until Observe is called with nil. Tests use it to measure costs. fn
// must be safe for concurrent use.
func (s *Store) Observe(fn func(Statement)) {
	if fn == nil {
		s.observer.Store(nil)
		return
	}
	s.observer.Store(&fn)
}

// observed is a connection whose reads are reported.
type observed struct {
	conn
	report func(Statement)
}

func (o observed) each(query string, args []any, fn func(row) error) error {
	o.report(Statement{query, args})
	return o.conn.each(query, args, fn)
}

func (o observed) list(query string, args []any, short bool, fn func(row) error) error {
	o.report(Statement{query, args})
	return o.conn.list(query, args, short, fn)
}

// Explain returns the plan of a statement, one line per step. On PostgreSQL, sequential scans are disabled: a plan with such a scan means
// that no index can be used.
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
