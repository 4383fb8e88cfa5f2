package dnspublish

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"

	wire "portolan/internal/base/dnsmsg"
	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
	"portolan/internal/manager/dns"
	"portolan/internal/manager/serverconfig"
	"portolan/internal/wire/zonedata"
)

// supportedOptions are the DNS options that service points support. A deployment warns about all others.
var supportedOptions = []string{"match-clients", "allow-query", "allow-transfer", "also-notify", "notify", "start-of-authority",
	"allow-update", "allow-recursion", "forwarders", "forwarding-policy"}

// serving is the content of a server: its settings and zones.
type serving struct {
	configuration int64
	name          string // of the server
	settings      zonedata.Settings
	zones         []*plannedZone
	sealer        resource.Sealer
	// base is the number of the settings that the server had in the snapshot; 0 if it had none.
	base int64
	// answers reports whether the server answers for any zone.
	answers bool
	// unserved are the zones that the server no longer serves, set by serve, for deleteUnserved.
	unserved []string
	// warnings are the warnings of a deployment as sentences, each once.
	warnings []string
}

// leaveOut removes a zone that has no content.
func (s *serving) leaveOut(z *plannedZone) {
	s.zones = slices.DeleteFunc(s.zones, func(one *plannedZone) bool { return one == z })
	s.settings.Zones = slices.DeleteFunc(s.settings.Zones, func(one zonedata.Zone) bool { return one.ID == z.id })
	for i := range s.settings.Views {
		v := &s.settings.Views[i]
		v.Policies = slices.DeleteFunc(v.Policies, func(one zonedata.Policy) bool { return one.Zone == z.id })
	}
}

func (s *serving) warn(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(s.warnings, text) {
		s.warnings = append(s.warnings, text)
	}
}

// servingOf returns the content of a server.
func (p *plan) servingOf(server int64) (*serving, error) {
	s := &serving{configuration: p.configuration, sealer: p.api.Sealer,
		settings: zonedata.Settings{Views: []zonedata.View{}, Zones: []zonedata.Zone{}}}
	if h := p.heads[server]; h != nil { // it may have been deleted meanwhile
		s.name = h.Name
	}
	_, before, _, err := revisionOf(p.tx, server)
	if err != nil {
		return nil, err
	}
	s.base = before.settingsNumber
	s.warnOfIdle(p, server)
	// The views with zones that the server answers for, the zones that it forwards, and its policy zones.
	answered, asked, policies := map[int64]bool{}, map[int64][]*plannedZone{}, map[int64][]*plannedZone{}
	for _, z := range p.zones {
		a := z.roles[server]
		switch {
		case a.kind == "" || a.kind == serverconfig.RoleNone:
			continue
		case p.isPolicy(z):
			policies[z.view] = append(policies[z.view], z)
		case a.resolves():
			asked[z.view] = append(asked[z.view], z)
			continue
		case len(z.serversOf(assigned.writes)) == 0:
			s.warn("zone %s has no primary server", z.row.Key)
		case p.isForeign(z) && a.writes() && !p.foreign(server):
			s.warn("zone %s is copied from external servers with an equally close role PRIMARY: remove their role to edit the zone here",
				z.zoneName())
		case p.isForeign(z) && !p.isCopied(z):
			s.warn("zone %s is not served: its primary server is external", z.row.Key)
			continue
		}
		answered[z.view], s.answers = true, s.answers || !p.isPolicy(z)
		if err := s.serveZone(p, z, server); err != nil {
			return nil, err
		}
	}
	for _, v := range p.views {
		one := zonedata.View{ID: v.ID, Name: v.Name, Policies: p.policiesOf(policies[v.ID])}
		one.Recursion = s.recursionOf(p, v.ID, server, asked[v.ID])
		if one.Recursion != nil || answered[v.ID] {
			one.Clients = s.matches(p, p.lookUp([]int64{v.ID}, server, "match-clients"))
			s.settings.Views = append(s.settings.Views, one)
		}
	}
	// Views for some clients precede views for all clients.
	slices.SortStableFunc(s.settings.Views, func(a, b zonedata.View) int {
		switch {
		case (a.Clients == nil) == (b.Clients == nil):
			return 0
		case a.Clients != nil:
			return -1
		}
		return 1
	})
	if n := slices.IndexFunc(s.settings.Views, func(v zonedata.View) bool { return v.Clients == nil }); n >= 0 {
		for _, v := range s.settings.Views[n+1:] {
			s.warn("no client reaches the view %s: the view %s matches all clients; set match-clients", v.Name, s.settings.Views[n].Name)
		}
	}
	return s, nil
}

