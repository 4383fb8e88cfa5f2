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

// Head is what every resource has; every declared type embeds it. The tag head on the embedded
// field says what holds for the name: required, nonblank, readOnly.
type Head struct {
	// ID is the resource's number, unique over the whole manager.
	ID int64 `api:"id,readOnly"`
	// Type is the name of the resource's type.
	Type string `api:"type"`
	// Name is the resource's name; null where it has none.
	Name string `api:"name"`
	// UserDefinedFields are free values by name.
	UserDefinedFields map[string]string `api:"userDefinedFields"`

	// Parent is the resource above, 0 where there is none. It is not a field of the API.
	Parent int64
	// Config is the configuration the resource lies in, 0 outside of all.
	Config int64
}

func (h *Head) head() *Head { return h }

// Object is a decoded resource: a pointer to a struct that embeds Head.
type Object interface{ head() *Head }

// HeadOf gives the head of an object.
func HeadOf(o Object) *Head { return o.head() }

// Ref is a field that refers to one resource; the zero value is null.
type Ref struct {
	ID int64
	// By is what a request names the resource by, where not by id: the value of the field's
	// identify tag. Rules resolve it.
	By string
}

// RefList is a field that refers to many resources. It is write-only: what it holds shows in a
// subcollection.
type RefList struct {
	// Given says that the request has the field; without it a change leaves the links alone.
	Given bool
	Items []RefItem
}

// Refer gives a list of references to resources, each once.
func Refer(ids []int64) RefList {
	list := RefList{Given: true}
	for _, id := range slices.Compact(slices.Sorted(slices.Values(ids))) {
		list.Items = append(list.Items, RefItem{ID: id})
	}
	return list
}

// RefItem is one of a RefList as a request names it, its members decoded as they are.
type RefItem struct {
	ID   int64
	Type string
	// Text holds the item's string members: address, absoluteName, state.
	Text map[string]string
}

// Range is a field of address space. A request may give a size alone, /24, where there is a parent
// to find it in: then Bits is set and Range is not.
type Range struct {
	space.Range
	Bits     int
	SizeOnly bool
	// Relative is a range by its place in a network, which the type's rules find; zero elsewhere.
	Relative space.Relative
	// Hardware is a hardware address that stands for the range that is made from it; nil elsewhere.
	Hardware net.HardwareAddr
	// Dashed says that it is written low-high, also where it is a prefix.
	Dashed bool
}

// String is the range as it is written.
func (r Range) String() string {
	if r.Dashed {
		return r.Range.Dashed()
	}
	return r.Range.String()
}

