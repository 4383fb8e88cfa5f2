package schema

// Recorded is embedded in resources that record an action, such as moves. It has the transaction of the action.
type Recorded struct {
	// Transaction is the transaction of the action in the history.
	Transaction *TransactionRef `api:"transaction,readOnly"`
}

// TransactionRef is a transaction.
type TransactionRef struct {
	// ID is its number.
	ID int64 `api:"id"`
	// Type is Transaction.
	Type string `api:"type"`
}

// Record sets the transaction.
func (r *Recorded) Record(transaction int64) {
	r.Transaction = &TransactionRef{ID: transaction, Type: "Transaction"}
}
