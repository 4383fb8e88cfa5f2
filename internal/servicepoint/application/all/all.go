// Package all lists the applications in this binary.
package all

import (
	"portolan/internal/servicepoint/application"
	"portolan/internal/servicepoint/application/dhcp"
	"portolan/internal/servicepoint/application/httpprobe"
	"portolan/internal/servicepoint/application/nameserver"
	"portolan/internal/servicepoint/application/resolver"
	"portolan/internal/servicepoint/application/tftp"
	"portolan/internal/wire/checkin"
)

// Programs returns the applications in the form that the manager uses.
func Programs() checkin.Programs {
	programs := checkin.Programs{}
	for _, kind := range Kinds("") {
		programs[kind.Name] = kind.Program
	}
	return programs
}

// Kinds returns all applications. An application that keeps data does so in the folder state; it may be empty where none is run.
func Kinds(state string) []application.Kind {
	return []application.Kind{nameserver.Kind(), resolver.Kind(), httpprobe.Kind(), dhcp.Kind(state), tftp.Kind()}
}

// Stateful returns the names of the applications that keep data on the disk.
func Stateful() []string { return []string{checkin.DHCP} }