// Kind is how a field is written in JSON, kept and compared.
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
	// SecretText is a text that is kept sealed and never shown (Secret).
	SecretText
	// Nested is an object with declared members of its own (a pointer to a struct), NestedList a list of such.
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
	Transient  bool // in answers only, from Change.Extra, else null
	NonBlank   bool
	Blank      bool     // of a name: shown as "" where it is not set, and null in a filter as well as ""
	List       bool     // of Raw: a list, not an object
	Any        bool     // of Raw: any value but null
	Duration   bool     // a text that is a length of time as in ISO 8601, PT30S
	Once       bool     // of a secret: the answer to who has it made shows it, once
	Digits     bool     // of a text: a number is taken as its digits
	Hidden     bool     // of many references: kept, and neither taken nor shown
	Identity   bool     // of a member of an entry of a list: what tells entries apart
	Variant    bool     // of a nested object: says which of the members with For there are
	For        []string // of a member of a nested object: the values of the variant that have it; empty: all
	DNS        bool     // compares as a DNS name; the row's key
	Inline     bool     // shown where a reference to the resource is inlined, beside id, type and name
	Computed   bool     // found as it is shown, and kept nowhere: nothing can be filtered or ordered by it
	Hardware   bool     // a hardware address, which a filter may give in any notation
	DUID       bool     // a DUID (RFC 8415 section 11), which a filter may give in any notation
	KeyPrefix  string   // not empty: the row's look-up key is this and the field
	Indexed    bool     // kept in the body, looked up and ordered by: the store has an index of it
	Searched   bool     // kept in the body as text, and found by what stands anywhere in it: the store's index of trigrams has it
	OnPost     bool     // required in POST
	OnPut      bool     // required in PUT
	Enum       []string
	// Others is what values look like that are allowed beside those of Enum; nil where no others are.
	Others   *regexp.Regexp
	Refs     []string // types a reference may point to; empty: any
	Identify string   // the field of the target that a body may name it by, beside id
	Span     bool     // the row's span is this address
	Sums     bool     // counts what lies below, and is not shown to who does not see all of that
	Tells    bool     // is text that may name other resources of the configuration; shown to callers that see all of it
	Chosen   bool     // where a request that makes a resource does not name it, the manager chooses a value: null is another thing
	Inherit  bool     // where it is not set, the value of the nearest resource above that sets it holds
	Column   string   // "parent" or "configuration" where the row has the reference
	Min, Max *int64
	Unless   string   // a member that stands in for a required one
	Back     []string // the subcollections of what it refers to that hold where it comes from
	FilterAs string   // of many references: the name that filters have for one of them
	// Also, where it is not empty, is the name of the field that this is another name of, as a later release has it: both are shown, and
	// either is taken.
	Also string
	// Always is what a computed text, true or false is in every resource of the type; empty where it is found each time.
	Always    string
	Default   string
	Example   string // a value for the documentation
	MaxLength int
	// OnDelete is the effect of deleting the target on the resource that refers to it: clear removes the reference (the default),
	// cascade deletes the resource too (of a list: with its last target), refuse refuses the deletion.
	OnDelete string
	// OnSplit is the effect of splitting the target on the resource that refers to it: copy makes a copy for each part.
	OnSplit string
	// Owner is the struct that declares the field: the type's own, or one that it embeds.
	Owner string
	// Members are those of a nested object; secret says that one of them, at any depth, is a SecretText.
	Members []*Field
	secret  bool
	goType  reflect.Type // of a field with members
	other   *Field       // the same by another name (Also); nil where it has none

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

	// Parents are the collections of its parents, where they are not its collection's.
	Parents []string
	// Unique is where no other resource of the collection may have the name: siblings or all; empty where names may be the same. wholeName
	// says that the type's own rules let no other one of it have the look-up key in the same place.
	Unique string
	// NotMade says that no POST makes one.
	NotMade bool
	// Did is what making one did, for the history, where it is the record of something: "Merged IPv4Network"; empty elsewhere.
	Did string
	// Later says that a later release alone has it: a request has to name it.
	Later  bool
	goType reflect.Type
	ByName map[string]*Field
	Inline *Field   // the field that is shown where a reference is inlined; nil where none is
	Refs   []*Field // single references, and transient fields, as rendered behind the body

	// secret says that a field, at any depth, is kept sealed.
	secret bool
	// single are the fields of one reference, those that are only written among them.
	single []*Field
	// stored are the names of the members of bodies, in their order. nulls has `,"name":null` for each of them, the one of stored[i] from
	// nullAt[i] on.
	stored []string
	// also are, for each of stored, the name of the member that it is another name of; empty where it is none.
	also   []string
	nulls  []byte
	nullAt []int
}

// Field gives a field by its name.
func (t *Type) Field(name string) (*Field, bool) {
	f, ok := t.ByName[name]
	return f, ok
}

// New makes an object of the type with its defaults.
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

