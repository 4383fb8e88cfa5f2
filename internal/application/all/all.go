// Package all lists the applications that this binary has.
package all

import (
	"portolan/internal/application"
	"portolan/internal/application/authority"
	"portolan/internal/application/httpprobe"
	"portolan/internal/application/resolver"
)

// Kinds are all applications.
func Kinds() []application.Kind {
	return []application.Kind{authority.Kind(), resolver.Kind(), httpprobe.Kind()}
}
