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

// readHeaders parses the request headers that apply to every row.
func readHeaders(a *resource.API, headers map[string]string) (o resource.Options, err error) {
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		i := slices.IndexFunc(a.Headers, func(h resource.RequestHeader) bool { return strings.EqualFold(h.Name, name) })
		if i < 0 {
			return o, problem.Invalid("headers", "%s is not a header that a row can set", name)
		}
		if o, err = a.Headers[i].Read(o, headers[name]); err != nil {
			return o, err
		}
	}
	return o, nil
}

// result is the result of a row.
type result int

const (
	unchanged result = iota
	created
	updated
	refused
	// undone is the result of a row that was rolled back because other rows were rejected.
	undone
)

// outcome is the result of a row, with its messages for the log.
type outcome struct {
	result   result
	messages []string
	// row is the resource of the row; nil if there is none. fields are its changed fields.
	row    *store.Resource
	fields []resource.FieldChange
	// provisional means that the resource exists only within the dry run, created by an earlier row.
	provisional bool
	// once are secrets that are shown only in this response, by field.
	once map[string]string
}

// executor applies rows in one transaction.
type executor struct {
	*job
	*resource.Change
	// taker imports leases; nil before the first one.
	taker LeaseTaker
	// earlier returns the position of the earlier row about a resource; empty if there is none. It is nil for declared resources.
	earlier func(id int64) string
}

// sameResource returns the error of a row about the resource of an earlier row.
func sameResource(first string, there *store.Resource) error {
	return problem.Conflict("ResourceConflictsWithOther", "%s is about the same %s %d: remove one of the two", first, there.Type, there.ID)
}

// applyRow applies a row.
func (p *executor) applyRow(r *row) (o outcome, err error) {
	if r.wrong != nil {
		return o, r.wrong
	}
	if r.lease != nil {
		return p.applyLease(r)
	}
	t, err := p.typeOf(r)
	if err != nil {
		return o, err
	}
	members, err := r.bodyOf(t)
	if err == nil {
		err = p.nameReferences(t, members)
	}
	if err != nil {
		return o, err
	}
	there, at, err := p.find(t, r.object, members)
	if by := p.API.CollectionOf(t).PlacedBy; by != "" && t.ByName[by] == nil {
		delete(members, by)
	}
	if !p.declared && t.ByName[untagged] == nil {
		delete(members, untagged)
	}
	unknown := removeUnknown(t, members)
	if unknown != nil && p.declared {
		return o, problem.Invalid(unknown[0], "a %s has no such field", t.Name)
	}
	if unknown != nil && p.isFirstMention(t.Name, unknown) {
		o.messages = append(o.messages, "ignored because a "+t.Name+" has no such field: "+strings.Join(unknown, ", "))
	}
	if err != nil {
		return o, err
	}
	if other := p.sameMAC(r, members); other != "" {
		o.messages = append(o.messages, "has the MAC address of "+other)
	}
	c := *p.Change
	c.Sent, c.Ignored, c.Extra, c.Prepared = members, nil, map[string]string{}, p.prepared[r.number]
	switch {
	case there != nil && p.action == createOnly && p.earlier != nil && p.earlier(there.ID) != "":
		return o, sameResource(p.earlier(there.ID), there)
	case there != nil && p.action == createOnly:
		return o, problem.Conflict("ResourceAlreadyExists", "already exists as %s %d", there.Type, there.ID)
	case there != nil:
		return p.update(&c, r, there, o)
	case p.action == updateOnly:
		return o, problem.NotFound("does not exist")
	}
	if err := p.checkAccess(resource.ActionMake, resource.Subject{Collection: at.Collection, Sub: at.Sub, ID: at.ID}); err != nil {
		return o, err
	}
	if f := t.ByName[stateColumn]; r.guessed && f != nil && t.Collection == "addresses" && c.Sent[stateColumn] == nil {
		c.Sent[stateColumn] = schema.AppendString(nil, usualStates["assigned"])
	}
	removeInherited(t, c.Sent)
	o.result = created
	o.row, err = p.API.CreateIn(&c, at)
	if o.once = shownOnce(t, c.Extra); o.once != nil && !p.declared {
		o.messages = append(o.messages, "a secret was created, which imports do not show: "+strings.Join(slices.Sorted(maps.Keys(o.once)), ", "))
	}
	return o, err
}

// checkAccess returns an error if the user who started the import may not perform an action.
func (p *executor) checkAccess(action resource.Action, on resource.Subject) error {
	if p.API.May == nil {
		return nil
	}
	_, err := p.API.May(p.Caller, action, on)
	return err
}

// id returns the id given by a row; 0 if there is none.
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

// isImportCollection reports whether a collection contains imports or their logs, which cannot be imported.
func isImportCollection(c *resource.Collection) bool {
	return c.Name == collectionName || c.Name == logsName
}

