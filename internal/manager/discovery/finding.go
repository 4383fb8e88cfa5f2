package discovery

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
	"portolan/internal/manager/ipam"
)

// findings is the name of the collection of findings.
const findings = "reconciliationFindings"

// The kinds of findings.
const (
	kindUnknown  = "UNKNOWN_ADDRESS"
	kindNotSeen  = "NOT_SEEN"
	kindHardware = "MAC_ADDRESS_DIFFERS"
	kindName     = "HOST_NAME_DIFFERS"
	kindNoNet    = "UNKNOWN_NETWORK"
)

// The states of findings.
const (
	stateOpen     = "OPEN"
	stateAccepted = "ACCEPTED"
	stateRejected = "REJECTED"
)

// maxFindings is the maximum number of findings of a policy.
const maxFindings = 1 << 16

// registerFindings declares the collection of findings. The history records the changes of accepted findings, not the findings.
func registerFindings(r *resource.Registry) {
	r.Collection(resource.Collection{Name: findings, Parents: []string{policies}, Unpublished: true, Hidden: true, Unlogged: true,
		NoSearch: true, Workflow: func(string) string { return "" }}, &ReconciliationFinding{})
	r.DeclareUnlinked(resource.FurtherSub{Below: policies, Name: findings, Item: findings})
	r.Computed(resource.ComputedSub{Below: "networks", Name: findings, Items: []string{findings}, Where: ofNetwork})
}

// ofNetwork returns the condition for the findings of the addresses of a network.
func ofNetwork(_ *store.Tx, _ *resource.API, above *store.Resource) (store.Expr, error) {
	return store.All{store.InCollection(findings), store.LinksTo{Field: "network", Targets: []int64{above.ID}}}, nil
}

// ReconciliationFinding is a difference between the network and the database. A run of the policy creates findings, and deletes those that
// are resolved. A PATCH of the state accepts or rejects a finding. Portolan extension.
type ReconciliationFinding struct {
	schema.Head `head:"readOnly" post:"no"`
	// Configuration is the configuration of the policy.
	Configuration schema.Ref `api:"configuration,readOnly" column:"configuration" ref:"Configuration"`
	// Policy is the policy whose run found the difference.
	Policy schema.Ref `api:"policy,readOnly" column:"parent" ref:"IPv4ReconciliationPolicy|IPv6ReconciliationPolicy"`
	// Kind is the kind of the difference. UNKNOWN_ADDRESS: the address is seen and not assigned. NOT_SEEN: the address is assigned and not
	// seen. UNKNOWN_NETWORK: the address is seen and in no network.
	Kind string `api:"kind,readOnly,index" enum:"UNKNOWN_ADDRESS|NOT_SEEN|MAC_ADDRESS_DIFFERS|HOST_NAME_DIFFERS|UNKNOWN_NETWORK"`
	// State is OPEN until a user sets it to ACCEPTED, which applies the change, or to REJECTED. A rejected finding is open again when other
	// values are seen.
	State string `api:"state,notNull,index" enum:"OPEN|ACCEPTED|REJECTED" default:"OPEN"`
	// Address is the address.
	Address string `api:"address,readOnly,index"`
	// Network is the network that contains the address.
	Network schema.Ref `api:"network,readOnly" ref:"IPv4Network|IPv6Network" onDelete:"cascade"`
	// SeenMACAddress and SeenHostName are the values in the network, StoredMACAddress and StoredHostNames those in the database.
	SeenMACAddress   string   `api:"seenMacAddress,readOnly,hardware"`
	StoredMACAddress string   `api:"storedMacAddress,readOnly,hardware"`
	SeenHostName     string   `api:"seenHostName,readOnly"`
	StoredHostNames  []string `api:"storedHostNames,readOnly"`
	// Place is the switch and port, or the router and port, where the address was seen.
	Place string `api:"place,readOnly"`
	// SinceDateTime is when the difference began.
	SinceDateTime time.Time `api:"sinceDateTime,readOnly,index"`
	// Change describes the change that an acceptance applies.
	Change string `api:"change,readOnly"`
}

