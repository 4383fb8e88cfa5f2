package store

import (
	"context"
	"database/sql"
	"encoding/binary"
	"fmt"
	"strconv"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// pgConn is a connection, most often in a transaction. What begins the transaction, and statements
// whose outcome nobody asks for, wait and travel with the next statement that is asked for, or with
// the commit: a round trip costs more than most statements.
type pgConn struct {
	ctx context.Context
	pg  *pgx.Conn
	p   *postgres
	// busy is held while something is asked and answered: a list may be read at the same time.
	busy sync.Mutex
	// begin is the statement that begins the transaction, empty once it was sent.
	begin string
	// waiting are statements that were not sent yet.
	waiting []statement
	// failed is the first error of the transaction: after it the database does nothing more, and says
	// nothing that would help.
	failed error
	// cursors counts those that were opened, for their names.
	cursors int
	// words are the texts that stand in row after row, such as the names of types: kept once.
	words map[string]string
}

type statement struct {
	query string
	args  []any
}

// send sends what waits and then the statement, in one round trip, and lets read have its answer.
func (c *pgConn) send(query string, args []any, read func(pgx.BatchResults) error) error {
	if c.failed == nil {
		c.failed = c.sendAll(query, args, read)
	}
	return c.failed
}

func (c *pgConn) sendAll(query string, args []any, read func(pgx.BatchResults) error) error {
	b := &pgx.Batch{}
	if c.begin != "" {
		b.Queue(c.begin)
		c.begin = ""
	}
	for _, s := range c.waiting {
		b.Queue(c.p.texts.of(s.query), s.args...)
	}
	c.waiting = nil
	before := b.Len()
	b.Queue(c.p.texts.of(query), args...)
	results := c.pg.SendBatch(c.ctx, b)
	for range before {
		if _, err := results.Exec(); err != nil {
			_ = results.Close() // gives the same error
			return err
		}
	}
	err := read(results)
	if e := results.Close(); err == nil {
		err = e
	}
	return err
}

// end ends the transaction, if it was begun or has anything to do.
func (c *pgConn) end(how string) error {
	if c.failed != nil { // and somebody did not mind
		return c.failed
	}
	if c.begin != "" && len(c.waiting) == 0 || c.pg.PgConn().TxStatus() == 'I' && len(c.waiting) == 0 {
		return nil
	}
	_, err := c.exec(how)
	return err
}

// wait lets a statement wait.
func (c *pgConn) wait(query string, args ...any) {
	c.waiting = append(c.waiting, statement{query, args})
}

func (c *pgConn) later(query string, args ...any) error {
	c.wait(query, args...)
	return nil
}

func (c *pgConn) bulk(table string, columns []string, rows [][]any) error {
	if err := c.flush(); err != nil {
		return err
	}
	c.busy.Lock()
	defer c.busy.Unlock()
	if _, err := c.pg.CopyFrom(c.ctx, pgx.Identifier{table}, columns, pgx.CopyFromRows(rows)); err != nil {
		return fmt.Errorf("writing %s: %w", table, err)
	}
	return nil
}

func (c *pgConn) exec(query string, args ...any) (n int64, err error) {
	c.busy.Lock()
	defer c.busy.Unlock()
	if c.begin == "" && len(c.waiting) == 0 && c.failed == nil {
		tag, err := c.pg.Exec(c.ctx, c.p.texts.of(query), args...)
		c.failed = err
		return tag.RowsAffected(), err
	}
	err = c.send(query, args, func(r pgx.BatchResults) error {
		tag, err := r.Exec()
		n = tag.RowsAffected()
		return err
	})
	return n, err
}

// each reads the whole answer before it calls fn, because fn may ask something else on the same
// connection.
func (c *pgConn) each(query string, args []any, fn func(row) error) error {
	all, ok := used.Get().(*pgRows)
	if !ok {
		all = &pgRows{}
	}
	if err := c.query(query, args, all.read); err != nil {
		return err
	}
	defer used.Put(all)
	return all.each(c, fn)
}

// query asks and lets read have the answer.
func (c *pgConn) query(query string, args []any, read func(pgx.Rows) error) error {
	c.busy.Lock()
	defer c.busy.Unlock()
	if c.begin != "" || len(c.waiting) > 0 || c.failed != nil {
		return c.send(query, args, func(r pgx.BatchResults) error {
			rows, err := r.Query()
			if err != nil {
				return err
			}
			return read(rows)
		})
	}
	rows, err := c.pg.Query(c.ctx, c.p.texts.of(query), args...)
	if err == nil {
		err = read(rows)
	}
	c.failed = err
	return err
}

// A list is read while what was read before is used: rows come in pieces, and the connection is free
// for what fn asks between one page of the cursor and the next.
const (
	// fetched is how many rows of a long answer are asked for at a time, piece how many are used at a time.
	fetched = 1000
	piece   = 125
	// pages is how many pages of a cursor may be in memory.
	pages = 2
)

// list gives rows to fn while others are read. Where the answer may be long it is read through a
// cursor, so that the memory does not grow with it; short says that it has few rows.
func (c *pgConn) list(query string, args []any, short bool, fn func(row) error) error {
	if c.begin == "" && c.pg.PgConn().TxStatus() == 'I' { // a cursor needs a transaction
		short = true
	}
	l := &pgList{c: c, pieces: make(chan *pgRows, pages*fetched/piece+pages), credits: make(chan struct{}, pages), stop: make(chan struct{})}
	if short {
		go l.read(func() (bool, error) { return true, c.query(query, args, l.take) })
	} else {
		c.cursors++
		name := "list" + strconv.Itoa(c.cursors)
		if err := c.flush(); err != nil {
			return err
		}
		// A cursor's query takes no parameters over the extended protocol: pgx quotes them into it.
		simple := append([]any{pgx.QueryExecModeSimpleProtocol}, args...)
		if _, err := c.exec("DECLARE "+name+" NO SCROLL CURSOR FOR "+query, simple...); err != nil {
			return err
		}
		fetch := "FETCH " + strconv.Itoa(fetched) + " FROM " + name
		go l.read(func() (last bool, err error) {
			before := l.rows
			err = c.query(fetch, nil, l.take)
			return l.rows-before < fetched, err // the cursor ends with the transaction
		})
	}
	defer func() { // also where fn panics: nobody may read when the connection is given back
		close(l.stop)
		for range l.pieces { //nolint:revive // they are not wanted any more
		}
	}()
	for p := range l.pieces {
		if err := p.each(c, fn); err != nil {
			return err
		}
		if p.last {
			<-l.credits
		}
		used.Put(p)
	}
	return l.err
}

// pgList is a list that is being read. Its reader owns everything but stop until pieces is closed.
type pgList struct {
	c      *pgConn
	pieces chan *pgRows
	// credits has a token for each page that is in memory.
	credits chan struct{}
	stop    chan struct{}
	rows    int
	err     error
}

// read reads pages until the last one.
func (l *pgList) read(page func() (last bool, err error)) {
	defer close(l.pieces)
	for {
		select {
		case <-l.stop:
			return
		case l.credits <- struct{}{}:
		}
		last, err := page()
		l.pieces <- &pgRows{last: true}
		if l.err = err; last || err != nil {
			return
		}
	}
}

// take cuts an answer into pieces. There is room for all of them.
func (l *pgList) take(rows pgx.Rows) error {
	p := newPiece(rows)
	for rows.Next() {
		l.rows++
		p.add(rows.RawValues())
		if p.count() == piece && cap(l.pieces)-len(l.pieces) > 2 {
			l.pieces <- p
			p = newPiece(rows)
		}
	}
	l.pieces <- p
	return rows.Err()
}

// used are pieces whose memory can be used again.
var used = sync.Pool{New: func() any { return &pgRows{} }}

func newPiece(rows pgx.Rows) *pgRows {
	p, ok := used.Get().(*pgRows)
	if !ok {
		p = &pgRows{}
	}
	p.reset(rows)
	return p
}

// flush sends what waits.
func (c *pgConn) flush() error {
	if c.begin == "" && len(c.waiting) == 0 {
		return nil
	}
	_, err := c.exec("SELECT 1")
	return err
}

// damage is empty: PostgreSQL checks its pages as it reads them, where it is set to.
func (c *pgConn) damage() ([]string, error) { return nil, nil }

func (c *pgConn) mark(kind string) (value int64, err error) {
	err = c.each("SELECT last_value FROM number_"+kind, nil, func(r row) error { return r.scan(&value) })
	return value + sequenceStep - 1, err
}

func (c *pgConn) setMark(kind string, mark int64) error {
	return c.each("SELECT setval('number_"+kind+"', ?)", []any{mark}, func(row) error { return nil })
}

func (c *pgConn) speaks() *dialect { return &postgresDialect }

// pgRows are the rows of an answer, their values side by side in one piece of memory.
type pgRows struct {
	fields []pgconn.FieldDescription
	bytes  []byte
	// ends are where the values end in bytes, row after row; -1 - end for NULL.
	ends []int
	// last says that nothing comes behind in a page.
	last bool
}

func (a *pgRows) count() int {
	if len(a.fields) == 0 {
		return 0
	}
	return len(a.ends) / len(a.fields)
}

// read reads an answer to its end.
func (a *pgRows) read(rows pgx.Rows) error {
	a.reset(rows)
	for rows.Next() {
		a.add(rows.RawValues())
	}
	return rows.Err()
}

func (a *pgRows) reset(rows pgx.Rows) {
	a.bytes, a.ends, a.last = a.bytes[:0], a.ends[:0], false
	a.fields = append(a.fields[:0], rows.FieldDescriptions()...)
}

func (a *pgRows) add(row [][]byte) {
	for _, value := range row {
		a.bytes = append(a.bytes, value...)
		if value == nil {
			a.ends = append(a.ends, -1-len(a.bytes))
		} else {
			a.ends = append(a.ends, len(a.bytes))
		}
	}
}

func (a *pgRows) each(c *pgConn, fn func(row) error) error {
	r := &pgRow{c: c, fields: a.fields, raw: make([][]byte, len(a.fields))}
	from, at := 0, 0
	for range a.count() {
		for i := range r.raw {
			end := a.ends[at]
			at++
			if end < 0 {
				r.raw[i] = nil
				continue
			}
			r.raw[i] = a.bytes[from:end:end]
			from = end
		}
		if err := fn(r); err != nil {
			return err
		}
	}
	return nil
}

// pgRow is the values of a row, as they came over the wire.
type pgRow struct {
	c      *pgConn
	fields []pgconn.FieldDescription
	raw    [][]byte
}

// integer gives a value as a number; 0 for NULL.
func (r *pgRow) integer(i int) (int64, error) {
	v, f := r.raw[i], &r.fields[i]
	switch {
	case v == nil:
		return 0, nil
	case f.Format == pgtype.BinaryFormatCode && f.DataTypeOID == pgtype.Int8OID && len(v) == 8:
		return int64(binary.BigEndian.Uint64(v)), nil //nolint:gosec // the wire has it so
	case f.Format == pgtype.BinaryFormatCode && f.DataTypeOID == pgtype.Int4OID && len(v) == 4:
		return int64(int32(binary.BigEndian.Uint32(v))), nil //nolint:gosec // the wire has it so
	case f.Format == pgtype.BinaryFormatCode && f.DataTypeOID == pgtype.BoolOID && len(v) == 1:
		return int64(v[0]), nil
	case f.DataTypeOID == pgtype.TextOID:
		switch text := string(v); text {
		case "true":
			return 1, nil
		case "false":
			return 0, nil
		default:
			return strconv.ParseInt(text, 10, 64)
		}
	}
	var n int64
	err := r.c.pg.TypeMap().Scan(f.DataTypeOID, f.Format, v, &n)
	return n, err
}

// text gives a value as text; empty for NULL.
func (r *pgRow) text(i int) (string, error) {
	if f := &r.fields[i]; f.DataTypeOID != pgtype.TextOID && r.raw[i] != nil {
		var text string
		err := r.c.pg.TypeMap().Scan(f.DataTypeOID, f.Format, r.raw[i], &text)
		return text, err
	}
	return string(r.raw[i]), nil
}

func (r *pgRow) scan(dest ...any) (err error) {
	if len(dest) != len(r.raw) {
		return fmt.Errorf("%d columns are read into %d places", len(r.raw), len(dest))
	}
	for i, d := range dest {
		valid := r.raw[i] != nil
		var n int64
		switch x := d.(type) {
		case *string:
			*x, err = r.text(i)
		case *int64:
			*x, err = r.integer(i)
		case *int:
			n, err = r.integer(i)
			*x = int(n)
		case *bool:
			n, err = r.integer(i)
			*x = n != 0
		case *[]byte:
			*x = append([]byte(nil), r.raw[i]...)
		case *sql.NullString:
			x.Valid = valid
			x.String, err = r.text(i)
		case *sql.NullBool:
			n, err = r.integer(i)
			x.Bool, x.Valid = n != 0, valid
		default:
			err = fmt.Errorf("column %d is read into a %T", i, d)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// word reads a text that stands in many rows without making it anew each time.
func (r *pgRow) word(i int) string {
	if known, ok := r.c.words[string(r.raw[i])]; ok {
		return known
	}
	text := string(r.raw[i])
	if r.c.words == nil || len(r.c.words) > maxWords {
		r.c.words = map[string]string{}
	}
	r.c.words[text] = text
	return text
}

// number reads a column that is a BIGINT by the schema.
func (r *pgRow) number(i int) int64 {
	if len(r.raw[i]) != 8 { // a constant in a view, or NULL
		n, _ := r.integer(i)
		return n
	}
	return int64(binary.BigEndian.Uint64(r.raw[i])) //nolint:gosec // the wire has it so
}

// fill copies bytes into the memory that is there.
func refill(b, v []byte) []byte {
	if v == nil {
		return nil
	}
	return append(b[:0], v...)
}

func (r *pgRow) resource(to *Resource) error {
	to.ID, to.Collection, to.Type, to.Name = r.number(0), r.word(1), r.word(2), string(r.raw[3])
	to.Parent, to.Configuration, to.Version = r.number(4), r.number(5), r.number(9)
	to.Low, to.High = refill(to.Low, r.raw[6]), refill(to.High, r.raw[7])
	to.Key, to.Refs, to.Links = string(r.raw[8]), parseRefs(r.word(10)), nil
	to.Body = refill(to.Body, r.raw[11])
	return nil
}

const nearQuery = "SELECT r.id, r.collection, r.type, r.name, r.parent, r.configuration, r.low, r.high, r.key, r.version, r.refs, r.body," +
	" p.id, p.collection, p.type, p.name, p.parent, p.configuration, c.id, c.collection, c.type, c.name, c.parent, c.configuration" +
	" FROM resource r LEFT JOIN resource p ON p.id = r.parent LEFT JOIN resource c ON c.id = r.configuration WHERE r.id = ?"

func (c *pgConn) getNear(id int64, near map[int64]Head) (found *Resource, err error) {
	err = c.each(nearQuery, []any{id}, func(at row) error {
		r, ok := at.(*pgRow)
		if !ok {
			return fmt.Errorf("a row of PostgreSQL is a %T", at)
		}
		found = &Resource{}
		if err := r.resource(found); err != nil {
			return err
		}
		for from := 12; from < len(r.raw); from += 6 {
			if r.raw[from] != nil {
				h := r.headAt(from)
				near[h.ID] = h
			}
		}
		return nil
	})
	if err == nil && found == nil {
		err = ErrNotFound
	}
	return found, err
}

func (r *pgRow) shown(to *Resource) error {
	to.ID, to.Collection, to.Type, to.Name = r.number(0), r.word(1), r.word(2), string(r.raw[3])
	to.Parent, to.Configuration, to.Version = r.number(4), r.number(5), r.number(6)
	to.Refs, to.Body = parseRefs(r.word(7)), refill(to.Body, r.raw[8])
	return nil
}

func (r *pgRow) head() (Head, error) { return r.headAt(0), nil }

// headAt reads a head out of the columns from there on.
func (r *pgRow) headAt(i int) Head {
	return Head{ID: r.number(i), Collection: r.word(i + 1), Type: r.word(i + 2), Name: string(r.raw[i+3]), Parent: r.number(i + 4), Configuration: r.number(i + 5)}
}

func (r *pgRow) values() []any {
	all := make([]any, len(r.raw))
	for i, v := range r.raw {
		switch {
		case v == nil:
		case r.fields[i].DataTypeOID == pgtype.Int8OID:
			all[i] = r.number(i)
		case r.fields[i].DataTypeOID == pgtype.ByteaOID:
			all[i] = append([]byte{}, v...)
		default:
			all[i] = string(v)
		}
	}
	return all
}
