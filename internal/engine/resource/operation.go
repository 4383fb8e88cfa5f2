package resource

import (
	"portolan/internal/engine/published"
	"portolan/internal/engine/schema"
)

// The verbs of operations in the history.
const (
	added   = "ADD"
	updated = "UPDATE"
	deleted = "DELETE"
)

// operationOf returns the operation for a change of a type, as the published enumeration of Transaction.operation names it. Published
// clients reject a whole list that has any other word. Changes without a word in the enumeration are ADD_RESOURCE, UPDATE_RESOURCE or
// DELETE_RESOURCE; types that are not published have words of their own.
func operationOf(verb string, t *schema.Type) string {
	return published.ChangeOperation(verb, t.Name, t.Operation)
}

// OperationsOf returns the operations of changes of a type in the history.
func OperationsOf(t *schema.Type) []string {
	return []string{operationOf(added, t), operationOf(updated, t), operationOf(deleted, t)}
}
