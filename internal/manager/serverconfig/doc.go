// Package serverconfig declares what a configuration says of its servers: servers, their interfaces and services, server groups, deployment
// roles, and option definitions and options. Which options and roles are in effect for a resource is computed here for every service; what
// follows from them for name servers is computed in dnspublish.
package serverconfig

//go:generate go run portolan/internal/engine/resource/gendoc
