package schema

import (
	"cmp"
	"fmt"
	"net"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"portolan/internal/base/space"
	"portolan/internal/engine/store"
)

// Head is the part that all resources have in common; every declared type embeds it. The tag head on the embedded field has options for
// the name: required, nonblank, readOnly.
type Head struct {
	// ID is the resource's number, unique over the whole manager.
	ID int64 `api:"id,readOnly"`
	// Type is the name of the resource's type.
	Type string `api:"type"`
	// Name is the resource's name; null if it has none.
	Name string `api:"name"`
	// UserDefinedFields are free values by name.
	UserDefinedFields map[string]string `api:"userDefinedFields"`

	// Parent is the id of the resource above, 0 for none. It is not a field of the API.
	Parent int64
	// Config is the id of the configuration that contains the resource, 0 outside of all configurations.
	Config int64
}

func (h *Head) head() *Head { return h }

// Object is a decoded resource: a pointer to a struct that embeds Head.
type Object interface{ head() *Head }

// HeadOf returns the head of an object.
func HeadOf(o Object) *Head { return o.head() }

// Ref is a field that refers to one resource; the zero value is null.
type Ref struct {
	ID int64
	// By identifies the resource in a request without its id. It is the value of the target's field that the tag identify names. Rules
	// resolve it.
	By string
}

// RefList is a field that refers to many resources. It is write-only; a subcollection shows its targets.
type RefList struct {
	// IsSet says that the request has the field; otherwise a change leaves the links unchanged.
	IsSet bool
	Items []RefItem
}

// Refer returns a list of references to resources, each once.
func Refer(ids []int64) RefList {
	list := RefList{IsSet: true}
	for _, id := range slices.Compact(slices.Sorted(slices.Values(ids))) {
		list.Items = append(list.Items, RefItem{ID: id})
	}
	return list
}

// RefItem is one element of a RefList as a request names it.
type RefItem struct {
	ID   int64
	Type string
	// Text holds the item's string members: address, absoluteName, state.
	Text map[string]string
}

// Range is a field of address space. If there is a parent, a request may give only a size, such as /24; then Bits is set and Range is
// not.
type Range struct {
	space.Range
	Bits     int
	SizeOnly bool
	// Relative is a range by its position in a network, which the type's rules resolve; zero otherwise.
	Relative space.Relative
	// Hardware is a hardware address if the range is derived from one; nil otherwise.
	Hardware net.HardwareAddr
	// Dashed says that the range is written low-high even if it is a prefix.
	Dashed bool
}

// String returns the range as it is written.
func (r Range) String() string {
	if r.Dashed {
		return r.Range.Dashed()
	}
	return r.Range.String()
}

// Kind determines how a field is written in JSON, stored and compared.
type Kind int

// The kinds of fields.
const (
	Text Kind = iota
	Bool
	Integer
	Float
	Time
	Address
	Span
	Map
	Raw
	Strings
	Integers
	Reference
	References
	// SecretText is a text that is stored encrypted and never shown (Secret).
	SecretText
	// Nested is an object with declared members (a pointer to a struct), NestedList a list of such objects.
	Nested
	NestedList
)

