// Package settings declares the settings of the manager and the resource that describes its database.
package settings

//go:generate go run portolan/internal/engine/resource/gendoc
