package schema

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"reflect"
	"regexp"
	"strings"
	"time"
)

// maxIndexed is the maximum length of a text with an index, in characters: PostgreSQL limits an index entry to 2,704 bytes.
const maxIndexed = 255

func declareField(member reflect.StructField, tag string, index []int) *Field {
	name, options, _ := strings.Cut(tag, ",")
	f := &Field{Name: name, Nullable: true, Index: index, MaxLength: 255}
	goType := member.Type
	if goType.Kind() == reflect.Pointer {
		f.ptr = true
		goType = goType.Elem()
	}
	switch reflect.Zero(goType).Interface().(type) {
	case string:
		f.Kind = Text
	case bool:
		f.Kind = Bool
	case int64:
		f.Kind = Integer
	case float64:
		f.Kind = Float
	case time.Time:
		f.Kind = Time
	case netip.Addr:
		f.Kind = Address
	case Range:
		f.Kind, f.Nullable = Span, false
	case map[string]string:
		f.Kind = Map
	case json.RawMessage:
		f.Kind = Raw
	case []string:
		f.Kind = Strings
	case []int64:
		f.Kind = Integers
	case Ref:
		f.Kind = Reference
	case RefList:
		f.Kind, f.WriteOnly = References, true
	case Secret:
		f.Kind, f.secret = SecretText, true
	default:
		f.declareNested(goType)
	}
	if (f.Kind == Bool || f.Kind == Integer) && !f.ptr {
		f.Nullable = false
	}
	f.setOptions(options)
	f.For = splitTag(member.Tag.Get("for"))
	f.Default = member.Tag.Get("default")
	f.Example = member.Tag.Get("example")
	f.Always = member.Tag.Get("always")
	f.FilterAs = member.Tag.Get("filterAs")
	f.Identify = member.Tag.Get("identify")
	f.Column, f.FilterColumn = member.Tag.Get("column"), member.Tag.Get("filterColumn")
	f.KeyPrefix = member.Tag.Get("key")
	f.Unless, f.Of = member.Tag.Get("unless"), member.Tag.Get("of")
	f.Enum = splitTag(member.Tag.Get("enum"))
	if others := member.Tag.Get("others"); others != "" {
		f.Others = regexp.MustCompile("^(" + others + ")$")
	}
	f.Refs = splitTag(member.Tag.Get("ref"))
	f.Back = splitTag(member.Tag.Get("back"))
	if rule := member.Tag.Get("onDelete"); rule != "" {
		f.OnDelete = oneOf("onDelete", rule, "clear", "cascade", "refuse")
	}
	if rule := member.Tag.Get("onSplit"); rule != "" {
		f.OnSplit = oneOf("onSplit", rule, "copy")
	}
	f.Min, f.Max = parseBound(member.Tag.Get("min")), parseBound(member.Tag.Get("max"))
	if n := parseBound(member.Tag.Get("length")); n != nil {
		f.MaxLength = int(*n)
	}
	if f.Indexed && (f.Kind != Text && f.Kind != Time && f.Kind != Integer || f.MaxLength > maxIndexed) {
		panic(fmt.Sprintf("field %s has an index, but is not a time, an integer or a text of at most %d characters", name, maxIndexed))
	}
	if f.Searched && (f.Kind != Text && f.Kind != Address || !f.Stored()) {
		panic("field " + name + " is searched, but is not a text in the body")
	}
	if f.Name == "id" {
		f.Nullable = false
	}
	return f
}

func (f *Field) setOptions(text string) {
	for _, option := range splitTag(strings.ReplaceAll(text, ",", "|")) {
		switch option {
		case "required":
			f.OnPost, f.OnPut, f.Nullable = true, true, false
		case "post":
			f.OnPost, f.Nullable = true, false
		case "put":
			f.OnPut = true
		case "nullable":
			f.Nullable = true
		case "notNull":
			f.Nullable = false
		case "readOnly":
			f.ReadOnly = true
		case "writeOnly":
			f.WriteOnly = true
		case "createOnly":
			f.CreateOnly = true
		case "transient":
			f.Transient, f.ReadOnly = true, true
		case "nonblank":
			f.NonBlank = true
		case "blank":
			f.Blank = true
		case "dns":
			f.DNS = true
		case "inline":
			f.Inline = true
		case "computed":
			f.Computed, f.ReadOnly = true, true
		case "hardware":
			f.Hardware = true
		case "duid":
			f.DUID = true
		case "index":
			f.Indexed = true
		case "search":
			f.Searched = true
		case "span":
			f.Span = true
		case "sums":
			f.Sums = true
		case "tells":
			f.Tells = true
		case "inherit":
			f.Inherit = true
		case "chosen":
			f.Chosen = true
		case "list":
			f.List = true
		case "any":
			f.Any = true
		case "duration":
			f.Duration = true
		case "variant":
			f.Variant = true
		case "digits":
			f.Digits = true
		case "hidden":
			f.Hidden, f.ReadOnly, f.WriteOnly = true, true, true
		case "identity":
			f.Identity = true
		case "once":
			f.Once = true
		default:
			panic("field " + f.Name + " has an unknown option " + option)
		}
	}
}
