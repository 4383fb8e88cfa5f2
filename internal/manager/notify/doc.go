// Package notify tells notification groups of what happens: their members by mail, or receivers of SNMP traps. What happens is known by
// event; where mail and traps go is said when the manager is started.
package notify

//go:generate go run portolan/internal/engine/resource/gendoc
