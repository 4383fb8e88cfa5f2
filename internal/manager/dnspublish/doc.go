// Package dnspublish publishes zones to name servers and resolvers. It runs deployments, stores the content of each server as revisions,
// deploys changes as they happen (live deployment), rolls keys over, applies dynamic updates, and copies zones from foreign servers. The
// servers, roles and options that it reads are declared in package serverconfig. A foreign server is one that Portolan does not operate.
package dnspublish

//go:generate go run portolan/internal/engine/resource/gendoc
