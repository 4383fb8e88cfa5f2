// Package deploy holds what each server shall have: servers, their interfaces and services, the roles that say which of them serves what,
// and the options that say how.
package deploy

//go:generate go run portolan/internal/engine/resource/gendoc
