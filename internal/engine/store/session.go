package store

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"net/netip"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// session is a connection with its prepared statements. It is used by one goroutine at a time.
type session struct {
	conn *sqlite.Conn
	// idle are the prepared statements that are not running, by their text. The same text may run more than once at a time, for example
	// if a list is read inside another list.
	idle       map[string][]*sqlite.Stmt
	statements int
	// interned are texts that many rows contain, such as names of types, so that each is stored once. lastWords are the latest ones by
	// column: the next row usually has the same.
	interned  map[string]string
	lastWords [12]string
	// readsOnce reports that the page cache is small until the session is returned to its pool.
	readsOnce bool
	// interrupt stops the running statements when it is closed; nil before the first read that can be interrupted, and after an interruption.
	interrupt chan struct{}
}

// Limits of the cached statements and texts of a session. Filters create new statements without bound.
const (
	maxStatements = 256
	maxWords      = 1024
)

// busyTimeout is the maximum time that a connection waits for another process that writes.
const busyTimeout = 10 * time.Second

// pragmas configure a connection. The page cache is 16 MiB per connection. The log is checkpointed at 32 MiB, because a page that changes
// often is then written to the database once.
var pragmas = []string{"PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL", "PRAGMA foreign_keys = OFF",
	cachePragma, fmt.Sprintf("PRAGMA wal_autocheckpoint = %d", checkpointPages),
	fmt.Sprintf("PRAGMA journal_size_limit = %d", maxLog), "PRAGMA temp_store = MEMORY"}

// writerPragmas further configure the connection of the writer, which checkpoints the log itself (checkpointIfLarge). The rollback
// journals of savepoints are kept in a temporary file (setTemporaryDirectory). In memory they would be as large as the changes of a job,
// and SQLite would search them linearly for each page.
var writerPragmas = []string{"PRAGMA wal_autocheckpoint = 0", "PRAGMA temp_store = FILE"}

// readPragmas configure a read-only connection. The first pragma fails if the log cannot be read.
var readPragmas = []string{"PRAGMA user_version", cachePragma, "PRAGMA temp_store = MEMORY"}

// checkpointPages is the number of pages at which the log is checkpointed.
const checkpointPages = 8000

// maxLog is the maximum size in bytes of the log file after a checkpoint.
const maxLog = 64 << 20

// sessionKind is the mode of opening a database file.
type sessionKind int

const (
	writeSession     sessionKind = iota // for reading and writing
	readSession                         // for reading, while other processes may write
	immutableSession                    // for reading, while no process can write
)

