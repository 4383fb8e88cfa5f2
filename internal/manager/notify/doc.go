// Package notify sends events to notification groups: by mail to their members, or as SNMP traps to receivers. Package event provides the
// events. The command line of the manager sets the mail server and the receivers.
package notify

//go:generate go run portolan/internal/engine/resource/gendoc
