package schema

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// OfGo gives the JSON Schema of a Go type as encoding/json writes it. A member that may be left out is not required.
func OfGo(t reflect.Type) map[string]any {
	if t.Kind() == reflect.Pointer { // of a time, too
		return map[string]any{"anyOf": []any{OfGo(t.Elem()), map[string]any{"type": "null"}}}
	}
	if t.Implements(reflect.TypeFor[fmt.Stringer]()) { // it writes itself as a text
		return map[string]any{"type": "string"}
	}
	switch t.Kind() {
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": OfGo(t.Elem())}
	case reflect.Slice:
		if t == reflect.TypeFor[json.RawMessage]() {
			return map[string]any{"type": "object"}
		}
		return map[string]any{"type": "array", "items": OfGo(t.Elem())}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Int, reflect.Int64:
		return map[string]any{"type": "integer", "format": "int64"}
	case reflect.Struct:
	default:
		return map[string]any{"type": "string"}
	}
	properties, required := map[string]any{}, []string{}
	for _, f := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == "-" || !f.IsExported() || len(f.Index) > 1 && properties[name] != nil {
			continue
		}
		properties[name] = OfGo(f.Type)
		if options != "omitempty" && options != "omitzero" {
			required = append(required, name)
		}
	}
	return map[string]any{"type": "object", "properties": properties, "required": required}
}