// newSession opens a connection to the database file and configures it for its kind.
func newSession(path string, kind sessionKind) (*session, error) {
	var conn *sqlite.Conn
	var err error
	settings := pragmas
	switch kind {
	case readSession:
		conn, err = sqlite.OpenConn(path, sqlite.OpenReadOnly)
		settings = readPragmas
	case immutableSession:
		conn, err = sqlite.OpenConn("file:"+url.PathEscape(path)+"?immutable=1", sqlite.OpenReadOnly, sqlite.OpenURI)
		settings = readPragmas
	default:
		conn, err = sqlite.OpenConn(path, sqlite.OpenReadWrite, sqlite.OpenCreate, sqlite.OpenWAL)
	}
	if err != nil {
		return nil, err
	}
	conn.SetBusyTimeout(busyTimeout)
	if kind == writeSession {
		setTemporaryDirectory(conn, filepath.Dir(path))
	}
	for _, pragma := range settings {
		if err = sqlitex.ExecuteTransient(conn, pragma, nil); err != nil {
			break
		}
	}
	if err == nil {
		err = conn.CreateFunction("address_key", addressKey)
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return &session{conn: conn, idle: map[string][]*sqlite.Stmt{}, interned: map[string]string{}}, nil
}

var temporary sync.Once

// setTemporaryDirectory makes SQLite create its unnamed temporary files in the directory of the first database that the process opens for
// writing: it usually has free space, and other users cannot read it. If the directory no longer exists, SQLite uses that of the system.
// The setting applies to the whole process and must not change while a connection is in use.
func setTemporaryDirectory(conn *sqlite.Conn, dir string) {
	temporary.Do(func() {
		quoted := "'" + strings.ReplaceAll(dir, "'", "''") + "'"
		if err := sqlitex.ExecuteTransient(conn, "PRAGMA temp_store_directory = "+quoted, nil); err != nil {
			slog.Warn("sqlite temporary directory not set, using the system's", "error", err)
		}
	})
}

// addressKey is the SQL function address_key(text). It returns the span key of an address in text form, so that addresses in a body
// compare as addresses. It returns NULL if the text is not an address.
var addressKey = &sqlite.FunctionImpl{NArgs: 1, Deterministic: true,
	Scalar: func(_ sqlite.Context, args []sqlite.Value) (sqlite.Value, error) {
		if args[0].Type() != sqlite.TypeText {
			return sqlite.Value{}, nil
		}
		addr, err := netip.ParseAddr(args[0].Text())
		if err != nil {
			return sqlite.Value{}, nil
		}
		return sqlite.BlobValue(AddrKey(addr)), nil
	}}

// interruptWith makes the end of the context stop the running statements, until the returned function is called. The channel of the
// connection remains for the next read, because each SetInterrupt starts a goroutine and waits for the end of the last one.
func (s *session) interruptWith(ctx context.Context) (disarm func()) {
	if s.interrupt == nil {
		s.interrupt = make(chan struct{})
		s.conn.SetInterrupt(s.interrupt)
	}
	ended := s.interrupt
	stop := func() bool { return false }
	if ctx.Err() != nil { // stops the first statement; a function of the context would run beside it
		close(ended)
	} else {
		stop = context.AfterFunc(ctx, func() { close(ended) })
	}
	return func() {
		if stop() {
			return
		}
		<-ended // the function has started, but may not have closed the channel yet
		s.conn.SetInterrupt(nil)
		s.interrupt = nil
	}
}

// prepare returns a prepared statement with its arguments bound. The caller returns it with release.
func (s *session) prepare(query string, args []any) (*sqlite.Stmt, error) {
	stmts := s.idle[query]
	var stmt *sqlite.Stmt
	if n := len(stmts); n > 0 {
		stmt = stmts[n-1]
		s.idle[query] = stmts[:n-1]
	} else {
		if s.statements >= maxStatements {
			s.finalizeIdle()
		}
		var err error
		var rest int
		if stmt, rest, err = s.conn.PrepareTransient(query); err != nil {
			return nil, fmt.Errorf("prepare %q: %w", query, err)
		}
		if rest != 0 {
			_ = stmt.Finalize()
			return nil, fmt.Errorf("more than one statement in %q", query)
		}
		s.statements++
	}
	for i, arg := range args {
		if err := bind(stmt, i+1, arg); err != nil {
			s.release(query, stmt)
			return nil, err
		}
	}
	return stmt, nil
}

// release returns a statement to the session. Its bindings stay until they are replaced: since SQLite 3.54, clearing them makes SQLite
// plan the statement again.
func (s *session) release(query string, stmt *sqlite.Stmt) {
	_ = stmt.Reset() // returns the error of the last step, which was already reported
	s.idle[query] = append(s.idle[query], stmt)
}

// finalizeIdle finalizes the statements that are not running.
func (s *session) finalizeIdle() {
	for query, stmts := range s.idle {
		for _, stmt := range stmts {
			_ = stmt.Finalize()
			s.statements--
		}
		delete(s.idle, query)
	}
}

// bind binds an argument to the parameter at position at, which starts at 1.
func bind(stmt *sqlite.Stmt, at int, arg any) error {
	switch x := arg.(type) {
	case nil:
		stmt.BindNull(at)
	case int64:
		stmt.BindInt64(at, x)
	case int:
		stmt.BindInt64(at, int64(x))
	case string:
		stmt.BindText(at, x)
	case *string:
		if x == nil {
			stmt.BindNull(at)
		} else {
			stmt.BindText(at, *x)
		}
	case []byte:
		if x == nil {
			stmt.BindNull(at)
		} else {
			stmt.BindBytes(at, x)
		}
	case bool:
		stmt.BindBool(at, x)
	case float64:
		stmt.BindFloat(at, x)
	default:
		return fmt.Errorf("an argument of a statement is a %T", arg)
	}
	return nil
}

// exec runs a statement to its end and returns the number of rows it changed.
func (s *session) exec(query string, args ...any) (int64, error) {
	stmt, err := s.prepare(query, args)
	if err != nil {
		return 0, err
	}
	defer s.release(query, stmt)
	for {
		more, err := stmt.Step()
		if err != nil {
			return 0, err
		}
		if !more {
			return int64(s.conn.Changes()), nil
		}
	}
}

func (s *session) execLater(query string, args ...any) error {
	_, err := s.exec(query, args...)
	return err
}

// bulkRows is the number of rows that one statement inserts. The last rows are inserted in statements of fewer rows, by steps of bulkStep.
const (
	bulkRows = 64
	bulkStep = 4
)

// bulk inserts rows. OR FAIL stops SQLite from keeping a journal of each statement. After an error the caller must therefore roll back
// the transaction or the savepoint of the job.
func (s *session) bulk(table string, columns []string, rows [][]any) error {
	one := "(?" + strings.Repeat(", ?", len(columns)-1) + ")"
	args := make([]any, 0, bulkRows*len(columns))
	for len(rows) > 0 {
		n := bulkRows
		for n > len(rows) { // only a few numbers of rows, because each has a prepared statement
			n /= bulkStep
		}
		part := rows[:n]
		rows, args = rows[n:], args[:0]
		for _, row := range part {
			args = append(args, row...)
		}
		if _, err := s.exec("INSERT OR FAIL INTO "+table+" ("+strings.Join(columns, ", ")+") VALUES "+one+strings.Repeat(", "+one, len(part)-1),
			args...); err != nil {
			return fmt.Errorf("write %s: %w", table, err)
		}
	}
	return nil
}

// each runs a query and calls fn for each of its rows.
func (s *session) each(query string, args []any, fn func(row) error) error {
	stmt, err := s.prepare(query, args)
	if err != nil {
		return err
	}
	defer s.release(query, stmt)
	r := &sqliteRow{s, stmt}
	for {
		more, err := stmt.Step()
		if err != nil || !more {
			return err
		}
		if err := fn(r); err != nil {
			return err
		}
	}
}

func (s *session) list(query string, args []any, _ bool, fn func(row) error) error {
	return s.each(query, args, fn)
}

func (s *session) mark(kind string) (value int64, err error) {
	err = s.each("SELECT value FROM counter WHERE name = ?", []any{kind}, func(r row) error { return r.scan(&value) })
	return value, err
}

func (s *session) setMark(kind string, mark int64) error {
	_, err := s.exec("INSERT INTO counter (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value", kind, mark)
	return err
}

// advanceSequences does nothing: SQLite continues after the highest row.
func (s *session) advanceSequences() error { return nil }

func (s *session) sqlDialect() *dialect { return &sqliteDialect }

// sqliteRow is the current row of a statement.
type sqliteRow struct {
	session *session
	stmt    *sqlite.Stmt
}

func (r *sqliteRow) readResource(to *Resource) error {
	stmt, s := r.stmt, r.session
	to.ID, to.Collection, to.Type, to.Name = stmt.ColumnInt64(0), s.internColumn(stmt, 1), s.internColumn(stmt, 2), stmt.ColumnText(3)
	to.Parent, to.Configuration, to.Version = stmt.ColumnInt64(4), stmt.ColumnInt64(5), stmt.ColumnInt64(9)
	to.Low, to.High = readColumn(stmt, 6, to.Low), readColumn(stmt, 7, to.High)
	to.Key, to.Refs, to.Links = stmt.ColumnText(8), parseRefs(s.internColumn(stmt, 10)), nil
	to.Body = readColumn(stmt, 11, to.Body)
	return nil
}

func (r *sqliteRow) readShown(to *Resource) error {
	stmt, s := r.stmt, r.session
	to.ID, to.Collection, to.Type, to.Name = stmt.ColumnInt64(0), s.internColumn(stmt, 1), s.internColumn(stmt, 2), stmt.ColumnText(3)
	to.Parent, to.Configuration, to.Version = stmt.ColumnInt64(4), stmt.ColumnInt64(5), stmt.ColumnInt64(6)
	to.Refs, to.Body = parseRefs(s.internColumn(stmt, 7)), readColumn(stmt, 8, to.Body)
	to.Low = readColumn(stmt, 9, to.Low)
	return nil
}

// readColumn reads the bytes of a column into b, or into a larger buffer if b is too small. It returns nil for NULL.
func readColumn(stmt *sqlite.Stmt, at int, b []byte) []byte {
	n := stmt.ColumnLen(at)
	if n == 0 {
		return nil
	}
	if cap(b) < n {
		b = make([]byte, n, n+n/4)
	}
	stmt.ColumnBytes(at, b[:n])
	return b[:n]
}

func (r *sqliteRow) values() []any {
	all := make([]any, r.stmt.ColumnCount())
	for i := range all {
		switch r.stmt.ColumnType(i) {
		case sqlite.TypeInteger:
			all[i] = r.stmt.ColumnInt64(i)
		case sqlite.TypeBlob:
			all[i] = columnBytes(r.stmt, i)
		case sqlite.TypeText:
			all[i] = r.stmt.ColumnText(i)
		}
	}
	return all
}

func (r *sqliteRow) readHead() (Head, error) {
	stmt, s := r.stmt, r.session
	return Head{ID: stmt.ColumnInt64(0), Collection: s.internColumn(stmt, 1), Type: s.internColumn(stmt, 2), Name: stmt.ColumnText(3),
		Parent: stmt.ColumnInt64(4), Configuration: stmt.ColumnInt64(5), Inline: stmt.ColumnText(6)}, nil
}

func (r *sqliteRow) scan(dest ...any) error {
	stmt := r.stmt
	for i, d := range dest {
		null := stmt.ColumnIsNull(i)
		switch x := d.(type) {
		case *string:
			*x = stmt.ColumnText(i)
		case *int64:
			*x = stmt.ColumnInt64(i)
		case *int:
			*x = stmt.ColumnInt(i)
		case *bool:
			*x = stmt.ColumnBool(i)
		case *[]byte:
			*x = columnBytes(stmt, i)
		case *sql.NullString:
			*x = sql.NullString{String: stmt.ColumnText(i), Valid: !null}
		case *sql.NullBool:
			*x = sql.NullBool{Bool: stmt.ColumnBool(i), Valid: !null}
		default:
			return fmt.Errorf("column %d is read into a %T", i, d)
		}
	}
	return nil
}

func columnBytes(stmt *sqlite.Stmt, at int) []byte {
	if stmt.ColumnIsNull(at) {
		return nil
	}
	b := make([]byte, stmt.ColumnLen(at))
	stmt.ColumnBytes(at, b)
	return b
}

// internColumn reads a text that many rows contain, without allocating it each time.
func (s *session) internColumn(stmt *sqlite.Stmt, at int) string {
	var buffer [64]byte
	n := stmt.ColumnLen(at)
	if n > len(buffer) {
		return stmt.ColumnText(at)
	}
	stmt.ColumnBytes(at, buffer[:n])
	if s.lastWords[at] == string(buffer[:n]) {
		return s.lastWords[at]
	}
	s.lastWords[at] = s.intern(buffer[:n])
	return s.lastWords[at]
}

func (s *session) intern(word []byte) string {
	if known, ok := s.interned[string(word)]; ok {
		return known
	}
	text := string(word)
	if len(s.interned) < maxWords {
		s.interned[text] = text
	}
	return text
}

func (s *session) close() error {
	s.finalizeIdle()
	return s.conn.Close()
}
