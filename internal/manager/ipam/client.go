package ipam

import (
	"encoding/json"

	"portolan/internal/base/problem"
	"portolan/internal/base/space"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// registerClients declares the collections of hardware addresses and client identifiers of DHCP clients.
func registerClients(r *resource.Registry) {
	r.Collection(resource.Collection{Name: "clientIdentifiers", Parents: []string{"configurations"}}, &DHCPClientIdentifier{},
		&DHCPUniqueIdentifier{})
	r.Collection(resource.Collection{Name: "macAddresses", Parents: []string{"configurations"}}, &MACAddress{})
}

// MACAddress is the hardware address of a client.
type MACAddress struct {
	schema.Head
	// Configuration is the configuration that contains the hardware address.
	Configuration schema.Ref `api:"configuration,readOnly" column:"configuration" ref:"Configuration"`
	// Address is the hardware address, in any common format; it is stored as 00-00-5E-00-53-01.
	Address string `api:"address,required,inline,hardware,search" key:"mac "`
	// MACPool is the pool that contains the hardware address.
	MACPool schema.Ref `api:"macPool" ref:"MACPool|DenyMACPool" back:"macAddresses"`
}

// BeforeWrite normalizes the address.
func (x *MACAddress) BeforeWrite(*resource.Change) error {
	mac, err := space.ParseHardware(x.Address)
	if err != nil {
		return problem.Field("InvalidMacAddressValue", "address", "%v", err)
	}
	x.Address = space.FormatHardware(mac)
	return nil
}

// Validate rejects an address that already exists in the configuration.
func (x *MACAddress) Validate(c *resource.Change) error { return uniqueKey(c, "address", x.Address) }

// BeforeBelowDelete rejects the deletion of a hardware address if a reservation has no other identifier, unless the reservation is deleted
// as well.
func (x *MACAddress) BeforeBelowDelete(c *resource.Change) error {
	if c.IsCascaded() {
		return nil
	}
	return c.Each(store.All{store.InCollection("addresses"), store.LinksTo{Targets: []int64{x.ID}, Field: "macAddress"}},
		func(row *store.Resource, o schema.Object) error {
			if c.API.TypeNamed(row.Type).TextOf(o, "state") != "DHCP_RESERVED" || row.Ref("clientIdentifier") != 0 {
				return nil
			}
			p := problem.InUse("%s is reserved for this client (%s %d): change its state or reserve it for another client first",
				RangeOf(row).Low, row.Type, row.ID)
			p.Named = append(p.Named, row.ID)
			return p
		})
}

// String returns the address.
func (x *MACAddress) String() string { return x.Address }

// DHCPClientIdentifier is the identifier that a DHCPv4 client sends (RFC 2132 section 9.14).
type DHCPClientIdentifier struct {
	schema.Head
	// Configuration is the configuration that contains the identifier.
	Configuration schema.Ref `api:"configuration,readOnly" column:"configuration" ref:"Configuration"`
	// UID contains the identifier as clientIdentifier.
	UID json.RawMessage `api:"uid,inline"`
}

// value returns the identifier, or an empty string if UID is malformed.
func (x *DHCPClientIdentifier) value() string {
	var uid struct {
		ClientIdentifier string `json:"clientIdentifier"`
	}
	if json.Unmarshal(x.UID, &uid) != nil {
		return ""
	}
	return uid.ClientIdentifier
}

// BeforeWrite rejects an identifier that does not have 1 to 255 bytes.
func (x *DHCPClientIdentifier) BeforeWrite(*resource.Change) error {
	if n := len(x.value()); n < 1 || n > 255 {
		return problem.Invalid("uid", "clientIdentifier must have 1 to 255 bytes")
	}
	return nil
}

// Validate rejects an identifier that already exists in the configuration.
func (x *DHCPClientIdentifier) Validate(c *resource.Change) error {
	return uniqueKey(c, "uid", x.value())
}

// Key returns the lookup key.
func (x *DHCPClientIdentifier) Key() string { return "uid " + x.value() }

// DHCPUniqueIdentifier is the DUID that a DHCPv6 client sends (RFC 8415 section 11).
type DHCPUniqueIdentifier struct {
	schema.Head
	// Configuration is the configuration that contains the identifier.
	Configuration schema.Ref `api:"configuration,readOnly" column:"configuration" ref:"Configuration"`
	// DUID is the identifier in hexadecimal, with or without colons or hyphens; it is stored as 000100012A.
	DUID string `api:"duid,required,inline,duid" key:"duid "`
}

// BeforeWrite normalizes the identifier, which must have 3 to 130 bytes.
func (x *DHCPUniqueIdentifier) BeforeWrite(*resource.Change) error {
	kept, err := space.KeptDUID(x.DUID)
	if err != nil {
		return problem.Invalid("duid", "%v", err)
	}
	x.DUID = kept
	return nil
}

// Validate rejects an identifier that already exists in the configuration.
func (x *DHCPUniqueIdentifier) Validate(c *resource.Change) error {
	return uniqueKey(c, "duid", x.DUID)
}

// uniqueKey rejects a key that another resource of the configuration has.
func uniqueKey(c *resource.Change, field, value string) error {
	h := schema.HeadOf(c.New)
	found, err := c.Tx.ResourcesByKey(h.Config, c.Type.KeyOf(c.New))
	if err != nil {
		return err
	}
	for _, r := range found {
		if r.ID != h.ID {
			return problem.Conflict("ResourceAlreadyExists", "%s: %q already exists as %s %d", field, value, r.Type, r.ID)
		}
	}
	return nil
}

// resolveClient replaces a reference by value with a reference by id. It creates the client if it does not exist, because an address may be
// the first to refer to it.
func resolveClient(c *resource.Change, field string, ref *schema.Ref, configuration int64, kind string, fill func(o schema.Object)) error {
	if ref.ID != 0 || ref.By == "" {
		return nil
	}
	t, _ := c.API.Type(kind)
	o := t.New()
	fill(o)
	h := schema.HeadOf(o)
	h.Type, h.Parent, h.Config = kind, configuration, configuration
	if rule, ok := o.(resource.BeforeWriter); ok {
		if err := rule.BeforeWrite(c); err != nil {
			if p, ok := problem.As(err); ok {
				return p.ForField(field)
			}
			return err
		}
	}
	found, err := c.Tx.ResourcesByKey(configuration, t.KeyOf(o))
	if err != nil {
		return err
	}
	if len(found) > 0 {
		*ref = schema.Ref{ID: found[0].ID}
		return nil
	}
	var row *store.Resource
	if row, err = c.Following().Create(t, o); err == nil {
		*ref = schema.Ref{ID: row.ID}
	}
	return err
}

// resolveClients resolves the hardware address and the client identifier of an address, and creates missing ones.
func (x *Assignment) resolveClients(c *resource.Change, identifier *schema.Ref, v4 bool) error {
	mac := x.MACAddress.By
	if err := resolveClient(c, "macAddress", &x.MACAddress, x.Config, "MACAddress",
		func(o schema.Object) { o.(*MACAddress).Address = mac }); err != nil {
		return err
	}
	by := identifier.By
	if v4 {
		return resolveClient(c, "clientIdentifier", identifier, x.Config, "DHCPClientIdentifier", func(o schema.Object) {
			text, err := json.Marshal(map[string]string{"clientIdentifier": by})
			if err == nil { // marshalling strings cannot fail
				o.(*DHCPClientIdentifier).UID = text
			}
		})
	}
	return resolveClient(c, "clientIdentifier", identifier, x.Config, "DHCPUniqueIdentifier",
		func(o schema.Object) { o.(*DHCPUniqueIdentifier).DUID = by })
}
