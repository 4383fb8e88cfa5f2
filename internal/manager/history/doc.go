// Package history makes changes to the history detectable. It runs the store's chaining of transactions and signs the head of the chain at
// intervals. It sends heads and transactions to places that the owner of the database cannot change.
package history
