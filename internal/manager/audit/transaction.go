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

// The views of the history in the shape of resources, so that it is listed and filtered by the same grammar: transactions, and
// what they changed.
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
		Options: []resource.RequestHeader{forceUndo.For(resource.Creating)}}, &Transaction{})
}

// forceUndo undoes also where the same resources were changed since.
var forceUndo = resource.Flag("x-bcn-force-undo", "Undo also where the same resources were changed since.")

// Transaction is one change, as the history keeps it: all of it happened, at one moment.
type Transaction struct {
	schema.Head `head:"readOnly"`
	// TransactionType is the kind of a transaction that is asked for: UNDO takes another one back.
	TransactionType string `api:"transactionType,required,nullable" enum:"UNDO"`
	// TransactionID is the transaction that is to be taken back.
	TransactionID int64 `api:"transactionId,required,writeOnly" min:"1"`
	// Operation is what was done, such as ADD_IPV4_NETWORK.
	Operation string `api:"operation,readOnly,index"`
	// Description says it in a sentence.
	Description string `api:"description,readOnly"`
	// Principal is who did it, as it was called then: a user, a token or a key set; null for the manager
	// itself. It is ours.
	Principal string `api:"principal,readOnly"`
	// Comment is what the client sent as x-bcn-change-control-comment.
	Comment string `api:"comment,readOnly"`
	// Credential is what showed that it was they: "session" or "token" with its number, or "password"; null for the manager itself.
	// RemoteAddress is where the request came from, Client the program that sent it, as it said itself (User-Agent). They are ours.
	Credential    string `api:"credential,readOnly,index"`
	RemoteAddress string `api:"remoteAddress,readOnly,index"`
	Client        string `api:"client,readOnly"`
	// CreationDateTime is when it was done.
	CreationDateTime time.Time `api:"creationDateTime,readOnly,index"`
	// Undoes is the transaction that it took back; null where it took none back. It is ours.
	Undoes *int64 `api:"undoes,readOnly"`
	// ChangedResources says whether it changed resources: one of the fleet or of tokens did not, and cannot be taken back. It is ours.
	ChangedResources bool `api:"changedResources,readOnly,computed"`
	// User is who did it; null for the manager itself.
	User schema.Ref `api:"user,readOnly" column:"parent" ref:"User"`
	// RevertingTransaction is the transaction that undid it.
	RevertingTransaction schema.Ref `api:"revertingTransaction,readOnly" ref:"Transaction"`
}

// completeTransactions says of transactions whether they changed resources.
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

// estimateUndo counts what an undo would do: the opposite of what was done.
func estimateUndo(tx *store.Tx, _ int64, members map[string]json.RawMessage) (t store.Tally, err error) {
	var transaction int64
	if json.Unmarshal(members["transactionId"], &transaction) == nil {
		t, err = tx.TallyOf(transaction)
	}
	t.Created, t.Deleted = t.Deleted, t.Created
	return t, err
}

// undo takes back the transaction that a new one names.
func undo(c *resource.Change, o schema.Object) error {
	t, ok := o.(*Transaction)
	if !ok {
		return fmt.Errorf("a transaction is a %T", o)
	}
	if t.TransactionType == "" { // which others have null
		return problem.Invalid("transactionType", "must be UNDO")
	}
	if c.Caller.Limited() { // which sees its own transactions alone
		own, err := c.Tx.Exists(store.Query{From: transactionRows, Where: store.All{store.IDs{t.TransactionID}, store.HasParent(c.Caller.User)}})
		if err != nil {
			return err
		}
		if !own {
			return problem.NotFound("there is no transaction %d of %s", t.TransactionID, c.Caller.Name)
		}
	}
	return c.Undo(t.TransactionID, forceUndo.In(c.Options))
}
