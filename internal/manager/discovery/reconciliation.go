package discovery

import (
	"net/netip"
	"time"

	"portolan/internal/base/problem"
	"portolan/internal/base/space"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
	"portolan/internal/engine/timetable"
	"portolan/internal/manager/ipam"
	"portolan/internal/manager/snmp"
)

// policies is the name of the collection of reconciliation policies.
const policies = "reconciliationPolicies"

// registerReconciliation declares the collections of reconciliation policies and of what was discovered, and what is kept of either.
func registerReconciliation(r *resource.Registry) {
	r.Extension(&store.Extension{Name: "sweeps", Migrations: sweepMigrations, Tables: []store.Table{
		{Name: "sweep_due", Columns: []string{"policy"}, Key: 1, Derived: "a policy is due again at its time"},
		{Name: "sweep_finding", Columns: []string{"policy", "address", "kind", "since"}, Key: 2}}})
	r.Collection(resource.Collection{Name: policies, Complete: timetable.Complete}, &IPv4ReconciliationPolicy{}, &IPv6ReconciliationPolicy{})
	r.Collection(resource.Collection{Name: "discoveredDevices", Parents: []string{"reconciliationPolicies"}, NoSearch: true},
		&DiscoveredARPEntry{},
		&DiscoveredHost{}, &DiscoveredInterface{}, &DiscoveredMACAddress{}, &DiscoveredNetwork{}, &DiscoveredRouter{}, &DiscoveredSwitch{},
		&DiscoveredVLAN{})
}

// Reconciliation is what policies of both families say.
type Reconciliation struct {
	// Configuration is the configuration it lies in.
	Configuration schema.Ref `api:"configuration,readOnly" ref:"Configuration" column:"configuration"`
	// Enabled says whether it is done.
	Enabled bool `api:"enabled,put"`
	// SeedRouterAddresses are the routers that are asked first.
	SeedRouterAddresses []string `api:"seedRouterAddresses"`
	// SNMP is how they are asked.
	SNMP *snmp.Settings `api:"snmp"`
	// SkipFQDNEnabled says whether the names of what is found are not asked for.
	SkipFQDNEnabled bool `api:"skipFqdnEnabled,put"`
	// DNSServers are asked for names.
	DNSServers []string `api:"dnsServers"`
	// BlackHoleVLAN is the VLAN that unused ports are in.
	BlackHoleVLAN int64 `api:"blackHoleVlan,put" min:"1" max:"4096" default:"1"`
	// TrunkDefaultVLAN is the VLAN of what comes without a tag.
	TrunkDefaultVLAN int64 `api:"trunkDefaultVlan,put" min:"1" max:"4096" default:"1"`
	// StartDateTime is when it is done first.
	StartDateTime time.Time `api:"startDateTime,required"`
	// Frequency is how often it is done; null means once.
	Frequency string `api:"frequency,duration"`
	// NextDateTime is when it is done next; null where it is not.
	NextDateTime time.Time `api:"nextDateTime,computed"`
	// LastDateTime is when it was last done; null where it never was.
	LastDateTime time.Time `api:"lastDateTime,computed"`
}

// Times are when it is done.
func (x *Reconciliation) Times() timetable.Times {
	return timetable.Times{Start: x.StartDateTime, Interval: x.Frequency, Enabled: x.Enabled, IntervalField: "frequency"}
}

// timed gives what both families have.
func (x *Reconciliation) timed() *Reconciliation { return x }

// BeforeWrite refuses times that never come.
func (x *Reconciliation) BeforeWrite(c *resource.Change) error {
	if !c.Requested() {
		return nil
	}
	x.NextDateTime, x.LastDateTime = time.Time{}, time.Time{}
	if !resource.Provided[Options](c.API.Provisions).Sweeps { // it is refused where it is enabled
		return nil
	}
	return x.Times().Check(c.Tx.Now(), timesBefore(c))
}

// AfterWrite notes since when it is done as it says.
func (x *Reconciliation) AfterWrite(c *resource.Change) error {
	return x.Times().Note(c, timesBefore(c))
}

// timesBefore gives when the policy of a change was done before; nil of a new one.
func timesBefore(c *resource.Change) *timetable.Times {
	old, ok := c.Old.(interface{ timed() *Reconciliation })
	if !ok {
		return nil
	}
	times := old.timed().Times()
	return &times
}

