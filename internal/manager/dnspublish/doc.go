// Package dnspublish publishes zones to name servers and resolvers. It runs deployments, keeps what each server has as content revisions,
// applies changes as they happen (live deployment), rolls keys over, takes dynamic updates, and copies zones from other servers.
// serverconfig declares the servers, roles and options that it reads.
package dnspublish

//go:generate go run portolan/internal/engine/resource/gendoc
