package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Advisory locks of the whole database. migrationLock allows one process at a time to migrate. managerLock is shared by running managers
// and taken exclusively by a tool that must run alone.
const (
	migrationLock = 0x706f72746f6c616e // "portolan"
	managerLock   = 0x706f72746f6c616f
)

// prepare migrates the schema, or returns an error if that is not permitted.
func (p *postgres) prepare(ctx context.Context, o Options) error {
	c, err := pgx.ConnectConfig(ctx, p.pool.Config().ConnConfig)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close(context.WithoutCancel(ctx)) }() // everything was committed or rolled back
	if o.ReadOnly {
		version, err := pgSchema(ctx, c)
		if err == nil && version != p.schema {
			err = p.otherSchema(version)
		}
		return err
	}
	if err := p.migrate(ctx, c, o); err != nil || !o.Exclusive {
		return err
	}
	var free bool
	if err := c.QueryRow(ctx, "SELECT pg_try_advisory_lock_shared($1)", int64(managerLock)).Scan(&free); err != nil {
		return err
	}
	if !free {
		return errors.New("a tool has exclusive use of the database; wait until it has finished")
	}
	return nil
}

func (p *postgres) otherSchema(version int) error {
	return &SchemaError{Database: version, Binary: p.layout.Version()}
}

// errServed is returned to a tool that requires exclusive use of the database.
var errServed = errors.New("a manager is using the database; stop it first")

// lockAlone takes the lock that managers share and returns the connection that holds it.
func (p *postgres) lockAlone(ctx context.Context) (*pgx.Conn, error) {
	c, err := pgx.ConnectConfig(ctx, p.pool.Config().ConnConfig)
	if err != nil {
		return nil, err
	}
	var alone bool
	if err = c.QueryRow(ctx, "SELECT pg_try_advisory_lock($1)", int64(managerLock)).Scan(&alone); err == nil && !alone {
		err = errServed
	}
	if err != nil {
		_ = c.Close(ctx) // nothing was done
		return nil, err
	}
	return c, nil
}

// pgSchema returns the version of the schema, or 0 if there is none.
func pgSchema(ctx context.Context, c interface {
	QueryRow(ctx context.Context, query string, args ...any) pgx.Row
}) (version int, err error) {
	var exists bool
	if err := c.QueryRow(ctx, "SELECT to_regclass('schema_version') IS NOT NULL").Scan(&exists); err != nil || !exists {
		return 0, err
	}
	if err := c.QueryRow(ctx, "SELECT coalesce(max(version), 0) FROM schema_version").Scan(&version); err != nil {
		return 0, fmt.Errorf("read the schema version: %w", err)
	}
	return version, nil
}

// migrate migrates the schema in one transaction. A process that is not a manager may do so only while no manager is running.
func (p *postgres) migrate(ctx context.Context, c *pgx.Conn, o Options) error {
	scripts, err := p.layout.scripts("postgres")
	if err != nil {
		return err
	}
	// READ COMMITTED, whatever the default of the database is, so that reads after the lock see the latest commits.
	return pgx.BeginTxFunc(ctx, c, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", int64(migrationLock)); err != nil {
			return fmt.Errorf("lock the schema: %w", err)
		}
		version, err := pgSchema(ctx, tx)
		if err != nil {
			return err
		}
		if version > p.layout.Version() {
			return p.otherSchema(version)
		}
		if version != p.schema && version != 0 && !o.Exclusive {
			var alone bool
			if err := tx.QueryRow(ctx, "SELECT pg_try_advisory_xact_lock($1)", int64(managerLock)).Scan(&alone); err != nil {
				return err
			}
			if !alone {
				return p.otherSchema(version)
			}
		}
		if version < p.schema {
			// Running changes of managers of an older version complete first. Later ones fail because the schema changed.
			if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", int64(lockOfAll)); err != nil {
				return fmt.Errorf("wait for running transactions: %w", err)
			}
			if _, err := tx.Exec(ctx, "CREATE TABLE IF NOT EXISTS schema_version (version BIGINT NOT NULL)"); err != nil {
				return fmt.Errorf("create the schema: %w", err)
			}
		}
		for _, s := range scripts {
			if s.version <= version || s.version > p.schema {
				continue
			}
			if _, err := tx.Exec(ctx, s.text); err != nil {
				return fmt.Errorf("migration %s: %w", s.name, err)
			}
		}
		for i := version; i < p.schema; i++ {
			if _, err := tx.Exec(ctx, "INSERT INTO schema_version (version) VALUES ($1)", i+1); err != nil {
				return err
			}
		}
		if o.Exclusive && o.Schema == 0 { // the next manager that starts creates the indexes
			if err := p.ensureIndexes(ctx, tx); err != nil {
				return err
			}
		}
		return reorderFeed(ctx, tx, max(version, p.schema))
	})
}

// ensureIndexes creates the indexes that the layout requires. Changes wait meanwhile.
func (p *postgres) ensureIndexes(ctx context.Context, tx pgx.Tx) error {
	rows, err := tx.Query(ctx, postgresDialect.indexes)
	if err != nil {
		return fmt.Errorf("read the indexes: %w", err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("read the indexes: %w", err)
	}
	if err := p.createTextIndex(ctx, tx, names); err != nil {
		return fmt.Errorf("create the trigram index: %w", err)
	}
	return syncIndexes(&postgresDialect, layoutIndex, p.layout.Indexes, names, "", func(statement string) error {
		_, err := tx.Exec(ctx, statement)
		return err
	})
}

// reorderFeed renumbers the change feed if the database was restored with PostgreSQL's tools into a server with lower transaction ids.
// Otherwise new commits would precede the existing ones.
func reorderFeed(ctx context.Context, tx pgx.Tx, version int) error {
	if version < 2 {
		return nil
	}
	var ahead bool
	err := tx.QueryRow(ctx, "SELECT coalesce((SELECT max(committed) FROM txn) > pg_current_xact_id()::text::bigint, FALSE)").Scan(&ahead)
	if err != nil || !ahead {
		return err
	}
	for _, statement := range []string{"UPDATE txn SET committed = pg_current_xact_id()::text::bigint", "DELETE FROM origin",
		"INSERT INTO origin (id) VALUES (replace(gen_random_uuid()::text, '-', ''))"} {
		if _, err := tx.Exec(ctx, statement); err != nil {
			return fmt.Errorf("reorder the change feed: %w", err)
		}
	}
	return nil
}

// advanceSequences sets the sequence of each identity column, because COPY does not advance them.
func (c *pgConn) advanceSequences() error {
	var statements []string
	if err := c.each("SELECT format('SELECT setval(%L, coalesce(max(%I), 0) + 1, false) FROM %I', "+
		"pg_get_serial_sequence(t.relname, a.attname), a.attname, t.relname) FROM pg_attribute a JOIN pg_class t ON t.oid = a.attrelid "+
		"WHERE a.attidentity <> '' AND t.relnamespace = current_schema()::regnamespace", nil, func(r row) error {
		var one string
		err := r.scan(&one)
		statements = append(statements, one)
		return err
	}); err != nil {
		return err
	}
	for _, one := range statements {
		if err := c.each(one, nil, func(row) error { return nil }); err != nil {
			return err
		}
	}
	return nil
}
