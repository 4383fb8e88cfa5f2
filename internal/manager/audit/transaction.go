package audit

import (
	"embed"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// Database views that show the history as rows of resources, so that the same filters work: the transactions, and their operations.
const (
	transactionRows store.Source = "transaction_resource"
	operationRows   store.Source = "operation_resource"
)

//go:embed migrations/*/*.sql
var historyMigrations embed.FS

// registerTransactions declares the collection of transactions.
func registerTransactions(r *resource.Registry) {
	r.Extension(&store.Extension{Name: "history", Migrations: historyMigrations})
	r.Collection(resource.Collection{Name: "transactions", Act: undo, Estimate: estimateUndo, From: transactionRows,
		History: true, Guard: resource.HistoryList, Complete: completeTransactions,
		Options: []resource.RequestHeader{forceUndo.Header(resource.Creating)}}, &Transaction{})
}

// forceUndo is the request header that undoes a transaction even if its resources were changed afterwards.
var forceUndo = resource.Flag("x-bcn-force-undo", "Undo also where the same resources were changed since.")

// Transaction is one change in the history. All of its operations were committed together.
type Transaction struct {
	schema.Head `head:"readOnly"`
	// TransactionType is the kind of a requested transaction: UNDO undoes another transaction.
	TransactionType string `api:"transactionType,required,nullable" enum:"UNDO"`
	// TransactionID is the transaction to undo.
	TransactionID int64 `api:"transactionId,required,writeOnly" min:"1"`
	// Operation is the kind of the change, such as ADD_IPV4_NETWORK.
	Operation string `api:"operation,readOnly,index"`
	// Description is the change in one sentence.
	Description string `api:"description,readOnly"`
	// Principal is the name, at that time, of the user, token or key set that made the change; null for the manager itself. A Portolan
	// extension.
	Principal string `api:"principal,readOnly"`
	// Comment is the value of the request header x-bcn-change-control-comment.
	Comment string `api:"comment,readOnly"`
	// Credential is the credential of the caller: "session" or "token" with its number, or "password"; null for the manager itself.
	// RemoteAddress is the address of the client, and Client its User-Agent. All three are Portolan extensions.
	Credential    string `api:"credential,readOnly,index"`
	RemoteAddress string `api:"remoteAddress,readOnly,index"`
	Client        string `api:"client,readOnly"`
	// CreationDateTime is the time of the commit.
	CreationDateTime time.Time `api:"creationDateTime,readOnly,index"`
	// Undoes is the transaction that this one undid; null where it is not an undo. A Portolan extension.
	Undoes *int64 `api:"undoes,readOnly"`
	// ChangedResources reports whether the transaction changed resources. A transaction that changed only the fleet or tokens did not, and
	// cannot be undone. A Portolan extension.
	ChangedResources bool `api:"changedResources,readOnly,computed"`
	// User is the user who made the change; null for the manager itself.
	User schema.Ref `api:"user,readOnly" column:"parent" ref:"User"`
	// RevertingTransaction is the transaction that undid this one.
	RevertingTransaction schema.Ref `api:"revertingTransaction,readOnly" ref:"Transaction"`
}

// completeTransactions fills in changedResources.
func completeTransactions(tx *store.Tx, rows []*store.Resource) error {
	ids := make([]int64, len(rows))
	for i, r := range rows {
		ids[i] = r.ID
	}
	noted, err := tx.NotedAmong(ids)
	if err != nil {
		return err
	}
	for _, r := range rows {
		open := r.Body[: len(r.Body)-1 : len(r.Body)-1] // an object with members
		r.Body = append(strconv.AppendBool(append(open, `,"changedResources":`...), !noted[r.ID]), '}')
	}
	return nil
}

// estimateUndo counts the changes of an undo: those of the transaction with created and deleted exchanged.
func estimateUndo(tx *store.Tx, _ int64, members map[string]json.RawMessage) (t store.Tally, err error) {
	var transaction int64
	if json.Unmarshal(members["transactionId"], &transaction) == nil {
		t, err = tx.TallyOf(transaction)
	}
	t.Created, t.Deleted = t.Deleted, t.Created
	return t, err
}

// undo undoes the transaction that the new transaction o names. A caller with limited rights can undo its own transactions only.
func undo(c *resource.Change, o schema.Object) error {
	t, ok := o.(*Transaction)
	if !ok {
		return fmt.Errorf("a transaction is a %T", o)
	}
	if t.TransactionType == "" { // null in the history
		return problem.Invalid("transactionType", "must be UNDO")
	}
	if c.Caller.Limited() { // such a caller sees only its own transactions
		own, err := c.Tx.Exists(store.Query{From: transactionRows, Where: store.All{store.IDs{t.TransactionID}, store.HasParent(c.Caller.User)}})
		if err != nil {
			return err
		}
		if !own {
			return problem.NotFound("transaction %d of %s does not exist", t.TransactionID, c.Caller.Name)
		}
	}
	return c.Undo(t.TransactionID, forceUndo.Value(c.Options))
}
