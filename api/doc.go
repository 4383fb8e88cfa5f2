// Package api holds the address API's OpenAPI document as it is served, derived from the
// declarations of the trades (internal/manager/ipam, dns, catalog, access): checked in, so that a change of the API shows in a review.
package api

//go:generate go run portolan/api/gen