// BeforeWrite applies the change when a user accepts the finding.
func (x *ReconciliationFinding) BeforeWrite(c *resource.Change) error {
	old, ok := c.Old.(*ReconciliationFinding)
	if !c.IsRequested() || !ok || old.State == x.State {
		return nil
	}
	if x.State != stateAccepted {
		return nil
	}
	return x.apply(c)
}

// apply performs the change of the finding with the rights of the caller.
func (x *ReconciliationFinding) apply(c *resource.Change) error {
	a, err := netip.ParseAddr(x.Address)
	if err != nil {
		return err
	}
	if x.Kind == kindNoNet {
		return problem.Conflict("ResourceConflictsWithOther", "state: %s is in no network. Create its network; the next run "+
			"resolves the finding", a)
	}
	row, err := ipam.AddressAt(c.Tx, x.Network.ID, a)
	if err != nil && !store.IsNotFound(err) {
		return err
	}
	n := *c
	n.Parent, n.Old, n.New, n.Row = nil, nil, nil, nil
	asked := resource.RequestedChange{Method: "PATCH", Collection: "addresses"}
	switch {
	case x.Kind == kindUnknown:
		if err == nil {
			return problem.Conflict("ResourceAlreadyExists", "state: %s is assigned meanwhile (%s %d)", a, row.Type, row.ID)
		}
		asked = resource.RequestedChange{Method: "POST", Collection: "networks", ID: x.Network.ID, Sub: "addresses", Members: x.newAddress(a)}
	case err != nil:
		return problem.Conflict("ResourceConflictsWithOther", "state: %s is not assigned any more", a)
	case x.Kind == kindNotSeen:
		return n.Following().Delete(row)
	case x.Kind == kindHardware:
		asked.ID, asked.Members = row.ID, map[string]json.RawMessage{"macAddress": wrapJSON("address", x.SeenMACAddress)}
	case x.Kind == kindName:
		asked.ID, asked.Members = row.ID, map[string]json.RawMessage{"resourceRecords": listed(wrapJSON("absoluteName", x.SeenHostName))}
	default:
		return fmt.Errorf("apply finding %d: kind %q is unknown", x.ID, x.Kind)
	}
	_, err = c.API.Perform(&n, asked)
	return err
}

// newAddress returns the members of the address that an accepted finding creates.
func (x *ReconciliationFinding) newAddress(a netip.Addr) map[string]json.RawMessage {
	kind := "IPv4Address"
	if a.Is6() {
		kind = "IPv6Address"
	}
	members := map[string]json.RawMessage{"type": quoteJSON(kind), "address": quoteJSON(x.Address), "state": quoteJSON(stateStatic)}
	if x.SeenMACAddress != "" {
		members["macAddress"] = wrapJSON("address", x.SeenMACAddress)
	}
	return members
}

// stateStatic is the state of addresses that discovery adds.
const stateStatic = "STATIC"

// findingKey identifies a finding of a policy.
type findingKey struct {
	kind, address string
}

// compare orders findings by their address and kind.
func (k findingKey) compare(other findingKey) int {
	a, errA := netip.ParseAddr(k.address)
	b, errB := netip.ParseAddr(other.address)
	if errA != nil || errB != nil {
		return cmp.Compare(k.address, other.address)
	}
	return cmp.Or(a.Compare(b), cmp.Compare(k.kind, other.kind))
}

// add adds a finding to the list of this run.
func (s *settlement) add(kind string, a netip.Addr, network int64, since time.Time, has storedValues) {
	if len(s.list) >= maxFindings {
		return
	}
	f := &ReconciliationFinding{Kind: kind, State: stateOpen, Address: a.String(), SinceDateTime: since}
	f.Network.ID = network
	x := s.seen[a]
	switch kind {
	case kindUnknown, kindNoNet:
		f.SeenMACAddress, f.SeenHostName = x.MACAddress, x.HostName
	case kindHardware:
		f.SeenMACAddress, f.StoredMACAddress = x.MACAddress, has.mac
	case kindName:
		f.SeenHostName, f.StoredHostNames = x.HostName, has.names
	}
	if x != nil {
		f.Place = cmp.Or(strings.TrimSpace(x.Switch+" "+x.SwitchPort), strings.TrimSpace(x.Router+" "+x.RouterPort))
	}
	f.Change = f.describe()
	s.list[findingKey{kind, f.Address}] = f
}

