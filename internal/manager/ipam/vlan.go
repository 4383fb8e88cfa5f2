package ipam

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// The names of the collections.
const (
	vlanGroups = "vlanGroups"
	vlans      = "vlans"
	// vlanGroup is the member of a VLAN in a document that names its group.
	vlanGroup = "vlanGroup"
)

// registerVLANs declares the collections of VLANs and their groups, which are Portolan extensions.
func registerVLANs(r *resource.Registry) {
	r.Collection(resource.Collection{Name: vlanGroups, Unpublished: true, Parents: []string{"configurations"},
		Reports: []resource.Report{freeNumbersReport}}, &VLANGroup{})
	r.Collection(resource.Collection{Name: vlans, Unpublished: true, Parents: []string{vlanGroups}, Place: placeVLAN, PlacedBy: vlanGroup},
		&VLAN{})
	r.DeclareUnlinked(resource.FurtherSub{Below: "configurations", Name: vlanGroups, Item: vlanGroups, Types: []string{"VLANGroup"}})
	r.DeclareUnlinked(resource.FurtherSub{Below: vlanGroups, Name: vlans, Item: vlans, Types: []string{"VLAN"}})
	r.DeclareUnlinked(resource.FurtherSub{Below: vlans, Name: "networks", Item: "networks", Field: "vlan"})
	for _, of := range []string{vlanGroups, vlans} {
		r.DeclareUnlinked(resource.FurtherSub{Below: of, Name: "accessRights", Item: "accessRights", Field: "resource"})
	}
}

// VLANGroup is a set of VLANs with unique numbers, such as those of a site or a switched domain. Portolan extension.
type VLANGroup struct {
	schema.Head `head:"required,nonblank" unique:"siblings"`
	// Configuration is the configuration that contains the group.
	Configuration schema.Ref `api:"configuration,readOnly" column:"configuration" ref:"Configuration"`
	// Description is a free text about the group.
	Description string `api:"description,search" length:"4000"`
	// FirstNumber and LastNumber limit the numbers of the VLANs.
	FirstNumber int64 `api:"firstNumber,notNull" min:"1" max:"4094" default:"1"`
	LastNumber  int64 `api:"lastNumber,notNull" min:"1" max:"4094" default:"4094"`
	// Location is the location of the group.
	Location schema.Ref `api:"location" ref:"Location" back:"annotatedResources"`
}

// VLAN is a virtual LAN (IEEE 802.1Q) of a group. Networks refer to it. Portolan extension.
type VLAN struct {
	schema.Head `head:"required,nonblank" unique:"siblings"`
	// Configuration is the configuration that contains the VLAN.
	Configuration schema.Ref `api:"configuration,readOnly" column:"configuration" ref:"Configuration"`
	// VLANGroup is the group that contains the VLAN.
	VLANGroup schema.Ref `api:"vlanGroup,readOnly" column:"parent" ref:"VLANGroup"`
	// Number is the VLAN id (IEEE 802.1Q; 0 and 4095 are reserved). It is unique in the group; the default is the next free number of the
	// group.
	Number *int64 `api:"number,chosen,inline,index" min:"1" max:"4094" example:"20"`
	// Description is a free text about the VLAN.
	Description string `api:"description,search" length:"4000"`
}

// Validate rejects numbers in the wrong order, and limits that exclude an existing VLAN.
func (x *VLANGroup) Validate(c *resource.Change) error {
	if x.FirstNumber > x.LastNumber {
		return problem.Invalid("lastNumber", "%d is less than the first number, %d", x.LastNumber, x.FirstNumber)
	}
	if c.IsCreation() {
		return nil
	}
	used, err := usedNumbers(c.Tx, x.ID)
	if err != nil {
		return err
	}
	for _, number := range slices.Sorted(maps.Keys(used)) {
		if number < x.FirstNumber || number > x.LastNumber {
			return problem.Invalid("firstNumber", "VLAN %d of the group is not in %d to %d", number, x.FirstNumber, x.LastNumber)
		}
	}
	return nil
}

// usedNumbers returns the ids of the VLANs of a group by number: at most 4,094.
func usedNumbers(tx *store.Tx, group int64) (map[int64]int64, error) {
	used := map[int64]int64{}
	err := tx.List(store.Query{From: store.Resources, Where: store.All{store.InCollection(vlans), store.HasParent(group)}},
		func(r *store.Resource) error {
			o, err := vlanType.Object(r)
			if err == nil {
				if x := o.(*VLAN); x.Number != nil {
					used[*x.Number] = r.ID
				}
			}
			return err
		})
	if err != nil {
		err = fmt.Errorf("read the VLANs of group %d: %w", group, err)
	}
	return used, err
}

// vlanType and vlanGroupType are the types for reading rows outside of a request.
var (
	vlanType      = schema.Declare(&VLAN{})
	vlanGroupType = schema.Declare(&VLANGroup{})
)

// groupOf reads a group.
func groupOf(tx *store.Tx, id int64) (*VLANGroup, error) {
	row, err := tx.Get(id)
	if err != nil {
		return nil, err
	}
	o, err := vlanGroupType.Object(row)
	if err != nil {
		return nil, err
	}
	return o.(*VLANGroup), nil
}

