package store

import (
	"database/sql"
	"encoding/binary"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// pgRows are the rows of an answer, with all values in one buffer.
type pgRows struct {
	fields []pgconn.FieldDescription
	bytes  []byte
	// ends are the ends of the values in bytes, row after row. A NULL is -1 - end.
	ends []int
	// last is true in the final element of a page.
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

// add appends a row. A value in row is nil for NULL.
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

// pgRow contains the values of a row in wire format.
type pgRow struct {
	c      *pgConn
	fields []pgconn.FieldDescription
	raw    [][]byte
}

// integer returns a value as a number, or 0 for NULL.
func (r *pgRow) integer(i int) (int64, error) {
	v, f := r.raw[i], &r.fields[i]
	switch {
	case v == nil:
		return 0, nil
	case f.Format == pgtype.BinaryFormatCode && f.DataTypeOID == pgtype.Int8OID && len(v) == 8:
		return int64(binary.BigEndian.Uint64(v)), nil //nolint:gosec // the wire format is two's complement
	case f.Format == pgtype.BinaryFormatCode && f.DataTypeOID == pgtype.Int4OID && len(v) == 4:
		return int64(int32(binary.BigEndian.Uint32(v))), nil //nolint:gosec // the wire format is two's complement
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

// text returns a value as text, or "" for NULL.
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
		return fmt.Errorf("scan: %d columns into %d destinations", len(r.raw), len(dest))
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

// word returns a text that many rows contain, without allocating it each time.
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

// number returns the value of a column of type BIGINT.
func (r *pgRow) number(i int) int64 {
	if len(r.raw[i]) != 8 { // a constant in a view, or NULL
		n, _ := r.integer(i)
		return n
	}
	return bigint(r.raw[i])
}

// bigint decodes a BIGINT in wire format.
func bigint(raw []byte) int64 {
	return int64(binary.BigEndian.Uint64(raw)) //nolint:gosec // the wire format is two's complement
}

// onPgRow adapts fn to rows of any database. Rows of other databases are errors.
func onPgRow(fn func(*pgRow) error) func(row) error {
	return func(at row) error {
		r, ok := at.(*pgRow)
		if !ok {
			return fmt.Errorf("a row of PostgreSQL is a %T", at)
		}
		return fn(r)
	}
}

// refill copies v into the memory of b.
func refill(b, v []byte) []byte {
	if v == nil {
		return nil
	}
	return append(b[:0], v...)
}

func (r *pgRow) readResource(to *Resource) error {
	to.ID, to.Collection, to.Type, to.Name = r.number(0), r.word(1), r.word(2), string(r.raw[3])
	to.Parent, to.Configuration, to.Version = r.number(4), r.number(5), r.number(9)
	to.Low, to.High = refill(to.Low, r.raw[6]), refill(to.High, r.raw[7])
	to.Key, to.Refs, to.Links = string(r.raw[8]), parseRefs(r.word(10)), nil
	to.Body = refill(to.Body, r.raw[11])
	return nil
}

// nearQuery returns the statement that reads resources with the heads of their parents and configurations, and with the texts of
// extensions.
func nearQuery(inline *inlineMembers, texts []JoinedText) rowQuery {
	text := "SELECT " + nearColumns + nearHeadColumns(inline) + joinedColumns(texts) + " FROM resource r" + nearJoins + " WHERE r.id = "
	return rowQuery{text + "?", text + "ANY(?)"}
}

// joinedColumns returns the columns with the texts of extensions. joinedNames returns their names in a subquery.
func joinedColumns(texts []JoinedText) (text string) {
	for i, b := range texts {
		text += ", CASE WHEN r.collection IN (" + quoteNames(b.Collections()...) + ") THEN " + b.SQL + " END AS beside" + strconv.Itoa(i)
	}
	return text
}

func joinedNames(texts []JoinedText, part string) (text string) {
	for i := range texts {
		text += ", " + part + ".beside" + strconv.Itoa(i)
	}
	return text
}

// nearHeadColumns returns the columns of the heads of a row's parent and configuration. nearJoins joins them.
func nearHeadColumns(inline *inlineMembers) string {
	return ", " + inline.columns("p") + ", " + inline.columns("c")
}

const nearJoins = " LEFT JOIN resource p ON p.id = r.parent LEFT JOIN resource c ON c.id = r.configuration"

// rememberNear caches the heads and the texts of extensions that were read with a row of a list.
func (tx *Tx) rememberNear(at row, l listStatement) error {
	r, ok := at.(*pgRow)
	if !ok {
		return fmt.Errorf("a row of PostgreSQL is a %T", at)
	}
	if l.textColumn > 0 {
		if tx.joinedTexts == nil {
			tx.joinedTexts = map[int64][]string{}
		}
		texts := make([]string, len(tx.inline.joinedTexts))
		for i := range texts {
			texts[i] = string(r.raw[l.textColumn+i])
		}
		tx.joinedTexts[r.number(0)] = texts
	}
	if !l.hasHeads {
		return nil
	}
	if tx.prefetched == nil {
		tx.prefetched = map[int64]Head{}
	}
	return r.heads(shownSize, tx.inline, tx.prefetched)
}

// heads reads the heads of a row's parent and configuration, starting at column from.
func (r *pgRow) heads(from int, inline *inlineMembers, near map[int64]Head) error {
	for i := from; i < from+2*headSize; i += headSize {
		if r.raw[i] == nil { // it has no parent or configuration
			continue
		}
		h, err := inline.extractInline(r.headAt(i), nil)
		if err != nil {
			return err
		}
		near[h.ID] = h
	}
	return nil
}

// nearHeads is the index of the first head column of nearQuery, and headSize is the number of columns of a head. nearEnd is the index of
// the first text of an extension.
const (
	nearColumns = "r.id, r.collection, r.type, r.name, r.parent, r.configuration, r.low, r.high, r.key, r.version, r.refs, r.body"
	nearHeads   = 12
	headSize    = 7
	nearEnd     = nearHeads + 2*headSize
)

func (c *pgConn) getNear(id int64, near map[int64]Head, beside map[int64][]string, inline *inlineMembers) (found *Resource, err error) {
	query := inline.headQueries[0]
	if beside != nil {
		query = inline.headQueries[1]
	}
	if query.byID == "" { // ShowInline was not called
		query, beside = nearQuery(inline, nil), nil
	}
	take := func(r *pgRow) error {
		found = &Resource{}
		if err := r.readResource(found); err != nil {
			return err
		}
		if err := r.heads(nearHeads, inline, near); err != nil {
			return err
		}
		if beside != nil && len(inline.joinedTexts) > 0 {
			for i := range inline.joinedTexts {
				beside[id] = append(beside[id], string(r.raw[nearEnd+i]))
			}
		}
		return nil
	}
	if c.isUnused() {
		err = c.p.gatherer.readRow(c, query, id, take)
	} else {
		err = c.each(query.byID, []any{id}, onPgRow(take))
	}
	if err == nil && found == nil {
		err = ErrNotFound
	}
	return found, err
}

func (r *pgRow) readShown(to *Resource) error {
	to.ID, to.Collection, to.Type, to.Name = r.number(0), r.word(1), r.word(2), string(r.raw[3])
	to.Parent, to.Configuration, to.Version = r.number(4), r.number(5), r.number(6)
	to.Refs, to.Body = parseRefs(r.word(7)), refill(to.Body, r.raw[8])
	to.Low = refill(to.Low, r.raw[9])
	return nil
}

func (r *pgRow) readHead() (Head, error) { return r.headAt(0), nil }

// headAt reads a head from the columns starting at i.
func (r *pgRow) headAt(i int) Head {
	return Head{ID: r.number(i), Collection: r.word(i + 1), Type: r.word(i + 2), Name: string(r.raw[i+3]), Parent: r.number(i + 4),
		Configuration: r.number(i + 5), Inline: string(r.raw[i+6])}
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
