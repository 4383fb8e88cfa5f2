package schema

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"
)

// What may be missing may be null, a time as anything else.
func TestOfGoPointers(t *testing.T) {
	type one struct {
		At    *time.Time `json:"at"`
		Since time.Time  `json:"since"`
	}
	text, err := json.Marshal(OfGo(reflect.TypeFor[one]())["properties"])
	if err != nil || string(text) != `{"at":{"anyOf":[{"type":"string"},{"type":"null"}]},"since":{"type":"string"}}` {
		t.Errorf("%s, %v", text, err)
	}
}
