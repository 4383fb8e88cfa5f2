package catalog

import (
	"cmp"
	"regexp"
	"strings"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// registerLocations declares the collection of locations.
func registerLocations(r *resource.Registry) {
	r.Collection(resource.Collection{Name: "locations", Parents: []string{"locations"}, CacheHeads: true}, &Location{})
}

// Location is a country, which is created with the database, or a place below a country or another place.
type Location struct {
	schema.Head `head:"post,nonblank,nullable"`
	// Locode is the UN/LOCODE of the place (UNECE Recommendation 16), such as NO OSL. A place has one if its parent is a country and its
	// code is three letters or digits from 2 to 9, with or without the country code in front.
	Locode string `api:"locode,readOnly"`
	// Code is the short name of the place, unique below its parent.
	Code string `api:"code,post,nonblank,index,inline"`
	// Country is the country of the place.
	Country string `api:"country,readOnly"`
	// Description is a free text about the place.
	Description string `api:"description,search" length:"4000"`
	// LocalizedName is the name of the place in its own language.
	LocalizedName string `api:"localizedName"`
	// Subdivision is the part of the country that contains the place.
	Subdivision string `api:"subdivision,readOnly"`
	// Longitude is in degrees, east positive.
	Longitude *float64 `api:"longitude" min:"-180" max:"180"`
	// Latitude is in degrees, north positive.
	Latitude *float64 `api:"latitude" min:"-90" max:"90"`
}

// place matches the part of a UN/LOCODE after the country code.
var place = regexp.MustCompile(`^[A-Z2-9]{3}$`)

// BeforeWrite rejects a code that a sibling has, and derives the name, the country and the UN/LOCODE.
func (x *Location) BeforeWrite(c *resource.Change) error {
	x.Name = cmp.Or(x.Name, x.Code)
	if x.Parent == 0 {
		return nil
	}
	parent, err := c.Tx.Get(x.Parent)
	if err != nil {
		return err
	}
	o, err := c.API.Object(parent)
	if err != nil {
		return err
	}
	above := o.(*Location)
	x.Country, x.Locode = above.Country, ""
	if code := strings.TrimSpace(strings.TrimPrefix(x.Code, above.Code)); above.Parent == 0 && place.MatchString(code) {
		x.Locode = above.Code + " " + code
	}
	same, err := c.Tx.ReadFirst(store.Query{From: store.Resources, Where: store.All{store.InCollection("locations"), store.HasParent(x.Parent),
		store.Compare{Field: store.Field{Kind: store.Text, Path: []string{"code"}, Indexed: true}, Op: "eq", Value: x.Code},
		store.Compare{Field: store.Field{Kind: store.ColumnID}, Op: "ne", Value: x.ID}}})
	if same != nil {
		return problem.Conflict("ResourceAlreadyExists", "code: %q is already the code of location %d", x.Code, same.ID)
	}
	return err
}

// SeedLocations creates the countries of ISO 3166.
func SeedLocations(c *resource.Change) error {
	t, _ := c.API.Type("Location")
	for _, one := range countries {
		x := &Location{Code: one[0], Country: one[1]}
		x.Type, x.Name = "Location", x.Country
		if _, err := c.Create(t, x); err != nil {
			return err
		}
	}
	return nil
}

// BeforeDelete rejects the deletion of a country, which would delete every location below it.
func (x *Location) BeforeDelete(c *resource.Change) error {
	if x.Parent == 0 && !c.ParentDeleted {
		return problem.InUse("%s is a country and cannot be deleted", x.Name)
	}
	return nil
}
