// Package address is the address manager: the types of its API, a family a file, each with its
// rules beside it, and the one list of its collections (collections.go). What every type has in
// common is in resource/; arithmetic is in space/ and naming/.
package address

//go:generate go run portolan/internal/address/gendoc
