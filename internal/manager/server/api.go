package server

import (
	"os"

	"portolan/internal/engine/published"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/rest"
	"portolan/internal/manager/imports"
)

// Base is the path of the API (spec.md section 9).
const Base = published.Base

// hostName returns the name of this machine for display; empty if it is unknown.
func hostName() string {
	name, err := os.Hostname()
	if err != nil {
		return ""
	}
	return name
}

// Serve returns the HTTP server of the address API. maxLimit is the largest page (spec.md section 8).
func Serve(a *resource.API, maxLimit int64, version string) *rest.Server {
	name := hostName()
	a.Manager.Hostname = name
	s := rest.New(a, rest.Settings{Base: Base, MaxLimit: maxLimit, RootType: "AddressManager", Version: version, Hostname: name})
	s.Apply = imports.Apply(a, s.Show)
	return s
}