// Field is one declared field.
type Field struct {
	Name       string
	Kind       Kind
	Nullable   bool
	ReadOnly   bool
	WriteOnly  bool
	CreateOnly bool
	Transient  bool // only in answers, from Change.Extra, otherwise null
	NonBlank   bool
	Blank      bool     // of a name: shown as "" if it is not set; in a filter, both null and "" match
	List       bool     // of Raw: a list, not an object
	Any        bool     // of Raw: any value except null
	Duration   bool     // a text with a length of time as in ISO 8601, PT30S
	Once       bool     // of a secret: shown once, in the answer to its creation
	Digits     bool     // of a text: a number is accepted as its digits
	Hidden     bool     // of many references: stored, but neither accepted nor shown
	Identity   bool     // of a member of a list entry: identifies the entry
	Variant    bool     // of a nested object: determines which members with For exist
	For        []string // of a member of a nested object: the variants that have it; empty: all
	DNS        bool     // a DNS name, compared as such; it is the row's key
	Inline     bool     // shown in inlined references to the resource, in addition to id, type and name
	Computed   bool     // computed when shown, and not stored: lists cannot be filtered or ordered by it
	Hardware   bool     // a hardware address; filters accept any notation
	DUID       bool     // a DUID (RFC 8415 section 11); filters accept any notation
	KeyPrefix  string   // if not empty, the row's look-up key is this prefix and the field
	Indexed    bool     // the store has an index of the field in the body, for filters and orders
	Searched   bool     // a text in the body that is found by any part of it; the store has a trigram index of it
	OnPost     bool     // required in POST
	OnPut      bool     // required in PUT
	Enum       []string
	// Others is the pattern of further values beside those of Enum; nil if there are none.
	Others   *regexp.Regexp
	Refs     []string // types that a reference may point to; empty: any
	Identify string   // the field of the target that may identify it in a body, instead of id
	Span     bool     // the row's span is this address
	Sums     bool     // counts resources below this one; hidden from callers that do not see all of them
	Tells    bool     // a text that may name other resources of the configuration; shown to callers that see all of it
	Of       string   // the reference whose target the value describes; null for callers that do not see the target
	Chosen   bool     // the manager chooses a value if a request that creates a resource omits the field; null is a value of its own
	Inherit  bool     // if it is not set, the value of the nearest resource above that sets it is in effect
	Column   string   // "parent" or "configuration" if the reference is a column of the row
	// FilterColumn is the column with the reference in the table of another source than resources. Filters use it; empty: no filter.
	FilterColumn string
	Min, Max     *int64
	Unless       string   // a member that may replace a required one
	Back         []string // the subcollections of the target that list the sources of the reference
	FilterAs     string   // of many references: its name in filters, for one of the targets
	// Also is the name of the field that this field is another name of, in a later release; empty for other fields. Both are shown, and
	// both are accepted.
	Also string
	// Always is the value of a computed text or boolean that is the same in every resource of the type; empty for other fields.
	Always    string
	Default   string
	Example   string // a value for the documentation
	MaxLength int
	// OnDelete is the effect of deleting the target on the resource that refers to it. clear removes the reference (the default). cascade
	// deletes the resource as well (for a list: with its last target). refuse refuses the deletion.
	OnDelete string
	// OnSplit is the effect of splitting the target on the resource that refers to it: copy creates a copy for each part.
	OnSplit string
	// Owner is the name of the struct that declares the field: the type's own, or one that it embeds.
	Owner string
	// Members are the members of a nested object; secret says that one of them, at any depth, is a SecretText.
	Members     []*Field
	secret      bool
	goType      reflect.Type // of a field with members
	alternative *Field       // the field by another name (Also); nil if it has none

	Index []int
	ptr   bool
}

// Stored reports whether the field is in the body of the row.
func (f *Field) Stored() bool {
	switch f.Name {
	case "id", "type", "name":
		return false
	}
	return !f.WriteOnly && !f.Transient && f.Kind != Reference && f.Kind != References
}

// Type is one declared resource type.
type Type struct {
	Name string
	// Collection is the name of its collection.
	Collection string
	Fields     []*Field
	// Operation is the noun of its operations in the history, such as IPV4_NETWORK.
	Operation   string
	Description string

	// Parents are the collections of its parents, if they differ from those of its collection.
	Parents []string
	// Unique is the extent of unique names in the collection: siblings or all; empty if names may repeat. wholeName says that the type's
	// own rules make the look-up key unique in its place.
	Unique string
	// NotMade says that POST never creates a resource of the type.
	NotMade bool
	// Did is the action that a resource of the type records, for the history: "Merged IPv4Network"; empty for other types.
	Did string
	// Later says that only a later release has the type: a request must name it.
	Later  bool
	goType reflect.Type
	ByName map[string]*Field
	Inline *Field   // the field that is shown in inlined references; nil for none
	Refs   []*Field // single references and transient fields, which are shown after the body

	// secret says that a field, at any depth, is stored encrypted.
	secret bool
	// single are the fields with one reference, including write-only ones.
	single []*Field
	// stored are the names of the members of bodies, in their order. nulls has `,"name":null` for each of them, that of stored[i]
	// starting at nullAt[i].
	stored []string
	// alternatives has, for each of stored, the name of the member that it is another name of; empty for other members.
	alternatives []string
	nulls        []byte
	nullAt       []int
}

// Field returns a field by its name.
func (t *Type) Field(name string) (*Field, bool) {
	f, ok := t.ByName[name]
	return f, ok
}

