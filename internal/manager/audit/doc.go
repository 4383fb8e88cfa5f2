// Package audit declares the collections that show the history: transactions with their operations, and the logs of the manager. The store
// keeps the history; package history chains and signs it.
package audit

//go:generate go run portolan/internal/engine/resource/gendoc
