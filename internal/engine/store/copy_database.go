package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Carry copies a database to another one in steps that are committed separately, so that an interrupted copy continues where it stopped.
// Until the copy is complete, the target is marked as being filled and cannot be opened for anything else.

var (
	// ErrFilling is returned for a database that contains an incomplete copy.
	ErrFilling = errors.New("an unfinished migration has filled the database in part; run the migration again to complete it")
	// ErrOtherSource is returned if the copy was started from another source, or if the source has changed since.
	ErrOtherSource = errors.New("the target contains data from another source, or the source has changed since; use an empty target")
	// ErrDifferent is returned if the target differs from the source after the copy.
	ErrDifferent = errors.New("the target differs from the source")
)

// carryStep is the number of rows per commit.
const carryStep = 20000

// Progress receives the number of rows copied, or compared, and the total.
type Progress func(phase string, done, total int64)

// source describes the source at the start of the copy.
type source struct {
	Origin string
	Marks  Marks
	Counts map[string]int64
}

func (s source) total() (n int64) {
	for _, count := range s.Counts {
		n += count
	}
	return n
}

// Carry copies everything from one store to another and compares both at the end. The target must be empty, or contain an incomplete copy
// of the same source. Carry returns the number of rows of each table.
func Carry(ctx context.Context, from, to *Store, progress Progress) (counts map[string]int64, err error) {
	err = from.View(ctx, func(tx *Tx) error {
		src, err := tx.source()
		if err != nil {
			return fmt.Errorf("read the source: %w", err)
		}
		counts = src.Counts
		if err := to.beginFilling(ctx, src); err != nil {
			return err
		}
		done := int64(0)
		for _, t := range from.layout.ListCarried() {
			n, err := to.fill(ctx, tx, t, func(n int64) { progress("copied", done+n, src.total()) })
			if err != nil {
				return err
			}
			done += n
		}
		return to.endFilling(ctx, tx, src, progress)
	})
	return counts, err
}

func (tx *Tx) source() (s source, err error) {
	s = source{Marks: Marks{}, Counts: map[string]int64{}}
	if err := tx.QueryRow("SELECT id FROM origin").Scan(&s.Origin); err != nil {
		return s, err
	}
	for _, kind := range markKinds {
		if s.Marks[kind], err = tx.Mark(kind); err != nil {
			return s, err
		}
	}
	for _, t := range tx.store.layout.ListCarried() {
		var n int64
		if err := tx.QueryRow("SELECT count(*) FROM " + t.Name).Scan(&n); err != nil {
			return s, err
		}
		s.Counts[t.Name] = n
	}
	return s, nil
}

// fillSource returns the description of the source of an incomplete copy, or "" if there is none.
func (tx *Tx) fillSource() (from string, err error) {
	err = tx.Each(func(scan func(...any) error) error { return scan(&from) }, "SELECT source FROM filling")
	return from, err
}

// checkNotFilling returns ErrFilling if a copy to the database is incomplete.
func (s *Store) checkNotFilling(ctx context.Context) error {
	return s.View(ctx, func(tx *Tx) error {
		from, err := tx.fillSource()
		if err == nil && from != "" {
			return ErrFilling
		}
		return err
	})
}

func (s *Store) beginFilling(ctx context.Context, src source) error {
	text, err := json.Marshal(src)
	if err != nil {
		return err
	}
	return s.Update(ctx, Author{}, func(tx *Tx) error {
		from, err := tx.fillSource()
		switch {
		case err != nil:
			return err
		case from == string(text):
			return nil
		case from != "":
			return ErrOtherSource
		}
		if err := s.layout.checkEmpty(tx.conn); err != nil {
			return err
		}
		return tx.Write("INSERT INTO filling (source) VALUES (?)", string(text))
	})
}

// fill copies the rows that the table does not have yet, and returns the number of its rows afterwards.
func (s *Store) fill(ctx context.Context, from *Tx, t *Table, progress func(rows int64)) (rows int64, err error) {
	var after []any
	if err := s.View(ctx, func(tx *Tx) error {
		if err := tx.QueryRow("SELECT count(*) FROM " + t.Name).Scan(&rows); err != nil {
			return err
		}
		last := "SELECT " + strings.Join(t.keys(), ", ") + " FROM " + t.Name + " ORDER BY " + strings.Join(t.keys(), " DESC, ") + " DESC LIMIT 1"
		return tx.conn.each(last, nil, func(r row) error { after = r.values(); return nil })
	}); err != nil {
		return 0, fmt.Errorf("read the target: %w", err)
	}
	var waiting [][]any
	flush := func() error {
		if len(waiting) == 0 {
			return nil
		}
		if err := s.Update(ctx, Author{}, func(tx *Tx) error { return tx.conn.bulk(t.Name, t.Columns, waiting) }); err != nil {
			return err
		}
		rows += int64(len(waiting))
		waiting = waiting[:0]
		progress(rows)
		return nil
	}
	progress(rows)
	if err := from.dump(t, after, func(_ *Table, row []any) error {
		if waiting = append(waiting, row); len(waiting) < carryStep {
			return nil
		}
		return flush()
	}); err != nil {
		return 0, fmt.Errorf("copy %s: %w", t.Name, err)
	}
	return rows, flush()
}

// endFilling compares the target with the source and removes the mark that it is being filled.
func (s *Store) endFilling(ctx context.Context, from *Tx, src source, progress Progress) error {
	if err := s.View(ctx, func(to *Tx) error {
		done := int64(0)
		for _, t := range s.layout.ListCarried() {
			var hashes [2]string
			for side, tx := range []*Tx{from, to} {
				hash, n, err := tx.hash(t)
				if err != nil {
					return fmt.Errorf("compare %s: %w", t.Name, err)
				}
				if n != src.Counts[t.Name] {
					return fmt.Errorf("%w: %s has %d rows instead of %d", ErrDifferent, t.Name, n, src.Counts[t.Name])
				}
				hashes[side] = hash
			}
			if hashes[0] != hashes[1] {
				return fmt.Errorf("%w: the rows of %s differ", ErrDifferent, t.Name)
			}
			done += src.Counts[t.Name]
			progress("compared", done, src.total())
		}
		return nil
	}); err != nil {
		return err
	}
	err := s.Update(ctx, Author{}, func(tx *Tx) error {
		if err := setMarks(tx.conn, src.Marks); err != nil {
			return err
		}
		if err := tx.rebuild(); err != nil {
			return err
		}
		return tx.Write("DELETE FROM filling")
	})
	s.engine.afterFill()
	s.recordForeignCommit(nil)
	return err
}

// hash returns a digest of the rows of a table in order, and their number.
func (tx *Tx) hash(t *Table) (sum string, rows int64, err error) {
	digest := sha256.New()
	e := json.NewEncoder(digest)
	e.SetEscapeHTML(false)
	err = tx.dump(t, nil, func(_ *Table, row []any) error {
		rows++
		return e.Encode(row)
	})
	return hex.EncodeToString(digest.Sum(nil)), rows, err
}
