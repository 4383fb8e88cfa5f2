package resource

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"slices"

	"portolan/internal/base/problem"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// Change is one resource being created, changed or deleted, as its rules see it.
type Change struct {
	Tx  *store.Tx
	API *API
	// Type is the resource's type.
	Type *schema.Type
	// Old is the resource before; nil when it is created.
	Old schema.Object
	// New is the resource after; nil when it is deleted. BeforeWrite may change it.
	New schema.Object
	// Row is the stored row before; nil when it is created.
	Row *store.Resource
	// Parent is the row of the resource that the request creates below; nil elsewhere.
	Parent *store.Resource
	// Whole says that a request replaces the resource (PUT).
	Whole bool
	// Given holds the names of the fields the request set.
	Given map[string]bool
	// Sent are the members of the request's body, as they were sent; nil where there is no request.
	Sent map[string]json.RawMessage
	// Ignored are the members that were sent and are no fields.
	Ignored []string
	// Options are what the request asks beside its body; empty where there is no request.
	Options Options
	Caller  Caller
	// deleting is the resource whose deletion was asked for, with all that lies below it; 0 where none is.
	deleting int64
	// With says that the parent is deleted, too, so that nothing needs to be given back to it.
	With bool
	// Probed are the addresses that were asked whether they answer, and what came of it (NeedsProbe).
	Probed map[netip.Addr]bool
	// Made is what was made outside of the transaction, by what it is (NeedsWork); nil where nothing can be.
	Made map[string][]any
	// Prepared is what Collection.Beforehand gave; nil where there is no request.
	Prepared any
	// Content is what came along beside the fields; nil where nothing did.
	Content *Content
	// Extra are transient fields of the answer, and Cookie.
	Extra map[string]string
	// Operation and Summary are what the transaction is called, where a rule says it; empty where it is named by what is written.
	Operation, Summary string
}

// Reused is what BeforeWrite gives for a resource that is not made, because one that is there does.
type Reused struct{ ID int64 }

// Error is never shown.
func (r Reused) Error() string { return fmt.Sprintf("resource %d does", r.ID) }

// GoesAlong reports whether the resource goes because something above it, or that it depends on, is being deleted, if not all at once.
func (c *Change) GoesAlong() bool {
	return c.With || c.deleting != 0 && c.Row != nil && c.deleting != c.Row.ID
}

// Requested reports whether a request says what is written, and not something that follows from one.
func (c *Change) Requested() bool { return c.Sent != nil }

// Creates reports whether the resource is created.
func (c *Change) Creates() bool { return c.Old == nil }

// Rules that a type may have. They run inside the transaction, and an error takes all of it back.
type (
	// BeforeWriter is asked before a resource is created or changed by a request. It may set fields of Change.New, and may
	// refuse.
	BeforeWriter interface{ BeforeWrite(c *Change) error }
	// Validator is asked behind BeforeWrite, and alone when a resource comes back by an undo, whether it may be there as it
	// is, apart from the space that it takes. It changes nothing.
	Validator interface{ Validate(c *Change) error }
	// AfterWriter acts after a resource was written: what belongs to it is made.
	AfterWriter interface{ AfterWrite(c *Change) error }
	// BeforeBelowDeleter acts before what lies below a resource is deleted, and then the resource: what is to stay is taken out.
	BeforeBelowDeleter interface{ BeforeBelowDelete(c *Change) error }
	// BeforeDeleter acts before a resource is deleted: what it holds is given back.
	BeforeDeleter interface{ BeforeDelete(c *Change) error }
)

// notFoundInlined is a body that refers to what is not there.
func notFoundInlined(field string, format string, args ...any) error {
	p := problem.NotFound(field+": "+format, args...)
	p.Code = "InlinedResourceNotFound"
	p.Fields = []string{field}
	return p
}

// NotFoundInlined is the answer to a body that refers to what is not there.
func NotFoundInlined(field, format string, args ...any) error {
	return notFoundInlined(field, format, args...)
}

// MayDeploy refuses a deployment of a type at a resource that a user may not ask for.
func (c *Change) MayDeploy(user int64, typeName string, at int64) error {
	if c.API.MayDeploy == nil || user == 0 {
		return nil
	}
	row, err := c.Tx.Get(at)
	if err != nil {
		return err
	}
	return c.API.MayDeploy(c.Tx, user, typeName, row)
}

// Above reads the row of a parent.
func (c *Change) Above(id int64) (*store.Resource, error) {
	if c.Parent != nil && c.Parent.ID == id {
		return c.Parent, nil
	}
	return c.Tx.Get(id)
}

// Following gives a change that follows from this one, as if a request had set the given fields and said nothing else.
func (c *Change) Following(given ...string) *Change {
	n := *c
	n.Given, n.Sent, n.Parent, n.Options, n.Whole = map[string]bool{}, nil, nil, Options{}, false
	n.Content = nil
	for _, name := range given {
		n.Given[name] = true
	}
	return &n
}

