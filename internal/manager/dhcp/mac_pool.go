package dhcp

import (
	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// registerMACPools declares the collection of pools of hardware addresses. Every configuration has a pool that denies service.
func registerMACPools(r *resource.Registry) {
	r.Collection(resource.Collection{Name: "macPools", Parents: []string{"configurations"}}, &MACPool{}, &DenyMACPool{})
	r.Rule(resource.Rule{Types: []string{"Configuration"}, AfterWrite: func(c *resource.Change) error {
		if !c.IsCreation() {
			return nil
		}
		return createDenyPool(c, schema.HeadOf(c.New).ID)
	}})
	r.Seed(func(c *resource.Change) error {
		return resource.EachWithout(c, "configurations", "macPools",
			store.Compare{Field: store.Field{Kind: store.ColumnText, Path: []string{"type"}}, Op: "eq", Value: "DenyMACPool"},
			func(id int64) error { return createDenyPool(c, id) })
	})
}

// denyPool is the name of the pool that every configuration has.
const denyPool = "DENY"

// createDenyPool creates the pool that every configuration has.
func createDenyPool(c *resource.Change, configuration int64) error {
	t := c.API.TypeNamed("DenyMACPool")
	x := &DenyMACPool{InstantDeploymentEnabled: true, Configuration: schema.Ref{ID: configuration}}
	x.Type, x.Name, x.Parent, x.Config = t.Name, denyPool, configuration, configuration
	_, err := c.Following().Create(t, x)
	return err
}

// MACPool is a set of hardware addresses that DHCP ranges allow or deny by their options. A hardware address is in at most one pool.
type MACPool struct {
	schema.Head `head:"required,nonblank" unique:"siblings"`
	// Configuration is the configuration that contains the pool.
	Configuration schema.Ref `api:"configuration,readOnly" ref:"Configuration" column:"configuration"`
	// InstantDeploymentEnabled sends changes of the members to the servers immediately, without a deployment.
	InstantDeploymentEnabled bool `api:"instantDeploymentEnabled,put"`
}

// DenyMACPool is the set of hardware addresses that no range serves. Every configuration has one.
type DenyMACPool struct {
	schema.Head `head:"nonblank" unique:"siblings" post:"no"`
	// Configuration is the configuration that contains the pool.
	Configuration schema.Ref `api:"configuration,readOnly" ref:"Configuration" column:"configuration"`
	// InstantDeploymentEnabled is always true: changes of the members are sent to the servers immediately.
	InstantDeploymentEnabled bool `api:"instantDeploymentEnabled,readOnly"`
}

// BeforeWrite rejects a change of the pool. Its members are changed by a field of the hardware address.
func (x *DenyMACPool) BeforeWrite(c *resource.Change) error {
	if !c.IsCreation() && c.IsRequested() {
		return problem.Forbidden("UpdateNotAllowed", "the pool %s is built in and cannot be changed", denyPool)
	}
	return nil
}

// BeforeDelete rejects the deletion of the pool unless its configuration is deleted.
func (x *DenyMACPool) BeforeDelete(c *resource.Change) error {
	if c.IsCascaded() {
		return nil
	}
	return problem.Forbidden("DeleteNotAllowed", "every configuration requires the pool %s", x.Name)
}
