package schema

// Recorded is what resources have that say what was done once, such as moves: which transaction did it.
type Recorded struct {
	// Transaction is the transaction of the history that did it.
	Transaction *Done `api:"transaction,readOnly"`
}

// Done is a transaction.
type Done struct {
	// ID is its number.
	ID int64 `api:"id"`
	// Type is Transaction.
	Type string `api:"type"`
}

// Record notes the transaction.
func (r *Recorded) Record(transaction int64) {
	r.Transaction = &Done{ID: transaction, Type: "Transaction"}
}
