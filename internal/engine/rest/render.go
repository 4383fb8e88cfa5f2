package rest

import (
	"fmt"
	"slices"
	"strconv"

	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// plan are the texts of the links of a collection's resources, built once. The resource's id is written between them.
type plan struct {
	collectionPath string // /api/v2/networks/
	parentPath     string // the path of the parent's collection if there is only one, otherwise empty
	root           string // /api/v2/
	// self are the texts before the id and before the up link; subs before each further id; last after all.
	self [2]string
	subs []string
	last string
}

func newPlan(base string, c *resource.Collection) *plan {
	p := &plan{collectionPath: base + "/" + c.Path() + "/", root: base + "/"}
	if len(c.Parents) == 1 {
		p.parentPath = base + "/" + c.Parents[0] + "/"
	}
	p.self = [2]string{`"_links":{"self":{"href":"` + p.collectionPath, `"},"collection":{"href":"` + base + "/" + c.Path() + `"}`}
	before := ""
	for _, s := range c.Subs {
		if s.Ours || s.Later {
			continue
		}
		p.subs = append(p.subs, before+`,"`+s.Name+`":{"href":"`+p.collectionPath)
		before = "/" + s.Name + `"}`
	}
	p.last = before + "}"
	return p
}

// renderer writes resources in one snapshot. It caches inlined references.
type renderer struct {
	api *Server
	tx  *store.Tx
	// caller is the recipient of the answer. limited says that some resources are hidden from it. hidden are the hidden resources found
	// so far, partlyHidden those with hidden resources below them. The maps are nil if limited is false.
	caller               resource.Caller
	limited              bool
	hidden, partlyHidden map[int64]bool
	// seen are resources that are known to be visible.
	seen        map[int64]bool
	links       bool
	heads       map[int64]store.Head
	inlined     map[int64][]byte
	neededHeads []int64
	// last is the type of the previous row, lastOf its collection.
	last   *schema.Type
	lastOf *resource.Collection
	// defined are the user-defined fields that resources of the type definedFor show without setting them; nil if there are none.
	defined    map[string]*string
	definedFor *schema.Type
	// embedded is the number of embedded resources so far.
	embedded int
}

func (a *Server) renderer(tx *store.Tx, m media, caller resource.Caller) *renderer {
	rd := &renderer{api: a, tx: tx, caller: caller, limited: caller.Limited(), links: m == asHAL || m == asHTML,
		heads: map[int64]store.Head{}, inlined: map[int64][]byte{}}
	if rd.limited {
		rd.hidden, rd.partlyHidden, rd.seen = map[int64]bool{}, map[int64]bool{}, map[int64]bool{}
	}
	return rd
}

// typeOf returns a row's type, nil if it is not declared. It caches the type, because the next row most often has the same.
func (rd *renderer) typeOf(r *store.Resource) *schema.Type {
	t, _ := rd.declared(r)
	return t
}

// declared returns a row's type and its collection; nil if it is not declared.
func (rd *renderer) declared(r *store.Resource) (*schema.Type, *resource.Collection) {
	if rd.last == nil || rd.last.Name != r.Type {
		if rd.last, rd.lastOf = rd.api.TypeNamed(r.Type), nil; rd.last != nil {
			rd.lastOf = rd.api.CollectionOf(rd.last)
		}
	}
	return rd.last, rd.lastOf
}

// collectHeads records the resources whose heads a row needs.
func (rd *renderer) collectHeads(r *store.Resource) {
	add := func(id int64) {
		if id > resource.RootID {
			if _, ok := rd.heads[id]; !ok && !rd.hidden[id] {
				rd.neededHeads = append(rd.neededHeads, id)
			}
		}
	}
	t, c := rd.declared(r)
	if t == nil {
		return
	}
	for _, f := range t.Refs {
		switch f.Column {
		case "configuration":
			add(r.Configuration)
		case "parent":
			add(r.Parent)
		}
	}
	for _, ref := range r.Refs {
		add(ref.Target)
	}
	looked := rd.limited && !rd.caller.Rights.SeesParent(r.ID)
	looked = looked || rd.limited && (c.From != store.Resources || c.Guard != resource.AnyCaller)
	if rd.limited && !looked {
		rd.seen[r.Parent] = true
	}
	if rd.links && (looked || len(c.Parents) != 1) && (len(c.Parents) > 0 || c.Inner) {
		add(r.Parent)
	}
}

// prepare completes rows and reads the data that they need of other resources.
func (rd *renderer) prepare(rows []*store.Resource) (err error) {
	for _, r := range rows {
		if r.Body, err = rd.appendFullBody(nil, r); err != nil {
			return err
		}
	}
	if err := rd.complete(rows); err != nil {
		return err
	}
	return rd.loadFor(rows)
}

// appendFullBody appends the body of a row with all members that it omits. Bodies from other sources are complete.
func (rd *renderer) appendFullBody(b []byte, r *store.Resource) ([]byte, error) {
	t, c := rd.declared(r)
	if t == nil || c.From != store.Resources {
		return append(b, r.Body...), nil
	}
	b, err := t.AppendWhole(b, r.Body)
	if err != nil {
		err = fmt.Errorf("the body of resource %d: %w", r.ID, err)
	}
	return b, err
}

// complete adds the values that collections show in addition to the stored ones to rows with whole bodies.
func (rd *renderer) complete(rows []*store.Resource) error {
	if len(rows) == 0 {
		return nil
	}
	if one := rows[0].Collection; !slices.ContainsFunc(rows, func(r *store.Resource) bool { return r.Collection != one }) {
		if c := rd.completes(rows[0]); c != nil {
			return c.Complete(rd.tx, rows)
		}
		return nil
	}
	byCollection := map[string][]*store.Resource{}
	for _, r := range rows {
		if c := rd.completes(r); c != nil {
			byCollection[c.Name] = append(byCollection[c.Name], r)
		}
	}
	for _, c := range rd.api.Collections() {
		if shown := byCollection[c.Name]; len(shown) > 0 {
			if err := c.Complete(rd.tx, shown); err != nil {
				return err
			}
		}
	}
	return nil
}

// completes returns the collection of a row if it shows more than the stored values; nil otherwise.
func (rd *renderer) completes(r *store.Resource) *resource.Collection {
	if _, c := rd.declared(r); c != nil && c.Complete != nil {
		return c
	}
	return nil
}

// loadFor reads the data that completed rows need of other resources.
func (rd *renderer) loadFor(rows []*store.Resource) error {
	for _, r := range rows {
		rd.collectHeads(r)
	}
	if err := rd.concealSums(rows); err != nil {
		return err
	}
	return rd.load()
}

// load reads the wanted heads that are not cached, with one query.
func (rd *renderer) load() (err error) {
	if len(rd.neededHeads) == 0 {
		return nil
	}
	slices.Sort(rd.neededHeads)
	rd.neededHeads = slices.Compact(rd.neededHeads)
	if rd.limited {
		asked := slices.Clone(rd.neededHeads)
		defer func() {
			if err == nil {
				err = rd.conceal(asked)
			}
		}()
	}
	var missing []int64
	for _, id := range rd.neededHeads {
		h, ok := rd.api.heads.Get(rd.tx, id)
		if !ok {
			missing = append(missing, id)
		}
		if came, fresh := rd.tx.PrefetchedHead(id); fresh {
			rd.heads[id] = came
		} else if ok {
			rd.heads[id] = h
		}
	}
	rd.neededHeads = rd.neededHeads[:0]
	rd.tx.NoteHeads(missing)
	if len(missing) == 0 {
		return nil
	}
	if err := rd.tx.Heads(missing, rd.heads); err != nil {
		return err
	}
	for _, id := range missing {
		if h, ok := rd.heads[id]; ok {
			rd.api.heads.Put(rd.tx, id, h)
		}
	}
	return nil
}

// append writes one resource. Its heads must be loaded.
func (rd *renderer) append(b []byte, r *store.Resource, extra map[string]string) ([]byte, error) {
	t, c := rd.declared(r)
	if t == nil {
		return nil, fmt.Errorf("resource %d has the type %s, which is not declared", r.ID, r.Type)
	}
	b = append(b, `{"id":`...)
	if r.ID == 0 { // a resource that does not exist
		b = append(b, "null"...)
	} else {
		b = strconv.AppendInt(b, r.ID, 10)
	}
	b = append(b, `,"type":`...)
	b = schema.AppendString(b, r.Type)
	b = append(b, `,"name":`...)
	if rd.concealsName(t, r) {
		b = append(b, "null"...)
	} else {
		b = t.AppendName(b, r.Name)
	}
	body, err := rd.visibleBody(t, r)
	if err != nil {
		return nil, err
	}
	if body, err = t.ShowOnce(body, extra); err != nil {
		return nil, err
	}
	if body, err = rd.withUserFields(t, body); err != nil {
		return nil, err
	}
	if len(body) > 2 {
		b = append(b, ',')
		b = append(b, body[1:len(body)-1]...)
	}
	for _, f := range t.Refs {
		b = append(b, ',', '"')
		b = append(b, f.Name...)
		b = append(b, '"', ':')
		if f.Transient {
			if text, ok := extra[f.Name]; ok {
				b = schema.AppendString(b, text)
			} else {
				b = append(b, "null"...)
			}
			continue
		}
		b = append(b, rd.inline(r, f)...)
	}
	if rd.links {
		b = append(b, ',')
		b = rd.appendLinks(b, r, c)
	}
	return append(b, '}'), nil
}

// concealsName reports whether the name of a recorded action, such as a merge, mentions a resource that is hidden from the caller.
func (rd *renderer) concealsName(t *schema.Type, r *store.Resource) bool {
	return rd.limited && t.ByName["transaction"] != nil &&
		slices.ContainsFunc(r.Refs, func(ref store.Ref) bool { return rd.hidden[ref.Target] })
}

// null is JSON's null. It must not be modified.
var null = []byte("null")

// inline returns the inlined form of a single reference, or null.
func (rd *renderer) inline(r *store.Resource, f *schema.Field) []byte {
	var id int64
	switch f.Column {
	case "configuration":
		id = r.Configuration
	case "parent":
		id = r.Parent
	default:
		for _, ref := range r.Refs {
			if ref.Field == f.Name {
				id = ref.Target
			}
		}
	}
	if id == 0 {
		return null
	}
	if b, ok := rd.inlined[id]; ok {
		return b
	}
	head, ok := rd.heads[id]
	if len(f.Refs) == 1 {
		if t := rd.api.TypeNamed(f.Refs[0]); t != nil && rd.api.CollectionOf(t).History { // transactions have no heads
			head, ok = store.Head{ID: id, Collection: t.Collection, Type: t.Name}, true
		}
	}
	if !ok && rd.hidden[id] && rd.api.CollectionOf(rd.typeOf(r)).Guard == resource.Granted { // null would mean a right everywhere
		return append(strconv.AppendInt([]byte(`{"id":`), id, 10), '}')
	}
	if !ok {
		return null
	}
	if f.Column == "parent" && len(f.Refs) == 1 && head.Type != f.Refs[0] {
		return null // the parent is of another type, such as a zone above a zone
	}
	b := rd.appendHead(make([]byte, 0, headRoom), head)
	rd.inlined[id] = b
	return b
}

// headRoom is the length of most heads, in bytes.
const headRoom = 160

// appendHead writes the form of a resource in references to it.
func (rd *renderer) appendHead(b []byte, head store.Head) []byte {
	b = append(b, `{"id":`...)
	b = strconv.AppendInt(b, head.ID, 10)
	b = append(b, `,"type":`...)
	b = schema.AppendString(b, head.Type)
	b = append(b, `,"name":`...)
	t := rd.api.TypeNamed(head.Type)
	b = t.AppendName(b, head.Name)
	if t != nil && t.Inline != nil {
		b = append(b, ',')
		b = schema.AppendString(b, t.Inline.Name)
		b = append(b, ':')
		if head.Inline == "" {
			b = append(b, "null"...)
		} else {
			b = append(b, head.Inline...)
		}
	}
	if rd.links {
		b = append(b, `,"_links":{"self":{"href":"`...)
		b = append(b, rd.api.Base+"/"...)
		if c := rd.api.Collection(head.Collection); c == nil {
			b = append(b, head.Collection+"/"...)
		} else if !c.Inner { // otherwise its only path is the one by id
			b = append(b, c.Path()+"/"...)
		}
		b = strconv.AppendInt(b, head.ID, 10)
		b = append(b, `"}}`...)
	}
	return append(b, '}')
}

func (rd *renderer) appendLinks(b []byte, r *store.Resource, c *resource.Collection) []byte {
	p := rd.api.plans[c.Name]
	if r.ID == 0 {
		b = append(b, `"_links":{"collection":{"href":"`+p.collectionPath[:len(p.collectionPath)-1]+`"}`...)
		if above := rd.parentPath(r, c, p); above != "" {
			b = append(strconv.AppendInt(append(b, `,"up":{"href":"`+above...), r.Parent, 10), `"}`...)
		}
		return append(b, '}')
	}
	if c.Inner {
		above := rd.parentPath(r, c, p) + strconv.FormatInt(r.Parent, 10)
		return append(b, `"_links":{"self":{"href":"`+above+"/"+c.PathBelow()+"/"+strconv.FormatInt(r.ID,
			10)+`"},"collection":{"href":"`+above+"/"+c.PathBelow()+`"},"up":{"href":"`+above+`"}}`...)
	}
	var digits [20]byte
	id := strconv.AppendInt(digits[:0], r.ID, 10)
	b = append(b, p.self[0]...)
	b = append(b, id...)
	b = append(b, p.self[1]...)
	if above := rd.parentPath(r, c, p); above != "" {
		b = append(b, `,"up":{"href":"`...)
		b = append(b, above...)
		b = strconv.AppendInt(b, r.Parent, 10)
		b = append(b, `"}`...)
	}
	for _, sub := range p.subs {
		b = append(b, sub...)
		b = append(b, id...)
	}
	return append(b, p.last...)
}

// parentPath returns the path in front of the parent's id. It is empty without a visible parent.
func (rd *renderer) parentPath(r *store.Resource, c *resource.Collection, p *plan) string {
	switch {
	case r.Parent == 0 || len(c.Parents) == 0 && !c.Inner || c.NoUp, rd.hidden[r.Parent]:
		return ""
	case r.Parent == resource.RootID && !c.Inner: // transactions have their own numbers
		return p.root
	case p.parentPath != "":
		return p.parentPath
	}
	head, ok := rd.heads[r.Parent]
	if !ok {
		return ""
	}
	if above := rd.api.Collection(head.Collection); above != nil {
		return rd.api.Base + "/" + above.Path() + "/"
	}
	return rd.api.Base + "/" + head.Collection + "/"
}

// renderResource renders a single resource with the selected fields.
func (rd *renderer) renderResource(b []byte, r *store.Resource, p *schema.Projection, caller resource.Caller,
	extra map[string]string) ([]byte,
	error) {
	shown := *r
	if err := rd.prepareOne(&shown); err != nil {
		return nil, err
	}
	return rd.project(b, &shown, p, caller, extra)
}

// Show returns a resource as GET returns it, as plain JSON.
func (a *Server) Show(tx *store.Tx, r *store.Resource, caller resource.Caller) ([]byte, error) {
	return a.renderer(tx, asJSON, caller).renderResource(nil, r, nil, caller, nil)
}

// project renders a resource whose heads are loaded.
func (rd *renderer) project(b []byte, r *store.Resource, p *schema.Projection, caller resource.Caller, extra map[string]string) ([]byte,
	error) {
	if p == nil {
		return rd.append(b, r, extra)
	}
	object, err := rd.append(nil, r, extra)
	if err != nil {
		return nil, err
	}
	if object, err = p.Apply(object); err != nil {
		return nil, err
	}
	b = append(b, object...)
	if len(p.Embeds) > 0 {
		return rd.embed(b, r, p.Embeds, caller)
	}
	return b, nil
}
