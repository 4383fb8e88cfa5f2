package dns

import (
	"net/netip"
	"strings"

	"portolan/internal/base/naming"
	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// registerRealms declares the collections of Kerberos realms, key distribution centers and service principals.
func registerRealms(r *resource.Registry) {
	r.Collection(resource.Collection{Name: "realms", Parents: []string{"configurations"}}, &KerberosRealm{})
	r.Collection(resource.Collection{Name: "keyDistributionCenters", Parents: []string{"realms"}}, &KeyDistributionCenter{})
	r.Collection(resource.Collection{Name: "servicePrincipals", Parents: []string{"realms"}}, &KerberosServicePrincipal{})
}

// KerberosRealm is a Kerberos realm for the authentication of servers and DHCP updates.
type KerberosRealm struct {
	schema.Head `head:"required" unique:"siblings"`
	// Configuration is the configuration that contains the realm.
	Configuration schema.Ref `api:"configuration,readOnly" ref:"Configuration" column:"configuration"`
	// Domain is the DNS domain of the realm.
	Domain string `api:"domain,required"`
}

// KeyDistributionCenter is a server that issues the tickets of a realm.
type KeyDistributionCenter struct {
	schema.Head `head:"required,nonblank" unique:"siblings"`
	// Configuration is the configuration that contains the center.
	Configuration schema.Ref `api:"configuration,readOnly" column:"configuration" ref:"Configuration"`
	// Host is the name or the address of the server.
	Host string `api:"host,required"`
	// Port is the port of the server.
	Port int64 `api:"port,put" min:"1" max:"65535" default:"88"`
}

// KerberosServicePrincipal is the name of a service in a realm.
type KerberosServicePrincipal struct {
	schema.Head `head:"required,nonblank" unique:"siblings"`
	// KeyVersionNumber is the version of the key.
	KeyVersionNumber int64 `api:"keyVersionNumber,required" min:"1"`
	// Password is the password of the key. It can be set, and is never shown.
	Password schema.Secret `api:"password,post,nonblank"`
}

// BeforeWrite normalizes and checks the domain.
func (x *KerberosRealm) BeforeWrite(*resource.Change) error {
	x.Domain = naming.Clean(x.Domain)
	if err := naming.Check(x.Domain, naming.AnyName); err != nil {
		return problem.Field("InvalidFullyQualifiedDomainName", "domain", "%v", err)
	}
	return nil
}

// BeforeBelowDelete rejects the deletion of a realm with service principals.
func (x *KerberosRealm) BeforeBelowDelete(c *resource.Change) error {
	if c.IsCascaded() {
		return nil
	}
	there, err := c.Tx.ReadFirst(store.Query{From: store.Resources, Where: store.All{store.InCollection("servicePrincipals"),
		store.HasParent(x.ID)}})
	if err == nil && there != nil {
		err = problem.InUse("the realm still has the principal %s (%d): delete it first", there.Name, there.ID)
	}
	return err
}

// BeforeWrite normalizes and checks the host.
func (x *KeyDistributionCenter) BeforeWrite(*resource.Change) error {
	if _, err := netip.ParseAddr(x.Host); err == nil {
		return nil
	}
	x.Host = naming.Clean(x.Host)
	if err := naming.Check(x.Host, naming.AnyName); err != nil {
		return problem.Field("InvalidIpAddressOrFullyQualifiedDomainNameValue", "host", "must be an address or a name: %v", err)
	}
	return nil
}

// Validate rejects a name that is not a service and a host, such as DHCP/host.example.com, with an optional @ and realm.
func (x *KerberosServicePrincipal) Validate(*resource.Change) error {
	service, host, found := strings.Cut(x.Name, "/")
	if !found || service == "" || host == "" || strings.ContainsAny(x.Name, " \t") {
		return problem.Invalid("name", "must be a service and a host, such as DHCP/host.example.com, not %q", x.Name)
	}
	return nil
}

// BeforeWrite rejects a principal without a password.
func (x *KerberosServicePrincipal) BeforeWrite(*resource.Change) error {
	if !x.Password.Set() {
		return problem.Missing("password")
	}
	return nil
}