// describe returns the change that an acceptance applies.
func (x *ReconciliationFinding) describe() string {
	switch x.Kind {
	case kindUnknown:
		return strings.TrimSpace("Assign "+x.Address+" as STATIC "+forClient(x.SeenMACAddress)) + "."
	case kindNotSeen:
		return "Release " + x.Address + "."
	case kindHardware:
		return "Set the MAC address of " + x.Address + " to " + x.SeenMACAddress + "."
	case kindName:
		return "Add the host record " + x.SeenHostName + " to " + x.Address + "."
	}
	return "None. Create the network of " + x.Address + "."
}

// forClient returns the words for a client with a hardware address; empty without one.
func forClient(mac string) string {
	if mac == "" {
		return ""
	}
	return "for " + mac
}

// isSame reports whether two findings have the same observed and stored values.
func (x *ReconciliationFinding) isSame(other *ReconciliationFinding) bool {
	return x.SeenMACAddress == other.SeenMACAddress && x.SeenHostName == other.SeenHostName && x.StoredMACAddress == other.StoredMACAddress &&
		slices.Equal(x.StoredHostNames, other.StoredHostNames) && x.Network.ID == other.Network.ID
}

// saveFindings creates, changes and deletes the findings of the policy, and returns the number of open ones. Rejected findings stay while
// their values are the same.
func (s *settlement) saveFindings() (open int64, err error) {
	err = s.c.Each(store.All{store.InCollection(findings), store.HasParent(s.head.ID)}, func(row *store.Resource, o schema.Object) error {
		old, ok := o.(*ReconciliationFinding)
		if !ok {
			return fmt.Errorf("resource %d is a %s", row.ID, row.Type)
		}
		key := findingKey{old.Kind, old.Address}
		found := s.list[key]
		delete(s.list, key)
		switch {
		case found == nil && (s.isResolved(old) || old.State != stateRejected && !s.isPartial):
			return s.c.Following().Delete(row)
		case found == nil || found.isSame(old) && old.State != stateAccepted:
			if old.State == stateOpen {
				open++
			}
			return nil
		}
		open++
		_, err := s.c.Following().Change(row, func(o schema.Object) {
			x := o.(*ReconciliationFinding)
			head := x.Head
			*x = *found
			x.Head = head
		})
		return err
	})
	if err != nil {
		return 0, err
	}
	t := s.c.API.TypeNamed("ReconciliationFinding")
	for _, key := range slices.SortedFunc(maps.Keys(s.list), findingKey.compare) {
		x := s.list[key]
		open++
		x.Type, x.Parent, x.Config = t.Name, s.head.ID, s.head.Config
		if _, err := s.c.Following().Create(t, x); err != nil {
			return 0, err
		}
	}
	return open, nil
}

// isResolved reports whether this run shows that the difference of a finding does not exist any more.
func (s *settlement) isResolved(x *ReconciliationFinding) bool {
	a, err := netip.ParseAddr(x.Address)
	if err != nil {
		return true
	}
	isSeen := s.seen[a] != nil
	switch x.Kind {
	case kindUnknown:
		return s.assigned[a]
	case kindNoNet:
		return slices.ContainsFunc(s.networks, func(n *store.Resource) bool { return ipam.RangeOf(n).Has(a) })
	}
	return isSeen || !s.assigned[a]
}

// quoteJSON returns a JSON text.
func quoteJSON(text string) json.RawMessage { return schema.AppendString(nil, text) }

// wrapJSON returns a JSON object with one text.
func wrapJSON(name, text string) json.RawMessage {
	return json.RawMessage("{" + strconv.Quote(name) + ":" + string(quoteJSON(text)) + "}")
}

// listed returns a JSON list with one value.
func listed(one json.RawMessage) json.RawMessage { return json.RawMessage("[" + string(one) + "]") }
