// Package all lists the applications that this binary has.
package all

import (
	"portolan/internal/application"
	"portolan/internal/application/authority"
	"portolan/internal/application/httpprobe"
	"portolan/internal/application/resolver"
	"portolan/internal/checkin"
)

// Programs returns the applications as a manager knows them.
func Programs() checkin.Programs {
	programs := checkin.Programs{}
	for _, kind := range Kinds() {
		programs[kind.Name] = kind.Program
	}
	return programs
}

// Kinds are all applications.
func Kinds() []application.Kind {
	return []application.Kind{authority.Kind(), resolver.Kind(), httpprobe.Kind()}
}
