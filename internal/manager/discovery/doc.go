// Package discovery compares what answers on a network with what the address manager says of it: ping sweeps, by schedule or on demand,
// and the reconciliation of what they found.
package discovery

//go:generate go run portolan/internal/engine/resource/gendoc
