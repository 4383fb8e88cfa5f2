package imports

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// readHeaders reads the headers that hold for every row.
func readHeaders(a *resource.API, headers map[string]string) (o resource.Options, err error) {
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		i := slices.IndexFunc(a.Headers, func(h resource.RequestHeader) bool { return strings.EqualFold(h.Name, name) })
		if i < 0 {
			return o, problem.Invalid("headers", "%s is no header that a row can have", name)
		}
		if o, err = a.Headers[i].Read(o, headers[name]); err != nil {
			return o, err
		}
	}
	return o, nil
}

// came is what came of a row.
type came int

const (
	unchanged came = iota
	created
	updated
	refused
	// undone is a row of which nothing stays, because others are refused.
	undone
)

// outcome is what came of a row, and what is to be said of it.
type outcome struct {
	came came
	said []string
	// row is the resource that it is about, where that is there; fields are those of it that were changed.
	row    *store.Resource
	fields []resource.FieldChange
	// provisional says that a dry run would create the resource by an earlier row.
	provisional bool
	// once are secrets of it that are shown this once, by their fields.
	once map[string]string
}

// perform does what rows say, in one transaction.
type perform struct {
	*job
	*resource.Change
}

// one does what a row says.
func (p *perform) one(r *row) (o outcome, err error) {
	if r.wrong != nil {
		return o, r.wrong
	}
	t, err := p.typeOf(r)
	if err != nil {
		return o, err
	}
	members, err := r.body(t)
	if err == nil {
		err = p.nameReferences(t, members)
	}
	if err != nil {
		return o, err
	}
	there, at, err := p.find(t, members)
	if by := p.API.CollectionOf(t).PlacedBy; by != "" && t.ByName[by] == nil {
		delete(members, by)
	}
	if !p.declared && t.ByName[untagged] == nil {
		delete(members, untagged)
	}
	unknown := takeUnknown(t, members)
	if unknown != nil && p.declared {
		return o, problem.Invalid(unknown[0], "a %s has no such field", t.Name)
	}
	if unknown != nil && p.firstOf(t.Name, unknown) {
		o.said = append(o.said, "passed over, as a "+t.Name+" has no such field: "+strings.Join(unknown, ", "))
	}
	if err != nil {
		return o, err
	}
	c := *p.Change
	c.Sent, c.Ignored, c.Extra, c.Prepared = members, nil, map[string]string{}, p.prepared[r.number]
	switch {
	case there != nil && p.action == createOnly:
		return o, problem.Conflict("ResourceAlreadyExists", "it is there already, as %s %d", there.Type, there.ID)
	case there != nil:
		return p.update(&c, r, there, o)
	case p.action == updateOnly:
		return o, problem.NotFound("it is not there")
	}
	if err := p.may(resource.ActionMake, resource.Subject{Collection: at.Collection, Sub: at.Sub, ID: at.ID}); err != nil {
		return o, err
	}
	leaveInherited(t, c.Sent)
	o.came = created
	o.row, err = p.API.MakeIn(&c, at)
	if o.once = shownOnce(t, c.Extra); o.once != nil && !p.declared {
		o.said = append(o.said, "a secret was made, which no import shows: "+strings.Join(slices.Sorted(maps.Keys(o.once)), ", "))
	}
	return o, err
}

// may asks whether who started the import may do something.
func (p *perform) may(action resource.Action, on resource.Subject) error {
	if p.API.May == nil {
		return nil
	}
	_, err := p.API.May(p.Caller, action, on)
	return err
}

// id is the number that a row gives; 0 where it gives none.
func (r *row) id() (id int64) {
	for _, c := range r.cells {
		if c.column.Name == "id" {
			id, _ = strconv.ParseInt(c.text, 10, 64)
		}
	}
	if raw, ok := r.members["id"]; ok && json.Unmarshal(raw, &id) != nil {
		return 0
	}
	return id
}

// own reports whether a collection is of imports themselves, which no row is about.
func own(c *resource.Collection) bool { return c.Name == collectionName || c.Name == logsName }

// typeOf gives the type of a row: what it says, or the only one that there can be.
func (p *perform) typeOf(r *row) (*schema.Type, error) {
	name := ""
	for _, c := range r.cells {
		if c.column.Name == typeColumn {
			name = strings.TrimSpace(c.text)
		}
	}
	if raw, ok := r.members[typeColumn]; ok && json.Unmarshal(raw, &name) != nil {
		return nil, problem.Invalid(typeColumn, "must be a string")
	}
	if name == "" {
		if at := p.at.list; at != nil {
			if types := p.API.TypesMadeIn(*at); len(types) == 1 {
				return types[0], nil
			}
		}
		if id := r.id(); id > 0 && p.Tx != nil && p.action != createOnly {
			row, err := p.API.Visible(p.Tx, id, p.Caller)
			if err == nil {
				return p.API.TypeNamed(row.Type), nil
			}
			return nil, err
		}
		missing := problem.Missing(typeColumn)
		if r.cells != nil && !slices.ContainsFunc(r.cells, func(c cell) bool { return c.column.Name == typeColumn }) {
			missing.Message += ": the first line names no column type; its first is " + strconv.Quote(r.cells[0].column.Name)
		}
		return nil, missing
	}
	t := p.API.TypeNamed(name)
	if t == nil || p.API.CollectionOf(t).From != store.Resources || own(p.API.CollectionOf(t)) {
		return nil, problem.Field("InvalidResourceType", typeColumn, "%q is no type of resources that can be imported", name)
	}
	return t, nil
}

