package dhcp

import (
	"net/netip"

	"portolan/internal/base/naming"
	"portolan/internal/base/problem"
	"portolan/internal/base/space"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// registerZoneGroups declares the collections of zone groups and their declarations.
func registerZoneGroups(r *resource.Registry) {
	r.Collection(resource.Collection{Name: "zoneGroups", Parents: []string{"configurations"}}, &DHCPZoneGroup{})
	r.Collection(resource.Collection{Name: "zoneDeclarations", Parents: []string{"zoneGroups"}}, &DHCPForwardZone{}, &DHCPReverseZone{})
	r.Rule(resource.Rule{Types: []string{"Zone"}, AfterWrite: func(c *resource.Change) error {
		return renameDeclarations(c, "absoluteName", "zone")
	}})
	r.Rule(resource.Rule{Types: []string{"IPv4Block", "IPv4Network", "IPv6Block", "IPv6Network"}, AfterWrite: func(c *resource.Change) error {
		return renameDeclarations(c, "range", "prefix")
	}})
	r.Links(resource.Links{Name: "servers", From: []string{"zoneGroups"}, To: "servers"})
}

// DHCPZoneGroup defines for a group of DHCP servers where the names of clients are updated in DNS, and how the updates are signed.
type DHCPZoneGroup struct {
	schema.Head `head:"post,nonblank" unique:"siblings"`
	// Configuration is the configuration that contains the group.
	Configuration schema.Ref `api:"configuration,readOnly" ref:"Configuration" column:"configuration"`
}

// DHCPForwardZone defines the servers for updates of client names in a zone.
type DHCPForwardZone struct {
	schema.Head `head:"readOnly"`
	ZoneDeclaration
	// Zone is the zone, by id or by absoluteName. It is null for a zone that is not managed here; zoneAbsoluteName contains its name.
	Zone schema.Ref `api:"zone,required,nullable" ref:"Zone" identify:"absoluteName" onDelete:"cascade"`
	// ZoneAbsoluteName is the name of a zone that is not managed here. It is null if zone is set.
	ZoneAbsoluteName string `api:"zoneAbsoluteName,readOnly" length:"1020"`
}

// DHCPReverseZone defines the servers for updates of the names of addresses in a prefix.
type DHCPReverseZone struct {
	schema.Head `head:"readOnly"`
	ZoneDeclaration
	// Prefix is the block or network, by id or by range. It is null for a prefix that is not managed here; prefixRange contains its range.
	Prefix schema.Ref `api:"prefix,required,nullable" ref:"IPv4Block|IPv4Network" identify:"range" onDelete:"cascade"`
	// PrefixRange is a prefix that is not managed here. It is null if prefix is set.
	PrefixRange string `api:"prefixRange,readOnly"`
}

// ZoneDeclaration has the common fields of both kinds of declarations: the servers for updates, and their signature.
type ZoneDeclaration struct {
	// Configuration is the configuration that contains the declaration.
	Configuration schema.Ref `api:"configuration,readOnly" ref:"Configuration" column:"configuration"`
	// PrimaryDNSServerAddress is the server that accepts the updates.
	PrimaryDNSServerAddress netip.Addr `api:"primaryDnsServerAddress,required"`
	// SecondaryDNSServerAddress is the server for updates when the primary is unavailable.
	SecondaryDNSServerAddress netip.Addr `api:"secondaryDnsServerAddress"`
	// DynamicUpdateSigningKeyType is the kind of signature of updates.
	DynamicUpdateSigningKeyType string `api:"dynamicUpdateSigningKeyType,put,notNull" enum:"NONE|TSIG|GSS_TSIG" default:"NONE"`
	// DynamicUpdateSigningKey is the key for TSIG.
	DynamicUpdateSigningKey schema.Ref `api:"dynamicUpdateSigningKey" onDelete:"refuse" ref:"TSIGKey"`
	// DynamicUpdateSigningKeyRealm is the realm for GSS_TSIG.
	DynamicUpdateSigningKeyRealm schema.Ref `api:"dynamicUpdateSigningKeyRealm" ref:"KerberosRealm" onDelete:"refuse"`
}

// check requires the key or realm that the kind of signature needs, and rejects the other one.
func (x *ZoneDeclaration) check() error {
	kind := x.DynamicUpdateSigningKeyType
	for _, f := range []struct {
		name, kind string
		given      bool
	}{{"dynamicUpdateSigningKey", "TSIG", x.DynamicUpdateSigningKey.ID != 0},
		{"dynamicUpdateSigningKeyRealm", "GSS_TSIG", x.DynamicUpdateSigningKeyRealm.ID != 0}} {
		switch {
		case kind == f.kind && !f.given:
			return problem.Field("MissingRequiredField", f.name, "is required if dynamicUpdateSigningKeyType is %s", kind)
		case kind != f.kind && f.given:
			return problem.Field("ConflictingResourceFieldValues", f.name, "is only allowed if dynamicUpdateSigningKeyType is %s; it is %s",
				f.kind, kind)
		}
	}
	return nil
}

// checkRealm rejects a realm without a key distribution center.
func (x *ZoneDeclaration) checkRealm(c *resource.Change) error {
	realm := x.DynamicUpdateSigningKeyRealm.ID
	if realm == 0 || !c.SetFields["dynamicUpdateSigningKeyRealm"] {
		return nil
	}
	there, err := c.Tx.Exists(store.Query{From: store.Resources, Where: store.All{store.InCollection("keyDistributionCenters"),
		store.HasParent(realm)}})
	if err == nil && !there {
		err = problem.Field("NoKeyDistributionCentersInRealm", "dynamicUpdateSigningKeyRealm", "the realm %d has no key distribution center",
			realm)
	}
	return err
}

// BeforeWrite resolves the zone and names the declaration after it.
func (x *DHCPForwardZone) BeforeWrite(c *resource.Change) error {
	if x.Zone.By != "" {
		x.ZoneAbsoluteName, x.Zone = naming.Clean(x.Zone.By), schema.Ref{}
		if err := naming.Check(x.ZoneAbsoluteName, naming.AnyName); err != nil {
			return problem.Invalid("zone", "%v", err)
		}
	} else if x.Zone.ID != 0 {
		x.ZoneAbsoluteName = ""
	}
	x.Name = x.ZoneAbsoluteName
	if x.Zone.ID != 0 {
		o, err := readTarget(c, "zone", "zones", x.Zone.ID)
		if err != nil {
			return err
		}
		x.Name = c.API.TypeNamed("Zone").TextOf(o, "absoluteName")
	}
	if x.Name == "" {
		return problem.Missing("zone")
	}
	return x.check()
}

// Validate rejects a realm without a key distribution center.
func (x *DHCPForwardZone) Validate(c *resource.Change) error { return x.checkRealm(c) }

// BeforeWrite resolves the prefix and names the declaration after its reverse zone.
func (x *DHCPReverseZone) BeforeWrite(c *resource.Change) error {
	if x.Prefix.By != "" {
		r, err := space.Parse(x.Prefix.By)
		if err != nil {
			return problem.Invalid("prefix", "%v", err)
		}
		x.PrefixRange, x.Prefix = r.String(), schema.Ref{}
		if x.Prefix.ID, err = findSpace(c, x.Config, r); err != nil {
			return err
		}
	}
	if x.Prefix.ID != 0 {
		x.PrefixRange = ""
	}
	text := x.PrefixRange
	if x.Prefix.ID != 0 {
		row, err := c.Tx.Get(x.Prefix.ID)
		if store.IsNotFound(err) || err == nil && row.Collection != "blocks" && row.Collection != "networks" {
			return resource.NotFoundInlined("prefix", "block or network %d does not exist", x.Prefix.ID)
		}
		if err != nil {
			return err
		}
		o, err := c.API.Object(row)
		if err != nil {
			return err
		}
		text = c.API.TypeNamed(row.Type).TextOf(o, "range")
	}
	if text == "" {
		return problem.Missing("prefix")
	}
	r, err := space.Parse(text)
	if err != nil {
		return err
	}
	names := naming.ReverseZones(r.Low, r.High, 1)
	if len(names) == 0 {
		return problem.Invalid("prefix", "%s has no reverse zone", text)
	}
	x.Name = names[0]
	return x.check()
}

// findSpace returns the id of the network, or else of the block, with a given range; 0 if there is none.
func findSpace(c *resource.Change, configuration int64, r space.Range) (int64, error) {
	for _, collection := range []string{"networks", "blocks"} {
		found, err := c.Tx.ReadFirst(store.Query{From: store.Resources, Where: store.All{store.InCollection(collection),
			store.Compare{Field: store.Field{Kind: store.ColumnInt, Path: []string{"configuration"}}, Op: "eq", Value: configuration},
			store.Compare{Field: store.Field{Kind: store.ColumnSpan, Path: []string{"low"}}, Op: "eq", Value: store.AddrKey(r.Low)},
			store.Compare{Field: store.Field{Kind: store.ColumnSpan, Path: []string{"high"}}, Op: "eq", Value: store.AddrKey(r.High)}}})
		if err != nil {
			return 0, err
		}
		if found == nil {
			continue
		}
		if seen, err := c.Sees(found.Head()); err != nil || seen {
			return found.ID, err
		}
	}
	return 0, nil
}

// Validate rejects a realm without a key distribution center.
func (x *DHCPReverseZone) Validate(c *resource.Change) error { return x.checkRealm(c) }

// renameDeclarations updates the names of declarations after their zone or prefix was renamed.
func renameDeclarations(c *resource.Change, field, ref string) error {
	if c.Old == nil || c.Type.TextOf(c.Old, field) == c.Type.TextOf(c.New, field) {
		return nil
	}
	return c.Each(store.All{store.InCollection("zoneDeclarations"), store.LinksTo{Targets: []int64{schema.HeadOf(c.New).ID}, Field: ref}},
		func(row *store.Resource, _ schema.Object) error {
			_, err := c.Following(ref).Change(row, func(schema.Object) {})
			return err
		})
}

// readTarget reads the resource that a field of a request refers to.
func readTarget(c *resource.Change, field, collection string, id int64) (schema.Object, error) {
	row, err := c.Tx.Get(id)
	if store.IsNotFound(err) || err == nil && row.Collection != collection {
		return nil, resource.NotFoundInlined(field, "resource %d does not exist in %s", id, collection)
	}
	if err != nil {
		return nil, err
	}
	return c.API.Object(row)
}
