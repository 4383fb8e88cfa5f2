package serverconfig

import (
	"maps"
	"slices"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// ServerGroup is a group of servers that share options and are deployed together.
type ServerGroup struct {
	schema.Head `head:"post,nonblank" unique:"siblings"`
	// Configuration is the configuration of the group.
	Configuration schema.Ref `api:"configuration,readOnly" ref:"Configuration" column:"configuration"`
	// MultiPrimary requests several servers that each write the same zones; true is rejected. Service points do not need such a group,
	// because each gets the same zones from the manager.
	MultiPrimary *bool `api:"multiPrimary"`
	// Servers are the servers of the group, by their ids. A PUT or PATCH with this field replaces all servers of the group.
	Servers schema.RefList `api:"servers,writeOnly"`

	// requested are the servers of the request, which AfterWrite adds to the group.
	requested schema.RefList
}

// BeforeWrite rejects unknown servers and servers of other configurations, and keeps the list for AfterWrite.
func (x *ServerGroup) BeforeWrite(c *resource.Change) error {
	x.requested, x.Servers = x.Servers, schema.RefList{}
	if x.MultiPrimary != nil && *x.MultiPrimary {
		return problem.NotYet("multiPrimary: all service points get their zones from the manager: assign the role PRIMARY to each")
	}
	for i, item := range x.requested.Items {
		head, err := c.Tx.Head(item.ID)
		if store.IsNotFound(err) || err == nil && head.Collection != "servers" {
			return resource.NotFoundInlined("servers", "entry %d: server %d does not exist", i, item.ID)
		}
		if err != nil {
			return err
		}
		if head.Configuration != x.Config {
			return problem.Field("ResourceNotInConfiguration", "servers", "entry %d: server %d is in another configuration", i, item.ID)
		}
	}
	return nil
}

// AfterWrite adds servers to the group and removes servers from it, as the request lists them.
func (x *ServerGroup) AfterWrite(c *resource.Change) error {
	if !x.requested.IsSet {
		return nil
	}
	there, err := GroupMembers(c.Tx, x.ID)
	if err != nil {
		return err
	}
	wanted := map[int64]bool{}
	for _, item := range x.requested.Items {
		wanted[item.ID] = true
	}
	set := func(server, group int64) error {
		row, err := c.Tx.Get(server)
		if err == nil {
			_, err = c.Following("serverGroup").Change(row, func(o schema.Object) { FieldsOf(o).ServerGroup = schema.Ref{ID: group} })
		}
		return err
	}
	for _, id := range there {
		if wanted[id] {
			delete(wanted, id)
		} else if err := set(id, 0); err != nil {
			return err
		}
	}
	for _, id := range slices.Sorted(maps.Keys(wanted)) {
		if err := set(id, x.ID); err != nil {
			return err
		}
	}
	return nil
}

// rolesOfGroup returns the DNS roles of the servers of a group, sorted by id.
func rolesOfGroup(tx *store.Tx, _ *resource.API, group *store.Resource) (ids []int64, err error) {
	servers, err := GroupMembers(tx, group.ID)
	if err != nil {
		return nil, err
	}
	for _, server := range servers {
		roles, err := rolesOf(tx, server)
		if err != nil {
			return nil, err
		}
		for _, id := range roles {
			head, err := tx.Head(id)
			if err != nil {
				return nil, err
			}
			if head.Type == "DNSDeploymentRole" {
				ids = append(ids, id)
			}
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

// ServerGroupInterface is the interface of a group whose servers write the same zones; such groups do not exist.
type ServerGroupInterface struct {
	schema.Head `head:"readOnly" parents:"serverGroups" post:"no"`
	// Configuration is the configuration of the interface.
	Configuration schema.Ref `api:"configuration,readOnly" ref:"Configuration" column:"configuration"`
}

// IsServerGroup reports whether a resource is a server group.
func IsServerGroup(tx *store.Tx, id int64) (bool, error) {
	head, err := tx.Head(id)
	if store.IsNotFound(err) { // the root, which has no row
		return false, nil
	}
	return err == nil && head.Collection == "serverGroups", err
}

// GroupMembers returns the ids of the servers of a group, sorted.
func GroupMembers(tx *store.Tx, group int64) (ids []int64, err error) {
	err = tx.List(store.Query{From: store.Resources, Where: store.All{store.InCollection("servers"),
		store.LinksTo{Targets: []int64{group}, Field: "serverGroup"}}}, func(r *store.Resource) error {
		ids = append(ids, r.ID)
		return nil
	})
	slices.Sort(ids)
	return ids, err
}
