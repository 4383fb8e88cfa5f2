package store

// findDamage reads every table: PostgreSQL checks the headers of pages when it reads them, and their checksums if the cluster has them.
// If the extension amcheck is installed and this role may use it, it also checks the indexes.
func (c *pgConn) findDamage() (faults []string, err error) {
	check := func(what, query string, args ...any) error {
		err := c.runShielded(func() error { return c.each(query, args, func(row) error { return nil }) })
		if IsDamage(err) {
			faults = append(faults, what+": "+err.Error())
			return nil
		}
		return err
	}
	tables, err := c.names("SELECT quote_ident(relname) FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND " +
		"relkind = 'r' ORDER BY 1")
	if err != nil {
		return nil, err
	}
	// The length of each row as text requires reading all of it, including TOAST data, and no index.
	for _, name := range tables {
		if err := check("table "+name, "SELECT sum(length(t::text)) FROM "+name+" t"); err != nil {
			return nil, err
		}
	}
	installed := false
	if err := c.each("SELECT has_function_privilege(p.oid, 'EXECUTE') FROM pg_extension e JOIN pg_depend d ON d.refobjid = e.oid AND "+
		"d.deptype = 'e'"+
		" JOIN pg_proc p ON p.oid = d.objid WHERE e.extname = 'amcheck' AND p.proname = 'bt_index_check' AND p.pronargs = 1", nil,
		func(r row) error { return r.scan(&installed) }); err != nil || !installed {
		return faults, err
	}
	indexes, err := c.names("SELECT c.oid::regclass::text FROM pg_class c JOIN pg_index i ON i.indexrelid = c.oid JOIN pg_am a ON " +
		"a.oid = c.relam WHERE c.relnamespace = current_schema()::regnamespace AND a.amname = 'btree' AND i.indisvalid")
	if err != nil {
		return nil, err
	}
	for _, name := range indexes {
		if err := check("index "+name, "SELECT bt_index_check(CAST(? AS regclass))", name); err != nil {
			return nil, err
		}
	}
	return faults, nil
}

// names returns the texts that a query selects.
func (c *pgConn) names(query string) (all []string, err error) {
	return all, c.each(query, nil, func(r row) error {
		var name string
		err := r.scan(&name)
		all = append(all, name)
		return err
	})
}

// runShielded runs fn in a savepoint, because an error would abort the snapshot.
func (c *pgConn) runShielded(fn func() error) error {
	if _, err := c.exec("SAVEPOINT shielded"); err != nil {
		return err
	}
	err := fn()
	if IsDamage(err) {
		c.failed = nil
		if _, e := c.exec("ROLLBACK TO SAVEPOINT shielded"); e != nil {
			return e
		}
	} else if err != nil {
		return err
	}
	if _, e := c.exec("RELEASE SAVEPOINT shielded"); e != nil {
		return e
	}
	return err
}
