package resource

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"portolan/internal/base/problem"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// Change is the creation, change or deletion of one resource, as its rules see it.
type Change struct {
	Tx   *store.Tx
	API  *API
	Type *schema.Type
	// Old is the resource before the change; nil if the change creates it.
	Old schema.Object
	// New is the resource after the change; nil if the change deletes it. BeforeWrite may modify it.
	New schema.Object
	// Row is the stored row before the change; nil if the change creates it.
	Row *store.Resource
	// Parent is the row of the parent of the resource that the request creates; nil for other requests.
	Parent *store.Resource
	// Whole says that the request replaces the resource (PUT).
	Whole bool
	// SetFields are the names of the fields that the request set.
	SetFields map[string]bool
	// Sent are the members of the request's body as sent; nil for a change without a request.
	Sent map[string]json.RawMessage
	// Ignored are the members of the request that are not fields.
	Ignored []string
	// Options are the request's options; empty for a change without a request.
	Options Options
	Caller  Caller
	// deleting is the id of the resource that the request deletes with everything below it; 0 for other requests.
	deleting int64
	// ParentDeleted says that the parent is deleted as well, so that nothing has to be released to it.
	ParentDeleted bool
	// Answers are the answers to questions that rules have asked, by what they are about (NeedsAnswer).
	Answers map[any]any
	// Results are the results of work outside of the transaction, by their name (NeedsWork); nil where work cannot be done outside of it.
	Results map[string][]any
	// Prepared is the result of Collection.Beforehand; nil for a change without a request.
	Prepared any
	// Content is the content that the request carried in addition to the fields; nil without one.
	Content *Content
	// Extra are transient fields of the answer, and the cookie (Cookie).
	Extra map[string]string
	// Operation and Summary are the name of the transaction, if a rule sets them. If they are empty, the first written resource names it.
	Operation, Summary string
}

// Reused is the error that BeforeWrite returns if the existing resource with this ID serves the request, so that none is created.
type Reused struct{ ID int64 }

// Error returns a text that is never shown.
func (r Reused) Error() string {
	return fmt.Sprintf("resource %d already exists and serves the request", r.ID)
}

// IsCascaded reports whether the resource is deleted because a resource above it, or one that it depends on, is deleted.
func (c *Change) IsCascaded() bool {
	return c.ParentDeleted || c.deleting != 0 && c.Row != nil && c.deleting != c.Row.ID
}

// IsRequested reports whether a request set these values. Changes that follow from another change are not requested.
func (c *Change) IsRequested() bool { return c.Sent != nil }

// IsCreation reports whether the change creates the resource.
func (c *Change) IsCreation() bool { return c.Old == nil }

// Rules that a type may have. They run inside the transaction; an error rolls all of it back.
type (
	// BeforeWriter runs before a request creates or changes a resource. It may set fields of Change.New, and may refuse the change.
	BeforeWriter interface{ BeforeWrite(c *Change) error }
	// Validator checks a resource after BeforeWrite, and alone when an undo restores the resource. It refuses a resource that may not
	// exist in this form, without regard to the space that it takes. It changes nothing.
	Validator interface{ Validate(c *Change) error }
	// AfterWriter runs after a resource was written, and creates the resources that belong to it.
	AfterWriter interface{ AfterWrite(c *Change) error }
	// BeforeBelowDeleter runs before the resources below a resource, and then the resource itself, are deleted. It moves out the
	// resources that are to stay.
	BeforeBelowDeleter interface{ BeforeBelowDelete(c *Change) error }
	// BeforeDeleter runs before a resource is deleted, and releases what the resource holds.
	BeforeDeleter interface{ BeforeDelete(c *Change) error }
)

// notFoundInlined returns the error for a body that refers to a resource that does not exist. field is the member that refers to it.
func notFoundInlined(field string, format string, args ...any) error {
	p := problem.NotFound(field+": "+format, args...)
	p.Code = "InlinedResourceNotFound"
	p.Fields = []string{field}
	return p
}

// NotFoundInlined returns the error for a body that refers to a resource that does not exist. field is the member that refers to it.
func NotFoundInlined(field, format string, args ...any) error {
	return notFoundInlined(field, format, args...)
}

// ReadParent reads the row of a parent.
func (c *Change) ReadParent(id int64) (*store.Resource, error) {
	if c.Parent != nil && c.Parent.ID == id {
		return c.Parent, nil
	}
	return c.Tx.Get(id)
}

