// Package catalog is what resources of every trade share: locations, tags, and the history, listed.
package catalog

//go:generate go run portolan/internal/engine/resource/gendoc
//go:generate go run -C ../../../tools ./countries ../internal/manager/catalog/countries_gen.go
