package store

import (
	"context"
	"time"

	"portolan/internal/base/problem"

	"zombiezen.com/go/sqlite"
)

// Condition is the condition of a store's database.
type Condition string

// The conditions. A FULL database can be read and rejects changes until one succeeds again. A DAMAGED one stays so until the process
// ends, because only a person can know that it was repaired. An AWAY database recovers by itself.
const (
	Ready       Condition = "READY"
	Full        Condition = "FULL"
	Damaged     Condition = "DAMAGED"
	Unreachable Condition = "AWAY"
)

// Conditions are all conditions.
var Conditions = []Condition{Ready, Full, Damaged, Unreachable}

// conditionCodes maps the codes of errors to the conditions that they indicate.
var conditionCodes = map[string]Condition{"DatabaseFull": Full, "DatabaseDamaged": Damaged, "DatabaseUnavailable": Unreachable}

// conditionState is a condition other than READY, with the error that indicated it.
type conditionState struct {
	condition Condition
	// since is the time of the first error, lastSeen that of the last one.
	since, lastSeen time.Time
	err             error
}

// fullFor is the minimum time that a database stays FULL after the last failed change. Small changes may succeed between large ones that
// fail.
const fullFor = 5 * time.Second

// Condition returns the condition of the database and, if it is not READY, its start and the error that indicated it.
func (s *Store) Condition() (is Condition, since time.Time, why error) {
	f := s.condition.Load()
	if f == nil {
		return Ready, time.Time{}, nil
	}
	return f.condition, f.since, f.err
}

// recordCondition derives the condition of the database from the result of an access, and returns err. change is true if the access was a
// change. A successful change ends FULL, and any successful access ends AWAY.
func (s *Store) recordCondition(err error, change bool) error {
	was := s.condition.Load()
	if err == nil {
		if was != nil && (was.condition == Unreachable || was.condition == Full && change && time.Since(was.lastSeen) > fullFor) {
			s.condition.CompareAndSwap(was, nil)
		}
		return nil
	}
	p, ok := problem.As(Unavailable(err))
	if !ok {
		return err
	}
	is, known := conditionCodes[p.Code]
	// The trigram index is derived: its damage slows searches down and loses nothing.
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

// probeTimeout is the maximum time for an answer of a database that is AWAY.
const probeTimeout = 5 * time.Second

// runAccess runs access and derives the condition of the database from its error. change is true if the access is a change. While the
// database is AWAY, it first waits up to probeTimeout for an answer, because a hanging server would block the access.
func (s *Store) runAccess(ctx context.Context, change bool, access func(context.Context) error) error {
	if f := s.condition.Load(); f != nil && f.condition == Unreachable {
		if err := s.probe(ctx); err != nil {
			return err
		}
	}
	return s.recordCondition(access(ctx), change)
}

// probe runs a trivial query, for at most probeTimeout.
func (s *Store) probe(ctx context.Context) error {
	probeCtx, end := context.WithTimeout(ctx, probeTimeout)
	defer end()
	err := s.engine.latest(probeCtx, func(c conn) error { return c.each("SELECT 1", nil, func(row) error { return nil }) })
	switch {
	case ctx.Err() != nil: // the caller gave up
		return ctx.Err()
	case err != nil && probeCtx.Err() != nil:
		err = unavailableError(err)
	}
	return s.recordCondition(err, false)
}

// isContention reports whether an error only means that other processes occupy the database for long.
func isContention(err error) bool {
	code := sqlite.ErrCode(err).ToPrimary()
	return code == sqlite.ResultBusy || code == sqlite.ResultLocked || pgCode(err) == queryCanceled
}

// Error codes of PostgreSQL (documentation, appendix A): disk_full, data_corrupted and index_corrupted.
const (
	pgDiskFull       = "53100"
	pgDataCorrupted  = "XX001"
	pgIndexCorrupted = "XX002"
)

// fullError is the error of a change that failed because the disk is full.
func fullError(err error) error {
	p := problem.New(507, "DatabaseFull",
		"the disk of the database is full and nothing was changed; free disk space, then try again (docs/troubleshoot.md)")
	p.Err = err
	return p
}

// damagedError is the error of a request that needs a damaged page of the database.
func damagedError(err error) error {
	p := problem.New(503, "DatabaseDamaged",
		"the database is damaged where this request reads it; run portolan check to find the damage, and see docs/troubleshoot.md")
	p.Err = err
	return p
}

// IsDamage reports whether an error was caused by damage of the database.
func IsDamage(err error) bool { return problem.Is(Unavailable(err), "DatabaseDamaged") }
