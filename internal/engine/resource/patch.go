package resource

import (
	"encoding/json"
	"maps"
	"reflect"

	"portolan/internal/engine/schema"
)

// mergePatch returns the members of a patch. Maps and nested objects are merged into the existing values (RFC 7396); other members
// replace theirs.
func mergePatch(t *schema.Type, old schema.Object, patch map[string]json.RawMessage) (map[string]json.RawMessage, error) {
	members := maps.Clone(patch)
	v := reflect.ValueOf(old).Elem()
	for _, f := range t.Fields {
		raw, ok := members[f.Name]
		if ok && f.Kind == schema.Nested {
			whole, err := f.MergeNested(old, raw)
			if err != nil {
				return nil, err
			}
			members[f.Name] = whole
		}
		if !ok || f.Kind != schema.Map || len(raw) == 0 || raw[0] != '{' {
			continue
		}
		var inner map[string]json.RawMessage
		if json.Unmarshal(raw, &inner) != nil {
			continue // the field's decoder reports the error
		}
		merged := map[string]json.RawMessage{}
		for name, value := range v.FieldByIndex(f.Index).Interface().(map[string]string) {
			merged[name] = schema.AppendString(nil, value)
		}
		for name, value := range inner {
			if string(value) == "null" {
				delete(merged, name)
			} else {
				merged[name] = value
			}
		}
		text, err := json.Marshal(merged)
		if err != nil {
			return nil, err
		}
		members[f.Name] = text
	}
	return members, nil
}
