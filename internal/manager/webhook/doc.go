// Package webhook reports changes to other programs. It declares webhooks, and sends signed messages about changes to them in order, until
// each message is accepted.
package webhook

//go:generate go run portolan/internal/engine/resource/gendoc
