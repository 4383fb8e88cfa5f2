package dns

import (
	"slices"
	"strings"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// registerAccessControlLists declares the collection of access control lists.
func registerAccessControlLists(r *resource.Registry) {
	r.Collection(resource.Collection{Name: "accessControlLists", Parents: []string{"configurations"}}, &ACL{})
	r.Rule(resource.Rule{Types: []string{"Configuration"}, AfterWrite: func(c *resource.Change) error {
		if !c.IsCreation() {
			return nil
		}
		return createPredefined(c, schema.HeadOf(c.New).ID)
	}})
	r.Seed(func(c *resource.Change) error {
		return resource.EachWithout(c, "configurations", "accessControlLists",
			store.Compare{Field: store.Field{Kind: store.ColumnText, Path: []string{"name"}}, Op: "eq", Value: predefinedLists[0]},
			func(id int64) error { return createPredefined(c, id) })
	})
}

// predefinedLists are the access control lists that name servers define themselves.
var predefinedLists = []string{"any", "none", "localhost", "localnets"}

// createPredefined creates the lists that every configuration has.
func createPredefined(c *resource.Change, configuration int64) error {
	t := c.API.TypeNamed("ACL")
	for _, name := range predefinedLists {
		x := &ACL{Predefined: true, MatchElements: []string{name}}
		x.Type, x.Name, x.Parent, x.Config = t.Name, name, configuration, configuration
		if _, err := c.Following().Create(t, x); err != nil {
			return err
		}
	}
	return nil
}

// ACL is an access control list of name servers for queries, transfers, notifies or updates. The first matching element decides.
type ACL struct {
	schema.Head `head:"required,nonblank" unique:"siblings"`
	// Configuration is the configuration that contains the list.
	Configuration schema.Ref `api:"configuration,readOnly" ref:"Configuration" column:"configuration"`
	// Predefined is true for the lists that every configuration has and that cannot be changed: any, none, localhost, localnets.
	Predefined bool `api:"predefined,readOnly"`
	// MatchElements are addresses, prefixes, names of other lists, and keys (key NAME), in order. A leading "!" negates an element.
	MatchElements []string `api:"matchElements,required,nonblank" min:"1"`
	// Mentions are the lists and keys that the elements refer to.
	Mentions schema.RefList `api:"mentions,hidden" ref:"ACL|TSIGKey" onDelete:"refuse"`
}

// BeforeWrite rejects a change of a predefined list, and resolves the lists and keys of the elements.
func (x *ACL) BeforeWrite(c *resource.Change) error {
	if old, ok := c.Old.(*ACL); ok && old.Predefined && c.IsRequested() {
		return problem.Forbidden("UpdateNotAllowed", "the list %s is built in and cannot be changed", old.Name)
	}
	if x.Predefined || !c.IsCreation() && !c.SetFields["matchElements"] {
		return nil
	}
	ids, err := CheckMatches(c, x.Config, "matchElements", x.MatchElements)
	x.Mentions = schema.Refer(ids)
	return err
}

// Validate checks the name and the elements: their lists and keys must exist, and no list may contain itself.
func (x *ACL) Validate(c *resource.Change) error {
	if x.Predefined {
		return nil
	}
	if err := checkListName(x.Name); err != nil {
		return problem.Invalid("name", "%v", err)
	}
	if slices.Contains(predefinedLists, strings.ToLower(x.Name)) {
		return problem.Conflict("ResourceAlreadyExists", "name: %s is a built-in list: choose another name", strings.ToLower(x.Name))
	}
	if _, err := CheckMatches(c, x.Config, "matchElements", x.MatchElements); err != nil {
		return err
	}
	return x.checkCycle(c, x.MatchElements, map[string]bool{})
}

// CheckMatches rejects invalid elements and elements with an unknown list or key. It returns the ids of the lists and keys.
func CheckMatches(c *resource.Change, configuration int64, field string, elements []string) (ids []int64, err error) {
	for i, element := range elements {
		m, err := ParseMatch(element)
		if err != nil {
			return nil, problem.Invalid(field, "entry %d: %v", i, err)
		}
		for collection, name := range map[string]string{"accessControlLists": m.List, "signingKeys": m.Key} {
			if name == "" || schema.HeadOf(c.New).Name == name && c.Type.Collection == collection {
				continue
			}
			found, err := c.Tx.ByName(collection, configuration, name)
			if err != nil {
				return nil, err
			}
			if len(found) == 0 {
				return nil, resource.NotFoundInlined(field, "entry %d: %s does not exist in %s of the configuration", i, name, collection)
			}
			ids = append(ids, found[0].ID)
		}
	}
	return ids, nil
}

// checkCycle rejects elements that refer, directly or through other lists, to the list itself.
func (x *ACL) checkCycle(c *resource.Change, elements []string, seen map[string]bool) error {
	for _, element := range elements {
		m, err := ParseMatch(element)
		if err != nil || m.List == "" || seen[m.List] {
			continue
		}
		if m.List == x.Name {
			return problem.Field("ResourceHasCircularReference", "matchElements", "the list would contain itself")
		}
		seen[m.List] = true
		found, err := c.Tx.ByName("accessControlLists", x.Config, m.List)
		if err != nil {
			return err
		}
		for _, row := range found {
			o, err := c.API.Object(row)
			if err != nil {
				return err
			}
			if other := o.(*ACL); other.ID != x.ID && !other.Predefined {
				if err := x.checkCycle(c, other.MatchElements, seen); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// AfterWrite updates the elements of other lists after the list was renamed.
func (x *ACL) AfterWrite(c *resource.Change) error {
	if old, ok := c.Old.(*ACL); ok && old.Name != x.Name {
		return renameInLists(c, x.ID, func(m Match) string { return m.List }, old.Name, x.Name)
	}
	return nil
}

// BeforeBelowDelete rejects the deletion of a predefined list.
func (x *ACL) BeforeBelowDelete(c *resource.Change) error {
	if c.IsCascaded() || !x.Predefined {
		return nil
	}
	return problem.Forbidden("DeleteNotAllowed", "the list %s is built in and cannot be deleted", x.Name)
}

// renameInLists replaces the old name of a list or key in the lists that refer to it.
func renameInLists(c *resource.Change, id int64, named func(Match) string, from, to string) error {
	return c.Each(store.All{store.InCollection("accessControlLists"), store.LinksTo{Targets: []int64{id}, Field: "mentions"}},
		func(row *store.Resource, o schema.Object) error {
			renamed, changed := RenameInMatches(o.(*ACL).MatchElements, named, from, to)
			if !changed {
				return nil
			}
			_, err := c.Following().Change(row, func(o schema.Object) { o.(*ACL).MatchElements = renamed })
			return err
		})
}

// RenameInMatches returns the elements with the name of a list or key replaced, and whether an element changed.
func RenameInMatches(elements []string, named func(Match) string, from, to string) (renamed []string, changed bool) {
	renamed = slices.Clone(elements)
	for i, element := range renamed {
		m, err := ParseMatch(element)
		if err != nil || named(m) != from {
			continue
		}
		renamed[i], changed = to, true
		if m.Key != "" {
			renamed[i] = "key " + to
		}
		if m.Not {
			renamed[i] = "!" + renamed[i]
		}
	}
	return renamed, changed
}
