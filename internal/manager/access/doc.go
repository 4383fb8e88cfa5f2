// Package access is who asks: users, their sessions, tokens and key sets, passwords and how guessing them is slowed down.
package access

//go:generate go run portolan/internal/engine/resource/gendoc
