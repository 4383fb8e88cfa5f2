// Package serverconfig declares the servers of a configuration: servers, their interfaces and services, server groups, deployment roles,
// option definitions and options. It also computes the options and roles in effect for a resource, for every service. Package dnspublish
// derives the data of name servers from them.
package serverconfig

//go:generate go run portolan/internal/engine/resource/gendoc
