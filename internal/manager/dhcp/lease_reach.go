package dhcp

import (
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// The connections of the server of a lease.
const (
	reached   = "CONNECTED"
	unreached = "NOT_CONNECTED"
)

// Connect sets the functions of Leases that read the fleet and the deployed content. It must be called before the first request.
func Connect(a *resource.API, connection func(tx *store.Tx, servicePoint string) (there, connected bool, err error),
	servers func(tx *store.Tx, network int64) ([]int64, error)) {
	if e := a.Store.Layout().Extension(extensionName); e != nil {
		if l, ok := e.State.(*Leases); ok {
			l.Connection, l.Servers = connection, servers
		}
	}
}

// connections reads whether the service points of servers exist and are connected, once for each server.
type connections struct {
	tx    *store.Tx
	known map[int64]connection
}

type connection struct{ there, connected bool }

// read returns whether the service point of a server exists, and is connected. A server that does not exist has none.
func (c *connections) read(server int64) (there, connected bool, err error) {
	if one, known := c.known[server]; known {
		return one.there, one.connected, nil
	}
	if c.known == nil {
		c.known = map[int64]connection{}
	}
	row, err := c.tx.Get(server)
	if store.IsNotFound(err) {
		c.known[server] = connection{}
		return false, false, nil
	}
	if err != nil {
		return false, false, err
	}
	var body store.Object
	if err := body.Read(row.Body); err != nil {
		return false, false, err
	}
	var one connection
	l := extensionOf(c.tx)
	if l == nil || l.Connection == nil { // a program without a fleet
		one = connection{true, true}
	} else if point := textOf(&body, "servicePoint"); point != "" {
		if one.there, one.connected, err = l.Connection(c.tx, point); err != nil {
			return false, false, err
		}
	}
	c.known[server] = one
	return one.there, one.connected, nil
}

// extensionOf returns the state of the extension of leases; nil in a database without it.
func extensionOf(tx *store.Tx) *Leases {
	if e := tx.Extension(extensionName); e != nil {
		if l, ok := e.State.(*Leases); ok {
			return l
		}
	}
	return nil
}

// show returns the JSON of the connection of a server; null without a server.
func (c *connections) show(server int64) ([]byte, error) {
	if server == 0 {
		return []byte("null"), nil
	}
	_, connected, err := c.read(server)
	if connected {
		return schema.AppendString(nil, reached), err
	}
	return schema.AppendString(nil, unreached), err
}

// hasPerformer reports whether a server can perform an action on a lease: the server of the lease or one of its network, if its service
// point exists.
func (w *leaseWriter) hasPerformer(l storedLease) (exist bool, err error) {
	points := connections{tx: w.tx}
	servers := []int64{l.server}
	if state := extensionOf(w.tx); state != nil && state.Servers != nil {
		more, err := state.Servers(w.tx, l.parent)
		if err != nil {
			return false, err
		}
		servers = append(servers, more...)
	}
	for _, id := range servers {
		if there, _, err := points.read(id); err != nil || there {
			return there, err
		}
	}
	return false, nil
}

// serverOf returns the server of a row of leases; 0 if it has none.
func serverOf(r *store.Resource) int64 {
	for _, ref := range r.Refs {
		if ref.Field == "server" {
			return ref.Target
		}
	}
	return 0
}
