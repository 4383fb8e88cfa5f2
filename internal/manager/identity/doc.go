// Package identity authenticates callers: users, groups, sessions, tokens and key sets, passwords, and external authenticators. Package
// authz decides what a caller may do.
package identity

//go:generate go run portolan/internal/engine/resource/gendoc
