package dnspublish

import (
	"encoding/base64"
	"net/netip"
	"slices"

	wire "portolan/internal/base/dnsmsg"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
	"portolan/internal/manager/dns"
	"portolan/internal/wire/zonedata"
)

// UpdateTarget is a deployed zone of a server, as a client that sends dynamic updates sees it.
type UpdateTarget struct {
	Server int64
	// Zone is the absolute name of the zone, in lower case.
	Zone string
	View string
	// Key is a key that the client can sign its updates with; it has no name if there is none, and Refusal is the reason.
	Key     zonedata.SigningKey
	Refusal string
}

// UpdateTargets returns the deployed zones of a configuration, for a client with an address.
func UpdateTargets(tx *store.Tx, a *resource.API, configuration int64, client netip.Addr) (all []UpdateTarget, err error) {
	var servers []int64
	if err := tx.Each(func(scan func(...any) error) error {
		var server int64
		err := scan(&server)
		servers = append(servers, server)
		return err
	}, "SELECT server FROM dns_server ORDER BY server"); err != nil {
		return nil, err
	}
	for _, server := range servers {
		row, err := tx.Get(server)
		if store.IsNotFound(err) || err == nil && row.Configuration != configuration {
			continue
		}
		if err != nil {
			return nil, err
		}
		settings, err := settingsOf(tx, a.Sealer, server)
		if err != nil {
			return nil, err
		}
		if settings == nil {
			continue
		}
		for _, z := range settings.Zones {
			one := UpdateTarget{Server: server, Zone: z.Name}
			one.Key, one.View, one.Refusal = updateKey(settings, z, client)
			all = append(all, one)
		}
	}
	return all, nil
}

// updateKey returns a key that lets a client update a zone, and reach the view of the zone. Without one it returns the reason.
func updateKey(s *zonedata.Settings, z zonedata.Zone, client netip.Addr) (key zonedata.SigningKey, view, refusal string) {
	for _, v := range s.Views {
		if v.ID == z.View {
			view = v.Name
		}
	}
	if z.Update == nil {
		return key, view, "it does not accept updates: set its dynamicUpdateEnabled, its option allow-update and liveDeployment of its view," +
			" and deploy DNS"
	}
	refusal = "no key is in its option allow-update"
	for _, one := range s.Keys {
		w := zonedata.Client{Address: client, Key: one.Name}
		if !hasKey(z.Update, one.Name) || !zonedata.Allows(z.Update, w, false) {
			continue
		}
		if one.Algorithm == wire.HmacMD5 {
			refusal = "the key " + one.Name + " has the algorithm MD5, which updates do not support: use SHA256"
			continue
		}
		for _, v := range s.Views { // the first view that allows a client answers it
			if !zonedata.Allows(v.Clients, w, true) {
				continue
			}
			if v.ID == z.View {
				return one, view, ""
			}
			refusal = "match-clients of the view " + v.Name + " lets messages with the key " + one.Name + " before those of the view " + view
			break
		}
	}
	return key, view, refusal
}

// hasKey reports whether a list allows a key.
func hasKey(list []zonedata.Match, key string) bool {
	return slices.ContainsFunc(list, func(m zonedata.Match) bool { return !m.Not && (m.Key == key || hasKey(m.List, key)) })
}

// TSIGKey returns a key by the id of its resource; ok is false if it has no secret.
func TSIGKey(tx *store.Tx, a *resource.API, id int64) (key zonedata.SigningKey, ok bool, err error) {
	row, err := tx.Get(id)
	if err != nil {
		return key, false, err
	}
	o, err := a.Object(row)
	if err != nil {
		return key, false, err
	}
	return signingKeyOf(tx, a, row, o)
}

// signingKeyOf returns the key of a resource; ok is false if it is not a key of this kind, or has no secret.
func signingKeyOf(tx *store.Tx, a *resource.API, row *store.Resource, o schema.Object) (key zonedata.SigningKey, ok bool, err error) {
	x, is := o.(*dns.TSIGKey)
	if !is || !x.PrivateKey.Set() {
		return key, false, nil
	}
	plain, err := a.Secrets(tx, x)
	if err != nil {
		return key, false, err
	}
	secret, err := base64.StdEncoding.DecodeString(plain["privateKey"])
	return zonedata.SigningKey{Name: keyName(row.Name), Algorithm: algorithms[x.Algorithm], Secret: secret}, err == nil, err
}