// IPv4ReconciliationPolicy says how what is in the network is compared with what is known here.
type IPv4ReconciliationPolicy struct {
	schema.Head `parents:"configurations|blocks|networks"`
	Reconciliation
	// DiscoveryMethod is how the network is looked at.
	DiscoveryMethod string `api:"discoveryMethod,required" enum:"SNMP|PINGSWEEP|SNMP_PINGSWEEP|NO_DISCOVERY"`
	// NetworkBoundaries are the prefixes that are looked at; needed below a configuration.
	NetworkBoundaries []string `api:"networkBoundaries"`
	// PingSweepNetworkGaps are parts of them that are not pinged.
	PingSweepNetworkGaps []string `api:"pingSweepNetworkGaps"`
	// Overrides are addresses, prefixes and ranges that are never touched.
	Overrides []string `api:"overrides"`
	// ReclaimAcceptanceAge is after how long what is gone is given back; null leaves it to people.
	ReclaimAcceptanceAge string `api:"reclaimAcceptanceAge,duration"`
	// UnknownAcceptanceAge is after how long what is unknown is taken in; null leaves it to people.
	UnknownAcceptanceAge string `api:"unknownAcceptanceAge,duration"`
	// MismatchAcceptanceAge is after how long what differs is overwritten; null leaves it to people.
	MismatchAcceptanceAge string `api:"mismatchAcceptanceAge,duration"`
	// View is the view that names go to.
	View schema.Ref `api:"view" ref:"View"`
}

// IPv6ReconciliationPolicy says how what is in the network is compared with what is known here.
type IPv6ReconciliationPolicy struct {
	schema.Head `parents:"blocks|networks"`
	Reconciliation
	// DiscoveryMethod is how the network is looked at.
	DiscoveryMethod string `api:"discoveryMethod,required" enum:"SNMP|NO_DISCOVERY"`
}

// DiscoveredARPEntry is who a router says has an address.
type DiscoveredARPEntry struct {
	schema.Head `head:"readOnly" post:"no"`
	// Device is the router.
	Device schema.Ref `api:"device,readOnly" ref:"DiscoveredRouter|DiscoveredSwitch"`
	// Address is the address.
	Address string `api:"address,readOnly"`
	// MACAddress is who has it.
	MACAddress string `api:"macAddress,readOnly"`
	// Interface is where that is.
	Interface schema.Ref `api:"interface,readOnly" ref:"DiscoveredInterface"`
}

// DiscoveredHost is a host that answers.
type DiscoveredHost struct {
	schema.Head `head:"readOnly" post:"no"`
	// Device is the router or switch that it was seen at.
	Device schema.Ref `api:"device,readOnly" ref:"DiscoveredRouter|DiscoveredSwitch"`
	// Address is its address.
	Address string `api:"address,readOnly"`
	// MACAddress is its hardware address.
	MACAddress string `api:"macAddress,readOnly"`
	// Interface is where it was seen.
	Interface schema.Ref `api:"interface,readOnly" ref:"DiscoveredInterface"`
}

// DiscoveredInterface is an interface of a router or switch.
type DiscoveredInterface struct {
	schema.Head `head:"readOnly" post:"no"`
	// Device is the router or switch.
	Device schema.Ref `api:"device,readOnly" ref:"DiscoveredRouter|DiscoveredSwitch"`
	// Description says what it is for.
	Description string `api:"description,readOnly"`
	// InterfaceIndex is its number.
	InterfaceIndex *int64 `api:"interfaceIndex,readOnly"`
	// MACAddress is its hardware address.
	MACAddress string `api:"macAddress,readOnly"`
	// Speed is how fast it is, in bits a second.
	Speed *int64 `api:"speed,readOnly"`
	// Connector is its kind.
	Connector string `api:"connector,readOnly"`
	// Alias is what people call it.
	Alias string `api:"alias,readOnly"`
}

// DiscoveredMACAddress is a hardware address that a switch has seen.
type DiscoveredMACAddress struct {
	schema.Head `head:"readOnly" post:"no"`
	// Device is the switch.
	Device schema.Ref `api:"device,readOnly" ref:"DiscoveredRouter|DiscoveredSwitch"`
	// MACAddress is the hardware address.
	MACAddress string `api:"macAddress,readOnly"`
	// PortMode is how the port is used.
	PortMode string `api:"portMode,readOnly" enum:"TRUNK|ACCESS"`
	// Interface is where it was seen.
	Interface schema.Ref `api:"interface,readOnly" ref:"DiscoveredInterface"`
}

// DiscoveredNetwork is a network that a router has.
type DiscoveredNetwork struct {
	schema.Head `head:"readOnly" post:"no"`
	// Device is the router.
	Device schema.Ref `api:"device,readOnly" ref:"DiscoveredRouter|DiscoveredSwitch"`
	// Range is its prefix.
	Range string `api:"range,readOnly"`
	// Interface is the interface that it is at.
	Interface schema.Ref `api:"interface,readOnly" ref:"DiscoveredInterface"`
}

// DiscoveredRouter is a router.
type DiscoveredRouter struct {
	schema.Head `head:"readOnly" post:"no"`
	// Description says what it is.
	Description string `api:"description,readOnly"`
	// Address is its address.
	Address string `api:"address,readOnly"`
	// Location is where it stands.
	Location string `api:"location,readOnly"`
}