// typeOf returns the type of a row: the one it names, or the only possible one.
func (p *executor) typeOf(r *row) (*schema.Type, error) {
	if r.kind != nil {
		return r.kind, nil
	}
	name := ""
	for _, c := range r.cells {
		if c.column.Name == typeColumn {
			name = strings.TrimSpace(c.text)
		}
	}
	if raw, ok := r.members[typeColumn]; ok && json.Unmarshal(raw, &name) != nil {
		return nil, problem.Invalid(typeColumn, "must be a string")
	}
	if name == "" && p.headings != nil && p.headings.of != nil {
		r.guessed = true
		return p.headings.typeOf(r.cells), nil
	}
	if name == "" {
		if at := p.at.list; at != nil {
			if types := p.API.ListCreatableTypes(*at); len(types) == 1 {
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
			missing.Message += ": the first line names no column type; its first is " + strconv.Quote(r.cells[0].column.Name) +
				"; add it, or set resourceType (--as)"
		}
		return nil, missing
	}
	t := importable(p.API, name)
	if t == nil {
		return nil, problem.Field("InvalidResourceType", typeColumn, "resources of the type %q cannot be imported", name)
	}
	return t, nil
}

// importable returns the type of a name; nil if its resources cannot be imported.
func importable(a *resource.API, name string) *schema.Type {
	t := a.TypeNamed(name)
	if t == nil || a.CollectionOf(t).From != store.Resources || isImportCollection(a.CollectionOf(t)) {
		return nil
	}
	return t
}

// bodyOf is body, from the prepared members if there are any. The caller may change the result.
func (r *row) bodyOf(t *schema.Type) (members map[string]json.RawMessage, err error) {
	if r.sent != nil {
		return maps.Clone(r.sent), nil
	}
	return r.body(t)
}

// body returns the members of a row as a resource of a type.
func (r *row) body(t *schema.Type) (members map[string]json.RawMessage, err error) {
	if r.cells == nil {
		members = maps.Clone(r.members)
		if r.guessed {
			members[typeColumn] = schema.AppendString(nil, t.Name)
		}
		return members, nil
	}
	row := schema.NewTableRow(t)
	for _, whole := range []bool{true, false} { // whole fields first, so that their parts can follow
		for _, c := range r.cells {
			f := t.ByName[c.column.Member()]
			if c.column.IsWhole() != whole || c.text == "" && (f == nil || !f.OnPost || !f.Nullable) { // an empty cell has no meaning
				continue
			}
			if !utf8.ValidString(c.text) {
				return nil, problem.Field("InvalidFileCharacterEncoding", c.column.Name, "is not valid UTF-8: save the file as UTF-8")
			}
			if err := row.SetCell(c.column, c.text); err != nil {
				return nil, problem.BadRequest("InvalidFileDataValue", "%v", err)
			}
		}
	}
	members, err = row.Members()
	if members != nil && members[typeColumn] == nil && r.guessed {
		members[typeColumn] = schema.AppendString(nil, t.Name)
	}
	return members, err
}

// isFirstMention reports whether these unknown members of a type have not been reported yet.
func (j *job) isFirstMention(typeName string, unknown []string) bool {
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

// removeUnknown removes the members without a field in a type, and returns their names.
func removeUnknown(t *schema.Type, members map[string]json.RawMessage) (names []string) {
	for name := range members {
		if t.ByName[name] == nil && !strings.HasPrefix(name, "_") {
			delete(members, name)
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// removeInherited removes the inherited values, and the empty values that need not be given, from the members of a new resource. An
// exported resource has both.
func removeInherited(t *schema.Type, members map[string]json.RawMessage) {
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

// shownMembers returns the members of a resource as the user who started the import sees them.
func (p *executor) shownMembers(row *store.Resource) (members map[string]json.RawMessage, err error) {
	raw, err := p.show(p.Tx, row, p.Caller)
	if err == nil {
		err = json.Unmarshal(raw, &members)
	}
	return members, err
}

// update changes a resource where the row differs from it.
func (p *executor) update(c *resource.Change, r *row, there *store.Resource, o outcome) (outcome, error) {
	t := p.API.TypeNamed(there.Type)
	o.row = there
	shown, err := p.shownMembers(there)
	if err != nil {
		return o, err
	}
	if err := p.dropSameLinks(t, c.Sent, there); err != nil {
		return o, err
	}
	on := resource.Subject{Collection: p.API.Collection(there.Collection), ID: there.ID}
	var fixed []string
	for name, value := range c.Sent {
		f := t.ByName[name]
		if f != nil && f.Kind == schema.Reference && f.Column == "" && !f.ReadOnly {
			if err := sameReference(name, value, shown[name]); err != nil {
				return o, err
			}
		}
		named := f != nil && sameNamed(f, value, shown)
		if named {
			now, err := p.isNowThere(f, value, there)
			if err != nil {
				return o, err
			}
			named = !now
		}
		switch {
		case f == nil || name == "id" || name == "type" || f.Column != "" ||
			r.matchesShown(name, p.asShown(f, value, shown[name]), shown), named:
			delete(c.Sent, name)
		case f.Kind == schema.SecretText && f.Once:
			if same, err := p.hasSecret(on, there, name, value); err != nil {
				return o, err
			} else if same {
				delete(c.Sent, name)
			}
		case f.ReadOnly || f.CreateOnly:
			if delete(c.Sent, name); !f.Computed && !f.Transient {
				fixed = append(fixed, name)
			}
		}
	}
	if fixed != nil {
		slices.Sort(fixed)
		if p.declared {
			return o, problem.Invalid(fixed[0], "cannot be changed (it is %s)", shown[fixed[0]])
		}
		o.messages = append(o.messages, "left unchanged because it is read-only: "+strings.Join(fixed, ", "))
	}
	if len(c.Sent) == 0 {
		return o, nil
	}
	if err := p.checkAccess(resource.ActionChange, on); err != nil {
		return o, err
	}
	o.result = updated
	if o.fields, err = p.changedFields(t, c.Sent, shown, there); err != nil {
		return o, err
	}
	o.row, err = p.API.Rewrite(c, there, false)
	o.once = shownOnce(t, c.Extra)
	return o, err
}

// shownOnce returns the secrets that are shown once among the extra members of an answer; nil if there are none.
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
