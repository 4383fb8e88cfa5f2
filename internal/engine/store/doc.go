// Package store keeps resources, the references between them and the history of every change, in transactions. It knows the columns of a
// row but not their meaning: it has no types, no declared collections and no members of a body. Other packages keep their data in
// extensions (extension.go): tables of their own, accessed by SQL with ? placeholders.
//
// There are two databases: SQLite in a directory (engine_sqlite.go, writer.go), and PostgreSQL, which any number of managers may share
// (engine_postgres.go, postgres.go). Statements are written once for both. dialect_sqlite.go and dialect_postgres.go contain the
// differences.
//
// Durability: Update returns nil only after the transaction was committed, on SQLite with synchronous=FULL. An acknowledged change
// therefore survives a crash of the process and of the machine. On SQLite concurrent updates share one commit; on PostgreSQL each update
// is a serialisable transaction.
package store
