// Package store keeps resources, the references between them, free space, and the history of every
// change, in transactions. It knows what a row is and nothing of what a row means: names of types
// and rules belong to address/, the grammar of requests to resource/. The rooms fleet/ and identity/
// keep their own tables here through Tx.Exec and Tx.QueryRow, in SQL with ? placeholders.
//
// Durability: Update returns nil only after the transaction that holds its work was committed with
// synchronous=FULL, so what was acknowledged survives the process and the machine. Concurrent
// updates share one commit (see writer.go).
package store
