// Package discovery compares the hosts that answer on a network with the addresses in the database. It runs ping sweeps, on schedule or on
// demand, and reconciles their results with the address data.
package discovery

//go:generate go run portolan/internal/engine/resource/gendoc
