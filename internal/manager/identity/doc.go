// Package identity knows who a caller is: users, groups, sessions, tokens and key sets, passwords, authenticators, and sign-in by all of
// them. Package authz decides what a caller may do.
package identity

//go:generate go run portolan/internal/engine/resource/gendoc