// Following returns a change that follows from this one, as if a request had set only the given fields.
func (c *Change) Following(given ...string) *Change {
	n := *c
	n.SetFields, n.Sent, n.Parent, n.Options, n.Whole = map[string]bool{}, nil, nil, Options{}, false
	n.Content = nil
	for _, name := range given {
		n.SetFields[name] = true
	}
	return &n
}

// FollowingWithOptions is Following with the options of the request.
func (c *Change) FollowingWithOptions(given ...string) *Change {
	n := c.Following(given...)
	n.Options = c.Options
	return n
}

// Create writes a new object below its parent, with all its rules. Given and Caller are those of c.
func (c *Change) Create(t *schema.Type, o schema.Object) (*store.Resource, error) {
	n := *c
	n.Type, n.Old, n.Row, n.New = t, nil, nil, o
	return n.create()
}

// CreateMany writes new objects of a type and returns their rows. It runs no rules; the caller is responsible for them.
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
	if c.SetFields == nil {
		c.SetFields = map[string]bool{}
	}
	first := c.Tx.Describe(operationOf(added, c.Type), "")
	if err := c.checkSentReferences(); err != nil {
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
		c.Tx.Summarize(creationSummary(c.Type, c.New))
	}
	if err := c.Tx.Insert(row); err != nil {
		return nil, err
	}
	schema.HeadOf(c.New).ID = row.ID
	return row, c.afterWrite()
}

// checkUserFields checks the user-defined fields.
func (c *Change) checkUserFields() error {
	if c.API.UserFields == nil {
		return nil
	}
	return c.API.UserFields.Check(c)
}

// afterWrite runs the rule of the type, and then the rules of other packages for it.
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

// validate runs the checks that a resource has to pass however it came into existence: those of its tags, then its own.
func (c *Change) validate() error {
	if err := c.uniqueName(); err != nil {
		return err
	}
	if rule, ok := c.New.(Validator); ok {
		return rule.Validate(c)
	}
	return nil
}

// uniqueName refuses a name that another resource of the collection has, below the same parent or anywhere (the tag unique). An unchanged
// name below an unchanged parent is not checked again.
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
			p := problem.Conflict("ResourceAlreadyExists", "name: %q already exists (%s %d)", h.Name, r.Type, r.ID)
			p.Fields = []string{"name"}
			return p
		}
	}
	return nil
}

// Change reads the object of a row, applies change to it, and writes it with all its rules.
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

// Patch writes some members of a resource with all its rules, as a request would.
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
	n.SetFields = given
	return n.update()
}

func (c *Change) update() (*store.Resource, error) {
	first := c.Tx.Describe(operationOf(updated, c.Type), "")
	c.Type.KeepSecrets(c.Old, c.New)
	if err := c.checkSentReferences(); err != nil {
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
	if err := c.keepHidden(); err != nil {
		return nil, err
	}
	if err := c.checkUserFields(); err != nil {
		return nil, err
	}
	// A change that follows from another change, with no field given, is as valid as before.
	if len(c.SetFields) > 0 {
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

// relink sets the targets of a reference field with all rules, as a request would that sets only this field. The targets have no order;
// links of fields with a significant order are never created one by one.
func (c *Change) relink(source *store.Resource, f *schema.Field, targets []int64) error {
	_, err := c.FollowingWithOptions(f.Name).Change(source, func(o schema.Object) {
		v := reflect.ValueOf(o).Elem().FieldByIndex(f.Index)
		if f.Kind == schema.Reference {
			one := schema.Ref{}
			if len(targets) > 0 {
				one.ID = targets[0]
			}
			v.Set(reflect.ValueOf(one))
			return
		}
		list := schema.RefList{IsSet: true}
		for _, id := range targets {
			list.Items = append(list.Items, schema.RefItem{ID: id})
		}
		v.Set(reflect.ValueOf(list))
	})
	return err
}

// Link adds one target to a list of references, or to links that are not a field, such as tags. It runs no rules.
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

// Each calls fn for each resource that matches a condition. It reads all of them first, so that fn may change them.
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

// RebuildRow returns a row as it would be written from its body: without references and links.
func (a *API) RebuildRow(row *store.Resource) (*store.Resource, error) {
	o, err := a.Object(row)
	if err != nil {
		return nil, err
	}
	return a.types[row.Type].Row(o, nil)
}

// SentInherited returns the names of the fields that a request declares as inherited: those in the member _inheritedFields. A PUT without
// that member comes from a client that does not know it; then every field of fields that is unset now counts as inherited.
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

// SentTexts returns a member of the request's body that is a list of strings; nil if it is missing or not such a list.
func (c *Change) SentTexts(member string) (texts []string) {
	if json.Unmarshal(c.Sent[member], &texts) != nil {
		return nil
	}
	return texts
}
