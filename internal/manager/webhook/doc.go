// Package webhook tells other programs of changes: webhooks, what is kept of each, and how what changes is sent, signed, in order, until it
// was taken.
package webhook

//go:generate go run portolan/internal/engine/resource/gendoc