// BeforeWrite selects the next free number of the group for a VLAN without a number.
func (x *VLAN) BeforeWrite(c *resource.Change) error {
	if x.Number != nil {
		return nil
	}
	g, err := groupOf(c.Tx, x.Parent)
	if err != nil {
		return err
	}
	used, err := usedNumbers(c.Tx, x.Parent)
	if err != nil {
		return err
	}
	for n := g.FirstNumber; n <= g.LastNumber; n++ {
		if id, taken := used[n]; !taken || id == x.ID {
			x.Number = &n
			return nil
		}
	}
	return problem.Conflict("ResourceConflictsWithOther", "number: the VLAN group %s has no free number from %d to %d", g.Name, g.FirstNumber,
		g.LastNumber)
}

// Validate rejects a number outside of the limits of the group, or of another VLAN in the group.
func (x *VLAN) Validate(c *resource.Change) error {
	g, err := groupOf(c.Tx, x.Parent)
	if err != nil {
		return err
	}
	if *x.Number < g.FirstNumber || *x.Number > g.LastNumber {
		return problem.Invalid("number", "%d is not in the VLAN group %s, which has %d to %d", *x.Number, g.Name, g.FirstNumber, g.LastNumber)
	}
	used, err := usedNumbers(c.Tx, x.Parent)
	if err != nil {
		return err
	}
	if id, taken := used[*x.Number]; taken && id != x.ID {
		p := problem.Conflict("ResourceAlreadyExists", "number: VLAN %d already exists in the group %s", *x.Number, g.Name)
		p.Fields = []string{"number"}
		return p
	}
	return nil
}

// placeVLAN returns the group of a new VLAN of a document.
func placeVLAN(c *resource.Change, _ *schema.Type, within *store.Resource, members map[string]json.RawMessage) (*store.Resource, error) {
	if within.Collection == vlanGroups {
		return within, nil
	}
	var wanted struct {
		ID   int64  `json:"id"`
		Name string `json:"name"`
	}
	raw, given := members[vlanGroup]
	if given && json.Unmarshal(raw, &wanted) != nil {
		return nil, problem.Invalid(vlanGroup, "must be an object with an id or a name")
	}
	if wanted.ID == 0 && wanted.Name == "" {
		return nil, problem.Invalid(vlanGroup, "is required: the name of the group of the VLAN")
	}
	delete(members, vlanGroup)
	var found *store.Resource
	err := c.Tx.List(store.Query{From: store.Resources, Where: store.All{store.InCollection(vlanGroups), store.HasParent(within.ID)}},
		func(r *store.Resource) error {
			if r.ID == wanted.ID || wanted.ID == 0 && r.Name == wanted.Name {
				found = r.Clone()
			}
			return nil
		})
	if err == nil && found == nil {
		err = resource.NotFoundInlined(vlanGroup, "the VLAN group does not exist in %s", problem.Describe(within.ID, within.Name))
	}
	return found, err
}

// checkVLAN rejects a VLAN of another configuration.
func checkVLAN(c *resource.Change, vlan schema.Ref, configuration int64) error {
	if vlan.ID == 0 || !c.SetFields["vlan"] {
		return nil
	}
	head, err := c.Tx.Head(vlan.ID)
	if errors.Is(err, store.ErrNotFound) {
		return nil // the check of references names it
	}
	if err != nil || head.Configuration == configuration {
		return err
	}
	return problem.Invalid("vlan", "VLAN %s (%d) is in another configuration", head.Name, head.ID)
}

// freeNumbers are the free numbers of a VLAN group.
type freeNumbers struct {
	// Next is the next free number; null if there is none.
	Next *int64 `json:"next"`
	// Used and Free count the numbers within the limits of the group.
	Used int64 `json:"used"`
	Free int64 `json:"free"`
	// Ranges are the free numbers, in order.
	Ranges []numberRange `json:"ranges"`
}

// numberRange is a range of numbers, including both ends.
type numberRange struct {
	First int64 `json:"first"`
	Last  int64 `json:"last"`
}

var freeNumbersReport = resource.Report{Name: "freeNumbers", Summary: "The free numbers of a VLAN group",
	Description: "The next free number, and all ranges of free numbers.", Answer: freeNumbers{},
	Of: func(tx *store.Tx, _ *resource.API, caller resource.Caller, of *store.Resource) (any, error) {
		if caller.Limited() { // the numbers of hidden VLANs are not free
			if whole, err := caller.Rights.Whole(tx, []int64{of.ID}); err != nil {
				return nil, err
			} else if !whole[of.ID] {
				return nil, problem.Forbidden("AccessDenied", "%s does not have permission to view all VLANs of the group %s", caller.Name,
					problem.Describe(of.ID, of.Name))
			}
		}
		g, err := groupOf(tx, of.ID)
		if err != nil {
			return nil, err
		}
		used, err := usedNumbers(tx, of.ID)
		if err != nil {
			return nil, err
		}
		x := freeNumbers{Ranges: []numberRange{}}
		for n := g.FirstNumber; n <= g.LastNumber; n++ {
			if _, taken := used[n]; taken {
				x.Used++
				continue
			}
			if x.Free++; x.Next == nil {
				next := n
				x.Next = &next
			}
			if last := len(x.Ranges) - 1; last >= 0 && x.Ranges[last].Last == n-1 {
				x.Ranges[last].Last = n
			} else {
				x.Ranges = append(x.Ranges, numberRange{n, n})
			}
		}
		return x, nil
	}}
