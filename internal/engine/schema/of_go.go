package schema

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"
)

// ReflectSchema returns the JSON Schema of a Go type as encoding/json encodes it. Members with omitempty or omitzero are not required. The
// tag `enum` lists the values of a text, separated by bars, and `about` describes a member.
func ReflectSchema(t reflect.Type) map[string]any {
	if t.Kind() == reflect.Pointer { // also of a time
		return map[string]any{"anyOf": []any{ReflectSchema(t.Elem()), map[string]any{"type": "null"}}}
	}
	if t == reflect.TypeFor[time.Time]() {
		return map[string]any{"type": "string", "format": "date-time"}
	}
	if t.Implements(reflect.TypeFor[fmt.Stringer]()) { // it is encoded as a text
		return map[string]any{"type": "string"}
	}
	switch t.Kind() {
	case reflect.Interface:
		return map[string]any{}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": ReflectSchema(t.Elem())}
	case reflect.Slice:
		if t == reflect.TypeFor[json.RawMessage]() {
			return map[string]any{"type": "object"}
		}
		return map[string]any{"type": "array", "items": ReflectSchema(t.Elem())}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint8, reflect.Uint16, reflect.Uint32:
		return map[string]any{"type": "integer", "format": "int64"}
	case reflect.Float64:
		return map[string]any{"type": "number"}
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Struct:
	default:
		panic("no schema for " + t.String())
	}
	properties, required := map[string]any{}, []string{}
	for _, f := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == "-" || !f.IsExported() || len(f.Index) > 1 && properties[name] != nil {
			continue
		}
		property := ReflectSchema(f.Type)
		if values := f.Tag.Get("enum"); values != "" {
			property["enum"] = strings.Split(values, "|")
		}
		if about := f.Tag.Get("about"); about != "" {
			property["description"] = about
		}
		properties[name] = property
		if options != "omitempty" && options != "omitzero" {
			required = append(required, name)
		}
	}
	return map[string]any{"type": "object", "properties": properties, "required": required}
}
