package store

import (
	"context"
	"time"

	"portolan/internal/base/problem"

	"zombiezen.com/go/sqlite"
)

// Condition is how the database of a store is.
type Condition string

// The conditions. A FULL database is read and refuses changes until one has room again. A DAMAGED one stays so until the process ends: only
// a person can say that it was mended. One that is AWAY comes back by itself.
const (
	Ready   Condition = "READY"
	Full    Condition = "FULL"
	Damaged Condition = "DAMAGED"
	Away    Condition = "AWAY"
)

// Conditions are all of them.
var Conditions = []Condition{Ready, Full, Damaged, Away}

// conditionCodes are the codes of the errors by which a condition is noticed.
var conditionCodes = map[string]Condition{"DatabaseFull": Full, "DatabaseDamaged": Damaged, "DatabaseUnavailable": Away}

// found is a condition other than READY, with the error by which it was noticed.
type conditionState struct {
	condition Condition
	// since is when it was noticed first, again when last.
	since, lastSeen time.Time
	err             error
}

// fullFor is how long a database stays FULL behind the last change that had no room: small changes have room between large ones that have
// none.
const fullFor = 5 * time.Second

// Condition returns the condition of the database and, where it is not READY, its beginning and the error that showed it.
func (s *Store) Condition() (is Condition, since time.Time, why error) {
	f := s.condition.Load()
	if f == nil {
		return Ready, time.Time{}, nil
	}
	return f.condition, f.since, f.err
}

// notice derives the condition of the database from the error of an access, and returns the error. change reports whether the access was a
// change: a change that succeeds ends FULL, and any access that succeeds ends AWAY.
func (s *Store) recordCondition(err error, change bool) error {
	was := s.condition.Load()
	if err == nil {
		if was != nil && (was.condition == Away || was.condition == Full && change && time.Since(was.lastSeen) > fullFor) {
			s.condition.CompareAndSwap(was, nil)
		}
		return nil
	}
	p, ok := problem.As(Unavailable(err))
	if !ok {
		return err
	}
	is, known := conditionCodes[p.Code]
	// An index of trigrams is derived: damage there slows searches down and loses nothing.
	derived := sqlite.ErrCode(err) == sqlite.ResultCorruptVTab
	if !known || derived || isContention(err) || was != nil && was.condition == Damaged {
		return err
	}
	now := time.Now()
	next := &conditionState{is, now, now, err}
	if was != nil && was.condition == is {
		next.since, next.err = was.since, was.err
	}
	s.condition.CompareAndSwap(was, next)
	return err
}

// probeTimeout is how long a database that is AWAY may take to say that it is there.
const probeTimeout = 5 * time.Second

// reach runs access and derives the condition of the database from its error. change reports whether the access is a change. While the
// database is AWAY, reach first waits at most probeTimeout for an answer, because a hanging server would block the access.
func (s *Store) runAccess(ctx context.Context, change bool, access func(context.Context) error) error {
	if f := s.condition.Load(); f != nil && f.condition == Away {
		if err := s.probe(ctx); err != nil {
			return err
		}
	}
	return s.recordCondition(access(ctx), change)
}

// probe runs an empty query, for probeTimeout at most.
func (s *Store) probe(ctx context.Context) error {
	within, end := context.WithTimeout(ctx, probeTimeout)
	defer end()
	err := s.engine.latest(within, func(c conn) error { return c.each("SELECT 1", nil, func(row) error { return nil }) })
	switch {
	case ctx.Err() != nil: // who asks waits no longer
		return ctx.Err()
	case err != nil && within.Err() != nil:
		err = unavailableError(err)
	}
	return s.recordCondition(err, false)
}

// waits reports whether an error only says that others have the database for long.
func isContention(err error) bool {
	code := sqlite.ErrCode(err).ToPrimary()
	return code == sqlite.ResultBusy || code == sqlite.ResultLocked || pgCode(err) == queryCanceled
}

// Errors of PostgreSQL (its documentation, appendix A): disk_full, data_corrupted and index_corrupted.
const (
	pgDiskFull       = "53100"
	pgDataCorrupted  = "XX001"
	pgIndexCorrupted = "XX002"
)

// full is the error of a change that the disk has no room for.
func fullError(err error) error {
	p := problem.New(507, "DatabaseFull",
		"the disk of the database is full and nothing was changed: make room, then try again (docs/troubleshoot.md)")
	p.Err = err
	return p
}

// damaged is the error of a request that needs a damaged page of the database.
func damagedError(err error) error {
	p := problem.New(503, "DatabaseDamaged",
		"the database is damaged at a place that this request needs: portolan check names it, and docs/troubleshoot.md says how to recover")
	p.Err = err
	return p
}

// IsDamage reports whether an error comes from a damaged place of the database.
func IsDamage(err error) bool { return problem.Is(Unavailable(err), "DatabaseDamaged") }
