package store

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// postgresEngine is a PostgreSQL database, which any number of managers may share.
type postgresEngine struct {
	store *Store
	pg    *postgres
	// replica is a standby that serves lists; nil if there is none. listener receives the notifications of other processes; nil in tools.
	replica  *replica
	listener *listener
	// aloneConn is the connection that holds the lock against managers. It is nil if they may connect.
	aloneConn *pgx.Conn
}

// openShared opens a PostgreSQL database. A manager, which sets Exclusive, listens for the notifications of other processes.
func openShared(s *Store, o Options) (*postgresEngine, error) {
	pg, err := openPostgres(context.Background(), o)
	if err != nil {
		return nil, err
	}
	e := &postgresEngine{store: s, pg: pg}
	if s.trigrams, err = pg.hasTrigrams(context.Background()); err != nil {
		pg.close()
		return nil, err
	}
	if o.Alone {
		if e.aloneConn, err = pg.lockAlone(context.Background()); err != nil {
			pg.close()
			return nil, err
		}
	}
	if o.DatabaseRead != "" {
		if e.replica, err = openReplica(context.Background(), o.DatabaseRead, o); err != nil {
			pg.close()
			return nil, err
		}
	}
	if o.Exclusive {
		e.listener = listen(s, pg)
	}
	return e, nil
}

func (e *postgresEngine) afterOpen() {}

func (e *postgresEngine) close() error {
	if e.listener != nil {
		e.listener.close()
	}
	e.replica.close()
	e.pg.close()
	if e.aloneConn == nil {
		return nil
	}
	// The lock is released before the connection is closed, because the server notices the close a moment later.
	closeCtx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_, _ = e.aloneConn.Exec(closeCtx, "SELECT pg_advisory_unlock_all()") // if the connection is lost, so is the lock
	return e.aloneConn.Close(closeCtx)
}

func (e *postgresEngine) canShare(topics []string) bool {
	return e.listener != nil && len(topics) > 0 && e.listener.isAlive()
}

func (e *postgresEngine) oneWriter() bool { return false }

func (e *postgresEngine) needsYield() bool { return false }

// snapshot runs long reads on the standby if there is one that has caught up.
func (e *postgresEngine) snapshot(ctx context.Context, kind readKind, fn func(conn) error) error {
	from := e.pg.readers
	switch kind {
	case readHealth:
		from = e.pg.health
	case readPage, readLong:
		if e.replica != nil {
			done, err := e.replica.view(ctx, e.pg, fn)
			if done || ctx.Err() != nil {
				return connectionProblem(err)
			}
		}
		if from = e.pg.lists; kind == readPage {
			from = e.pg.pages
		}
	}
	return connectionProblem(e.pg.view(ctx, from, fn))
}

func (e *postgresEngine) latest(ctx context.Context, fn func(conn) error) error {
	return connectionProblem(e.pg.read(ctx, fn))
}

// update runs fn in a transaction, commits it and notifies other processes of the topics that they watch.
func (e *postgresEngine) update(ctx context.Context, scope Scope, author Author, fn func(*Tx) error) error {
	var topics []string
	at := e.store.commits.last.Load()
	defer e.store.reportCommit(time.Now())
	err := e.pg.update(ctx, scope, func(c *pgConn) error {
		tx := e.store.newTx(ctx, c, at)
		tx.ids, tx.author, tx.writing = &sequences{e.pg, c}, author, true
		defer timeStep(ctx)()
		tx.startFollowers()
		if err := fn(tx); err != nil {
			return err
		}
		if err := tx.finish(); err != nil {
			return err
		}
		topics = slices.Collect(maps.Keys(tx.topics))
		if watching := e.store.watches.filter(topics); len(watching) > 0 {
			c.enqueue("SELECT pg_notify(?, ?)", channel, e.pg.id+" "+joinTopics(watching))
		}
		return nil
	})
	// The commit is also recorded after an error, because the outcome of a commit whose answer was lost is unknown.
	if e.store.recordCommit(topics); e.listener != nil && err == nil {
		select {
		case e.listener.pendingWake <- struct{}{}:
		default: // a notification is already pending
		}
	}
	return connectionProblem(err)
}

func (e *postgresEngine) fill(ctx context.Context, fn func(conn) error) error {
	_, err := e.pg.runOnce(ctx, locks{exclusive: lockOfAll}, func(c *pgConn) error { return fn(c) })
	return connectionProblem(err)
}

func (e *postgresEngine) afterFill() {}

// awaitFeed waits for every transaction that was running when it was called, up to settleTime.
func (e *postgresEngine) awaitFeed(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	var next int64
	for attempt := 0; ; attempt++ {
		var low, high int64
		err := e.store.Read(ctx, func(tx *Tx) error {
			return tx.QueryRow("SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint, "+
				"pg_snapshot_xmax(pg_current_snapshot())::text::bigint").Scan(&low, &high)
		})
		if next == 0 {
			next = high
		}
		if err != nil && ctx.Err() == nil {
			return err
		}
		if err == nil && low >= next || !backOff(ctx, attempt) {
			return nil
		}
	}
}

// sequences assigns numbers from PostgreSQL's sequences.
type sequences struct {
	p *postgres
	c *pgConn
}

func (s *sequences) nextResource() (int64, error) { return s.p.number(s.c, "resource") }
func (s *sequences) nextTxn() (int64, error)      { return s.p.number(s.c, "txn") }
func (s *sequences) nextChange() (int64, error)   { return s.p.number(s.c, "change") }

func (s *sequences) nextMany(kind string, n int) ([]int64, error) { return s.p.numbers(s.c, kind, n) }

func (e *postgresEngine) sizeQuery() string { return "SELECT pg_database_size(current_database())" }
