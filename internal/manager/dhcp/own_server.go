package dhcp

import (
	"encoding/json"
	"net/netip"
	"slices"

	"portolan/internal/engine/store"
	"portolan/internal/wire/dhcpdata"
	"portolan/internal/wire/dhcplease"
)

// isOwn reports whether a DHCP server that was seen in a network belongs to the configuration. A server with an address belongs to it if an
// interface or a service option server-identifier of the configuration has that address. A server without an address belongs to it if its
// DUID is that of a server of the configuration.
func (w *refusedWriter) isOwn(s dhcplease.OtherServer) (own bool, err error) {
	in := store.Compare{Field: configurationColumn, Op: "eq", Value: w.server.Configuration}
	if !s.Address.IsValid() {
		err = w.tx.List(store.Query{From: store.Resources, Where: store.All{store.InCollection("servers"), in}}, func(r *store.Resource) error {
			own = own || dhcpdata.DUIDOf(r.Configuration, r.ID).String() == s.DUID
			return nil
		})
		return own, err
	}
	var some store.Any
	for _, field := range []string{"managementAddress", "secondaryAddress", "servicesIpv4Address", "servicesIpv6Address", "primaryAddress"} {
		some = append(some, store.Compare{Field: store.Field{Kind: store.Text, Path: []string{field}}, Op: "eq", Value: s.Address.String()})
	}
	own, err = w.tx.Exists(store.Query{From: store.Resources, Where: store.All{store.InCollection("interfaces"), in, some}})
	if err != nil || own {
		return own, err
	}
	all, err := ServerIdentifiers(w.tx, w.server.Configuration)
	return slices.Contains(all, s.Address), err
}

// ServerIdentifiers returns the addresses of the service options server-identifier of a configuration: its DHCP servers identify themselves
// by them.
func ServerIdentifiers(tx *store.Tx, configuration int64) (all []netip.Addr, err error) {
	err = tx.List(store.Query{From: store.Resources, Where: store.All{store.InCollection("deploymentOptions"),
		store.Compare{Field: configurationColumn, Op: "eq", Value: configuration},
		store.Compare{Field: store.Field{Kind: store.ColumnText, Path: []string{"name"}}, Op: "eq", Value: "server-identifier"}}},
		func(r *store.Resource) error {
			if r.Type != "DHCPv4ServiceOption" {
				return nil
			}
			return store.Members(r.Body, func(name, raw []byte) error {
				if string(name) != "value" {
					return nil
				}
				text := ""
				_ = json.Unmarshal(raw, &text) // a value of another form is a finding of the deployment
				if a, wrong := netip.ParseAddr(text); wrong == nil {
					all = append(all, a)
				}
				return nil
			})
		})
	return all, err
}