// New returns an object of the type with its defaults.
func (t *Type) New() Object {
	v := reflect.New(t.goType)
	o := v.Interface().(Object)
	o.head().Type = t.Name
	for _, f := range t.Fields {
		if f.Default != "" && f.Also == "" {
			setDefault(v.Elem().FieldByIndex(f.Index), f)
		}
	}
	return o
}

func setDefault(v reflect.Value, f *Field) {
	switch f.Kind {
	case Bool:
		v.SetBool(f.Default == "true")
	case Integer:
		n, err := strconv.ParseInt(f.Default, 10, 64)
		if err != nil {
			panic(fmt.Sprintf("default of %s: %v", f.Name, err))
		}
		v.SetInt(n)
	case Text:
		v.SetString(f.Default)
	default:
		panic("no defaults for the kind of " + f.Name)
	}
}

// Declare reads a type from the struct of its sample, once, at the start. It panics on a faulty declaration, which is a programming
// error.
//
// The embedded head may have these tags:
//   - `head` has options of the field name, `unless` names a member that may replace it.
//   - `unique` (siblings, all, wholeName) makes names unique (Type.Unique).
//   - `parents` are the collections whose resources may be a parent, if they differ from those of the collection.
//   - `post:"no"` says that POST never creates a resource of the type.
//   - `later` is the release that first has the type.
//   - `did` is the action that a resource of the type records, as text for the history.
func Declare(sample Object) *Type {
	goType := reflect.TypeOf(sample).Elem()
	t := &Type{Name: goType.Name(), goType: goType, ByName: map[string]*Field{}, Operation: snake(goType.Name())}
	t.collectFields(goType, nil)
	for _, f := range t.Fields {
		t.ByName[f.Name] = f
		t.secret = t.secret || f.secret
		if f.Inline {
			t.Inline = f
		}
		if f.Kind == Reference {
			t.single = append(t.single, f)
		}
		if f.Kind == Reference && !f.WriteOnly || f.Transient {
			t.Refs = append(t.Refs, f)
		}
	}
	if t.ByName["name"] == nil {
		panic(t.Name + " does not embed Head")
	}
	for _, f := range t.Fields {
		if of := t.ByName[f.Of]; f.Of != "" && (of == nil || of.Kind != Reference) {
			panic(fmt.Sprintf("the tag of of %s.%s is %q, which is not a reference of the type", t.Name, f.Name, f.Of))
		}
		if f.Stored() {
			t.stored, t.alternatives, t.nullAt = append(t.stored, f.Name), append(t.alternatives, f.Also), append(t.nullAt, len(t.nulls))
			t.nulls = append(AppendString(append(t.nulls, ','), f.Name), ':')
			switch {
			case f.Always != "" && f.Kind == Bool:
				t.nulls = append(t.nulls, f.Always...)
			case f.Always != "":
				t.nulls = AppendString(t.nulls, f.Always)
			default:
				t.nulls = append(t.nulls, "null"...)
			}
		}
	}
	t.nullAt = append(t.nullAt, len(t.nulls))
	return t
}

func (t *Type) collectFields(s reflect.Type, index []int) {
	for i := range s.NumField() {
		member := s.Field(i)
		at := append(append([]int{}, index...), i)
		if member.Anonymous && member.Type.Kind() == reflect.Struct {
			if parents, ok := member.Tag.Lookup("parents"); ok {
				t.Parents = splitTag(parents)
			}
			if unique := member.Tag.Get("unique"); unique != "" {
				t.Unique = oneOf("unique", unique, "siblings", "all", "wholeName")
			}
			t.NotMade = t.NotMade || member.Tag.Get("post") == "no"
			t.Later = t.Later || member.Tag.Get("later") != ""
			t.Did = cmp.Or(t.Did, member.Tag.Get("did"))
			before := len(t.Fields)
			t.collectFields(member.Type, at)
			if tag := member.Tag.Get("head"); tag != "" {
				for _, f := range t.Fields[before:] {
					if f.Name == "name" {
						f.setOptions(tag)
						f.Unless = member.Tag.Get("unless")
					}
				}
			}
			continue
		}
		tag, ok := member.Tag.Lookup("api")
		if !ok {
			continue
		}
		f := declareField(member, tag, at)
		f.Owner = s.Name()
		t.Fields = append(t.Fields, f)
		if name := member.Tag.Get("also"); name != "" {
			f.alternative = f.withName(name)
			t.Fields = append(t.Fields, f.alternative)
		}
	}
}