// Declare reads a type from the struct of its sample, once, at start. A fault in the declaration
// is a programming error and panics.
//
// The embedded head may have tags: `head` are options of the field name, `unless` a member that stands in for it;
// `unique` (siblings, all) says that no other one of the collection may have the name; `parents` are the collections
// whose resources may be a parent of this type, where they are not those of the collection; `post:"no"` says that no
// POST makes one; `later` names the release that first has it; `did` is what making one did, in words for the history.
func Declare(sample Object) *Type {
	goType := reflect.TypeOf(sample).Elem()
	t := &Type{Name: goType.Name(), goType: goType, ByName: map[string]*Field{}, Operation: snake(goType.Name())}
	t.collect(goType, nil)
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
		if f.Stored() {
			t.stored, t.also, t.nullAt = append(t.stored, f.Name), append(t.also, f.Also), append(t.nullAt, len(t.nulls))
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

func (t *Type) collect(s reflect.Type, index []int) {
	for i := range s.NumField() {
		member := s.Field(i)
		at := append(append([]int{}, index...), i)
		if member.Anonymous && member.Type.Kind() == reflect.Struct {
			if parents, ok := member.Tag.Lookup("parents"); ok {
				t.Parents = split(parents)
			}
			if unique := member.Tag.Get("unique"); unique != "" {
				t.Unique = oneOf("unique", unique, "siblings", "all", "wholeName")
			}
			t.NotMade = t.NotMade || member.Tag.Get("post") == "no"
			t.Later = t.Later || member.Tag.Get("later") != ""
			t.Did = cmp.Or(t.Did, member.Tag.Get("did"))
			before := len(t.Fields)
			t.collect(member.Type, at)
			if tag := member.Tag.Get("head"); tag != "" {
				for _, f := range t.Fields[before:] {
					if f.Name == "name" {
						f.options(tag)
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
			f.other = f.also(name)
			t.Fields = append(t.Fields, f.other)
		}
	}
}

// also gives the field by another name.
func (f *Field) also(name string) *Field {
	other := *f
	other.Name, other.Also, other.Computed = name, f.Name, true
	other.OnPost, other.OnPut, other.Indexed, other.Searched, other.Inherit, other.Inline = false, false, false, false, false, false
	other.Back, other.FilterAs = nil, ""
	return &other
}

// Elsewhere reports whether giving the field may make or change something outside of the resource: it links others, or names
// one by a text, which is then found or made.
func (f *Field) Elsewhere() bool { return f.Kind == References || f.Identify != "" }

// oneOf gives the value of a tag, which must be one of some.
func oneOf(tag, value string, values ...string) string {
	if !slices.Contains(values, value) {
		panic(fmt.Sprintf("the tag %s is %q, which is none of %v", tag, value, values))
	}
	return value
}

func split(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, "|")
}

func bound(text string) *int64 {
	if text == "" {
		return nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		panic("a bound that is no number: " + text)
	}
	return &n
}

// snake gives IPV4_NETWORK for IPv4Network and MX_RECORD for MXRecord.
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

// StoreField gives where the store keeps a field.
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

// TextOf gives a field of an object as text: a text, or a range as it is written; empty where the type has no such field.
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

// RefOf gives a reference of an object, to be read or set; nil where the type has no such field.
func (t *Type) RefOf(o Object, field string) *Ref {
	f := t.ByName[field]
	if f == nil {
		return nil
	}
	ref, _ := reflect.ValueOf(o).Elem().FieldByIndex(f.Index).Addr().Interface().(*Ref)
	return ref
}

// IsTrue reports whether a field of an object is true; it is not where the type has no such field.
func (t *Type) IsTrue(o Object, field string) bool {
	f := t.ByName[field]
	if f == nil {
		return false
	}
	is, _ := reflect.ValueOf(o).Elem().FieldByIndex(f.Index).Interface().(bool)
	return is
}

// IsUnset reports whether a field of an object is what it is where nothing is said.
func (t *Type) IsUnset(o Object, field string) bool {
	f := t.ByName[field]
	return f == nil || reflect.ValueOf(o).Elem().FieldByIndex(f.Index).IsZero()
}

// Unset takes a field of an object back to what it is where nothing is said.
func (t *Type) Unset(o Object, field string) {
	if f := t.ByName[field]; f != nil {
		reflect.ValueOf(o).Elem().FieldByIndex(f.Index).SetZero()
	}
}
