package discovery

import (
	"net/netip"
	"time"

	"portolan/internal/base/problem"
	"portolan/internal/base/snmpwalk"
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

// registerReconciliation declares the collections of reconciliation policies and discovered devices, and the tables of sweeps.
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

// Reconciliation are the fields that policies of both address families have in common.
type Reconciliation struct {
	// Configuration is the configuration of the policy.
	Configuration schema.Ref `api:"configuration,readOnly" ref:"Configuration" column:"configuration"`
	// Enabled controls whether the policy runs.
	Enabled bool `api:"enabled,put"`
	// SeedRouterAddresses are the routers where discovery starts.
	SeedRouterAddresses []string `api:"seedRouterAddresses"`
	// SNMP is the SNMP access data of the routers.
	SNMP *snmp.Settings `api:"snmp"`
	// SkipFQDNEnabled controls whether the names of discovered hosts are left out.
	SkipFQDNEnabled bool `api:"skipFqdnEnabled,put"`
	// DNSServers are the servers that names are looked up on.
	DNSServers []string `api:"dnsServers"`
	// PacketsPerSecond limits the pings, SNMP requests and queries of a run. It is an extension of Portolan.
	PacketsPerSecond int64 `api:"packetsPerSecond,notNull" min:"1" max:"10000" default:"200"`
	// NotSeenDays is the number of days after which an address that is not seen is a finding. It is an extension of Portolan.
	NotSeenDays int64 `api:"notSeenDays,notNull" min:"0" max:"3650" default:"7"`
	// NeighborBoundaries are the prefixes of neighbouring devices that a run reads too, as far as the devices report them by LLDP or CDP;
	// empty to read the listed devices only. It is an extension of Portolan.
	NeighborBoundaries []string `api:"neighborBoundaries"`
	// NeighborLimit is the maximum number of neighbouring devices of a run. It is an extension of Portolan.
	NeighborLimit int64 `api:"neighborLimit,notNull" min:"1" max:"1000" default:"100"`
	// VLANTablesEnabled controls whether the forwarding table of each VLAN is read with a community (community@20) or a context (vlan-20) of
	// its own. It is an extension of Portolan.
	VLANTablesEnabled bool `api:"vlanTablesEnabled"`
	// BlackHoleVLAN is the VLAN of unused ports.
	BlackHoleVLAN int64 `api:"blackHoleVlan,put" min:"1" max:"4096" default:"1"`
	// TrunkDefaultVLAN is the VLAN of untagged frames on trunks.
	TrunkDefaultVLAN int64 `api:"trunkDefaultVlan,put" min:"1" max:"4096" default:"1"`
	// StartDateTime is the time of the first run.
	StartDateTime time.Time `api:"startDateTime,required"`
	// Frequency is the time between two runs; null for a single run.
	Frequency string `api:"frequency,duration"`
	// NextDateTime is the time of the next run; null where there is none.
	NextDateTime time.Time `api:"nextDateTime,computed"`
	// LastDateTime is the time of the last run; null where there was none.
	LastDateTime time.Time `api:"lastDateTime,computed"`
}

// Times returns the schedule of the policy.
func (x *Reconciliation) Times() timetable.Times {
	return timetable.Times{Start: x.StartDateTime, Interval: x.Frequency, Enabled: x.Enabled, IntervalField: "frequency"}
}

// reconciliation returns the fields that policies of both address families have in common.
func (x *Reconciliation) reconciliation() *Reconciliation { return x }

// BeforeWrite rejects a schedule that never runs.
func (x *Reconciliation) BeforeWrite(c *resource.Change) error {
	if !c.IsRequested() {
		return nil
	}
	x.NextDateTime, x.LastDateTime = time.Time{}, time.Time{}
	if !resource.Provided[Options](c.API.Provisions).Sweeps { // an enabled policy is rejected by Validate
		return nil
	}
	return x.Times().Check(c.Tx.Now(), timesBefore(c))
}

// AfterWrite records the change of the schedule.
func (x *Reconciliation) AfterWrite(c *resource.Change) error {
	return x.Times().Note(c, timesBefore(c))
}

// timesBefore returns the schedule before the change; nil for a new policy.
func timesBefore(c *resource.Change) *timetable.Times {
	old, ok := c.Old.(interface{ reconciliation() *Reconciliation })
	if !ok {
		return nil
	}
	times := old.reconciliation().Times()
	return &times
}

// IPv4ReconciliationPolicy sets how hosts on the network are discovered and reconciled with the addresses of the database.
type IPv4ReconciliationPolicy struct {
	schema.Head `parents:"configurations|blocks|networks"`
	Reconciliation
	// DiscoveryMethod is the method of discovery.
	DiscoveryMethod string `api:"discoveryMethod,required" enum:"SNMP|PINGSWEEP|SNMP_PINGSWEEP|NO_DISCOVERY"`
	// NetworkBoundaries are the prefixes to probe; required where the parent is a configuration.
	NetworkBoundaries []string `api:"networkBoundaries"`
	// PingSweepNetworkGaps are prefixes within the boundaries that are not pinged.
	PingSweepNetworkGaps []string `api:"pingSweepNetworkGaps"`
	// Overrides are addresses, prefixes and ranges that are never probed or changed.
	Overrides []string `api:"overrides"`
	// ReclaimAcceptanceAge is the time after which a static address that does not answer is deleted; null for never.
	ReclaimAcceptanceAge string `api:"reclaimAcceptanceAge,duration"`
	// UnknownAcceptanceAge is the time after which an unknown address that ping is added; null for never.
	UnknownAcceptanceAge string `api:"unknownAcceptanceAge,duration"`
	// MismatchAcceptanceAge is the time after which an address that differs is overwritten; null for never.
	MismatchAcceptanceAge string `api:"mismatchAcceptanceAge,duration"`
	// View is the view for the names of discovered hosts.
	View schema.Ref `api:"view" ref:"View"`
}

// IPv6ReconciliationPolicy sets how hosts on the network are discovered and reconciled with the addresses of the database.
type IPv6ReconciliationPolicy struct {
	schema.Head `parents:"blocks|networks"`
	Reconciliation
	// DiscoveryMethod is the method of discovery.
	DiscoveryMethod string `api:"discoveryMethod,required" enum:"SNMP|NO_DISCOVERY"`
}

// DiscoveredARPEntry is an entry in the ARP table of a router.
type DiscoveredARPEntry struct {
	schema.Head `head:"readOnly" post:"no"`
	// Device is the router.
	Device schema.Ref `api:"device,readOnly" ref:"DiscoveredRouter|DiscoveredSwitch"`
	// Address is the IP address.
	Address string `api:"address,readOnly"`
	// MACAddress is the hardware address.
	MACAddress string `api:"macAddress,readOnly"`
	// Interface is the interface of the router.
	Interface schema.Ref `api:"interface,readOnly" ref:"DiscoveredInterface"`
}

// DiscoveredHost is a host that answered.
type DiscoveredHost struct {
	schema.Head `head:"readOnly" post:"no"`
	// Device is the router or switch where the host was seen.
	Device schema.Ref `api:"device,readOnly" ref:"DiscoveredRouter|DiscoveredSwitch"`
	// Address is the IP address of the host.
	Address string `api:"address,readOnly"`
	// MACAddress is the hardware address of the host.
	MACAddress string `api:"macAddress,readOnly"`
	// Interface is the interface where the host was seen.
	Interface schema.Ref `api:"interface,readOnly" ref:"DiscoveredInterface"`
}

// DiscoveredInterface is an interface of a router or switch.
type DiscoveredInterface struct {
	schema.Head `head:"readOnly" post:"no"`
	// Device is the router or switch.
	Device schema.Ref `api:"device,readOnly" ref:"DiscoveredRouter|DiscoveredSwitch"`
	// Description is the description of the interface on the device.
	Description string `api:"description,readOnly"`
	// InterfaceIndex is the number of the interface.
	InterfaceIndex *int64 `api:"interfaceIndex,readOnly"`
	// MACAddress is the hardware address of the interface.
	MACAddress string `api:"macAddress,readOnly"`
	// Speed is the speed, in bits per second.
	Speed *int64 `api:"speed,readOnly"`
	// Connector is the kind of the connector.
	Connector string `api:"connector,readOnly"`
	// Alias is the alias of the interface on the device.
	Alias string `api:"alias,readOnly"`
}

// DiscoveredMACAddress is a hardware address that a switch has learned.
type DiscoveredMACAddress struct {
	schema.Head `head:"readOnly" post:"no"`
	// Device is the switch.
	Device schema.Ref `api:"device,readOnly" ref:"DiscoveredRouter|DiscoveredSwitch"`
	// MACAddress is the hardware address.
	MACAddress string `api:"macAddress,readOnly"`
	// PortMode is the mode of the port.
	PortMode string `api:"portMode,readOnly" enum:"TRUNK|ACCESS"`
	// Interface is the interface where the address was learned.
	Interface schema.Ref `api:"interface,readOnly" ref:"DiscoveredInterface"`
}

// DiscoveredNetwork is a network that is attached to a router.
type DiscoveredNetwork struct {
	schema.Head `head:"readOnly" post:"no"`
	// Device is the router.
	Device schema.Ref `api:"device,readOnly" ref:"DiscoveredRouter|DiscoveredSwitch"`
	// Range is the prefix of the network.
	Range string `api:"range,readOnly"`
	// Interface is the interface of the router in the network.
	Interface schema.Ref `api:"interface,readOnly" ref:"DiscoveredInterface"`
}

// DiscoveredRouter is a router that answered.
type DiscoveredRouter struct {
	schema.Head `head:"readOnly" post:"no"`
	// Description is the description of the router on the device.
	Description string `api:"description,readOnly"`
	// Address is the address of the router.
	Address string `api:"address,readOnly"`
	// Location is the location of the router.
	Location string `api:"location,readOnly"`
}

// DiscoveredSwitch is a switch that answered.
type DiscoveredSwitch struct {
	schema.Head `head:"readOnly" post:"no"`
	// Description is the description of the switch on the device.
	Description string `api:"description,readOnly"`
	// Address is the address of the switch.
	Address string `api:"address,readOnly"`
	// Location is the location of the switch.
	Location string `api:"location,readOnly"`
}

// DiscoveredVLAN is a VLAN of a switch.
type DiscoveredVLAN struct {
	schema.Head `head:"readOnly" post:"no"`
	// Device is the switch.
	Device schema.Ref `api:"device,readOnly" ref:"DiscoveredRouter|DiscoveredSwitch"`
	// VLANID is the number of the VLAN.
	VLANID *int64 `api:"vlanId,readOnly"`
	// Interface is the interface in the VLAN.
	Interface schema.Ref `api:"interface,readOnly" ref:"DiscoveredInterface"`
}

// Validate rejects settings that are malformed or that this version does not support.
func (x *IPv4ReconciliationPolicy) Validate(c *resource.Change) error {
	if err := x.check(c, &x.Head, x.DiscoveryMethod, true); err != nil {
		return err
	}
	for field, list := range map[string][]string{"networkBoundaries": x.NetworkBoundaries, "pingSweepNetworkGaps": x.PingSweepNetworkGaps} {
		for i, text := range list {
			if p, err := netip.ParsePrefix(text); err != nil || !p.Addr().Is4() || p != p.Masked() {
				return problem.Invalid(field, "entry %d: %q is not an IPv4 prefix", i, text)
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
	for field, age := range map[string]string{"reclaimAcceptanceAge": x.ReclaimAcceptanceAge, "unknownAcceptanceAge": x.UnknownAcceptanceAge,
		"mismatchAcceptanceAge": x.MismatchAcceptanceAge} {
		if age != "" && schema.LengthOf(age) < 0 {
			return problem.Field("DurationValueOutsideRange", field, "must not be negative")
		}
	}
	if x.Enabled && x.MismatchAcceptanceAge != "" && x.DiscoveryMethod == methodPing {
		return problem.NotYet("mismatchAcceptanceAge: a ping cannot identify the device behind an address: use SNMP or SNMP_PINGSWEEP")
	}
	if x.Parent == x.Config && len(x.NetworkBoundaries) == 0 {
		return problem.Missing("networkBoundaries")
	}
	return nil
}

// Validate rejects settings that are malformed or that this version does not support.
func (x *IPv6ReconciliationPolicy) Validate(c *resource.Change) error {
	return x.check(c, &x.Head, x.DiscoveryMethod, false)
}

// check rejects an enabled policy that the manager cannot run, a parent of the other address family, and a second policy of the same
// parent.
func (x *Reconciliation) check(c *resource.Change, h *schema.Head, method string, v4 bool) error {
	switch {
	case x.Enabled && method == methodNone:
		return problem.Invalid("enabled", "a policy with the method %s does nothing: set enabled to false", method)
	case x.Enabled && !resource.Provided[Options](c.API.Provisions).Sweeps:
		return problem.Field("UnsupportedResourceFieldValue", "enabled",
			"discovery is disabled: start the manager with --sweep, or create the policy with enabled set to false")
	}
	for i, text := range x.SeedRouterAddresses {
		if _, err := netip.ParseAddr(text); err != nil {
			return problem.Invalid("seedRouterAddresses", "entry %d: %q is not an IP address", i, text)
		}
	}
	for i, text := range x.DNSServers {
		if _, err := serverAddress(text); err != nil {
			return problem.Invalid("dnsServers", "entry %d: %q is not an IP address", i, text)
		}
	}
	for i, text := range x.NeighborBoundaries {
		if p, err := netip.ParsePrefix(text); err != nil || p != p.Masked() {
			return problem.Invalid("neighborBoundaries", "entry %d: %q is not a prefix", i, text)
		}
	}
	if usesSNMP(method) {
		if err := x.checkDevices(); err != nil {
			return err
		}
	}
	if h.Parent == h.Config {
		return nil
	}
	above, err := c.Tx.Get(h.Parent)
	if err != nil {
		return err
	}
	if ipam.RangeOf(above).Low.Is4() != v4 {
		return problem.Field("InvalidResourceType", "type", "a %s does not apply to an %s", h.Type, above.Type)
	}
	other, err := c.Tx.ReadFirst(store.Query{From: store.Resources, Where: store.All{store.InCollection("reconciliationPolicies"),
		store.HasParent(h.Parent), store.Compare{Field: store.Field{Kind: store.ColumnID}, Op: "ne", Value: h.ID}}})
	if err == nil && other != nil {
		err = problem.Conflict("ResourceAlreadyExists", "%s %d already has a policy (%d)", above.Type, above.ID, other.ID)
	}
	return err
}

// maxDevices is the maximum number of devices of a policy.
const maxDevices = 1000

// checkDevices rejects a policy that could not read its devices.
func (x *Reconciliation) checkDevices() error {
	switch {
	case len(x.SeedRouterAddresses) == 0:
		return problem.Missing("seedRouterAddresses")
	case len(x.SeedRouterAddresses) > maxDevices:
		return problem.Invalid("seedRouterAddresses", "has %d devices; a policy has at most %d", len(x.SeedRouterAddresses), maxDevices)
	case !x.Enabled:
		return nil
	case x.SNMP == nil:
		return problem.Missing("snmp")
	case x.SNMP.Enabled != nil && !*x.SNMP.Enabled:
		return problem.Invalid("snmp.enabled", "must be true or null: the method of the policy uses SNMP")
	case x.SNMP.Version == snmpwalk.V3 && len(x.SNMP.Usernames) == 0:
		return problem.Missing("snmp.usernames")
	case x.SNMP.Version != snmpwalk.V3 && len(x.SNMP.Communities) == 0:
		return problem.Missing("snmp.communities")
	}
	return nil
}

// serverAddress returns the address and port of a DNS server; the port is 53 unless it is given.
func serverAddress(text string) (netip.AddrPort, error) {
	const dnsPort = 53
	if a, err := netip.ParseAddr(text); err == nil {
		return netip.AddrPortFrom(a, dnsPort), nil
	}
	return netip.ParseAddrPort(text)
}