// FollowingAsked is Following for what is to heed the request's options, too.
func (c *Change) FollowingAsked(given ...string) *Change {
	n := c.Following(given...)
	n.Options = c.Options
	return n
}

// Create writes a new object below its parent, with all its rules. Given and Caller come from c.
func (c *Change) Create(t *schema.Type, o schema.Object) (*store.Resource, error) {
	n := *c
	n.Type, n.Old, n.Row, n.New = t, nil, nil, o
	return n.create()
}

// CreateMany writes new objects of a type whose rules the caller has seen to, and gives their rows.
func (c *Change) CreateMany(t *schema.Type, objects []schema.Object) ([]*store.Resource, error) {
	rows := make([]*store.Resource, len(objects))
	for i, o := range objects {
		var err error
		if rows[i], err = t.Row(o, nil); err != nil {
			return nil, err
		}
	}
	return rows, c.Tx.InsertMany(rows)
}

func (c *Change) create() (*store.Resource, error) {
	if c.Given == nil {
		c.Given = map[string]bool{}
	}
	first := c.Tx.Describe(operationOf(added, c.Type), "")
	if err := c.seesSent(); err != nil {
		return nil, err
	}
	if rule, ok := c.New.(BeforeWriter); ok {
		err := rule.BeforeWrite(c)
		if there := (Reused{}); errors.As(err, &there) {
			return c.API.Visible(c.Tx, there.ID, c.Caller)
		}
		if err != nil {
			return nil, err
		}
	}
	if r, ok := c.New.(interface{ Record(transaction int64) }); ok {
		number, err := c.Tx.Number()
		if err != nil {
			return nil, err
		}
		r.Record(number)
	}
	if err := c.resolve(); err != nil {
		return nil, err
	}
	if err := c.checkUserFields(); err != nil {
		return nil, err
	}
	if err := c.validate(); err != nil {
		return nil, err
	}
	if err := c.seal(); err != nil {
		return nil, err
	}
	row, err := c.Type.Row(c.New, nil)
	if err != nil {
		return nil, err
	}
	if first {
		c.Tx.Summarize(made(c.Type, c.New))
	}
	if err := c.Tx.Insert(row); err != nil {
		return nil, err
	}
	schema.HeadOf(c.New).ID = row.ID
	return row, c.afterWrite()
}

// checkUserFields reads the user-defined fields.
func (c *Change) checkUserFields() error {
	if c.API.UserFields == nil {
		return nil
	}
	return c.API.UserFields.Check(c)
}

// afterWrite runs the rule of the type, and then those that other rooms have for it.
func (c *Change) afterWrite() error {
	if rule, ok := c.New.(AfterWriter); ok {
		if err := rule.AfterWrite(c); err != nil {
			return err
		}
	}
	for _, rule := range c.API.rules[c.Type.Name] {
		if rule.AfterWrite == nil {
			continue
		}
		if err := rule.AfterWrite(c); err != nil {
			return err
		}
	}
	return nil
}

// validate asks the rules that hold whenever a resource is there, whatever brought it: those of its tags, then its own.
func (c *Change) validate() error {
	if err := c.uniqueName(); err != nil {
		return err
	}
	if rule, ok := c.New.(Validator); ok {
		return rule.Validate(c)
	}
	return nil
}

// uniqueName refuses a name that another one of the collection has, right below the same parent or anywhere (the tag
// unique). A name that stays where it was is not asked for again.
func (c *Change) uniqueName() error {
	h := schema.HeadOf(c.New)
	if c.Type.Unique == "" || c.Type.Unique == "wholeName" || h.Name == "" {
		return nil
	}
	if c.Old != nil && schema.HeadOf(c.Old).Name == h.Name && schema.HeadOf(c.Old).Parent == h.Parent {
		return nil
	}
	parent := h.Parent
	if c.Type.Unique == "all" {
		parent = 0
	}
	same, err := c.Tx.ByName(c.Type.Collection, parent, h.Name)
	if err != nil {
		return err
	}
	for _, r := range same {
		if r.ID != h.ID {
			p := problem.Conflict("ResourceAlreadyExists", "name: %q is the name of %s %d already", h.Name, r.Type, r.ID)
			p.Fields = []string{"name"}
			return p
		}
	}
	return nil
}

// Change writes an object anew, with all its rules.
func (c *Change) Change(row *store.Resource, change func(o schema.Object)) (*store.Resource, error) {
	n := *c
	n.Type, n.Row = c.API.types[row.Type], row
	var err error
	if n.Old, err = n.Type.Object(row); err != nil {
		return nil, err
	}
	if n.New, err = n.Type.Object(row); err != nil {
		return nil, err
	}
	change(n.New)
	return n.update()
}

