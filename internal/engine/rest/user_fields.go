package rest

import (
	"encoding/json"

	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// userDefined is the member with the user-defined fields.
const userDefined = "userDefinedFields"

// withUserFields returns a body with all user-defined fields of its type. Fields that it does not set have their default or null.
func (rd *renderer) withUserFields(t *schema.Type, body []byte) ([]byte, error) {
	if rd.api.UserFields == nil {
		return body, nil
	}
	if rd.definedFor != t { // the next row most often has the same type
		fields, err := rd.api.UserFields.Missing(rd.tx, rd.api.API, t.Name)
		if err != nil {
			return nil, err
		}
		rd.defined, rd.definedFor = fields, t
	}
	fields := rd.defined
	if len(fields) == 0 {
		return body, nil
	}
	var own struct {
		Fields map[string]*string `json:"userDefinedFields"`
	}
	if err := json.Unmarshal(body, &own); err != nil {
		return nil, err
	}
	if own.Fields == nil {
		own.Fields = map[string]*string{}
	}
	for name, value := range fields {
		if _, set := own.Fields[name]; !set {
			own.Fields[name] = value
		}
	}
	text, err := json.Marshal(own.Fields)
	if err != nil {
		return nil, err
	}
	return store.Rewritten(body, map[string][]byte{userDefined: text})
}
