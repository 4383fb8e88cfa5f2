package store

import (
	"context"
	"sync"
)

// Scope is what an update depends on and changes: a resource of the layout's collection Scopes, here called a configuration,
// with all that lies in it. On SQLite there is one writer, and it says nothing.
// On PostgreSQL updates whose scopes meet wait for each other, in whichever managers they run, and see
// what those before them did; others run side by side. The zero Scope is everything.
//
// Why that is enough: what lies in one configuration refers to it and to what lies outside of all of
// them, and never to another one. Whatever changes something outside of all waits for everybody.
type Scope struct {
	// within is a resource whose configuration is the scope. narrow says that it is no more than the
	// free space and the addresses of that resource, itself a network.
	within int64
	narrow bool
	// ownTables are tables that nothing here is said about: such updates are serialisable transactions.
	ownTables bool
	// ownRows are rows that the update itself locks (Tx.Locking).
	ownRows bool
}

// OwnRows is the scope of an update of rows of a room's own tables that locks them itself (Tx.Locking), or writes each without having
// read it: each of its statements sees what is committed, and updates of different rows never collide.
func OwnRows() Scope { return Scope{ownTables: true, ownRows: true} }

// Locking ends a SELECT of rows that the update goes on from: whoever else locks or changes them waits for this update.
func (tx *Tx) Locking() string { return tx.SQL(SQL{PostgreSQL: " FOR NO KEY UPDATE"}) }

// LockingFree is Locking of those rows alone that nobody else has locked.
func (tx *Tx) LockingFree() string { return tx.SQL(SQL{PostgreSQL: " FOR NO KEY UPDATE SKIP LOCKED"}) }

// Staying ends a SELECT of rows that must not be deleted before this update ends; they may be changed.
func (tx *Tx) Staying() string { return tx.SQL(SQL{PostgreSQL: " FOR KEY SHARE"}) }

// OwnTables is the scope of an update of tables that a room keeps for itself.
func OwnTables() Scope { return Scope{ownTables: true} }

// Within is the configuration that a resource is, or lies in. narrow narrows it to what lies right below that resource.
func Within(resource int64, narrow bool) Scope { return Scope{within: resource, narrow: narrow} }

// lockOfAll is the lock that stands for everything, and for what lies outside of all configurations.
// Resources and configurations stand for themselves, by their numbers.
const lockOfAll = 1

// locks are what an update takes: shared ones first, from the outside in, then one for itself.
type locks struct {
	shared []int64
	own    int64
	// rows says that the update locks its rows itself.
	rows bool
}

// configurationsKnown remembers which configuration resources lie in. That never changes, and numbers are not given twice.
type configurationsKnown struct {
	mu    sync.RWMutex
	known map[int64]int64
}

// maxConfigurationsKnown bounds what configurationsKnown remembers.
const maxConfigurationsKnown = 100_000

func (p *postgres) configurationOf(ctx context.Context, id int64) (configuration int64, err error) {
	p.configurations.mu.RLock()
	configuration, ok := p.configurations.known[id]
	p.configurations.mu.RUnlock()
	if ok {
		return configuration, nil
	}
	found := false
	err = p.read(ctx, func(c conn) error {
		return c.each("SELECT CASE collection WHEN ? THEN id ELSE configuration END FROM resource WHERE id = ?",
			[]any{p.layout.Scopes, id},
			func(r row) error {
				found = true
				return r.scan(&configuration)
			})
	})
	if err != nil || !found {
		return 0, err
	}
	p.configurations.mu.Lock()
	defer p.configurations.mu.Unlock()
	if p.configurations.known == nil || len(p.configurations.known) >= maxConfigurationsKnown {
		p.configurations.known = map[int64]int64{}
	}
	p.configurations.known[id] = configuration
	return configuration, nil
}

// locks gives what an update of the scope takes. A resource that is not there, or lies outside of all
// configurations, is everything's.
func (p *postgres) locksFor(ctx context.Context, s Scope) (l locks, err error) {
	switch {
	case s.ownTables:
		return locks{rows: s.ownRows}, nil
	case s.within == 0:
		return locks{own: lockOfAll}, nil
	}
	configuration, err := p.configurationOf(ctx, s.within)
	switch {
	case err != nil || configuration == 0:
		return locks{own: lockOfAll}, err
	case s.narrow:
		return locks{shared: []int64{lockOfAll, configuration}, own: s.within}, nil
	}
	return locks{shared: []int64{lockOfAll}, own: configuration}, nil
}

// LockResource waits until no other update has locked the resource, and locks it for the rest of this one,
// where updates run side by side. Statements behind it see what the others committed. Who locks more than one
// does so in the order of their numbers. shared is false where updates run one after another anyway.
func (tx *Tx) LockResource(id int64) (shared bool, err error) {
	c, ok := tx.conn.(*pgConn)
	if !ok {
		return false, nil
	}
	_, err = c.exec("SELECT pg_advisory_xact_lock(?)", id)
	return true, err
}

// take words the statement that takes the locks, in one order everywhere.
func (l locks) statement() (query string, args []any) {
	query = "SELECT "
	for _, id := range l.shared {
		query += "pg_advisory_xact_lock_shared(?), "
		args = append(args, id)
	}
	return query + "pg_advisory_xact_lock(?)", append(args, l.own)
}
