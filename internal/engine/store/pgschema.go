package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Advisory locks of the database as a whole: the one under which one process at a time migrates, and the
// one that managers share while they serve, and that a tool takes which must be alone.
const (
	migrationLock = 0x706f72746f6c616e // "portolan"
	managerLock   = 0x706f72746f6c616f
)

// prepare brings the schema up to date, or refuses to.
func (p *postgres) prepare(ctx context.Context, o Options) error {
	c, err := pgx.ConnectConfig(ctx, p.pool.Config().ConnConfig)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close(context.WithoutCancel(ctx)) }() // all was committed, or not
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
		return errors.New("a tool that no manager may disturb is at work on the database: let it end first")
	}
	return nil
}

func (p *postgres) otherSchema(version int) error {
	return &SchemaError{Database: version, Binary: p.layout.Version()}
}

// errServed is a database that a tool must have for itself.
var errServed = errors.New("a manager is serving the database: stop it first")

// holdAlone takes the lock that managers share, and keeps it with the connection that it gives.
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

// pgSchema reads the version of the schema; 0 where there is none.
func pgSchema(ctx context.Context, c interface {
	QueryRow(ctx context.Context, query string, args ...any) pgx.Row
}) (version int, err error) {
	var there bool
	if err := c.QueryRow(ctx, "SELECT to_regclass('schema_version') IS NOT NULL").Scan(&there); err != nil || !there {
		return 0, err
	}
	if err := c.QueryRow(ctx, "SELECT coalesce(max(version), 0) FROM schema_version").Scan(&version); err != nil {
		return 0, fmt.Errorf("reading the schema version: %w", err)
	}
	return version, nil
}

// migrate brings the schema up to date, all of it in one transaction. Who is no manager may do so only
// where none is serving.
func (p *postgres) migrate(ctx context.Context, c *pgx.Conn, o Options) error {
	scripts, err := p.layout.scripts("postgres")
	if err != nil {
		return err
	}
	// Under READ COMMITTED, whatever the database's default is: what was there is read again behind the lock.
	return pgx.BeginTxFunc(ctx, c, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", int64(migrationLock)); err != nil {
			return fmt.Errorf("locking the schema: %w", err)
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
			// Changes that are under way, by managers of an older portolan, end first; what comes behind them
			// finds the schema changed.
			if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", int64(lockOfAll)); err != nil {
				return fmt.Errorf("waiting for changes under way: %w", err)
			}
			if _, err := tx.Exec(ctx, "CREATE TABLE IF NOT EXISTS schema_version (version BIGINT NOT NULL)"); err != nil {
				return fmt.Errorf("making the schema: %w", err)
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
		if o.Exclusive && o.Schema == 0 { // a manager that begins sees to it
			if err := p.ensureIndexes(ctx, tx); err != nil {
				return err
			}
		}
		return reorderFeed(ctx, tx, max(version, p.schema))
	})
}

// index brings the indexes that follow from the layout up to date. Whoever changes something waits meanwhile.
func (p *postgres) ensureIndexes(ctx context.Context, tx pgx.Tx) error {
	rows, err := tx.Query(ctx, postgresDialect.indexes)
	if err != nil {
		return fmt.Errorf("reading the indexes: %w", err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("reading the indexes: %w", err)
	}
	if err := p.createTextIndex(ctx, tx, names); err != nil {
		return fmt.Errorf("making the index of trigrams: %w", err)
	}
	return syncIndexes(&postgresDialect, layoutIndex, p.layout.Indexes, names, "", func(statement string) error {
		_, err := tx.Exec(ctx, statement)
		return err
	})
}

// reorderFeed orders the change feed anew where the database was restored, by its own tools, into a server
// that has counted fewer transactions: what was committed there comes behind those that are here.
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
			return fmt.Errorf("ordering the change feed anew: %w", err)
		}
	}
	return nil
}

// countOn sets the sequence of each identity column: COPY writes such columns without a step of their sequences.
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
