package store

import (
	"context"
	"database/sql"
	"fmt"
	"net/netip"
	"sync"

	"database/sql/driver"

	"modernc.org/sqlite"
)

// session is one connection with the statements it has prepared. One goroutine uses it at a time.
type session struct {
	conn  *sql.Conn
	stmts map[string]*sql.Stmt
}

// maxStatements bounds a session's prepared statements: filters make ever new ones.
const maxStatements = 256

func newSession(ctx context.Context, db *sql.DB) (*session, error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	return &session{conn: conn, stmts: map[string]*sql.Stmt{}}, nil
}

// prepare gives the prepared statement for the query. Statements are prepared and run without the
// request's context: a cancellable context costs a goroutine a query, and these are short.
func (s *session) prepare(query string) (*sql.Stmt, error) {
	if stmt, ok := s.stmts[query]; ok {
		return stmt, nil
	}
	if len(s.stmts) >= maxStatements {
		for q, stmt := range s.stmts {
			_ = stmt.Close()
			delete(s.stmts, q)
			if len(s.stmts) < maxStatements/2 {
				break
			}
		}
	}
	stmt, err := s.conn.PrepareContext(context.Background(), query)
	if err != nil {
		return nil, fmt.Errorf("preparing %q: %w", query, err)
	}
	s.stmts[query] = stmt
	return stmt, nil
}

func (s *session) exec(query string, args ...any) error {
	stmt, err := s.prepare(query)
	if err != nil {
		return err
	}
	_, err = stmt.Exec(args...)
	return err
}

func (s *session) close() {
	for _, stmt := range s.stmts {
		_ = stmt.Close()
	}
	_ = s.conn.Close()
}

// registerFunctions adds address_key(text): the span key of an address written as text, so that
// addresses inside a body compare as addresses. It gives NULL for what is no address.
var registerFunctions = sync.OnceValue(func() error {
	return sqlite.RegisterDeterministicScalarFunction("address_key", 1,
		func(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) {
			text, ok := args[0].(string)
			if !ok {
				return nil, nil
			}
			addr, err := netip.ParseAddr(text)
			if err != nil {
				return nil, nil
			}
			return AddrKey(addr), nil
		})
})