// Patch writes some members of a resource anew, with all its rules, as a request would.
func (c *Change) Patch(row *store.Resource, members map[string]json.RawMessage) (*store.Resource, error) {
	n := *c
	n.Type, n.Row = c.API.types[row.Type], row
	var err error
	if n.Old, err = n.Type.Object(row); err != nil {
		return nil, err
	}
	if n.New, err = n.Type.Object(row); err != nil {
		return nil, err
	}
	given, problems := n.Type.Decode(n.New, members, false)
	if len(problems) > 0 {
		return nil, problem.Join(problems)
	}
	n.Given = given
	return n.update()
}

func (c *Change) update() (*store.Resource, error) {
	first := c.Tx.Describe(operationOf(updated, c.Type), "")
	c.Type.KeepSecrets(c.Old, c.New)
	if err := c.seesSent(); err != nil {
		return nil, err
	}
	if rule, ok := c.New.(BeforeWriter); ok {
		if err := rule.BeforeWrite(c); err != nil {
			return nil, err
		}
	}
	if err := c.resolve(); err != nil {
		return nil, err
	}
	if err := c.keepUnseen(); err != nil {
		return nil, err
	}
	if err := c.checkUserFields(); err != nil {
		return nil, err
	}
	// What follows from another change, with no field given, fits as it did before.
	if len(c.Given) > 0 {
		if err := c.validate(); err != nil {
			return nil, err
		}
	}
	if err := c.Tx.LoadLinks(c.Row); err != nil {
		return nil, err
	}
	if err := c.seal(); err != nil {
		return nil, err
	}
	row, err := c.Type.Row(c.New, c.Row)
	if err != nil {
		return nil, err
	}
	switch {
	case first && c.Operation != "":
		c.Tx.Rename(c.Operation, c.Summary)
	case first:
		c.Tx.Summarize("Changed " + describe(c.Type, c.New))
	}
	if err := c.Tx.Replace(c.Row, row); err != nil {
		return nil, err
	}
	return row, c.afterWrite()
}

// relink sets what a field refers to, as a request would that gives the field and nothing else: with all rules. targets are in no
// order: a field whose order counts has no links made one by one.
func (c *Change) relink(source *store.Resource, f *schema.Field, targets []int64) error {
	_, err := c.FollowingAsked(f.Name).Change(source, func(o schema.Object) {
		v := reflect.ValueOf(o).Elem().FieldByIndex(f.Index)
		if f.Kind == schema.Reference {
			one := schema.Ref{}
			if len(targets) > 0 {
				one.ID = targets[0]
			}
			v.Set(reflect.ValueOf(one))
			return
		}
		list := schema.RefList{Given: true}
		for _, id := range targets {
			list.Items = append(list.Items, schema.RefItem{ID: id})
		}
		v.Set(reflect.ValueOf(list))
	})
	return err
}

// Link adds one reference of a field of many, or one that is no field, such as a tag. No rule is asked.
func (c *Change) Link(source *store.Resource, name string, target int64) error {
	if err := c.Tx.LoadLinks(source); err != nil {
		return err
	}
	with := *source
	with.Links = append(slices.Clone(source.Links), store.Ref{Field: name, Target: target})
	if err := c.describeLink(source, target); err != nil {
		return err
	}
	return c.Tx.Replace(source, &with)
}

// Each calls fn for the resources of which a condition holds. They are read first, so that fn may change them.
func (c *Change) Each(where store.Expr, fn func(row *store.Resource, o schema.Object) error) error {
	var rows []*store.Resource
	if err := c.Tx.List(store.Query{From: store.Resources, Where: where}, func(r *store.Resource) error {
		rows = append(rows, r.Clone())
		return nil
	}); err != nil {
		return err
	}
	for _, row := range rows {
		o, err := c.API.Object(row)
		if err != nil {
			return err
		}
		if err := fn(row, o); err != nil {
			return err
		}
	}
	return nil
}

// Object decodes a stored row.
func (a *API) Object(row *store.Resource) (schema.Object, error) {
	t := a.types[row.Type]
	if t == nil {
		return nil, fmt.Errorf("resource %d has the type %s, which is not declared", row.ID, row.Type)
	}
	return t.Object(row)
}

// Again gives a row as it would be written from its body: without references and links.
func (a *API) Again(row *store.Resource) (*store.Resource, error) {
	o, err := a.Object(row)
	if err != nil {
		return nil, err
	}
	return a.types[row.Type].Row(o, nil)
}

// SentInherited gives the names of the fields that a request says are inherited: those in the member _inheritedFields. A PUT without that
// member comes from a client that does not know it: every one of fields, those that can be inherited, counts as named that is unset now.
func (c *Change) SentInherited(fields ...string) (names []string) {
	if c.Sent["_inheritedFields"] != nil || !c.Whole || c.Old == nil {
		return c.SentTexts("_inheritedFields")
	}
	for _, name := range fields {
		if c.Type.IsUnset(c.Old, name) {
			names = append(names, name)
		}
	}
	return names
}

// SentTexts gives a member of the request's body that is a list of texts; nil where there is none, or it is another value.
func (c *Change) SentTexts(member string) (texts []string) {
	if json.Unmarshal(c.Sent[member], &texts) != nil {
		return nil
	}
	return texts
}