// serveZone adds a zone whose data the server has.
func (s *serving) serveZone(p *plan, z *plannedZone, server int64) error {
	s.zones = append(s.zones, z)
	of := zonedata.Zone{ID: z.id, View: z.view, Name: z.fqdn()}
	of.Query = s.matches(p, p.lookUp(z.chain, server, "allow-query"))
	of.Transfer = s.matches(p, p.lookUp(z.chain, server, "allow-transfer"))
	if z.roles[server].writes() {
		s.allowCopies(p, &of, z, server)
	}
	if of.Query == nil && p.isPolicy(z) { // clients must not see the list of blocked names
		of.Query = []zonedata.Match{{}}
	}
	if p.isCopied(z) {
		if err := s.setCopied(p, &of, z); err != nil {
			return err
		}
		s.addZone(p, of, z, server)
		return nil
	}
	if p.isPolicy(z) {
		s.addZone(p, of, z, server)
		return nil
	}
	if err := s.sign(p, &of, z); err != nil {
		return problem.BadRequest("InvalidDeploymentData", "%v", notSigned(z, err))
	}
	if err := s.allowUpdates(p, &of, z, server); err != nil {
		return err
	}
	s.addZone(p, of, z, server)
	return nil
}

// addZone adds a zone, and warns about its unsupported options.
func (s *serving) addZone(p *plan, of zonedata.Zone, z *plannedZone, server int64) {
	s.settings.Zones = append(s.settings.Zones, of)
	for _, place := range append(slices.Clone(z.chain), server, p.configuration) {
		p.warnOf(s, place, server)
	}
}

// setCopied sets up a zone that is copied from foreign primary servers.
func (s *serving) setCopied(p *plan, of *zonedata.Zone, z *plannedZone) error {
	of.Copied = true
	if of.Primaries = p.primariesOf(z); p.isPolicy(z) {
		of.Primaries = nil
		for _, at := range p.sourcesOf(z) {
			of.Primaries = append(of.Primaries, at.Addr)
		}
	}
	refreshed, expired, err := readCopy(p.tx, z.id)
	if of.Void = refreshed == 0 || expired; of.Void {
		s.warn("zone %s is served after its first copy from the external servers", z.zoneName())
	}
	if p.maySign(z) {
		s.warn("zone %s is copied: its signing policy is ignored, only its primary servers can sign it", z.zoneName())
	}
	return err
}

// warnUnsigned warns about a reverse zone that is not signed although its block or network has a policy, which signs the first reverse zone
// only.
func (s *serving) warnUnsigned(p *plan, z *plannedZone) error {
	if z.row.ID != 0 {
		return nil
	}
	holder, err := p.tx.Get(z.chain[0])
	if err == nil && holder.Ref("reverseZoneSigningPolicy") != 0 {
		s.warn("zone %s is not signed: the policy of a block or network signs the first of its reverse zones", z.zoneName())
	}
	return err
}

// sign sets how a zone is signed, if it is.
func (s *serving) sign(p *plan, of *zonedata.Zone, z *plannedZone) error {
	if !p.maySign(z) {
		return nil
	}
	signing, err := p.signingOf(z, p.api.Store.Now())
	if err != nil {
		return err
	}
	if signing == nil {
		return s.warnUnsigned(p, z)
	}
	of.Signing, err = signing.served(p.tx, p.api)
	return err
}

// maxIdleChecked is the maximum number of undeployed zones that are checked for records.
const maxIdleChecked = 50

// warnOfIdle warns about undeployed zones of a primary server that have records.
func (s *serving) warnOfIdle(p *plan, server int64) {
	for _, z := range p.idle[:min(len(p.idle), maxIdleChecked)] {
		if !z.roles[server].writes() {
			continue
		}
		there, err := p.tx.Exists(store.Query{From: store.Resources, Where: store.All{store.InCollection("resourceRecords"),
			store.HasParent(z.row.ID)}})
		if err == nil && there {
			s.warn("zone %s is not deployed: its deploymentEnabled is false", z.row.Key)
		}
	}
}

// allowCopies allows the foreign secondaries of a zone to transfer it, unless allow-transfer is set, and sets the servers that are notified
// of changes.
func (s *serving) allowCopies(p *plan, of *zonedata.Zone, z *plannedZone, server int64) {
	var copies []netip.Addr
	for _, other := range z.serversOf(func(a assigned) bool { return a.answers() && !a.writes() }) {
		if p.foreign(other) {
			copies = append(copies, p.interfaces[z.roles[other].iface].addresses...)
		}
	}
	if of.Transfer == nil {
		for _, a := range copies {
			of.Transfer = append(of.Transfer, zonedata.Match{Prefix: netip.PrefixFrom(a, a.BitLen())})
		}
	}
	whether, also := "yes", []netip.Addr(nil)
	if value := p.lookUp(z.chain, server, "notify"); value != nil && json.Unmarshal(value, &whether) != nil {
		s.warn("the option notify of zone %s is ignored", z.row.Key)
	}
	if value := p.lookUp(z.chain, server, "also-notify"); value != nil && json.Unmarshal(value, &also) != nil {
		s.warn("the option also-notify of zone %s is ignored", z.row.Key)
	}
	switch whether {
	case "no":
		return
	case "explicit":
		copies = nil
	}
	for _, a := range append(copies, also...) {
		if to := netip.AddrPortFrom(a, dnsPort); !slices.Contains(of.Notify, to) {
			of.Notify = append(of.Notify, to)
		}
	}
}

