// Package authz decides what a caller may see and change: access rights of users and groups, levels below places, scopes of tokens, rights
// on the fleet, and approvals. It knows a caller as a Principal, which package identity makes of a user, a session or a token.
package authz

//go:generate go run portolan/internal/engine/resource/gendoc
