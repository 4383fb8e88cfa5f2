// Package userfields declares user-defined fields, with their values, defaults and indexes, and user-defined links.
package userfields

//go:generate go run portolan/internal/engine/resource/gendoc
