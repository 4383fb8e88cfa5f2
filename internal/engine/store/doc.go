// Package store keeps resources, the references between them, and the history of every change, in transactions. It knows what
// a row is and nothing of what a row means: no type, no collection, no member of a body. What rooms keep beside the rows are
// extensions (extension.go), in tables of their own, in SQL with ? placeholders.
//
// There are two databases: SQLite in a directory (engine_sqlite.go, writer.go) and PostgreSQL, which any
// number of managers may share (engine_postgres.go, postgres.go). Statements are written once, for both; where their words
// differ, dialect_sqlite.go and dialect_postgres.go have them.
//
// Durability: Update returns nil only after the transaction that holds its work was committed, on
// SQLite with synchronous=FULL, so what was acknowledged survives the process and the machine. On
// SQLite concurrent updates share one commit; on PostgreSQL each is a serialisable transaction.
package store
