package store

import (
	"context"
	"sync"
)

// Scope is the set of data that an update reads and changes: a resource of the collection Layout.Scopes, here called a configuration,
// with everything in it. On SQLite, which has one writer, scopes have no effect. On PostgreSQL, updates with overlapping scopes wait for
// each other, in all managers, and see the changes of the earlier ones. Other updates run concurrently. The zero Scope is the whole
// database.
//
// This is sufficient because resources of a configuration refer only to that configuration and to resources outside of all
// configurations, never to another configuration. An update of resources outside of all configurations waits for every other update.
type Scope struct {
	// resource is a resource whose configuration is the scope. If narrow is true, the scope is only the free space and the addresses of
	// that resource, which must be a network.
	resource int64
	narrow   bool
	// ownTables is true for updates of tables that scopes do not cover. Such updates are serialisable transactions.
	ownTables bool
	// ownRows is true if the update locks its rows itself (Tx.Locking).
	ownRows bool
}

// LockedRowsScope is the scope of an update of an extension's own tables that locks its rows itself (Tx.Locking), or writes each row
// without reading it first. Each of its statements sees the latest commits. Updates of different rows never conflict.
func LockedRowsScope() Scope { return Scope{ownTables: true, ownRows: true} }

// Locking returns the end of a SELECT that locks its rows: other updates that lock or change them wait for this update.
func (tx *Tx) Locking() string { return tx.SQL(SQL{PostgreSQL: " FOR NO KEY UPDATE"}) }

// LockingFree is Locking without the rows that other updates have locked.
func (tx *Tx) LockingFree() string { return tx.SQL(SQL{PostgreSQL: " FOR NO KEY UPDATE SKIP LOCKED"}) }

// Staying returns the end of a SELECT of rows that must not be deleted before this update ends. They may be changed.
func (tx *Tx) Staying() string { return tx.SQL(SQL{PostgreSQL: " FOR KEY SHARE"}) }

// ExtensionScope is the scope of an update that only uses tables of an extension.
func ExtensionScope() Scope { return Scope{ownTables: true} }

// ConfigurationScope returns the scope of the configuration that a resource is, or belongs to. narrow limits it to what is directly below
// the resource.
func ConfigurationScope(resource int64, narrow bool) Scope {
	return Scope{resource: resource, narrow: narrow}
}

// lockOfAll is the advisory lock for the whole database and for resources outside of all configurations. The locks of resources and
// configurations are their ids.
const lockOfAll = 1

// locks are the advisory locks of an update: first the shared ones, outermost first, then the exclusive one.
type locks struct {
	shared    []int64
	exclusive int64
	// rows is true if the update locks its rows itself.
	rows bool
}

// configurationsKnown caches the configuration of committed resources, by id. The configuration of a resource never changes, and the id of
// a committed resource is not used again.
type configurationsKnown struct {
	mu    sync.RWMutex
	known map[int64]int64
}

// maxConfigurationsKnown is the maximum number of resources in configurationsKnown.
const maxConfigurationsKnown = 100_000

// configurationOf returns the configuration that a resource is, or belongs to. It returns 0 if there is none.
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

// locksFor returns the locks of an update with scope s. It returns lockOfAll for a resource that does not exist or is outside of all
// configurations.
func (p *postgres) locksFor(ctx context.Context, s Scope) (l locks, err error) {
	switch {
	case s.ownTables:
		return locks{rows: s.ownRows}, nil
	case s.resource == 0:
		return locks{exclusive: lockOfAll}, nil
	}
	configuration, err := p.configurationOf(ctx, s.resource)
	switch {
	case err != nil || configuration == 0:
		return locks{exclusive: lockOfAll}, err
	case s.narrow:
		return locks{shared: []int64{lockOfAll, configuration}, exclusive: s.resource}, nil
	}
	return locks{shared: []int64{lockOfAll}, exclusive: configuration}, nil
}

// LockResource waits until no other update has locked the resource, and locks it until the end of this update. Later statements see what
// the other updates committed. To lock several resources, call it in ascending order of their ids. shared is false on SQLite, where
// updates run one after another.
func (tx *Tx) LockResource(id int64) (shared bool, err error) {
	if !tx.RoundTrips() {
		return false, nil
	}
	_, err = tx.conn.exec("SELECT pg_advisory_xact_lock(?)", id)
	return true, err
}

// statement returns the statement that takes the locks, always in the same order.
func (l locks) statement() (query string, args []any) {
	query = "SELECT "
	for _, id := range l.shared {
		query += "pg_advisory_xact_lock_shared(?), "
		args = append(args, id)
	}
	return query + "pg_advisory_xact_lock(?)", append(args, l.exclusive)
}
