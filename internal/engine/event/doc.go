// Package event is what happened: events that the trades tell of, kept and listed.
package event

//go:generate go run portolan/internal/engine/resource/gendoc
