package ipam

import (
	"fmt"
	"slices"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// registerDevices declares the collections of devices and of their kinds.
func registerDevices(r *resource.Registry) {
	r.Collection(resource.Collection{Name: "deviceTypes", Parents: []string{""}}, &DeviceType{})
	r.Collection(resource.Collection{Name: "deviceSubtypes", Parents: []string{"deviceTypes"}}, &DeviceSubtype{})
	r.Collection(resource.Collection{Name: "devices", Parents: []string{"configurations"}}, &Device{})
}

// DeviceType is a manufacturer or a kind of device.
type DeviceType struct {
	schema.Head `head:"required,nonblank" unique:"all"`
}

// DeviceSubtype is a more specific kind of device, such as a model of a manufacturer.
type DeviceSubtype struct {
	schema.Head `head:"required,nonblank" unique:"siblings"`
}

// Device is a machine that has addresses.
type Device struct {
	schema.Head `head:"required,nonblank" unique:"siblings"`
	// Configuration is the configuration that contains the device.
	Configuration schema.Ref `api:"configuration,readOnly" column:"configuration" ref:"Configuration"`
	// Addresses is the complete list of the device's addresses, by id or by address. Addresses that do not exist are assigned.
	Addresses schema.RefList `api:"addresses"`
	// DeviceType is the type of the device.
	DeviceType schema.Ref `api:"deviceType" ref:"DeviceType" back:"devices" onDelete:"refuse"`
	// DeviceSubtype is the subtype of the device; it determines the type.
	DeviceSubtype schema.Ref `api:"deviceSubtype" ref:"DeviceSubtype" back:"devices" onDelete:"refuse"`

	// addresses are the addresses of the request; AfterWrite assigns them.
	addresses schema.RefList
}

// BeforeWrite sets the type of the given subtype, and rejects a type that does not match the subtype.
func (x *Device) BeforeWrite(c *resource.Change) error {
	x.addresses, x.Addresses = x.Addresses, schema.RefList{}
	if x.DeviceSubtype.ID == 0 {
		return nil
	}
	subtype, err := c.Tx.Head(x.DeviceSubtype.ID)
	if store.IsNotFound(err) || err == nil && subtype.Type != "DeviceSubtype" {
		return nil // the reference check rejects it
	}
	if err != nil {
		return err
	}
	if x.DeviceType.ID == 0 || c.SetFields["deviceSubtype"] && !c.SetFields["deviceType"] {
		x.DeviceType = schema.Ref{ID: subtype.Parent}
	}
	if x.DeviceType.ID != subtype.Parent && !c.SetFields["deviceSubtype"] {
		return problem.Field("ConflictingResourceFieldValues", "deviceType", "%d is not the type of deviceSubtype %d, which is %d",
			x.DeviceType.ID, subtype.ID, subtype.Parent)
	}
	if x.DeviceType.ID != subtype.Parent {
		return problem.Invalid("deviceSubtype", "subtype %d belongs to device type %d, not to %d", subtype.ID, subtype.Parent, x.DeviceType.ID)
	}
	return nil
}

// AfterWrite assigns the addresses of the request to the device and removes all others from it.
func (x *Device) AfterWrite(c *resource.Change) error {
	if !x.addresses.IsSet {
		return nil
	}
	var wanted []int64
	for i := range x.addresses.Items {
		item := &x.addresses.Items[i]
		if item.ID == 0 {
			id, err := AddressNamed(c.Following(), x.Config, item, false)
			if err != nil {
				return err
			}
			item.ID = id
		}
		if slices.Contains(wanted, item.ID) {
			return problem.Invalid("addresses", "address %d is listed twice", item.ID)
		}
		if err := x.addAddress(c, item.ID); err != nil {
			return err
		}
		wanted = append(wanted, item.ID)
	}
	var others []*store.Resource
	if err := c.Tx.List(store.Query{From: store.Resources, Where: store.LinksTo{Targets: []int64{x.ID}, Field: "device"}},
		func(r *store.Resource) error {
			if !slices.Contains(wanted, r.ID) {
				others = append(others, r.Clone())
			}
			return nil
		}); err != nil {
		return err
	}
	for _, r := range others {
		if err := setDevice(c, r, 0); err != nil {
			return err
		}
	}
	return nil
}

// addAddress assigns an address to the device. It rejects an address that belongs to another device.
func (x *Device) addAddress(c *resource.Change, id int64) error {
	row, err := c.Tx.Get(id)
	if store.IsNotFound(err) || err == nil && row.Collection != "addresses" {
		return resource.NotFoundInlined("addresses", "address %d does not exist", id)
	}
	if err != nil {
		return err
	}
	switch owner := row.Ref("device"); {
	case row.Configuration != x.Config:
		return problem.Invalid("addresses", "address %d is in another configuration", id)
	case owner == x.ID:
		return nil
	case owner != 0:
		return problem.InUse("addresses: address %d already belongs to device %d", id, owner)
	}
	return setDevice(c, row, x.ID)
}

// setDevice sets the device of an address; 0 removes it.
func setDevice(c *resource.Change, address *store.Resource, device int64) error {
	_, err := c.Following("device").Change(address, func(o schema.Object) {
		switch a := o.(type) {
		case *IPv4Address:
			a.Device = schema.Ref{ID: device}
		case *IPv6Address:
			a.Device = schema.Ref{ID: device}
		}
	})
	if err != nil {
		return fmt.Errorf("read the device of address %d: %w", address.ID, err)
	}
	return nil
}
