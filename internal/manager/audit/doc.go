// Package audit lists what happened: transactions with their operations, and the log of the manager. The store keeps the history; package
// history chains and signs it.
package audit

//go:generate go run portolan/internal/engine/resource/gendoc
