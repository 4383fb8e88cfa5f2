package dnspublish

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	wire "portolan/internal/base/dnsmsg"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
	"portolan/internal/manager/dns"
	"portolan/internal/manager/dns/transfer"
	"portolan/internal/wire/zonedata"
)

// Update is a DNS message that changes a zone (RFC 2136), as a service point received it from a client.
type Update struct {
	// ServicePoint is the service point that received the message.
	ServicePoint string
	// View is the id of the client's view. Zone is the name of the zone, absolute and in lower case.
	View int64
	Zone string
	// Client is the address of the sender. Key is the name of the key that signed the message; empty where it is not signed.
	Client netip.Addr
	Key    string
	// Message is the message in wire format.
	Message []byte
}

// author returns the author for the history: the key, or the address of the client.
func (u *Update) author() store.Author {
	name := u.Client.String()
	if u.Key != "" {
		name = "key " + strings.TrimSuffix(u.Key, ".")
	}
	return store.Author{Name: name, Comment: "dynamic update from " + u.Client.String()}
}

// ApplyUpdate changes a zone as a message requests, if the service point serves the zone and the client is allowed to update it. It returns
// the response code, the reason of an error, and whether the zone changed.
func ApplyUpdate(ctx context.Context, a *resource.API, u *Update) (code int, why string, changed bool) {
	m := new(wire.Msg)
	if err := m.Unpack(u.Message); err != nil || len(m.Question) != 1 {
		return wire.RcodeFormatError, "the message cannot be read", false
	}
	if m.Opcode == wire.OpcodeNotify {
		code, why = recordNotify(ctx, a, u)
		return code, why, false
	}
	if m.Opcode != wire.OpcodeUpdate {
		return wire.RcodeNotImplemented, "the message changes nothing", false
	}
	var zone *store.Resource
	err := a.Store.View(ctx, func(tx *store.Tx) (err error) {
		zone, err = updatable(tx, a, u)
		return err
	})
	if err == nil {
		err = a.Store.UpdateIn(ctx, store.ConfigurationScope(zone.Configuration, false), u.author(), func(tx *store.Tx) (err error) {
			if zone, err = updatable(tx, a, u); err != nil {
				return err
			}
			apex, err := servedApex(tx, zoneID(zone.Ref("view"), zone.Key), u.Zone)
			if err != nil {
				return err
			}
			tx.Describe("DNS_DYNAMIC_UPDATE_OPERATION", "Updated zone "+zone.Key)
			c := &resource.Change{Tx: tx, API: a, Extra: map[string]string{}}
			changed, err = transfer.Update(c, zone, m, apex)
			return err
		})
	}
	if err != nil {
		code, why = transfer.CodeOf(err)
		return code, why, false
	}
	return wire.RcodeSuccess, "", changed
}

// updatable returns the zone that a message may change, or an error if it may not.
func updatable(tx *store.Tx, a *resource.API, u *Update) (*store.Resource, error) {
	notHere := &transfer.Refused{Code: wire.RcodeNotAuth, Why: fmt.Sprintf("service point %s does not serve zone %s", u.ServicePoint, u.Zone)}
	settings, server, err := servedBy(tx, a, u.ServicePoint)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(settings.Zones, func(z zonedata.Zone) bool { return z.View == u.View && z.Name == u.Zone })
	if i < 0 {
		return nil, notHere
	}
	if !zonedata.Allows(settings.Zones[i].Update, zonedata.Client{Address: u.Client, Key: u.Key}, false) {
		return nil, &transfer.Refused{Code: wire.RcodeRefused, Why: "allow-update of the zone does not permit the client"}
	}
	zone, err := zoneOfID(tx, settings.Zones[i].ID, server.Configuration)
	if err != nil {
		return nil, err
	}
	if zone == nil {
		return nil, notHere
	}
	live, err := liveOf(tx)
	if err != nil {
		return nil, err
	}
	if live[u.View] == 0 { // the served settings may be older than the setting of the view
		return nil, &transfer.Refused{Code: wire.RcodeRefused,
			Why: "the view of the zone is not live (liveDeployment), so the update would have no effect on answers"}
	}
	return zone, nil
}

// servedApex returns the deployed records of the zone's own name.
func servedApex(tx *store.Tx, id, zone string) (apex []wire.RR, err error) {
	name := make([]byte, 255)
	n, err := wire.PackDomainName(zone, name, 0, nil, false)
	if err != nil {
		return nil, err
	}
	key := zonedata.Key(name[:n])
	_, _, entries, err := readPart(tx, id, key)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if !bytes.Equal(e.Key(), key) {
			continue
		}
		rr, err := e.Record().RR()
		if err != nil {
			return nil, err
		}
		apex = append(apex, rr)
	}
	return apex, nil
}

// servedBy returns the deployed settings of a service point, and its server.
func servedBy(tx *store.Tx, a *resource.API, servicePoint string) (*zonedata.Settings, *store.Resource, error) {
	server, err := serverOfPoint(tx, servicePoint)
	if err != nil {
		return nil, nil, err
	}
	var settings *zonedata.Settings
	if server != nil {
		if settings, err = settingsOf(tx, a.Sealer, server.ID); err != nil {
			return nil, nil, err
		}
	}
	if settings == nil {
		return nil, nil, &transfer.Refused{Code: wire.RcodeNotAuth, Why: fmt.Sprintf("service point %s serves no zones", servicePoint)}
	}
	return settings, server, nil
}

// zoneOfID returns the zone with a deployed id; nil if it was not created by a user.
func zoneOfID(tx *store.Tx, id string, configuration int64) (*store.Resource, error) {
	number, key, _ := strings.Cut(id, "/")
	view, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("read the zone with the id %q: %w", id, err)
	}
	rows, err := tx.ResourcesByKey(configuration, key)
	if err != nil {
		return nil, err
	}
	for _, r := range rows {
		if r.Collection == "zones" && r.Type == "Zone" && r.Ref("view") == view {
			return r, nil
		}
	}
	return nil, nil
}

// allowUpdates sets the clients that may send dynamic updates for a zone, by the option allow-update. The server must write the zone, the
// zone must have dynamicUpdateEnabled, and its view must be live.
func (s *serving) allowUpdates(p *plan, of *zonedata.Zone, z *plannedZone, server int64) error {
	if !z.roles[server].writes() {
		return nil
	}
	made, enabled := z.row.ID != 0, false
	if made {
		o, err := p.api.Object(z.row)
		if err != nil {
			return err
		}
		if zone, ok := o.(*dns.Zone); ok {
			enabled = zone.DynamicUpdateEnabled
		}
	}
	value := p.lookUp(z.chain, server, "allow-update")
	own := slices.ContainsFunc(p.options[z.chain[0]], func(o option) bool { return o.name == "allow-update" })
	live, err := liveOf(p.tx)
	switch list := s.matches(p, value); {
	case err != nil:
		return err
	case own && !made:
		s.warn("zone %s does not accept updates (allow-update): the zone does not exist as a resource", z.zoneName())
	case own && !enabled:
		s.warn("zone %s does not accept updates (allow-update): its dynamicUpdateEnabled is false", z.zoneName())
	case !enabled:
	case len(list) == 0:
		s.warn("zone %s does not accept updates (dynamicUpdateEnabled): no client is allowed, set allow-update", z.zoneName())
	case live[z.view] == 0:
		s.warn("zone %s does not accept updates (allow-update): its view is not live (liveDeployment)", z.zoneName())
	default:
		of.Update = list
	}
	return nil
}
