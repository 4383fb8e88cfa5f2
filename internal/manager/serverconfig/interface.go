package serverconfig

import (
	"net/netip"

	"portolan/internal/base/naming"
	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
)

// registerInterfaces declares the collection of the interfaces of servers.
func registerInterfaces(r *resource.Registry) {
	r.Collection(resource.Collection{Name: "interfaces"}, &NetworkInterface{}, &PublishedInterface{})
}

// NetworkInterface is the network interface of a server. It is created, changed and deleted with the server.
type NetworkInterface struct {
	schema.Head `head:"nonblank" parents:"servers" post:"no"`
	// Configuration is the configuration of the interface.
	Configuration schema.Ref `api:"configuration,readOnly" ref:"Configuration" column:"configuration"`
	// Server is the server of the interface.
	Server schema.Ref `api:"server,readOnly" column:"parent" ref:"Server|HAServer"`
	// SecondaryAddress is its address of the other address family.
	SecondaryAddress netip.Addr `api:"secondaryAddress"`
	// ManagementAddress is the address that the server is managed at.
	ManagementAddress netip.Addr `api:"managementAddress"`
	// ManagementAddressPrefixLength is the prefix length of that address; null, because the operating system sets it.
	ManagementAddressPrefixLength *int64 `api:"managementAddressPrefixLength,readOnly" min:"1" max:"128"`
	// ServicesIPv4Address is the IPv4 address that services listen on.
	ServicesIPv4Address netip.Addr `api:"servicesIpv4Address,readOnly"`
	// ServicesIPv4PrefixLength is the prefix length of that address.
	ServicesIPv4PrefixLength *int64 `api:"servicesIpv4PrefixLength,readOnly" min:"1" max:"32"`
	// ServicesIPv6Address is the IPv6 address that services listen on.
	ServicesIPv6Address netip.Addr `api:"servicesIpv6Address,readOnly"`
	// ServicesIPv6PrefixLength is the prefix length of that address.
	ServicesIPv6PrefixLength *int64 `api:"servicesIpv6PrefixLength,readOnly" min:"1" max:"128"`
	// HABackboneAddress is its address in the network between the nodes of a pair.
	HABackboneAddress netip.Addr `api:"haBackboneAddress,readOnly"`
	// HABackbonePrefixLength is the prefix length of that address.
	HABackbonePrefixLength *int64 `api:"haBackbonePrefixLength,readOnly" min:"1" max:"128"`
	// RedundancyEnabled reports whether the interface is bonded.
	RedundancyEnabled bool `api:"redundancyEnabled,readOnly"`
	// RedundancyScenario is the mode of the bond.
	RedundancyScenario string `api:"redundancyScenario" enum:"ACTIVE_BACKUP|ACTIVE_ACTIVE"`
}

// PublishedInterface is the name and the addresses of a server as seen from the other side of NAT.
type PublishedInterface struct {
	schema.Head `head:"required,nonblank" parents:"servers" unique:"siblings"`
	// Configuration is the configuration of the interface.
	Configuration schema.Ref `api:"configuration,readOnly" ref:"Configuration" column:"configuration"`
	// Server is the server of the interface.
	Server schema.Ref `api:"server,readOnly" column:"parent" ref:"Server|HAServer"`
	// PrimaryAddress is its first address.
	PrimaryAddress netip.Addr `api:"primaryAddress,required"`
	// SecondaryAddress is its address of the other address family.
	SecondaryAddress netip.Addr `api:"secondaryAddress"`
}

// applyRequest sets the fields of the interface that a request for its server contains.
func (x *NetworkInterface) applyRequest(item schema.RefItem) error {
	for _, services := range []*netip.Addr{&x.ServicesIPv4Address, &x.ServicesIPv6Address} {
		if *services == x.ManagementAddress { // unless set, services listen on the management address
			*services = netip.Addr{}
		}
	}
	if name := item.Text["name"]; name != "" {
		x.Name = name
	}
	for field, at := range map[string]*netip.Addr{"managementAddress": &x.ManagementAddress, "servicesIpv4Address": &x.ServicesIPv4Address,
		"servicesIpv6Address": &x.ServicesIPv6Address, "secondaryAddress": &x.SecondaryAddress} {
		text := item.Text[field]
		if text == "" {
			continue
		}
		a, err := netip.ParseAddr(text)
		if err != nil || a.Zone() != "" || field == "servicesIpv4Address" && !a.Is4() || field == "servicesIpv6Address" && a.Is4() {
			return problem.Invalid("interfaces", "%s: %q cannot be used as an address here", field, text)
		}
		*at = a.Unmap()
	}
	switch m := x.ManagementAddress; {
	case !m.IsValid() && !x.ServicesIPv4Address.IsValid() && !x.ServicesIPv6Address.IsValid():
		return problem.Missing("interfaces.managementAddress")
	case m.Is4() && !x.ServicesIPv4Address.IsValid():
		x.ServicesIPv4Address = m
	case m.Is6() && !x.ServicesIPv6Address.IsValid():
		x.ServicesIPv6Address = m
	}
	return nil
}

// BeforeWrite rejects requests to change the interface: it is changed through its server.
func (x *NetworkInterface) BeforeWrite(c *resource.Change) error {
	if c.IsRequested() {
		return problem.Forbidden("UpdateNotAllowed", "change a network interface through its server: PUT servers/%d with interfaces",
			x.Server.ID)
	}
	return nil
}

// BeforeDelete rejects the deletion, unless the server is deleted.
func (x *NetworkInterface) BeforeDelete(c *resource.Change) error {
	if c.IsCascaded() {
		return nil
	}
	return problem.Forbidden("DeleteNotAllowed", "a network interface can only be deleted with its server (%d)", x.Server.ID)
}

// BeforeWrite checks the name, which must be a host name, and the address families.
func (x *PublishedInterface) BeforeWrite(*resource.Change) error {
	x.Name = naming.Clean(x.Name)
	if err := naming.Check(x.Name, naming.AnyName); err != nil {
		return problem.Field("InvalidFullyQualifiedDomainName", "name", "%v", err)
	}
	if x.SecondaryAddress.IsValid() && x.SecondaryAddress.Is4() == x.PrimaryAddress.Is4() {
		return problem.Field("ConflictingResourceFieldValues", "secondaryAddress",
			"has the same family as primaryAddress: one must be IPv4 and the other IPv6")
	}
	return nil
}
