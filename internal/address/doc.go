// Package address is the address manager: the types of its API, a family a file, each with its
// rules beside it and a function register..., which declares its collections. What every type has in
// common is in resource/, what is published of them in published/; arithmetic is in space/ and naming/.
package address

//go:generate go run portolan/internal/resource/gendoc
