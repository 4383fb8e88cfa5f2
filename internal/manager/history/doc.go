// Package history keeps the history of changes trustworthy: it has the store's chain of transactions made, signs its head at intervals, and
// sends heads and transactions to where the database's owner cannot change them.
package history
