// Package event stores and lists events: records of what happened in the system, written by the packages of the trades.
package event

//go:generate go run portolan/internal/engine/resource/gendoc