// body gives what a row says as the members of a resource of a type.
func (r *row) body(t *schema.Type) (members map[string]json.RawMessage, err error) {
	if r.cells == nil {
		return maps.Clone(r.members), nil
	}
	row := schema.NewTableRow(t)
	for _, whole := range []bool{true, false} { // parts hold before it
		for _, c := range r.cells {
			f := t.ByName[c.column.Member()]
			if c.column.Whole() != whole || c.text == "" && (f == nil || !f.OnPost || !f.Nullable) { // an empty cell says nothing
				continue
			}
			if !utf8.ValidString(c.text) {
				return nil, problem.Field("InvalidFileCharacterEncoding", c.column.Name, "is no UTF-8: save the file as UTF-8")
			}
			if err := row.Put(c.column, c.text); err != nil {
				return nil, problem.BadRequest("InvalidFileDataValue", "%v", err)
			}
		}
	}
	return row.Members()
}

// firstOf reports whether nothing was said yet of these unknown members of a type.
func (j *job) firstOf(typeName string, unknown []string) bool {
	key := typeName + ":" + strings.Join(unknown, ",")
	if j.passed[key] {
		return false
	}
	if j.passed == nil {
		j.passed = map[string]bool{}
	}
	j.passed[key] = true
	return true
}

// takeUnknown takes out what a type has no field for, and gives the names.
func takeUnknown(t *schema.Type, members map[string]json.RawMessage) (names []string) {
	for name := range members {
		if t.ByName[name] == nil && !strings.HasPrefix(name, "_") {
			delete(members, name)
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// leaveInherited takes out of the members of a new resource what was shown of another one because it came down to it, and what is empty
// and need not be said.
func leaveInherited(t *schema.Type, members map[string]json.RawMessage) {
	var names []string
	if raw, ok := members["_inheritedFields"]; ok && json.Unmarshal(raw, &names) == nil {
		for _, name := range names {
			delete(members, name)
		}
	}
	for name, raw := range members {
		if f := t.ByName[name]; string(raw) == "null" && (f == nil || !f.OnPost && !f.Chosen) {
			delete(members, name)
		}
	}
}

// shown gives the members of a resource as they are shown to who started the import.
func (p *perform) shown(row *store.Resource) (members map[string]json.RawMessage, err error) {
	raw, err := p.show(p.Tx, row, p.Caller)
	if err == nil {
		err = json.Unmarshal(raw, &members)
	}
	return members, err
}

// update changes what a row says otherwise than it is shown.
func (p *perform) update(c *resource.Change, r *row, there *store.Resource, o outcome) (outcome, error) {
	t := p.API.TypeNamed(there.Type)
	o.row = there
	shown, err := p.shown(there)
	if err != nil {
		return o, err
	}
	if err := p.dropSameLinks(t, c.Sent, there); err != nil {
		return o, err
	}
	var fixed []string
	for name, value := range c.Sent {
		f := t.ByName[name]
		if f != nil && f.Kind == schema.Reference && f.Column == "" && !f.ReadOnly {
			if err := sameReference(name, value, shown[name]); err != nil {
				return o, err
			}
		}
		switch {
		case f == nil || name == "id" || name == "type" || f.Column != "" ||
			r.says(name, p.asShown(f, value, shown[name]), shown):
			delete(c.Sent, name)
		case f.ReadOnly || f.CreateOnly:
			if delete(c.Sent, name); !f.Computed && !f.Transient {
				fixed = append(fixed, name)
			}
		}
	}
	if fixed != nil {
		slices.Sort(fixed)
		if p.declared {
			return o, problem.Invalid(fixed[0], "cannot be changed: it is %s", shown[fixed[0]])
		}
		o.said = append(o.said, "left as it is, because it cannot be changed: "+strings.Join(fixed, ", "))
	}
	if len(c.Sent) == 0 {
		return o, nil
	}
	if err := p.may(resource.ActionChange, resource.Subject{Collection: p.API.Collection(there.Collection), ID: there.ID}); err != nil {
		return o, err
	}
	o.came = updated
	if o.fields, err = p.changedFields(t, c.Sent, shown, there); err != nil {
		return o, err
	}
	o.row, err = p.API.Rewrite(c, there, false)
	o.once = shownOnce(t, c.Extra)
	return o, err
}

// shownOnce are the secrets among what is extra in an answer; nil where there are none.
func shownOnce(t *schema.Type, extra map[string]string) (once map[string]string) {
	for _, f := range t.Fields {
		if text, ok := extra[f.Name]; ok && f.Once {
			if once == nil {
				once = map[string]string{}
			}
			once[f.Name] = text
		}
	}
	return once
}
