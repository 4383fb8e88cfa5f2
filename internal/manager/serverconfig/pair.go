package serverconfig

import (
	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// The roles of a server in a pair.
const (
	notAvailable = "NOT_AVAILABLE"
	active       = "ACTIVE"
	passive      = "PASSIVE"
)

// nodesOf returns the ids of the nodes of a pair.
func nodesOf(_ *store.Tx, _ *resource.API, above *store.Resource) (ids []int64, err error) {
	for _, ref := range above.Refs {
		if ref.Field == "activeServer" || ref.Field == "passiveServer" {
			ids = append(ids, ref.Target)
		}
	}
	return ids, nil
}

// BeforeWrite checks the two nodes of a new pair, and changes the state as requested.
func (x *HAServer) BeforeWrite(c *resource.Change) error {
	if c.IsCreation() {
		if err := x.setNodes(c); err != nil {
			return err
		}
	}
	return x.prepareWrite(c)
}

// setNodes checks the two servers, which must not be in a pair, and sets the profile and name of the new pair from them.
func (x *HAServer) setNodes(c *resource.Change) error {
	if x.ActiveServer == x.PassiveServer {
		return problem.Field("DuplicateFieldValue", "passiveServer", "the two nodes must be different servers")
	}
	first, err := x.node(c, "activeServer", x.ActiveServer.ID)
	if err != nil {
		return err
	}
	second, err := x.node(c, "passiveServer", x.PassiveServer.ID)
	if err != nil {
		return err
	}
	if first.Profile != second.Profile {
		return problem.Field("ConflictingResourceFieldValues", "passiveServer", "the nodes have different profiles: %s and %s", first.Profile,
			second.Profile)
	}
	x.Profile, x.Connected = first.Profile, true
	if x.Name == "" {
		x.Name = first.Name + " and " + second.Name
	}
	return nil
}

// node returns the server with an id, or an error if it cannot be a node of a pair. field is the field of the request that names it.
func (x *HAServer) node(c *resource.Change, field string, id int64) (*Server, error) {
	row, err := c.Tx.Get(id)
	if store.IsNotFound(err) || err == nil && row.Type != "Server" {
		return nil, resource.NotFoundInlined(field, "Server %d does not exist", id)
	}
	if err != nil {
		return nil, err
	}
	o, err := c.API.Object(row)
	if err != nil {
		return nil, err
	}
	s := o.(*Server)
	switch {
	case s.HARole != notAvailable:
		return nil, problem.Field("ServerIsNotStandAloneServer", field, "server %d is already a node of another pair", id)
	case s.Profile == IsOtherServer:
		return nil, problem.Field("IncompatibleServerProfile", field, "server %d is an external server", id)
	case !s.Connected && field == "activeServer":
		return nil, problem.Field("ActiveServerNotConnected", field, "server %d is not connected", id)
	case !s.Connected:
		return nil, problem.Field("PassiveServerNotConnected", field, "server %d is not connected", id)
	}
	return s, nil
}

// AfterWrite creates the interface of a new pair and sets the roles of its nodes. The deployment roles of the active node move to the pair.
func (x *HAServer) AfterWrite(c *resource.Change) error {
	if err := x.saveInterface(c, &x.Head); err != nil {
		return err
	}
	if !c.IsCreation() {
		return nil
	}
	own, err := ownInterface(c, x.ID)
	if err != nil {
		return err
	}
	if err := moveRoles(c, x.ActiveServer.ID, own.ID); err != nil {
		return err
	}
	return x.setNodeRoles(c, active, passive)
}

// setNodeRoles sets the role of both nodes in the pair: first for the active server, second for the passive one.
func (x *HAServer) setNodeRoles(c *resource.Change, first, second string) error {
	for id, role := range map[int64]string{x.ActiveServer.ID: first, x.PassiveServer.ID: second} {
		row, err := c.Tx.Get(id)
		if err != nil {
			return err
		}
		if _, err := c.Following().Change(row, func(o schema.Object) {
			s := o.(*Server)
			s.HARole = role
			s.HAPeerConnectionState, s.HADiskState = "UNKNOWN", "UNKNOWN" // unknown, because the nodes are not queried
			if role == notAvailable {
				s.HAPeerConnectionState, s.HADiskState = "", ""
			}
		}); err != nil {
			return err
		}
	}
	return nil
}

// changeState swaps the roles of the nodes (FAILOVER), or sets them again (REPAIR). The pair stays ENABLED.
func (x *HAServer) changeState(c *resource.Change, asked string) error {
	x.State = Enabled
	if FieldsOf(c.Old).State != Enabled {
		return problem.Field("ServerNotActive", "state", "the pair is %s; %s requires a pair that is ENABLED", FieldsOf(c.Old).State, asked)
	}
	if asked == repair {
		return x.setNodeRoles(c, active, passive)
	}
	for _, id := range []int64{x.ActiveServer.ID, x.PassiveServer.ID} {
		row, err := c.Tx.Get(id)
		if err != nil {
			return err
		}
		o, err := c.API.Object(row)
		if err != nil {
			return err
		}
		if !o.(*Server).Connected {
			return problem.Field("CannotFailoverWhileNodesDisconnected", "state", "node %d is not connected", id)
		}
	}
	x.ActiveServer, x.PassiveServer = x.PassiveServer, x.ActiveServer
	return x.setNodeRoles(c, active, passive)
}

// BeforeBelowDelete dissolves the pair: its nodes are single servers again, and its deployment roles move to the active node.
func (x *HAServer) BeforeBelowDelete(c *resource.Change) error {
	if c.IsCascaded() {
		return nil
	}
	if err := checkNoOwnOptions(c, x.ID); err != nil {
		return err
	}
	if err := x.setNodeRoles(c, notAvailable, notAvailable); err != nil {
		return err
	}
	own, err := ownInterface(c, x.ActiveServer.ID)
	if err != nil || own == nil {
		return err
	}
	return moveRoles(c, x.ID, own.ID)
}