// dnsPort is the port for NOTIFY, transfers and forwarding.
const dnsPort = 53

// isForeign reports whether a zone is written by foreign servers: by a role at least as near to the zone as any of our roles that writes. A
// response policy zone is foreign if it is not local.
func (p *plan) isForeign(z *plannedZone) bool {
	if x := p.policies[z.row.ID]; x != nil {
		return !x.IsLocal()
	}
	theirs, ours := len(z.chain), len(z.chain)
	for _, id := range z.serversOf(assigned.writes) {
		at := slices.Index(z.chain, z.roles[id].owner)
		if at < 0 {
			at = len(z.chain) - 1
		}
		if p.foreign(id) {
			theirs = min(theirs, at)
		} else {
			ours = min(ours, at)
		}
	}
	return theirs < len(z.chain) && theirs <= ours
}

// foreign reports whether a server is a foreign one.
func (p *plan) foreign(server int64) bool { return p.foreignServers[server] }

// warnOf warns about the unsupported options of a resource.
func (p *plan) warnOf(s *serving, place, server int64) {
	for _, o := range p.options[place] {
		if o.scope != 0 && o.scope != server || slices.Contains(supportedOptions, o.name) {
			continue
		}
		s.warn("the option %s is ignored by service points", o.name)
	}
}

// matches returns the elements of an access control list; nil where there is none. A list that cannot be parsed matches no client.
func (s *serving) matches(p *plan, value json.RawMessage) []zonedata.Match {
	var elements []string
	if value == nil {
		return nil
	}
	if err := json.Unmarshal(value, &elements); err != nil {
		s.warn("a list of clients is invalid and matches no client: %v", err)
		return []zonedata.Match{}
	}
	return s.elements(p, elements, 0)
}

// maxListDepth is the maximum nesting of lists. Lists cannot contain themselves.
const maxListDepth = 32

func (s *serving) elements(p *plan, elements []string, depth int) []zonedata.Match {
	all := []zonedata.Match{}
	for _, text := range elements {
		m, err := dns.ParseMatch(text)
		switch {
		case err != nil || depth > maxListDepth:
			s.warn("%q is ignored: it matches no client", text)
		case m.Key != "":
			if s.useKey(p, m.Key) {
				all = append(all, zonedata.Match{Not: m.Not, Key: keyName(m.Key)})
			}
		case m.Prefix.IsValid():
			all = append(all, zonedata.Match{Not: m.Not, Prefix: m.Prefix})
		default:
			all = append(all, zonedata.Match{Not: m.Not, List: s.namedList(p, m.List, depth)})
		}
	}
	return all
}

// useKey adds a key to the settings. It returns false if no key with the name has a secret.
func (s *serving) useKey(p *plan, name string) bool {
	k, there := p.keys[name]
	if !there {
		s.warn("the key %s has no secret: it matches no client", name)
		return false
	}
	if !slices.ContainsFunc(s.settings.Keys, func(one zonedata.SigningKey) bool { return one.Name == k.Name }) {
		s.settings.Keys = append(s.settings.Keys, k)
	}
	return true
}

// keyName returns the name of a key in messages.
func keyName(name string) string { return wire.CanonicalName(name) }

// algorithms are the algorithm names of keys in messages (RFC 8945 section 6).
var algorithms = map[string]string{"MD5": wire.HmacMD5, "SHA1": wire.HmacSHA1, "SHA256": wire.HmacSHA256, "SHA512": wire.HmacSHA512}

// readKeys reads the keys that have secrets.
func (p *plan) readKeys() error {
	return p.each("signingKeys", func(row *store.Resource, o schema.Object) error {
		key, ok, err := signingKeyOf(p.tx, p.api, row, o)
		if ok {
			p.keys[row.Name] = key
		}
		return err
	})
}

// namedList returns the elements of a list by its name.
func (s *serving) namedList(p *plan, name string, depth int) []zonedata.Match {
	at := func(prefixes ...string) (all []zonedata.Match) {
		for _, text := range prefixes {
			all = append(all, zonedata.Match{Prefix: netip.MustParsePrefix(text)})
		}
		return all
	}
	switch name {
	case "any":
		return at("0.0.0.0/0", "::/0")
	case "none":
		return []zonedata.Match{}
	case "localhost":
		return at("127.0.0.0/8", "::1/128")
	case "localnets":
		s.warn("the list localnets is not supported: it matches no client")
		return []zonedata.Match{}
	}
	return s.elements(p, p.lists[name], depth+1)
}

// serverOfPoint returns the server of a service point of the fleet; nil if there is none.
func serverOfPoint(tx *store.Tx, servicePoint string) (*store.Resource, error) {
	return tx.ReadFirst(store.Query{From: store.Resources, Where: store.All{store.InCollection("servers"),
		store.Compare{Field: store.Field{Kind: store.Text, Path: []string{"servicePoint"}}, Op: "eq", Value: servicePoint}}})
}
