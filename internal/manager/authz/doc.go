// Package authz decides what a caller may see and change: access rights of users and groups, levels per resource and type, scopes of
// tokens, rights on the fleet, and approvals. The caller is a Principal, which package identity creates for a user, a session or a token.
package authz

//go:generate go run portolan/internal/engine/resource/gendoc