// DiscoveredSwitch is a switch.
type DiscoveredSwitch struct {
	schema.Head `head:"readOnly" post:"no"`
	// Description says what it is.
	Description string `api:"description,readOnly"`
	// Address is its address.
	Address string `api:"address,readOnly"`
	// Location is where it stands.
	Location string `api:"location,readOnly"`
}

// DiscoveredVLAN is a VLAN of a switch.
type DiscoveredVLAN struct {
	schema.Head `head:"readOnly" post:"no"`
	// Device is the switch.
	Device schema.Ref `api:"device,readOnly" ref:"DiscoveredRouter|DiscoveredSwitch"`
	// VLANID is its number.
	VLANID *int64 `api:"vlanId,readOnly"`
	// Interface is the interface that it is at.
	Interface schema.Ref `api:"interface,readOnly" ref:"DiscoveredInterface"`
}

// Validate refuses what is not looked at yet, and what cannot be looked at.
func (x *IPv4ReconciliationPolicy) Validate(c *resource.Change) error {
	if err := x.check(c, &x.Head, x.DiscoveryMethod, true); err != nil {
		return err
	}
	for field, list := range map[string][]string{"networkBoundaries": x.NetworkBoundaries, "pingSweepNetworkGaps": x.PingSweepNetworkGaps} {
		for i, text := range list {
			if p, err := netip.ParsePrefix(text); err != nil || !p.Addr().Is4() || p != p.Masked() {
				return problem.Invalid(field, "entry %d: %q is no IPv4 prefix", i, text)
			}
		}
	}
	for i, text := range x.Overrides {
		if _, err := netip.ParseAddr(text); err == nil {
			continue
		}
		if _, err := space.Parse(text); err != nil {
			return problem.Invalid("overrides", "entry %d: %v", i, err)
		}
	}
	for field, age := range map[string]string{"reclaimAcceptanceAge": x.ReclaimAcceptanceAge, "unknownAcceptanceAge": x.UnknownAcceptanceAge} {
		if age != "" && schema.LengthOf(age) < 0 {
			return problem.Field("DurationValueOutsideRange", field, "must not be below zero")
		}
	}
	if x.Enabled && x.MismatchAcceptanceAge != "" {
		return problem.NotYet("mismatchAcceptanceAge: a ping tells whether an address answers, and not who it is")
	}
	if x.Parent == x.Config && len(x.NetworkBoundaries) == 0 {
		return problem.Missing("networkBoundaries")
	}
	return nil
}

// Validate refuses what is not looked at yet.
func (x *IPv6ReconciliationPolicy) Validate(c *resource.Change) error {
	return x.check(c, &x.Head, x.DiscoveryMethod, false)
}

// check refuses a policy that would have to act, and one of the other family than what it is for.
func (x *Reconciliation) check(c *resource.Change, h *schema.Head, method string, v4 bool) error {
	switch {
	case x.Enabled && method != pingSweep:
		return problem.NotYet("enabled: networks are looked at by PINGSWEEP alone yet; a policy that is not enabled can be prepared")
	case x.Enabled && !resource.Provided[Options](c.API.Provisions).Sweeps:
		return problem.Field("UnsupportedResourceFieldValue", "enabled",
			"this manager does not look at networks by itself: start it with --sweep; a policy that is not enabled can be prepared")
	}
	for field, list := range map[string][]string{"seedRouterAddresses": x.SeedRouterAddresses, "dnsServers": x.DNSServers} {
		for i, text := range list {
			if _, err := netip.ParseAddr(text); err != nil {
				return problem.Invalid(field, "entry %d: %q is no address", i, text)
			}
		}
	}
	if (method == "SNMP" || method == "SNMP_PINGSWEEP") && len(x.SeedRouterAddresses) == 0 {
		return problem.Missing("seedRouterAddresses")
	}
	if h.Parent == h.Config {
		return nil
	}
	above, err := c.Tx.Get(h.Parent)
	if err != nil {
		return err
	}
	if ipam.RangeOf(above).Low.Is4() != v4 {
		return problem.Field("InvalidResourceType", "type", "a %s is not for an %s", h.Type, above.Type)
	}
	other, err := c.Tx.First(store.Query{From: store.Resources, Where: store.All{store.InCollection("reconciliationPolicies"),
		store.HasParent(h.Parent), store.Compare{Field: store.Field{Kind: store.ColumnID}, Op: "ne", Value: h.ID}}})
	if err == nil && other != nil {
		err = problem.Conflict("ResourceAlreadyExists", "%s %d has a policy, %d", above.Type, above.ID, other.ID)
	}
	return err
}