// withName returns a copy of the field with another name.
func (f *Field) withName(name string) *Field {
	other := *f
	other.Name, other.Also, other.Computed = name, f.Name, true
	other.OnPost, other.OnPut, other.Indexed, other.Searched, other.Inherit, other.Inline = false, false, false, false, false, false
	other.Back, other.FilterAs = nil, ""
	return &other
}

// AffectsOthers reports whether setting the field may create or change other resources: it links them, or names one by a text, which is
// then found or created.
func (f *Field) AffectsOthers() bool { return f.Kind == References || f.Identify != "" }

// oneOf returns the value of a tag, and panics if it is not one of values.
func oneOf(tag, value string, values ...string) string {
	if !slices.Contains(values, value) {
		panic(fmt.Sprintf("the tag %s is %q; it must be one of %v", tag, value, values))
	}
	return value
}

func splitTag(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, "|")
}

func parseBound(text string) *int64 {
	if text == "" {
		return nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		panic("invalid number in a tag: " + text)
	}
	return &n
}

// snake returns IPV4_NETWORK for IPv4Network and MX_RECORD for MXRecord.
func snake(name string) string {
	name = strings.NewReplacer("DHCPv4", "Dhcpv4", "DHCPv6", "Dhcpv6", "IPv4", "Ipv4", "IPv6", "Ipv6", "OAuth", "Oauth").Replace(name)
	var b strings.Builder
	for i := range len(name) {
		c := name[i]
		upper := c >= 'A' && c <= 'Z'
		if upper && i > 0 && (name[i-1] < 'A' || name[i-1] > 'Z' || i+1 < len(name) && name[i+1] >= 'a' && name[i+1] <= 'z') {
			b.WriteByte('_')
		}
		b.WriteByte(c)
	}
	return strings.ToUpper(b.String())
}

// StoreField returns the field of the store that has the values.
func (f *Field) StoreField() store.Field {
	switch f.Name {
	case "id":
		return store.Field{Kind: store.ColumnID}
	case "type", "name":
		return store.Field{Kind: store.ColumnText, Path: []string{f.Name}, Searched: f.Name == "name"}
	}
	kind := store.Text
	switch f.Kind {
	case Bool:
		kind = store.Bool
	case Integer, Float:
		kind = store.Number
	case Address:
		if f.Span {
			return store.Field{Kind: store.ColumnSpan, Path: []string{"low"}}
		}
		kind = store.AddrText
	}
	return store.Field{Kind: kind, Path: []string{f.Name}, Indexed: f.Indexed, Searched: f.Searched}
}

// TextOf returns a field of an object as text: a text, or a range as it is written; empty if the type has no such field.
func (t *Type) TextOf(o Object, field string) string {
	f := t.ByName[field]
	if f == nil {
		return ""
	}
	switch x := reflect.ValueOf(o).Elem().FieldByIndex(f.Index).Interface().(type) {
	case string:
		return x
	case Range:
		return x.String()
	}
	return ""
}

// RefOf returns a reference of an object, to be read or set; nil if the type has no such field.
func (t *Type) RefOf(o Object, field string) *Ref {
	f := t.ByName[field]
	if f == nil {
		return nil
	}
	ref, _ := reflect.ValueOf(o).Elem().FieldByIndex(f.Index).Addr().Interface().(*Ref)
	return ref
}

// IsTrue reports whether a field of an object is true; false if the type has no such field.
func (t *Type) IsTrue(o Object, field string) bool {
	f := t.ByName[field]
	if f == nil {
		return false
	}
	is, _ := reflect.ValueOf(o).Elem().FieldByIndex(f.Index).Interface().(bool)
	return is
}

// IsUnset reports whether a field of an object has its zero value.
func (t *Type) IsUnset(o Object, field string) bool {
	f := t.ByName[field]
	return f == nil || reflect.ValueOf(o).Elem().FieldByIndex(f.Index).IsZero()
}

// Unset sets a field of an object to its zero value.
func (t *Type) Unset(o Object, field string) {
	if f := t.ByName[field]; f != nil {
		reflect.ValueOf(o).Elem().FieldByIndex(f.Index).SetZero()
	}
}
