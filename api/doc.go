// Package api contains the OpenAPI document of the address API. It is generated from the declarations in internal/manager and checked in,
// so that a review shows API changes.
package api

//go:generate go run portolan/api/gen
