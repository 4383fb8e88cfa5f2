// Package api holds the address API's OpenAPI document as it is served, derived from the
// declarations in internal/address: checked in, so that a change of the API shows in a review.
package api

//go:generate go run portolan/api/gen
