package serverconfig

import (
	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// What a server is in a pair.
const (
	notAvailable = "NOT_AVAILABLE"
	active       = "ACTIVE"
	passive      = "PASSIVE"
)

// nodesOf gives the nodes of a pair.
func nodesOf(_ *store.Tx, _ *resource.API, above *store.Resource) (ids []int64, err error) {
	for _, ref := range above.Refs {
		if ref.Field == "activeServer" || ref.Field == "passiveServer" {
			ids = append(ids, ref.Target)
		}
	}
	return ids, nil
}

// BeforeWrite puts the pair together, and takes the state that is asked for.
func (x *HAServer) BeforeWrite(c *resource.Change) error {
	if c.Creates() {
		if err := x.join(c); err != nil {
			return err
		}
	}
	return x.before(c)
}

// join takes two servers that stand alone as the nodes of the pair.
func (x *HAServer) join(c *resource.Change) error {
	if x.ActiveServer == x.PassiveServer {
		return problem.Field("DuplicateFieldValue", "passiveServer", "the two nodes must be two servers")
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
		return problem.Field("ConflictingResourceFieldValues", "passiveServer", "the nodes have two profiles, %s and %s", first.Profile,
			second.Profile)
	}
	x.Profile, x.Connected = first.Profile, true
	if x.Name == "" {
		x.Name = first.Name + " and " + second.Name
	}
	return nil
}

// node reads a server that is to be a node.
func (x *HAServer) node(c *resource.Change, field string, id int64) (*Server, error) {
	row, err := c.Tx.Get(id)
	if store.IsNotFound(err) || err == nil && row.Type != "Server" {
		return nil, resource.NotFoundInlined(field, "there is no Server %d", id)
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
		return nil, problem.Field("ServerIsNotStandAloneServer", field, "server %d is a node of another pair", id)
	case s.Profile == IsOtherServer:
		return nil, problem.Field("IncompatibleServerProfile", field, "server %d is one that others run", id)
	case !s.Connected && field == "activeServer":
		return nil, problem.Field("ActiveServerNotConnected", field, "server %d is not connected", id)
	case !s.Connected:
		return nil, problem.Field("PassiveServerNotConnected", field, "server %d is not connected", id)
	}
	return s, nil
}

// AfterWrite makes the interface of the pair, and lets its nodes know what they are; the roles of the one that is active are the pair's
// from then on.
func (x *HAServer) AfterWrite(c *resource.Change) error {
	if err := x.keepInterfaces(c, &x.Head); err != nil {
		return err
	}
	if !c.Creates() {
		return nil
	}
	own, err := ownInterface(c, x.ID)
	if err != nil {
		return err
	}
	if err := handRoles(c, x.ActiveServer.ID, own.ID); err != nil {
		return err
	}
	return x.tell(c, active, passive)
}

// tell lets the nodes know what they are.
func (x *HAServer) tell(c *resource.Change, first, second string) error {
	for id, role := range map[int64]string{x.ActiveServer.ID: first, x.PassiveServer.ID: second} {
		row, err := c.Tx.Get(id)
		if err != nil {
			return err
		}
		if _, err := c.Following().Change(row, func(o schema.Object) {
			s := o.(*Server)
			s.HARole = role
			s.HAPeerConnectionState, s.HADiskState = "UNKNOWN", "UNKNOWN" // which nobody has asked
			if role == notAvailable {
				s.HAPeerConnectionState, s.HADiskState = "", ""
			}
		}); err != nil {
			return err
		}
	}
	return nil
}

// turn lets the nodes swap what they are (FAILOVER), or puts the pair right again (REPAIR).
func (x *HAServer) turn(c *resource.Change, asked string) error {
	x.State = Enabled
	if FieldsOf(c.Old).State != Enabled {
		return problem.Field("ServerNotActive", "state", "the pair is %s; %s is for one that is ENABLED", FieldsOf(c.Old).State, asked)
	}
	if asked == repair {
		return x.tell(c, active, passive)
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
	return x.tell(c, active, passive)
}

// BeforeBelowDelete breaks the pair: its nodes stand alone again, and its roles are those of the one that is active.
func (x *HAServer) BeforeBelowDelete(c *resource.Change) error {
	if c.GoesAlong() {
		return nil
	}
	if err := noOwnOptions(c, x.ID); err != nil {
		return err
	}
	if err := x.tell(c, notAvailable, notAvailable); err != nil {
		return err
	}
	own, err := ownInterface(c, x.ActiveServer.ID)
	if err != nil || own == nil {
		return err
	}
	return handRoles(c, x.ID, own.ID)
}
