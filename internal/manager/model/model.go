// Package model joins the declarations of all packages of the manager: types, collections, rules and tables. It has the address API without
// listeners and without work in the background, for a manager, for commands on a database, and for clients that follow the declarations.
package model

import (
	"portolan/internal/engine/event"
	"portolan/internal/engine/published"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/rest"
	"portolan/internal/engine/store"
	"portolan/internal/engine/timetable"
	"portolan/internal/manager/audit"
	"portolan/internal/manager/authz"
	"portolan/internal/manager/backup"
	"portolan/internal/manager/catalog"
	"portolan/internal/manager/dhcp"
	"portolan/internal/manager/dhcppublish"
	"portolan/internal/manager/discovery"
	"portolan/internal/manager/dns"
	"portolan/internal/manager/dns/transfer"
	"portolan/internal/manager/dnspublish"
	"portolan/internal/manager/dnssec"
	"portolan/internal/manager/fleet"
	"portolan/internal/manager/history"
	"portolan/internal/manager/identity"
	"portolan/internal/manager/imports"
	"portolan/internal/manager/ipam"
	"portolan/internal/manager/notify"
	"portolan/internal/manager/secrets"
	"portolan/internal/manager/serverconfig"
	"portolan/internal/manager/settings"
	"portolan/internal/manager/telemetry"
	"portolan/internal/manager/tftppublish"
	"portolan/internal/manager/userfields"
	"portolan/internal/manager/webhook"
	"portolan/internal/manager/workflow"
)

// Services returns the registrations of the packages above users, rights, settings and events, which every API has.
func Services() []func(*resource.Registry) {
	return []func(*resource.Registry){ipam.Register, discovery.Register, dns.Register, transfer.Register, dnssec.Register, dhcp.Register,
		serverconfig.Register, dnspublish.Register, tftppublish.Register, dhcppublish.Register, telemetry.Register, webhook.Register,
		imports.Register, backup.Register, notify.Register, workflow.Register}
}

// Registry returns the declarations of all packages.
func Registry() *resource.Registry {
	r := &resource.Registry{Facts: published.Facts{}, Manager: &resource.Manager{}}
	for _, register := range append([]func(*resource.Registry){authz.Register, identity.Register, secrets.Register, catalog.Register,
		userfields.Register, settings.Register, audit.Register, event.Register}, Services()...) {
		register(r)
	}
	r.Rule(resource.Rule{Types: []string{"Server", "HAServer"}, AfterWrite: func(c *resource.Change) error {
		id := c.Type.TextOf(c.New, "servicePoint")
		if id == "" || !c.IsCreation() && c.Type.TextOf(c.Old, "servicePoint") == id {
			return nil
		}
		there, err := fleet.Exists(c.Tx, id)
		if err == nil && !there {
			err = resource.NotFoundInlined("servicePoint", "the service point %s does not exist in the fleet", id)
		}
		return err
	}})
	return r
}

// Layout returns the tables of a database. Every caller of store.Open passes it.
func Layout() *store.Layout {
	l := Registry().Layout()
	l.Extensions = append(l.Extensions, rest.Extension(), fleet.Extension(), timetable.Extension(), history.Extension())
	return l
}

// NewAPI returns the address API over a store.
func NewAPI(s *store.Store) *resource.API {
	r := Registry()
	for _, name := range []string{"x-bcn-skip-cache", "x-bcn-calculate-inherited"} {
		r.Header(resource.RequestHeader{Name: name,
			Description: "Accepted without an effect: every answer is current, and inherited values are always computed.",
			Methods:     resource.Reading})
	}
	a := resource.NewAPI(s, r)
	authz.Govern(a)
	if s != nil {
		workflow.Open(a, identity.ServiceOf(s).Acting)
	}
	a.Sealer = secrets.Sealer{}
	return a
}
