// Package settings holds the settings of a manager and what it shows of its database.
package settings

//go:generate go run portolan/internal/engine/resource/gendoc
